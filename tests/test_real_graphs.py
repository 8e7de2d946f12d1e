"""Regressions on real graphs: small runs whose outcome is known, with slack."""

from __future__ import annotations

import pytest
import torch

import gcsr
import helpers  # noqa: F401 - one thread
from gcsr import CondensedGraph, Evaluation, Graph, TrainingRecipe
from gcsr.benchmarking.cells import Protocol, cell
from gcsr.methods.presets import paper_settings

SHORT = {"recipe": TrainingRecipe(epochs=200), "runs": 3, "hidden_channels": 64, "device": "cpu"}
FEW = {"experts": 3, "iterations": 150, "feature_lr": 1e-3, "iterate": "last", "device": "cpu"}


# Nodes, and a floor; Random reaches 61.6 on Cora and 58.8 on Citeseer.
FLOORS = {"cora": (35, 76.0), "citeseer": (30, 69.5)}
# Short runs. Measured on Cora and Citeseer: gcsr 79.1, 71.9; bilevel 80.9, 71.5; auto 81.0, 71.5.
GUARDED = {
    "gcsr": {**FEW, "iterations": 100, "init": "clusters", "pseudo_labels": "gcn"},
    "bilevel": {"iterations": 10, "iterate": "last", "pseudo_labels": "gcn", "device": "cpu"},
    "auto": {"iterations": 10, "num_hops": 1, "pseudo_labels": "gcn", "device": "cpu"},
}


@pytest.fixture(scope="module")
def cora(shared_data) -> Graph:
    return gcsr.load("cora", root=shared_data)


@pytest.fixture(scope="module")
def citeseer(shared_data) -> Graph:
    return gcsr.load("citeseer", root=shared_data)


@pytest.fixture(scope="module")
def cora_small(cora) -> CondensedGraph:
    return gcsr.condense(cora, method="gcsr", nodes=70, **FEW)


def score(small: CondensedGraph, graph: Graph, **options) -> Evaluation:
    return gcsr.evaluate(small, graph, **(SHORT | options))


@pytest.mark.parametrize("name", FLOORS)
@pytest.mark.parametrize("method", GUARDED)
def test_accuracy_stays_above_its_floor(method, name, request):
    graph, (nodes, floor) = request.getfixturevalue(name), FLOORS[name]
    small = gcsr.condense(graph, method=method, nodes=nodes, **GUARDED[method])
    assert score(small, graph, runs=2).mean > floor


@pytest.mark.parametrize("name", FLOORS)
def test_experts_of_a_quick_reproduction_predict_a_prior_worth_using(name, request):
    """Measured: Cora 77.5, Citeseer 66; with untrained experts both are at chance."""
    graph, quick = request.getfixturevalue(name), Protocol(1, 1, quick=True)
    nodes = {"cora": 70, "citeseer": 60}[name]
    condenser = cell("gcsr", name, nodes, prior="predicted").condenser(quick)
    small = condenser.condense(graph, device="cpu")
    assert not small.leaks_test_labels
    recipe = quick.recipe(name)
    assert gcsr.evaluate(small, graph, model="gcn", runs=1, recipe=recipe, device="cpu").mean > 55


@pytest.mark.parametrize("name", FLOORS)
def test_random_misses_the_floor_by_ten_points(name, request):
    graph, (nodes, floor) = request.getfixturevalue(name), FLOORS[name]
    small = gcsr.condense(graph, method="random", nodes=nodes, device="cpu")
    assert score(small, graph, runs=2).mean < floor - 10


def test_cora_gcsr_beats_random_clearly(cora, cora_small):
    ours = score(cora_small, cora).mean
    random = score(gcsr.condense(cora, method="random", nodes=70), cora).mean
    # Measured: 80.0 against 72.0.
    assert ours > 77
    assert ours > random + 4


def test_cora_result_trains_other_models_too(cora, cora_small):
    for model in ("sgc", "appnp"):
        assert score(cora_small, cora, model=model, runs=1).mean > 75


def test_cora_budget_and_prior(cora, cora_small):
    assert torch.bincount(cora_small.y).tolist() == [10] * 7
    correlation = torch.tensor(cora_small.provenance["class_correlation"])
    torch.testing.assert_close(correlation.sum(1), torch.ones(7))
    # Cora is homophilous: most edges of every class stay inside it.
    assert (correlation.diag() > 0.6).all()
    assert not cora_small.leaks_test_labels


def test_cora_is_the_same_twice(cora):
    quick = FEW | {"iterations": 10, "experts": 1}
    first, second = (gcsr.condense(cora, method="gcsr", nodes=35, **quick) for _ in range(2))
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.adjacency, second.adjacency)


def test_cora_coarse_memory_gives_the_same_graph(cora):
    quick = FEW | {"iterations": 10, "experts": 2, "max_start": 10, "expert_epochs": 20}
    kept = gcsr.condense(cora, method="gcsr", nodes=35, **quick)
    replayed = gcsr.condense(cora, method="gcsr", nodes=35, expert_memory=20_000_000, **quick)
    assert torch.equal(kept.x, replayed.x)


def test_citeseer_gcsr_beats_random(citeseer):
    ours = score(gcsr.condense(citeseer, method="gcsr", nodes=60, **FEW), citeseer).mean
    random = score(gcsr.condense(citeseer, method="random", nodes=60), citeseer).mean
    # Measured: 68.8 against 65.2.
    assert ours > 66
    assert ours > random + 1


def test_citeseer_isolated_nodes_and_empty_rows_stay_finite(citeseer):
    assert (citeseer.x.abs().sum(1) == 0).any()
    short = {
        "iterations": 2,
        "experts": 1,
        "max_start": 3,
        "expert_epochs": 6,
        "hidden_channels": 32,
    }
    for model in ("cheby-paper", "sage", "cheby"):
        small = gcsr.condense(citeseer, method="gcsr", nodes=30, model=model, **(FEW | short))
        assert torch.isfinite(small.x).all()


@pytest.mark.slow
def test_cora_whole_graph_is_as_published(cora):
    assert gcsr.evaluate_full(cora, runs=3, device="cpu").mean == pytest.approx(81.3, abs=1.2)


@pytest.mark.slow
def test_cora_with_the_papers_settings(cora):
    """The paper's cell at 2.6 %: 80.6; a prototype with ten experts 81.2. The prior leaks."""
    settings, _ = paper_settings("gcsr", "cora", 70)
    settings |= {"experts": 10, "iterations": 2000}
    small = gcsr.condense(cora, method="gcsr", nodes=70, device="cpu", **settings)
    found = gcsr.evaluate(small, cora, runs=3, device="cpu")
    assert found.mean > 78
    assert found.leaks_test_labels


@pytest.mark.slow
def test_citeseer_leaking_prior_beats_few_training_labels(citeseer):
    """Why the default prior is predicted: at 3.6 % training labels alone are too few."""
    settings, _ = paper_settings("gcsr", "citeseer", 120)
    settings |= {"experts": 5}
    means = {}
    for prior in ("train", "all"):
        small = gcsr.condense(
            citeseer, method="gcsr", nodes=120, device="cpu", **(settings | {"prior": prior})
        )
        means[prior] = gcsr.evaluate(small, citeseer, runs=2, device="cpu").mean
    assert means["all"] > means["train"] + 10
