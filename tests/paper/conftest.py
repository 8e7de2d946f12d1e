"""Small graphs under the names of the paper's datasets, and a tiny experiment on them."""

from __future__ import annotations

from pathlib import Path

import pytest
from paper_helpers import ABSENT, TINY, Result, Run

from gcsr import Graph, InputError
from gcsr.benchmarking import measurement as data
from gcsr.cli.app import main
from gcsr.paper.experiments import EXPERIMENTS
from helpers import planted_graph


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every dataset is a small planted graph but one, which is absent; returns what was asked for."""
    asked: list[str] = []

    def load(name: str, root: Path | None = None) -> Graph:
        asked.append(name)
        if name == ABSENT:
            raise InputError(f"{name}: not in the data folder.")
        inductive = name in ("flickr", "reddit")
        return planted_graph(per_class=30, inductive=inductive).renamed(name)

    monkeypatch.setattr(data, "load", load)
    monkeypatch.setattr(data, "available", lambda name, root: name != ABSENT)
    return asked


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXPERIMENTS, TINY.name, TINY)


@pytest.fixture
def gcsr(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*argv: object) -> Result:
        capsys.readouterr()
        code = main([str(word) for word in argv])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run
