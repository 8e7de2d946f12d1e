"""A cluster of two nodes on the loopback: the same bytes as here, whoever is killed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cluster_helpers import Killer, content, random_matrix, units_at_work

import gcsr
from gcsr import Graph, TrainingRecipe
from gcsr.distributed.propagation import propagate, row_blocks
from gcsr.methods.registry import methods
from helpers import planted_graph, tiny

pytestmark = [pytest.mark.slow, pytest.mark.needs("ray")]

ROUNDS = range(5)
STORE_BYTES = 600 * 2**20
NODES, NEIGHBOURS, FEATURES, HOPS, BLOCK = 10**6, 10, 16, 2, 125_000
# The paper's method at the paper's size, shortened.
PROTOCOL: dict[str, Any] = {
    "method": "gcsr",
    "nodes": 70,
    "seeds": range(5),
    "device": "cpu",
    "iterations": 60,
    "experts": 6,
    "hidden_channels": 64,
    "max_start": 20,
    "expert_epochs": 40,
}
TEST: dict[str, Any] = {"runs": 4, "recipe": TrainingRecipe(epochs=60), "device": "cpu"}


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    size = {"num_cpus": 1, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args=size | {"include_dashboard": False})
    try:
        cluster.add_node(**size)
        assert cluster.address.startswith("127.0.0.1:")
        yield cluster
    finally:
        cluster.shutdown()


def told(capsys: pytest.CaptureFixture[str], *words: object) -> None:
    with capsys.disabled():
        print("\n", *words)


@pytest.fixture(scope="module")
def cora(shared_data: Path) -> Graph:
    return gcsr.load("cora", shared_data)


@pytest.fixture(scope="module")
def protocol_here(cora: Graph) -> tuple[Any, ...]:
    small = gcsr.condense_many(cora, **PROTOCOL)
    tested = gcsr.evaluate(small, cora, **TEST)
    return content(small), tested.scores, tested.validation


@pytest.mark.parametrize("number", ROUNDS)
def test_the_protocol_on_cora_is_the_same_bytes(number, nodes, cora, protocol_here, capsys):
    # Every round kills somebody else, at another moment: a teacher, one who condenses, a tester.
    began = time.monotonic()
    with Killer(after=0.2 + 0.7 * number) as first:
        small = gcsr.condense_many(cora, **PROTOCOL, cluster=nodes.address)
    with Killer(after=0.2 + 0.2 * number) as second:
        tested = gcsr.evaluate(small, cora, **TEST, cluster=nodes.address)
    killed = len(first.killed), len(second.killed)
    assert killed == (1, 1)
    assert (content(small), tested.scores, tested.validation) == protocol_here
    seconds = time.monotonic() - began
    told(
        capsys,
        f"Cora, round {number}: {killed[0]} worker killed while condensing {len(small)} graphs and"
        f" {killed[1]} while testing {len(tested.scores)} networks: same bytes, {seconds:.0f} s",
    )


@pytest.fixture(scope="module")
def large() -> tuple[list[Any], list[np.ndarray], bytes]:
    topology, x = random_matrix(NODES, NEIGHBOURS, FEATURES)
    here = torch.from_numpy(x)
    for _ in range(HOPS):
        here = topology.normalized(here)
    blocks = row_blocks(topology.normalized.matrix, BLOCK)
    return (
        blocks,
        [x[first : first + BLOCK] for first in range(0, NODES, BLOCK)],
        here.numpy().tobytes(),
    )


@pytest.mark.parametrize("number", ROUNDS)
def test_a_million_nodes_propagate_to_the_same_bytes(number, nodes, large, capsys):
    blocks, x, here = large
    began = time.monotonic()
    with Killer(after=0.05 + 0.05 * number) as killer:
        there = b"".join(
            block.tobytes() for block in propagate(blocks, x, HOPS, cluster=nodes.address)
        )
    assert len(killer.killed) == 1
    assert there == here
    seconds = time.monotonic() - began
    told(
        capsys,
        f"propagation of {NODES:,} nodes, round {number}: {len(killer.killed)} worker killed,"
        f" {len(blocks)} blocks, {HOPS} hops: same bytes, {seconds:.0f} s",
    )


def test_a_machine_that_is_lost_costs_nothing(nodes):
    """A whole node goes, with every object and worker on it."""
    graph = planted_graph(per_class=36)
    asked = {"nodes": 9, "method": "gcsr", "seeds": range(4), "device": "cpu", "iterations": 800}
    asked |= {"experts": 2, "hidden_channels": 8}
    here = gcsr.condense_many(graph, **asked)
    extra = nodes.add_node(num_cpus=1, object_store_memory=STORE_BYTES // 4)
    gone: list[str] = []

    def report(stage: str, done: int, total: int) -> None:
        if not gone and stage == "condensing":
            gone.append(extra.unique_id)
            nodes.remove_node(extra, allow_graceful=False)

    there = gcsr.condense_many(graph, **asked, cluster=nodes.address, progress=report)
    assert content(there) == content(here)
    assert gone


PROGRAM = """
import sys
from gcsr.cli.app import main
sys.exit(main(sys.argv[1:]))
"""


def until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_a_lost_head_is_one_sentence_and_the_run_goes_on_later(tmp_path):
    """Rows that were finished before are not measured again."""
    from ray.cluster_utils import Cluster

    (tmp_path / "graphs").mkdir()
    planted_graph(per_class=110, train_per_class=8).renamed("cora").to_npz(
        tmp_path / "graphs" / "cora.npz"
    )
    rows = tmp_path / "out" / "rows-quick.jsonl"
    words = ["reproduce", "table2", "--quick", "--dataset=cora", "--device=cpu", "--no-download"]
    words += [f"--root={tmp_path}", f"--out={tmp_path / 'out'}"]
    head = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "object_store_memory": 100 * 2**20},
    )
    try:
        run = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words, f"--cluster={head.address}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until(lambda: rows.exists() and rows.read_bytes().count(b"\n") > 0)
        for process in list(units_at_work()):
            os.kill(process, signal.SIGSTOP)  # the rest stays unfinished
        head.head_node.kill_gcs_server()
        out, err = run.communicate(timeout=120)
    finally:
        for process in list(units_at_work()):
            os.kill(process, signal.SIGKILL)
        head.shutdown()
    assert run.returncode == 2, err
    assert not out
    assert len(err.strip().splitlines()) == 1, err
    assert err.startswith("error: --cluster: the head at 127.0.0.1:")
    assert "cells are finished and kept." in err
    kept = rows.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert rows.read_bytes().startswith(kept[: kept.rindex(b"\n") + 1])


@pytest.mark.parametrize("method", sorted(methods()))
def test_every_method_is_the_same_bytes(method, nodes):
    graph = planted_graph(per_class=36, val_per_class=20, noise=9)
    asked = {"nodes": 9, "method": method, "seeds": [3, 4], "device": "cpu"}
    asked |= tiny(method, experts=3, expert_epochs=20)
    here = gcsr.condense_many(graph, **asked)
    assert content(gcsr.condense_many(graph, **asked, cluster=nodes.address)) == content(here)
