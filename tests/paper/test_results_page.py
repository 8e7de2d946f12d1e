"""docs/results.md from rows: those of gcsr reproduce win, and agree with every table they are in."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gcsr.benchmarking.cells import Cell, Protocol, cell
from gcsr.paper.experiments import experiment

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("tables")


def row(of: Cell, mean: float, protocol: Protocol | None = None, **more: Any) -> dict[str, Any]:
    protocol = protocol or Protocol()
    found = {"key": str(mean), "cell": "c", "mean": mean, "std": 0.5, "finished": "2026-01-01"}
    leaks = {"leaks_test_labels": of.condenser(protocol).leaks_test_labels}
    return {**of.identity(protocol), **found, **leaks, **more}


def page(tables: ModuleType, folder: Path, capsys: Any, *rows: dict[str, Any]) -> str:
    (folder / "reproduce").mkdir(parents=True)
    (folder / "reproduce" / "some.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in rows))
    tables.main(["--results", str(folder)])
    return str(capsys.readouterr().out)


def section(text: str, name: str) -> list[str]:
    (found,) = [part for part in text.split("\n## ") if part.startswith(f"{name}: ")]
    return [line for line in found.splitlines() if line.startswith("| citeseer")]


def test_rows_become_sections(tables, tmp_path, capsys):
    cells = {tau: cell("gcsr", "citeseer", 60, tau=tau) for tau in (0.5, 0.9, 0.99)}
    older = row(cells[0.9], 71.0)
    del older["settings"]["dtype"]  # a version that did not know it
    old_form = {
        **row(cells[0.9], 12.0),
        "cell": "gcsr/paper/citeseer:60/gcn",
        "model": "gcn",
        "seed": 0,
        "published": 71.7,
    }
    del old_form["method"], old_form["test"]
    (tmp_path / "old.json").write_text(json.dumps([old_form]))
    text = page(
        tables,
        tmp_path,
        capsys,
        row(cells[0.5], 70.5),
        row(cell("gcsr", "citeseer", 60, tau=0.5, prior="predicted"), 68.0),
        older,
        row(cells[0.99], 1.0, Protocol(1, 1, quick=True)),
    )
    assert section(text, "tau") == [
        "| citeseer | 60 | tau = 0.5 | 70.2 ± 1.0 | 70.5 ± 0.5 † | +0.3 | 68.0 ± 0.5 | -2.2 | 5 x 10 |",
        "| citeseer | 60 | tau = 0.9 | 71.8 ± 0.9 | 71.0 ± 0.5 † | -0.8 | not run |  | 5 x 10 |",
    ]
    gcsr_table = text.split("\n## GCSR on Cora")[1].split("\n## ")[0]
    assert "12.0" not in text.replace(
        gcsr_table, ""
    )  # of two rows of a cell, that of gcsr reproduce
    assert "| tau | 2 of 5 | 2 of 2 | 0 of 1 |" in text
    assert "- citeseer, 60 nodes, tau = 0.5: -2.2 (ours 68.0 ± 0.5, published 70.2 ± 1.0)" in text
    # The same row stands in every table that has its cell.
    assert "71.0 ± 0.5 †" in section(text, "table2")[0] and "71.0 ± 0.5 [71.7]" in text
    assert "\n## hops: " not in text


def test_not_supported_cells_are_named(tables, tmp_path, capsys):
    text = page(tables, tmp_path, capsys, row(cell("gcond", "cora", 70), 80.0))
    (part,) = [part for part in text.split("\n## ") if part.startswith("table3: ")]
    assert "| cora | 70 | gcond with appnp | 73.5 ± 2.4 | not supported |" in part


def test_the_page_in_the_repository_is_made_of_its_rows(tables, capsys):
    root = BENCHMARKS.parent
    tables.main(["--results", str(root / "results")])
    assert capsys.readouterr().out == (root / "docs" / "results.md").read_text()


def test_every_experiment_can_be_a_section(tables, tmp_path, capsys):
    rows = [
        row(one, 50.0)
        for name in ("table4", "table5", "hops", "alpha", "beta", "gamma", "regularizer")
        for one in experiment(name).cells
        if one.dataset == "citeseer"
    ]
    text = page(tables, tmp_path, capsys, *rows)
    for name in ("table4", "table5", "hops", "alpha", "beta", "gamma", "regularizer"):
        assert len(section(text, name)) == sum(
            line.dataset == "citeseer" for line in experiment(name).lines
        )
