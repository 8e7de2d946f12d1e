"""Cells are measured once, whatever happens meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paper_helpers import ABSENT, QUICK, TINY

import gcsr
from gcsr import Graph, InputError
from gcsr.benchmarking import measurement, runner
from gcsr.benchmarking import measurement as data
from gcsr.benchmarking.analyses import graph_statistics
from gcsr.benchmarking.cells import Cell, Protocol, cell
from gcsr.benchmarking.measurement import Outcome
from gcsr.benchmarking.store import Store
from gcsr.methods.base import Condenser
from gcsr.paper.experiments import Experiment, Line, recall, reproduce
from helpers import planted_graph

CLOCKED = ("finished", "condense_seconds", "evaluate_seconds")


class Counted:
    """Calls of ``evaluate``, one of which may be interrupted."""

    def __init__(self, interrupt_at: int | None = None) -> None:
        self.calls, self._at = 0, interrupt_at

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self.calls == self._at:
            raise KeyboardInterrupt
        self.calls += 1
        return gcsr.evaluate(*args, **options)


def run(store: Store, experiment: Experiment = TINY, **options: Any) -> dict[Cell, Outcome]:
    options = {"download": False, **options}
    return reproduce(experiment, store, protocol=QUICK, device="cpu", **options)


def rows(path: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in row.items() if k not in CLOCKED} for row in found]


@pytest.fixture
def condensings(monkeypatch) -> list[str]:
    made: list[str] = []
    original = Condenser.condense_many

    def condense_many(self: Condenser, *args: Any, **options: Any) -> Any:
        made.append(self.name)
        return original(self, *args, **options)

    monkeypatch.setattr(Condenser, "condense_many", condense_many)
    return made


def test_an_interrupted_run_continues(loads, tmp_path, monkeypatch, condensings):
    straight = tmp_path / "straight.jsonl"
    run(Store(straight))
    measurable = [c for c in TINY.cells if c.dataset != ABSENT]
    assert len(rows(straight)) == len(measurable) == 6
    condensings.clear()

    path = tmp_path / "rows.jsonl"
    first = Counted(interrupt_at=3)
    monkeypatch.setattr(measurement, "evaluate", first)
    with pytest.raises(KeyboardInterrupt):
        run(Store(path))
    kept = path.read_bytes()
    assert len(rows(path)) == 3
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []

    second = Counted()
    monkeypatch.setattr(measurement, "evaluate", second)
    outcomes = run(Store(path))
    assert first.calls + second.calls == len(measurable)
    assert path.read_bytes().startswith(kept)
    assert rows(path) == rows(straight)
    assert all(outcomes[c].state == "done" for c in measurable)

    # Nothing is left to do: the data are read to see that they are the same, and that is all.
    third = Counted()
    monkeypatch.setattr(measurement, "evaluate", third)
    before, whole = condensings.copy(), path.read_bytes()
    loads.clear()
    assert run(Store(path)) == outcomes
    assert (third.calls, condensings, loads) == (0, before, ["cora"])
    assert path.read_bytes() == whole


def test_test_models_share_condensed_graphs(loads, tmp_path, condensings):
    run(Store(tmp_path / "rows.jsonl"))
    assert sorted(condensings) == ["gcsr"] * 4 + ["random"]
    assert loads == ["cora"]


def test_an_outcome_is_what_the_library_computes(loads, tmp_path):
    one = TINY.cells[0]
    outcome = run(Store(tmp_path / "rows.jsonl"))[one]
    graph = planted_graph(per_class=30).renamed("cora")
    small = one.condenser(QUICK).condense_many(graph, seeds=[0], device="cpu")
    known = gcsr.evaluate(
        small, graph, model="gcn", runs=1, recipe=QUICK.recipe("cora"), device="cpu"
    )
    assert outcome.row is not None
    assert outcome.row["scores"] == known.scores and outcome.row["mean"] == known.mean
    assert outcome.row["leaks_test_labels"] is True
    assert outcome.row["settings"] == one.condenser(QUICK).settings
    assert outcome.row["data"] == graph.content_hash
    assert outcome.row["key"] == one.key(QUICK, graph.content_hash)
    assert "--set tau=0.5" in outcome.row["command"]


def test_an_absent_dataset_is_told_and_the_rest_runs(loads, tmp_path):
    outcomes = run(Store(tmp_path / "rows.jsonl"))
    for one, outcome in outcomes.items():
        assert outcome.state == ("absent" if one.dataset == ABSENT else "done")
        assert ("not in the data folder" in outcome.reason) == (one.dataset == ABSENT)


def test_some_datasets_only(loads, tmp_path):
    outcomes = run(Store(tmp_path / "rows.jsonl"), datasets=[ABSENT])
    assert loads == []
    assert {o.state for c, o in outcomes.items() if c.dataset != ABSENT} == {"not run"}
    with pytest.raises(
        InputError, match=r"dataset must be one of cora, ogbn-arxiv, got 'digits'\."
    ):
        run(Store(tmp_path / "rows.jsonl"), datasets=["digits"])


def test_a_cell_that_cannot_be_computed_is_no_end(loads, tmp_path):
    table = Experiment(
        "t",
        "t",
        (
            Line("cora", 91, "too large", cells=(cell("random", "cora", 91),)),
            Line("cora", 91, "too large", cells=(cell("random", "cora", 91, test="mlp"),)),
            Line("cora", 9, "fine", cells=(cell("random", "cora", 9),)),
        ),
    )
    path = tmp_path / "rows.jsonl"
    outcomes = list(run(Store(path), table).values())
    assert [outcome.state for outcome in outcomes] == ["failed", "failed", "done"]
    assert "nodes must be <= 90" in outcomes[0].reason
    # What failed is not on disk: it is tried again.
    assert len(rows(path)) == 1
    states = [one.state for one in recall(table, Store(path), QUICK).values()]
    assert states == ["not run", "not run", "done"]


def test_a_fault_of_the_library_is_not_swallowed(loads, tmp_path, monkeypatch):
    def broken(*args: Any, **options: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(measurement, "evaluate", broken)
    with pytest.raises(ZeroDivisionError):
        run(Store(tmp_path / "rows.jsonl"))


def test_progress_counts_cells(loads, tmp_path):
    seen: list[tuple[int, int]] = []

    def progress(stage: str, done: int, total: int) -> None:
        if stage == "cells of tiny":
            seen.append((done, total))

    run(Store(tmp_path / "rows.jsonl"), progress=progress)
    assert seen == sorted(seen) and seen[0] == (0, 8) and seen[-1] == (8, 8)


def test_faint_edges_are_cut_when_tested(loads, tmp_path, condensings):
    """The graphs are shared with cells that cut nothing; only what is tested differs."""
    plain, cut = cell("gcsr", "cora", 6), cell("gcsr", "cora", 6, cut=0.4)
    lines = tuple(Line("cora", 6, "a", cells=(one,)) for one in (plain, cut))
    found = run(Store(tmp_path / "rows.jsonl"), Experiment("t", "t", lines))
    assert condensings == ["gcsr"]
    graph = planted_graph(per_class=30).renamed("cora")
    (small,) = plain.condenser(QUICK).condense_many(graph, seeds=[0], device="cpu")
    kept = small.adjacency * (small.adjacency >= 0.4)
    assert 0 < int((kept > 0).sum()) < int((small.adjacency > 0).sum())
    for one, adjacency in ((plain, small.adjacency), (cut, kept)):
        known = gcsr.evaluate(
            replace(small, adjacency=adjacency),
            graph,
            runs=1,
            recipe=QUICK.recipe("cora"),
            device="cpu",
        )
        assert (found[one].row or {})["scores"] == known.scores
    assert (found[cut].row or {})["cut"] == 0.4 and "cut" not in (found[plain].row or {})


def test_kept_graphs_serve_other_tables(loads, tmp_path, condensings):
    """Rows are the same as without; what was cut off or is of other data is not taken."""
    first = Experiment("a", "a", (Line("cora", 6, "gcn", cells=(cell("gcsr", "cora", 6),)),))
    mlp = cell("gcsr", "cora", 6, test="mlp")
    second = Experiment("b", "b", (Line("cora", 6, "mlp", cells=(mlp,)),))
    path, folder = tmp_path / "rows.jsonl", tmp_path / "graphs"
    run(Store(path), first, keep_graphs=folder)
    (file,) = folder.iterdir()
    run(Store(path), second, keep_graphs=folder)
    assert condensings == ["gcsr"]
    run(Store(tmp_path / "others.jsonl"), second)
    assert condensings == ["gcsr"] * 2 and rows(path)[1:] == rows(tmp_path / "others.jsonl")
    whole = file.read_bytes()
    file.write_bytes(whole[:-7])
    (folder / f".{file.name}.abc").write_bytes(b"half")
    run(Store(tmp_path / "third.jsonl"), second, keep_graphs=folder)
    assert condensings == ["gcsr"] * 3 and [p.name for p in folder.iterdir()] == [file.name]
    again = tmp_path / "again.jsonl"
    run(Store(again), second, keep_graphs=folder)
    assert condensings == ["gcsr"] * 3 and rows(again) == rows(path)[1:]


def test_whole_graph(loads, tmp_path):
    one = cell("whole", "cora", None)
    table = Experiment("t", "t", (Line("cora", None, "whole graph", cells=(one,)),))
    row = run(Store(tmp_path / "rows.jsonl"), table)[one].row
    assert row is not None and row["graphs"] == 1 and len(row["scores"]) == 1
    assert row["command"].startswith("gcsr evaluate --full --data cora --model gcn --runs 1")


def test_other_data_are_another_cell(loads, tmp_path, monkeypatch):
    """A changed file is measured anew; without the data the newest row is shown."""
    table = Experiment("t", "t", (Line("cora", 6, "random", cells=(cell("random", "cora", 6),)),))
    path = tmp_path / "rows.jsonl"
    run(Store(path), table)
    changed = planted_graph(per_class=31).renamed("cora")
    monkeypatch.setattr(data, "load", lambda name, root: changed)
    (outcome,) = run(Store(path), table).values()
    old, new = rows(path)
    assert (outcome.row or {})["data"] == new["data"] == changed.content_hash != old["data"]
    assert old["cell"] == new["cell"] and old["key"] != new["key"]
    monkeypatch.setattr(data, "available", lambda name, root: False)
    assert run(Store(path), table) == recall(table, Store(path), QUICK) == {table.cells[0]: outcome}
    monkeypatch.undo()


def test_nothing_is_downloaded_where_downloads_are_off(tmp_path, monkeypatch):
    asked: list[str] = []

    def load(name: str, root: Path | None) -> Graph:
        asked.append(name)
        raise InputError(f"{name}: could not be downloaded.")

    monkeypatch.setattr(data, "load", load)
    table = Experiment("t", "t", (Line("cora", 6, "random", cells=(cell("random", "cora", 6),)),))
    store = Store(tmp_path / "rows.jsonl")
    for download, said in ((False, "downloads are turned off"), (True, "could not")):
        (outcome,) = run(store, table, root=tmp_path, download=download).values()
        assert outcome.state == "absent" and said in outcome.reason
    assert asked == ["cora"]
    reproduce(table, store, protocol=Protocol(), root=tmp_path, device="cpu")
    assert asked == ["cora", "cora"]


def test_what_another_process_is_at_is_waited_for(loads, tmp_path, monkeypatch, condensings):
    """The cell of another process goes to the end; its row, once there, is taken."""
    path = tmp_path / "rows.jsonl"
    theirs = cell("gcsr", "cora", 6, tau=0.9)
    row = {"key": theirs.key(QUICK, planted_graph(per_class=30).content_hash), "mean": 1.0}
    row |= {"cell": theirs.settings_key(QUICK), "std": 0.0, "leaks_test_labels": True}
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        other.stdin.write("\n")  # the other process ends
        other.stdin.flush()
        other.wait()

    monkeypatch.setattr(runner.time, "sleep", sleep)
    with subprocess.Popen(
        [sys.executable, "-c", _OTHER, str(path), theirs.claim(QUICK), json.dumps(row)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "claimed\n"
        outcomes = run(Store(path))
    assert len(waits) == 1 and len(condensings) == 4
    assert outcomes[theirs].row == row
    assert [line["key"] for line in rows(path)][-1] == row["key"]


_OTHER = """
import json, sys
from pathlib import Path
from gcsr.paper import Store
store = Store(Path(sys.argv[1]))
with store.claim(sys.argv[2]) as mine:
    assert mine
    print("claimed", flush=True)
    sys.stdin.readline()
    store.append(json.loads(sys.argv[3]))
