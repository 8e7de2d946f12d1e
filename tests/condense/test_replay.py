"""Memories of past tasks under a byte budget."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import gcsr

BUDGET = 6000
CLUSTERS = {"method": "bilevel", "iterations": 0, "pseudo_labels": "none", "device": "cpu"}
RANDOM = {"method": "random", "device": "cpu"}


@pytest.fixture(scope="module")
def digits() -> gcsr.Graph:
    """With many labels: no pseudo-labels are trained."""
    graph = gcsr.load("digits")
    unused = graph.test[: graph.test.numel() // 2]
    return replace(
        graph, train=torch.cat([graph.train, unused]), test=graph.test[graph.test.numel() // 2 :]
    )


def task(graph: gcsr.Graph, first: int, end: int) -> gcsr.Graph:
    return graph.subgraph((graph.y >= first) & (graph.y < end))


@pytest.mark.parametrize("settings", [CLUSTERS, RANDOM], ids=["learned", "real"])
def test_the_budget_holds_and_every_class_is_remembered(digits, settings):
    memory = gcsr.Replay(BUDGET, **settings)
    for first in (0, 4, 8):
        graph = memory.observe(task(digits, first, min(first + 4, 10)))
        seen = set(range(min(first + 4, 10)))
        assert set(graph.classes.tolist()) == seen
        assert graph.stored_bytes == memory.nbytes <= BUDGET * len(seen) // 10
    # Almost all of it is used.
    assert memory.nbytes > 0.85 * BUDGET
    assert len(graph.provenance["replay"]) == 3
    # No edges between tasks.
    first, second = (part.num_nodes for part in memory.parts[:2])
    assert not graph.adjacency[:first, first : first + second].any()


def test_earlier_tasks_shrink_when_unknown_classes_come(digits):
    """The number of classes to come is not known to a graph that has four."""
    memory = gcsr.Replay(BUDGET, **CLUSTERS)
    alone = memory.observe(replace(task(digits, 0, 4), num_classes=4))
    both = memory.observe(replace(task(digits, 4, 8), num_classes=8))
    assert alone.stored_bytes <= BUDGET
    assert both.stored_bytes <= BUDGET
    assert memory.parts[0].num_nodes < alone.num_nodes
    assert torch.bincount(both.classes).tolist() == pytest.approx([both.num_nodes / 8] * 8, abs=1)
    # What stays is what was there.
    rows = {tuple(row) for row in alone.x.tolist()}
    assert all(tuple(row) in rows for row in memory.parts[0].x.tolist())


def test_the_number_of_nodes_is_bounded(digits, monkeypatch):
    """Real nodes without features take few bytes; edges are a dense matrix."""
    monkeypatch.setattr("gcsr.auto.replay.MOST_NODES", 30)
    memory = gcsr.Replay(10**7, **RANDOM)
    memory.observe(replace(task(digits, 0, 4), num_classes=4))
    assert memory.graph.num_nodes == 30
    memory.observe(replace(task(digits, 4, 8), num_classes=8))
    assert [part.num_nodes for part in memory.parts] == [15, 15]


def test_the_newest_task_may_grow(digits):
    memory = gcsr.Replay(BUDGET, method="bilevel", device="cpu", iterations=0, pseudo_labels="none")
    memory.observe(task(digits, 0, 5))
    now = task(digits, 5, 10)
    memory.observe(now.subgraph(torch.arange(now.num_nodes) % 3 > 0))
    before = [part.x.clone() for part in memory.parts]
    memory.grow(now, iterations=3)
    assert torch.equal(memory.parts[0].x, before[0])
    assert memory.parts[1].provenance["history"][0]["graph"]
    assert memory.nbytes <= BUDGET


def test_a_task_that_was_stored_sparsely_stays_within_the_budget_when_it_grows(digits):
    """Real nodes that are mostly zeros become dense rows."""
    sparse = replace(digits, x=digits.x * (torch.arange(64) % 16 == 4))
    memory = gcsr.Replay(3000, **RANDOM)
    for first in (0, 5):
        memory.observe(task(sparse, first, first + 5))
    assert memory.grow(task(digits, 5, 10), iterations=0).stored_bytes <= 3000
    assert set(memory.graph.classes.tolist()) == set(range(10))


def test_bad_input_is_one_sentence(digits):
    for size in (0, 1.5):
        with pytest.raises(gcsr.InputError, match="max_bytes must be an integer > 0"):
            gcsr.Replay(size)
    with pytest.raises(gcsr.InputError, match="one node of 176 bytes per class, got 100, of which"):
        gcsr.Replay(100, method="random").observe(task(digits, 0, 2))
    memory = gcsr.Replay(BUDGET, method="random")
    with pytest.raises(gcsr.InputError, match="before observe"):
        _ = memory.graph
    with pytest.raises(gcsr.InputError, match="grow must come after"):
        memory.grow(digits)
    memory.observe(task(digits, 0, 2))
    with pytest.raises(gcsr.InputError, match="64 features like the tasks before, got 60"):
        memory.observe(replace(task(digits, 2, 4), x=task(digits, 2, 4).x[:, :60]))
