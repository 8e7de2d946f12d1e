"""The command line in this process, and a small graph for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import TINY, Result, Run, small_graph

from gcsr.cli.app import main


@pytest.fixture
def gcsr(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*argv: object) -> Result:
        capsys.readouterr()
        code = main([str(word) for word in argv])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return small_graph().to_npz(tmp_path / "small.npz")


@pytest.fixture
def made(gcsr: Run, data: Path, tmp_path: Path) -> Path:
    out = tmp_path / "made.safetensors"
    assert gcsr("condense", data, "--nodes", 6, *TINY, "--out", out).code == 0
    return out
