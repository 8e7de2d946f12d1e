"""Every name of ``gcsr reproduce --list`` runs through; small graphs stand in for the datasets."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from paper_helpers import STANDINS, Run, standins

from gcsr.paper.experiments import EXPERIMENTS
from gcsr.paper.tables import NOT_SUPPORTED


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Data, and one folder for all experiments: tables that share cells share their rows."""
    root = tmp_path_factory.mktemp("every")
    return standins(root / "data"), root / "out"


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick(gcsr: Run, folders: tuple[Path, Path], name: str) -> None:
    data, out = folders
    argv = [
        "reproduce",
        name,
        "--quick",
        "--no-download",
        "--device",
        "cpu",
        "--root",
        data,
        "--out",
        out,
    ]
    result = gcsr(*argv)
    assert result.code == 0
    # Subsets of these tiny graphs repeat nodes, which is said.
    assert all("nodes repeat a training node" in line for line in result.err.splitlines())
    assert f"QUICK SMOKE RUN of {name}" in result.out
    one = EXPERIMENTS[name]
    kinds = ["md", "csv", "png", "svg"] if one.drawn else ["md", "csv"]
    files = {kind: (out / f"{name}-quick.{kind}").read_bytes() for kind in kinds}
    assert all(b"QUICK SMOKE RUN" in files[kind] for kind in kinds if kind in ("md", "svg"))
    lines = list(csv.DictReader((out / f"{name}-quick.csv").read_text().splitlines()))
    assert len(lines) == len(one.lines) and {line["quick"] for line in lines} == {"yes"}
    for line in lines:
        expected = {"done"} if line["dataset"] in STANDINS else {"absent"}
        if name == "table3":
            expected |= {NOT_SUPPORTED}
        if name == "ccns":
            expected |= {"not defined"}  # the stand-in has three classes
        assert line["ours_state"] in expected, line
    rows = [json.loads(row) for row in (out / "rows-quick.jsonl").read_text().splitlines()]
    assert len({row["key"] for row in rows}) == len(rows) and all(row["quick"] for row in rows)
