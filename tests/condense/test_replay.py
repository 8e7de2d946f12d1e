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


@pytest.mark.parametrize("method", ["clusters", "random"])
def test_memories_of_sparse_features_fill_their_bytes(digits, method):
    """A center of words keeps its largest entries only, so that more of them fit."""
    generator = torch.Generator().manual_seed(0)
    columns = (
        torch.randint(200, (digits.num_nodes, 3), generator=generator) + 20 * digits.y[:, None]
    )
    words = torch.zeros(digits.num_nodes, 400).scatter(1, columns, 1.0)
    # Every visible node of an inductive graph is labeled: no pseudo-labels are trained.
    graph = replace(digits, x=words, inductive=True)
    memory = gcsr.Replay(BUDGET, method=method, device="cpu")
    for first in (0, 5):
        memory.observe(task(graph, first, first + 5))
    assert 0.9 * BUDGET < memory.nbytes <= BUDGET
    # Stored densely, a node would take 800 bytes.
    assert memory.graph.num_nodes > 3 * BUDGET / 800
    if method == "clusters":
        # Twelve entries are four times as many as a node has.
        kept = memory.parts[0].provenance["kept"]
        assert kept == {"entries": 12, "hard_labels": False}
        assert int((memory.graph.x != 0).sum(1).max()) == 12


@pytest.mark.parametrize("method", ["clusters", "random"])
def test_sparse_rows_stay_within_the_budget_when_their_task_grows(digits, method):
    """A dense row per class would take more than all of it."""
    columns = torch.arange(digits.num_nodes)[:, None] + torch.tensor([0, 7, 31])
    words = torch.zeros(digits.num_nodes, 400).scatter(1, columns % 400, 1.0)
    graph = task(replace(digits, x=words, inductive=True), 0, 5)
    memory = gcsr.Replay(2500, method=method, device="cpu")
    before = memory.observe(replace(graph, num_classes=5)).num_nodes
    assert memory.grow(replace(graph, num_classes=5), iterations=2).num_nodes > 0.7 * before
    assert memory.nbytes <= 2500 < 5 * 400 * 2


def test_many_classes_are_not_stored_as_shares(digits):
    """They would take more bytes than the entries of a center."""
    words = torch.eye(100)[torch.arange(digits.num_nodes) % 100]
    graph = replace(digits, x=words, num_classes=40, inductive=True)
    memory = gcsr.Replay(40_000, device="cpu")
    assert memory.observe(task(graph, 0, 5)).y.ndim == 1
    assert memory.parts[0].provenance["kept"]["hard_labels"]


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
    for size in (0, 1.5, True):
        with pytest.raises(gcsr.InputError, match="max_bytes must be an integer >= 1"):
            gcsr.Replay(size)
    with pytest.raises(gcsr.InputError, match="dtype must be one of"):
        gcsr.Replay(BUDGET, dtype="int8")
    for name in ("nodes", "ratio"):
        with pytest.raises(gcsr.InputError, match=f"^{name} is decided by max_bytes; leave it out"):
            gcsr.Replay(BUDGET, **{name: 1})
    with pytest.raises(gcsr.InputError, match="one node of 176 bytes per class, got 100, of which"):
        gcsr.Replay(100, method="random").observe(task(digits, 0, 2))
    memory = gcsr.Replay(BUDGET, method="random")
    with pytest.raises(gcsr.InputError, match="before observe"):
        _ = memory.graph
    with pytest.raises(gcsr.InputError, match="grow must come after"):
        memory.grow(digits)
    assert repr(memory) == "Replay(0 tasks in 0 nodes by random, at most 6,000 bytes)"
    memory.observe(task(digits, 0, 2))
    assert repr(memory).startswith("Replay(1 task in ")
    with pytest.raises(gcsr.InputError, match="64 features like the tasks before, got 60"):
        memory.observe(replace(task(digits, 2, 4), x=task(digits, 2, 4).x[:, :60]))


def test_a_task_that_is_refused_leaves_the_memory_as_it_was(digits):
    memory = gcsr.Replay(BUDGET, **RANDOM)
    memory.observe(task(digits, 0, 4))
    before = memory.parts
    with pytest.raises(gcsr.InputError, match="max_bytes must be enough"):
        memory.observe(replace(task(digits, 4, 8), num_classes=1000))
    assert memory.parts is before


def test_only_training_nodes_of_an_inductive_task_are_condensed(digits):
    """With room for more nodes than there are."""
    graph = replace(task(gcsr.load("digits"), 0, 2), inductive=True)
    kept = gcsr.Replay(10**6, device="cpu").observe(graph)
    assert kept.num_nodes <= graph.train.numel()
