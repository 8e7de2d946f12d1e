"""The examples run, and what they print is what they found."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_architecture_search(monkeypatch, capsys, tmp_path):
    search = example("architecture_search", monkeypatch)
    sizes = {"nodes": 20, "method": "random", "trials": 2, "epochs": 10, "out": tmp_path / "s.html"}
    found = search.main([word for key, one in sizes.items() for word in (f"--{key}", str(one))])
    said = capsys.readouterr().out
    assert {one["kind"] for one in found.configurations} <= {"gcn", "sage"}
    assert found.verdict in said
    # One test accuracy, of the winner.
    assert said.count("test accuracy") == 1
    assert (tmp_path / "s.html").exists()


def test_continual_learning(monkeypatch, capsys):
    continual = example("continual", monkeypatch)
    accuracy = continual.main(["--classes", "5", "--methods", "random", "--epochs", "60"])
    (row,) = capsys.readouterr().out.splitlines()
    assert len(accuracy["random"]) == 2
    assert accuracy["random"][-1] > 75  # earlier classes are remembered
    assert f"{accuracy['random'][-1]:.1f}" in row


def test_wordnet(monkeypatch, capsys, tmp_path):
    from tests.datasets.test_wordnet import write_dict

    words = ["--nodes", "6", "--budget", "0.1", "--epochs", "60"]
    accuracy = example("wordnet", monkeypatch).main(["--root", str(write_dict(tmp_path)), *words])
    assert accuracy > 65  # half of the synsets are of one class
    assert f"test accuracy on the real graph: {accuracy:.1f} %" in capsys.readouterr().out
