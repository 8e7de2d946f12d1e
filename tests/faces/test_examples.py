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
    sizes = {"nodes": 30, "iterations": 2, "experts": 1, "runs": 1, "epochs": 30, "classes": 4}
    words = [word for key, value in sizes.items() for word in (f"--{key}", str(value))]
    accuracy = continual.main(words)
    said = capsys.readouterr().out
    assert list(accuracy) == list(continual.WAYS)
    assert all(len(row) == 3 for row in accuracy.values())
    # Without replay earlier classes are forgotten; with it they are not; joint is the upper end.
    assert accuracy["no replay"][-1] < 45
    assert accuracy["condensed replay"][-1] > accuracy["no replay"][-1] + 20
    assert accuracy["joint"][-1] > accuracy["condensed replay"][-1] - 2
    for way in continual.WAYS:
        line = next(line for line in said.splitlines() if line.startswith(way))
        assert f"{accuracy[way][-1]:.1f}" in line


def test_tasks_are_disjoint_and_have_two_classes_at_least(monkeypatch):
    import gcsr

    continual = example("continual", monkeypatch)
    graph = gcsr.load("digits")
    parts = continual.tasks(graph.to_pyg(), graph.num_classes, 3)
    # 0-2, 3-5, and the one that is left over joins the last three.
    assert [(part.first_class, part.num_new) for part in parts] == [(0, 3), (3, 3), (6, 4)]
    assert sum(part.num_nodes for part in parts) == graph.num_nodes
    for part in parts:
        assert part.y.min() == part.first_class
        assert part.y.max() == part.first_class + part.num_new - 1


def test_memory_holds_the_classes_of_its_task_and_no_test_node(monkeypatch):
    import gcsr

    continual = example("continual", monkeypatch)
    graph = gcsr.load("digits")
    task = continual.tasks(graph.to_pyg(), graph.num_classes, 2)[2]
    small = continual.remember(task, 6, seed=0, method="random")
    assert sorted(small.y.tolist()) == [4, 4, 4, 5, 5, 5]
    training = task.x[task.train_mask]
    assert all(bool((training == row).all(1).any()) for row in small.x)


def test_wordnet(monkeypatch, capsys, tmp_path):
    from tests.datasets.test_wordnet import write_dict

    words = ["--nodes", "6", "--budget", "0.1", "--epochs", "60"]
    accuracy = example("wordnet", monkeypatch).main(["--root", str(write_dict(tmp_path)), *words])
    assert accuracy > 65  # half of the synsets are of one class
    assert f"test accuracy on the real graph: {accuracy:.1f} %" in capsys.readouterr().out