"""


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True])
def test_impossible_jobs(tmp_path, jobs):
    with pytest.raises(InputError, match=r"jobs must be an integer >= 1, got"):
        run(Store(tmp_path / "rows.jsonl"), jobs=jobs)


def test_rows_of_another_process_stay(tmp_path):
    path = tmp_path / "rows.jsonl"
    ours, theirs = Store(path), Store(path)
    theirs.append({"key": "b", "mean": 1.0})
    ours.append({"key": "a", "mean": 2.0})
    ours.append({"key": "b", "mean": 3.0})
    again = Store(path)
    assert len(again) == 2 and (again.get("b") or {})["mean"] == 1.0
    assert again.get("c") is None


@pytest.mark.parametrize("rest", ["{", '{"key": "c", "mean": 3', '{"key": "c"}'])
def test_a_row_that_was_cut_off_is_dropped(tmp_path, rest):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"key": "a"}\n' + rest)
    store = Store(path)
    assert len(store) == 1
    store.append({"key": "b"})
    assert path.read_text() == '{"key": "a"}\n{"key": "b"}\n'
    path.write_text(rest)
    store = Store(path)
    store.append({"key": "b"})
    assert path.read_text() == '{"key": "b"}\n'


@pytest.mark.parametrize("line", ["{\n", "[]\n", '{"mean": 1}\n', "3\n", "my diary"])
def test_a_file_that_is_something_else(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"key": "a"}\n' + line)
    with pytest.raises(InputError, match=r"rows\.jsonl: line 2 is no row"):
        Store(path)


# -- table 1 -----------------------------------------------------------------------------------------


def square(**more: Any) -> Graph:
    """A path 0-1-2-3-4 and an edge 4-0; classes 0, 0, 1, 1, unknown."""
    edges = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
    return Graph.from_arrays(
        np.eye(5, 3, dtype=np.float32),
        edges,
        np.array([0, 0, 1, 1, -1]),
        train=[0, 1],
        val=[2],
        test=[3],
        undirected=True,
        **more,
    )


def test_statistics_by_hand():
    assert graph_statistics(square()) == {
        "nodes": 5,
        "edges": 5,
        "classes": 2,
        "features": 3,
        "sparsity": 40.0,  # 10 of 25 entries
        "homophily": pytest.approx(2 / 3),  # of 0-1, 1-2, 2-3
    }
    assert graph_statistics(square(inductive=True))["homophily"] == 1.0  # 0-1 alone is seen


def test_statistics_of_real_graphs(shared_data):
    found = graph_statistics(gcsr.load("cora", shared_data))
    assert found["homophily"] == pytest.approx(0.81, abs=5e-4)
    assert (found["nodes"], found["classes"], found["features"]) == (2708, 7, 1433)
    citeseer = gcsr.load("citeseer", shared_data)
    assert graph_statistics(citeseer)["homophily"] == pytest.approx(6692 / 9072)
    # Others count its 15 nodes without a label as class 0.
    as_first = replace(citeseer, y=citeseer.y.clamp_min(0))
    assert graph_statistics(as_first)["homophily"] == pytest.approx(0.7355, abs=5e-5)
