"""A graph on disk, worked on in blocks, gives the bytes that the same graph in memory gives."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gcsr
from gcsr import Graph, InputError, TrainingRecipe
from gcsr.auto import automatic
from gcsr.data import features, views
from gcsr.data.folder import write_folder
from gcsr.data.stored_graph import StoredGraph, open_folder
from gcsr.data.stored_matrix import StoredFeatures
from gcsr.data.views import View
from gcsr.methods import bilevel
from gcsr.models import base
from gcsr.models.base import init_batch
from gcsr.models.registry import condensing_model
from gcsr.models.sparse import SparseTopology
from gcsr.outofcore import hops
from gcsr.outofcore.hops import Propagated
from gcsr.outofcore.predict import ClassesInBlocks
from gcsr.starts import pseudo_labels
from gcsr.training.experts import MeanPrediction
from gcsr.training.obtain_experts import forget_experts
from helpers import CPU, planted_graph, sparse_graph

Opened = Callable[[Graph, int], StoredGraph]
TINY = 2000  # bytes: every block is as small as blocks get
QUICK: dict[str, dict[str, Any]] = {
    "gcsr": {
        "iterations": 2,
        "experts": 3,
        "expert_epochs": 12,
        "max_start": 8,
        "hidden_channels": 16,
    },
    "mtt": {
        "iterations": 3,
        "iterate": "last",
        "experts": 2,
        "expert_epochs": 12,
        "max_start": 8,
        "hidden_channels": 16,
    },
    "random": {},
    "herding": {"epochs": 4, "hidden_channels": 8},
    "kcenter": {"epochs": 4, "hidden_channels": 8},
}
OUTER = {"iterations": 3, "window": 2, "burn_in": 1, "longest": 6, "students": 2}


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """A graph as a folder, opened to be worked on within some memory."""

    def write_and_open(graph: Graph, memory: int) -> StoredGraph:
        folder = tmp_path / "graph"
        if not folder.exists():
            write_folder(graph, folder)
        return open_folder(folder, memory=memory)

    return write_and_open


def large(**options: Any) -> Graph:
    return planted_graph(per_class=180, train_per_class=20, val_per_class=20, **options)


def sparse_featured() -> Graph:
    """So few words per node that networks multiply them sparsely."""
    graph = large(features=60, noise=0.0)
    rng = np.random.default_rng(1)
    words = rng.random((graph.num_nodes, 60)) < np.where(
        np.arange(60) // 20 == graph.y.numpy()[:, None], 0.1, 0.02
    )
    return replace(graph, x=torch.from_numpy(words.astype(np.float32)))


def sparse_stored() -> Graph:
    """The same in a folder of sparse features; two hops make them dense, one does not."""
    graph = sparse_featured()
    return replace(graph, x=graph.x.to_sparse_csr())


def same(first: gcsr.CondensedGraph, second: gcsr.CondensedGraph) -> bool:
    told = (
        *("settings", "dataset", "notes", "class_correlation", "matching_loss", "validation"),
        *("real_loss", "pseudo_labels", "automatic"),
    )
    return all(
        torch.equal(a, b)
        for a, b in (
            (first.x, second.x),
            (first.adjacency, second.adjacency),
            (first.targets, second.targets),
        )
    ) and all(first.provenance.get(key) == second.provenance.get(key) for key in told)


def test_experts_on_disk_vote_together(opened):
    """Fresh networks disagree: the class of a node is that of their mean prediction, as in memory."""
    graph = large()
    model = condensing_model("sgc", 8)
    seeds = [torch.Generator().manual_seed(seed) for seed in range(3)]
    experts = init_batch(model, graph.num_features, graph.num_classes, seeds)
    visible, stored = (View(g).condensing().visible for g in (graph, opened(graph, TINY)))
    mean, blocks = MeanPrediction(model, visible, CPU), ClassesInBlocks(model, stored, CPU)
    for vote in (mean, blocks):
        for number in range(3):
            vote(range(number, number + 1), tuple(p[number : number + 1] for p in experts))
    assert torch.equal(blocks.classes(), mean.mean.argmax(1))


@pytest.mark.parametrize("memory", [TINY, 10**5, 10**9])
@pytest.mark.parametrize("weighted", [False, True])
def test_propagation(opened: Opened, memory: int, weighted: bool) -> None:
    graph = large(weighted=weighted)
    operator = SparseTopology(graph.adjacency, CPU).normalized
    work = Propagated(opened(graph, memory).disk)
    ones = torch.ones(graph.num_nodes, 1)
    assert np.array_equal(work.features(2).read(), operator(operator(graph.x)).numpy())
    assert np.array_equal(work.ones(2).read(), operator(operator(ones)).numpy())


@pytest.mark.parametrize("memory", [TINY, 10**9])
def test_sparse_features_stay_sparse(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, memory: int
) -> None:
    """As long as in memory, with the same bytes, never all rows at once, after an interruption."""
    graph = sparse_graph()
    stored = opened(graph, memory)
    monkeypatch.setattr(hops, "SAVE_EVERY", 0.0)

    def stop(stage: str, done: int, total: int) -> None:
        if done > 1.5 * graph.num_nodes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Propagated(stored.disk, stop).features(2)
    topology = SparseTopology(graph.adjacency, CPU)
    tracemalloc.start()
    found = [Propagated(stored.disk).features(count) for count in (1, 2)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if memory == TINY:
        assert peak < graph.x.numel() * 4 / 8
    found.append(Propagated(stored.disk).features(3))
    kept = []
    expected = graph.x
    for file in found:
        expected = features.propagated(topology.normalized, expected)
        kept.append(isinstance(file, StoredFeatures))
        assert kept[-1] == features.is_sparse(expected)
        whole = expected.to_dense() if kept[-1] else expected
        assert np.array_equal(file.read(), whole.numpy())
    assert kept[:2] == [True, True] and not kept[2]
    ones = torch.ones(graph.num_nodes, 1)
    for _ in range(2):
        ones = topology.normalized(ones)
    assert np.array_equal(Propagated(stored.disk).ones(2).read(), ones.numpy())


@pytest.mark.parametrize("method", QUICK)
@pytest.mark.parametrize("rows_at_once", [64, 2**18])
def test_condensing(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, method: str, rows_at_once: int
) -> None:
    monkeypatch.setattr(base, "ROWS_AT_ONCE", rows_at_once)
    stored = opened(large(weighted=True), TINY)
    whole = stored.to_memory()
    results = []
    for graph in (stored, whole):
        forget_experts()
        results.append(
            gcsr.condense(graph, nodes=9, method=method, seed=3, device="cpu", **QUICK[method])
        )
    assert same(*results)


@pytest.mark.parametrize(
    ("method", "settings", "make", "sampling"),
    [
        ("auto", OUTER, large, False),  # few labels: both pseudo-labelers
        ("auto", OUTER, large, True),
        ("bilevel", {**OUTER, "pseudo_labels": "none"}, sparse_featured, False),
        ("auto", {**OUTER, "max_columns": 5}, sparse_stored, True),
        ("bilevel", {**OUTER, "models": "gcn,appnp", "max_columns": 5}, large, True),
        ("clusters", {"num_hops": 2, "pseudo_labels": "appnp"}, large, False),
        ("mtt", {**QUICK["mtt"], "init": "clusters"}, large, False),
    ],
)
def test_the_default_mode(
    opened: Opened,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    settings: dict[str, Any],
    make: Callable[[], Graph],
    sampling: bool,
) -> None:
    brief = TrainingRecipe(epochs=4, dropout=0.5, validate_every=2)
    for name in ("SUPERVISED_RECIPE", "CONSISTENT_RECIPE"):
        monkeypatch.setattr(pseudo_labels, name, brief)
    for module in (automatic, bilevel):
        monkeypatch.setattr(module, "QUICK", brief)
    monkeypatch.setattr(base, "ROWS_AT_ONCE", 64)
    if sampling:
        for name, number in (("ROWS", 200), ("TRAINED", 40), ("VALIDATED", 30)):
            monkeypatch.setattr(views, f"ALWAYS_{name}", number)
        for name, number in (("NUMBERS", 0), ("TRAINED", 20), ("VALIDATED", 16)):
            monkeypatch.setattr(views, f"MOST_{name}", number)
    stored = opened(make(), TINY)
    results = []
    for graph in (stored, stored.to_memory()):
        forget_experts()
        results.append(
            gcsr.condense(graph, nodes=9, method=method, seed=3, device="cpu", **settings)
        )
    assert same(*results)
    sampled = results[0].provenance.get("sampled", {})
    assert sampled == results[1].provenance.get("sampled", {})
    if sampling:
        assert {name: one["read"] for name, one in sampled.items()} == {
            "training": 20,
            "validation": 16,
            "known": 200,
        }


@pytest.mark.parametrize(
    "model", ["gcn", "gcn-linear", "sage-paper", "sgc", "sgc-linear", "appnp", "mlp"]
)
@pytest.mark.parametrize("make", [large, sparse_featured, sparse_stored])
def test_evaluating(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, model: str, make: Callable[[], Graph]
) -> None:
    monkeypatch.setattr(base, "ROWS_AT_ONCE", 128)
    stored = opened(make(), TINY)
    whole = stored.to_memory()
    small = gcsr.condense(whole, nodes=9, method="random", device="cpu")
    found = [
        gcsr.evaluate(
            small,
            graph,
            model=model,
            runs=2,
            hidden_channels=16,
            recipe=TrainingRecipe(epochs=8),
            device="cpu",
        )
        for graph in (stored, whole)
    ]
    assert found[0].scores == found[1].scores
    assert found[0].validation == found[1].validation
    # Networks that learned nothing would agree too.
    assert make is not large or found[0].mean > 34


def test_scores_are_those_of_memory_bit_by_bit(opened: Opened) -> None:
    """Accuracies could agree where scores do not."""
    from gcsr.models.base import init_batch
    from gcsr.models.registry import testing_model
    from gcsr.outofcore.predict import scores_in_blocks

    for make in (large, sparse_featured, sparse_stored):
        graph = make()
        folder_graph = open_folder(
            write_folder(graph, opened(graph, TINY).disk.scratch.parent.parent / make.__name__),
            memory=TINY,
        )
        nodes = graph.test
        for name in ("gcn", "sgc", "sgc-linear", "appnp", "mlp"):
            model = testing_model(name, 16)
            params = init_batch(
                model, graph.num_features, graph.num_classes, [torch.Generator().manual_seed(5)]
            )
            topology = SparseTopology(graph.adjacency, CPU)
            with torch.no_grad():
                expected = model.logits(params, model.prepare(graph.x, topology, nodes))[0]
                work = Propagated(folder_graph.disk)
                parts = list(scores_in_blocks(model, params, work, nodes.numpy(), CPU))
            assert torch.equal(torch.cat(parts), expected), (make.__name__, name)


def test_inductive(opened: Opened) -> None:
    stored = opened(large(inductive=True), TINY)
    whole = stored.to_memory()
    results = []
    for graph in (stored, whole):
        forget_experts()
        results.append(gcsr.condense(graph, nodes=9, method="gcsr", device="cpu", **QUICK["gcsr"]))
    assert same(*results)
    recipe = TrainingRecipe(epochs=5)
    scores = [gcsr.evaluate(results[0], g, runs=2, recipe=recipe).scores for g in (stored, whole)]
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"method": "gcond"}, "gcond"),
        ({"method": "gcsr", "dtype": "float64"}, "dtype"),
        ({"method": "gcsr", "model": "cheby-paper"}, "cheby-paper"),
        ({"method": "gcsr", "model": "gcn", "prior": "predicted"}, "prior"),
    ],
)
def test_what_cannot_work_in_blocks_says_so(
    opened: Opened, settings: dict[str, Any], word: str
) -> None:
    stored = opened(planted_graph(), TINY)
    with pytest.raises(InputError, match=word) as caught:
        gcsr.condense(stored, nodes=6, device="cpu", **settings)
    assert str(caught.value).count(".") <= 4 and "\n" not in str(caught.value)


def test_other_verbs_say_so(opened: Opened) -> None:
    graph = planted_graph()
    stored = opened(graph, TINY)
    small = gcsr.condense(graph, nodes=6, method="random", device="cpu")
    verbs: list[Callable[[], object]] = [
        lambda: gcsr.evaluate_full(stored, runs=1),
        lambda: gcsr.evaluate(small, stored, model="gat", runs=1),
        lambda: gcsr.analyze(small, stored),
        lambda: gcsr.cost(small, stored),
        lambda: stored.to_npz("never.npz"),
        stored.to_pyg,
    ]
    for verb in verbs:
        with pytest.raises(InputError, match="memory"):
            verb()


@pytest.mark.slow
def test_cora(shared_data: Path, tmp_path: Path) -> None:
    stored = open_folder(
        write_folder(gcsr.load("cora", shared_data), tmp_path / "cora"), memory=10**6
    )
    whole = stored.to_memory()
    settings = {"iterations": 20, "experts": 3}
    results = []
    for graph in (stored, whole):
        forget_experts()
        results.append(gcsr.condense(graph, nodes=70, method="gcsr", device="cpu", **settings))
    assert same(*results)
    scores = [gcsr.evaluate(results[0], g, runs=2, device="cpu").scores for g in (stored, whole)]
    assert scores[0] == scores[1]
