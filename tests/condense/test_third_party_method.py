"""The method of docs/write-a-method.md as a package of its own, found through its entry point."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "write-a-method.md"


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def installed(tmp_path) -> dict[str, str]:
    """An environment in which the package is installed as pip would leave it."""
    site = tmp_path / "site"
    folder = site / "averages-0.1.dist-info"
    folder.mkdir(parents=True)
    (site / "averages.py").write_text(block("python"))
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: averages\nVersion: 0.1\n")
    group, line = block("toml").splitlines()[:2]
    assert group == '[project.entry-points."gcsr.methods"]'
    (folder / "entry_points.txt").write_text("[gcsr.methods]\n" + line.replace('"', "") + "\n")
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path}


def gcsr(environment: dict[str, str], folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gcsr.cli", *arguments],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_documented_method_is_found_and_works(installed, tmp_path):
    assert "averages" in gcsr(installed, tmp_path, "methods")
    size = ["--nodes", "50", "--method", "averages", "--set", "k=1"]
    gcsr(installed, tmp_path, "condense", "digits", *size, "--out", "small.safetensors")
    told = gcsr(
        installed,
        tmp_path,
        "evaluate",
        "small.safetensors",
        "--data",
        "digits",
        "--runs",
        "1",
        "--json",
    )
    outcome = json.loads(told)
    assert outcome["mean"] > 90
    assert outcome["nodes"] == 50


def test_the_example_is_as_short_as_it_says():
    lines = [line for line in block("python").splitlines() if line.strip()]
    assert len(lines) <= 40
