"""Every verb on the cores of this machine: the same bytes as in this process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cluster_helpers import Killer, content, random_matrix, units_at_work

import gcsr
from gcsr import InputError, TrainingRecipe
from gcsr.benchmarking.cells import Protocol, cell
from gcsr.benchmarking.store import Store
from gcsr.data.folder import write_folder
from gcsr.data.stored_graph import open_folder
from gcsr.data.stored_matrix import StoredFeatures
from gcsr.distributed.pool import Cluster, connected
from gcsr.distributed.propagation import propagate, row_blocks
from gcsr.outofcore.hops import Propagated
from gcsr.paper.experiments import Experiment, Line, reproduce
from helpers import planted_graph, sparse_graph

GRAPH = planted_graph(per_class=36, val_per_class=20, noise=9)
TINY: dict[str, Any] = {
    "iterations": 6,
    "experts": 5,
    "hidden_channels": 8,
    "student_steps": 2,
    "max_start": 4,
    "expert_epochs": 8,
}
QUICK = TrainingRecipe(epochs=12)
# What a clock measured.
CLOCKED = ("finished", "condense_seconds", "evaluate_seconds")
TABLE = Experiment(
    "tiny",
    "A tiny table",
    tuple(
        Line(
            "cora", 6, name, 60.0, cells=(cell(name, "cora", 6), cell(name, "cora", 6, test="mlp"))
        )
        for name in ("random", "gcsr", "gcond")
    ),
)


def condensed(cluster: Cluster) -> None:
    """A worker is killed meanwhile."""
    reports: list[tuple[str, int, int]] = []
    asked = {"nodes": 9, "method": "gcsr", "seeds": [3, 4, 5], "device": "cpu", **TINY}
    asked["iterations"] = 300
    here = gcsr.condense_many(GRAPH, **asked)
    with Killer() as killer:
        there = gcsr.condense_many(
            GRAPH, **asked, cluster=cluster, progress=lambda *report: reports.append(report)
        )
    assert len(killer.killed) == 1
    assert content(there) == content(here)
    assert ("training experts", 5, 5) in reports
    assert ("condensing", 900, 900) in reports
    # Graphs of another seed are others, so that the comparison can fail.
    assert content(here[:1]) != content(here[1:2])


def watched(cluster: Cluster) -> None:
    """Whoever watches hears every iterate, and ends a condensation by raising."""

    class EnoughError(Exception):
        pass

    def story(**more: Any) -> list[tuple[int, float]]:
        heard: list[tuple[int, float]] = []

        def watch(iteration: int, scores: Mapping[int, float]) -> None:
            heard.extend((iteration, score) for score in scores.values())
            if len(heard) == 3:
                raise EnoughError

        view = replace(gcsr.View(GRAPH).condensing(), watch=watch)
        with pytest.raises(EnoughError):
            condenser.condense_many(view, seeds=[0], device="cpu", **more)
        return heard

    condenser = gcsr.GCSR(nodes=9, **TINY | {"iterations": 20})
    assert story(cluster=cluster) == story()


def evaluated(cluster: Cluster) -> None:
    small = gcsr.condense_many(GRAPH, nodes=9, method="random", seeds=[0, 1], device="cpu")
    for model in ("gcn", "gat", torch_module()):
        asked = {"model": model, "runs": 3, "recipe": QUICK, "device": "cpu"}
        here = gcsr.evaluate(small, GRAPH, **asked)
        there = gcsr.evaluate(small, GRAPH, **asked, cluster=cluster)
        assert (there.scores, there.validation) == (here.scores, here.validation)
        assert len(set(here.scores)) > 1
    asked = {"runs": 3, "recipe": QUICK, "device": "cpu"}
    here = gcsr.evaluate_full(GRAPH, **asked)
    there = gcsr.evaluate_full(GRAPH, **asked, cluster=cluster)
    assert (there.scores, there.nodes) == (here.scores, here.nodes)


def torch_module() -> torch.nn.Module:
    from torch_geometric.nn import GCN

    return GCN(GRAPH.num_features, 8, 2, GRAPH.num_classes)


def tuned(cluster: Cluster) -> None:
    searched = {"feature_lr": "0.03..30:log", "alpha": "0.1,1,10"}
    asked: dict[str, Any] = {"nodes": 9, "trials": 3, "device": "cpu", **TINY, **searched}
    found = [gcsr.tune(GRAPH, **asked, **more) for more in ({}, {"cluster": cluster})]
    here, there = (
        [(t.number, t.state, t.settings, t.score, t.curve, t.note) for t in one.trials]
        for one in found
    )
    assert there == here


def reproduced(cluster: Cluster, folder: Path) -> None:
    (folder / "graphs").mkdir()
    planted_graph(per_class=40).renamed("cora").to_npz(folder / "graphs" / "cora.npz")
    rows = []
    for name, more in (("here", {}), ("there", {"cluster": cluster})):
        store = Store(folder / f"{name}.jsonl")
        outcomes = reproduce(
            TABLE, store, protocol=Protocol(2, 1, quick=True), root=folder, device="cpu", **more
        )
        assert {outcome.state for outcome in outcomes.values()} == {"done"}
        lines = (folder / f"{name}.jsonl").read_text().splitlines()
        found = [json.loads(line) for line in lines]
        rows.append(
            sorted(
                json.dumps({k: v for k, v in row.items() if k not in CLOCKED}, sort_keys=True)
                for row in found
            )
        )
    assert rows[0] == rows[1]
    assert len(rows[0]) == 6


def propagated(cluster: Cluster) -> None:
    topology, x = random_matrix(3001, 10, 5)
    once = topology.normalized(torch.from_numpy(x))
    twice = topology.normalized(once).numpy()
    blocks = row_blocks(topology.normalized.matrix, 700)
    cut = [x[first : first + 700] for first in range(0, 3001, 700)]
    there = np.concatenate(list(propagate(blocks, cut, 2, cluster=cluster)))
    assert there.tobytes() == twice.tobytes()
    with pytest.raises(
        InputError, match="x must have 700 rows and 5 columns in block 0, got 1 and 5"
    ):
        list(propagate(blocks, [x[:1], *cut[1:]], 1, cluster=cluster))


def from_disk(cluster: Cluster, folder: Path) -> None:
    """Messages are passed by workers, into the same files."""
    reports: list[tuple[str, int, int]] = []
    alone, shared = (
        open_folder(write_folder(GRAPH, folder / name), memory=20_000) for name in ("one", "other")
    )
    asked = {"nodes": 9, "method": "gcsr", "seeds": [3, 4], "device": "cpu", **TINY}
    here = gcsr.condense_many(alone, **asked)
    there = gcsr.condense_many(
        shared, **asked, cluster=cluster, progress=lambda *report: reports.append(report)
    )
    assert content(there) == content(here)
    nodes = GRAPH.num_nodes
    passed = [
        done for stage, done, total in reports if (stage, total) == ("propagating", 2 * nodes)
    ]
    assert len(passed) == 4 and passed[-1] == 2 * nodes
    names = sorted(path.name for path in alone.disk.scratch.glob("*.npy"))
    assert len(names) == 4
    for name in names:
        ours, theirs = (graph.disk.scratch / name for graph in (alone, shared))
        assert ours.read_bytes() == theirs.read_bytes()
    alone, shared = (
        open_folder(write_folder(sparse_graph(), folder / name), memory=10**6)
        for name in ("sparse", "other sparse")
    )
    ours = Propagated(alone.disk).features(2)
    theirs = Propagated(shared.disk, cluster=cluster).features(2)
    assert isinstance(theirs, StoredFeatures)
    assert ours.read().tobytes() == theirs.read().tobytes()


def evaluated_from_disk(cluster: Cluster, folder: Path) -> None:
    alone, shared = (
        open_folder(write_folder(GRAPH, folder / name), memory=20_000) for name in ("1", "2")
    )
    here = gcsr.condense_many(GRAPH, nodes=9, method="random", seeds=[3, 4], device="cpu")
    tested = {"runs": 4, "recipe": QUICK, "hidden_channels": 8, "device": "cpu"}
    scores = [
        gcsr.evaluate(here, graph, **tested, **where).scores
        for graph, where in ((alone, {}), (shared, {"cluster": cluster}))
    ]
    assert scores[0] == scores[1]


def by_default(cluster: Cluster, folder: Path) -> None:
    """Pseudo-labels, candidates and scores are units; a worker is killed while it takes outer steps."""
    reports: list[tuple[str, int, int]] = []
    killed: list[int] = []

    def report(*told: Any) -> None:
        reports.append(told)
        if told[0] == "condensing" and not killed:
            killed.append(min(units_at_work()))
            os.kill(killed[0], signal.SIGKILL)

    graph = planted_graph(per_class=60, noise=6)
    stored = open_folder(write_folder(graph, folder / "default"), memory=20_000)
    asked = {"nodes": 9, "seeds": [3], "device": "cpu", "iterations": 20}
    here = gcsr.condense_many(graph, **asked)
    there = gcsr.condense_many(stored, **asked, cluster=cluster, progress=report)
    assert killed
    assert content(there) == content(here)
    assert "pseudo_labels" in here[0].provenance
    # Random, Herding and three starts; then the best of these, what was learned from it, and the two.
    assert ("starts", 5, 5) in reports
    assert ("comparing", 4, 4) in reports


def refused(cluster: Cluster) -> None:
    """What cannot be done is told in the words of this process."""
    sentence = "nodes must be >= 3, the number of classes with training nodes, got 2."
    with pytest.raises(InputError) as error:
        gcsr.condense(GRAPH, nodes=2, method="gcsr", **TINY, device="cpu", cluster=cluster)
    assert str(error.value) == sentence
    with pytest.raises(InputError, match="no machine of the cluster has a GPU"):
        gcsr.condense(GRAPH, nodes=9, method="random", device="cuda", cluster=cluster)
    with pytest.raises(InputError, match="connected to a Ray cluster already"):
        gcsr.condense(GRAPH, nodes=9, method="random", cluster="local")


def main(which: str, folder: Path) -> None:
    """All in one cluster: it takes seconds to start, and two at a time would crowd this machine."""
    with connected("local") as cluster:
        condensed(cluster)
        evaluated(cluster)
        propagated(cluster)
        by_default(cluster, folder)
        refused(cluster)
        if which == "everything":
            from_disk(cluster, folder)
            evaluated_from_disk(cluster, folder)
            watched(cluster)
            tuned(cluster)
            reproduced(cluster, folder)
    assert not list(units_at_work())


@pytest.mark.needs("ray", "optuna")
@pytest.mark.parametrize("which", ["most", pytest.param("everything", marks=pytest.mark.slow)])
def test_what_a_cluster_does_is_what_this_process_does(which, tmp_path):
    """In a process of its own: Ray ends the process that it is in where its own are lost."""
    tests = Path(__file__).parent
    program = (
        "import sys, pathlib, conftest, test_local_cluster;"
        "test_local_cluster.main(sys.argv[1], pathlib.Path(sys.argv[2]))"
    )
    places = os.pathsep.join([str(tests), str(tests.parent), os.environ.get("PYTHONPATH", "")])
    for attempt in range(2):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", program, which, str(folder)],
            # A local cluster is one of its own, wherever another one is.
            env=os.environ | {"PYTHONPATH": places, "RAY_ADDRESS": "127.0.0.1:1"},
            capture_output=True,
            text=True,
            check=False,
        )
        # On a crowded machine Ray may lose its own processes: only that is tried again.
        if done.returncode == 0 or "AssertionError" in done.stderr:
            break
    assert done.returncode == 0, done.stdout + done.stderr
