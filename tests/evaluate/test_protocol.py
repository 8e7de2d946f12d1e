from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import gcsr
from gcsr import CondensedGraph, Graph, InputError, Random, TrainingRecipe, View
from gcsr.models.registry import MODELS
from gcsr.training.fit import Fitted
from helpers import dense, plain_logits, planted_graph, with_other_test_labels

# By name: gcsr.evaluate and gcsr.training.fit are functions as well as modules.
tester = import_module("gcsr.evaluation.trial")
training = import_module("gcsr.training.fit")
RECIPE = TrainingRecipe(epochs=16, lr=0.02)
QUICK = {"recipe": RECIPE, "hidden_channels": 16, "device": "cpu"}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_graph(noise=2.5)


@pytest.fixture(scope="module")
def smalls(graph) -> list[CondensedGraph]:
    return Random(nodes=9).condense_many(graph, seeds=[0, 1, 2])


def scores(small, graph, **options) -> list[float]:
    return gcsr.evaluate(small, graph, **(QUICK | {"runs": 3} | options)).scores


def test_mean_and_population_deviation_of_all_runs(graph, smalls):
    found = gcsr.evaluate(smalls, graph, runs=4, **QUICK)
    assert len(found.scores) == len(found.validation) == 12
    assert found.mean == pytest.approx(sum(found.scores) / 12)
    spread = sum((score - found.mean) ** 2 for score in found.scores) / 12
    assert found.std == pytest.approx(spread**0.5)
    assert found.std > 0
    assert (found.graphs, found.runs, found.nodes) == (3, 4, 9)
    assert found.trained_on == "condensed"
    assert found.recipe["epochs"] == 16
    assert all(0 <= score <= 100 for score in found.scores)


def test_evaluation_prints_and_becomes_plain_values(graph, smalls):
    found = gcsr.evaluate(smalls[:2], graph, runs=2, **QUICK)
    half = found.accuracy.plus_minus
    assert str(found) == (
        f"{found.mean:.1f} ± {half:.1f} % on planted (gcn trained on 9 nodes, 2 graphs x 2 runs;"
        f" ±: 95 % interval over graphs; std {found.std:.1f} over 4 runs)"
    )
    (one,) = Random(nodes=3).condense_many(graph, seeds=[0])
    single = gcsr.evaluate(one, graph, runs=1, **QUICK)
    assert str(single) == f"{single.mean:.1f} % on planted (gcn trained on 3 nodes, 1 run)"
    alone = replace(single, nodes=1)
    assert str(alone) == f"{single.mean:.1f} % on planted (gcn trained on 1 node, 1 run)"
    assert found.to_dict()["scores"] == found.scores
    assert found.to_dict()["interval"] == found.accuracy.interval
    assert found.to_dict()["interval_over"] == "graphs"


def test_the_start_and_the_end_of_a_cluster_are_not_counted(graph, smalls, monkeypatch):
    clock = iter(range(0, 1000, 100))

    @contextmanager
    def started(address):
        next(clock)
        yield SimpleNamespace(device=torch.device)
        next(clock)

    def scores(task, graph, cluster, device, progress):
        return task.scores(graph, device, task.networks, progress)

    protocol = import_module("gcsr.evaluation.protocol")
    monkeypatch.setattr(protocol, "connected", started)
    monkeypatch.setattr(protocol, "scores_spread", scores)
    monkeypatch.setattr(protocol, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    for ask in (
        lambda: gcsr.evaluate(smalls, graph, runs=1, **QUICK, cluster="local"),
        lambda: gcsr.evaluate_full(graph, runs=1, **QUICK, cluster="local"),
    ):
        assert ask().seconds == 100


def test_graphs_of_other_settings_are_not_pooled(graph, smalls):
    other = Random(nodes=12).condense(graph)
    with pytest.raises(gcsr.InputError, match=r"small must be .* got .*9 nodes.*12 nodes"):
        gcsr.evaluate([smalls[0], other], graph, runs=1, **QUICK)


def test_leak_is_said_beside_the_number(graph, smalls):
    leaky = replace(smalls[0], provenance=smalls[0].provenance | {"leaks_test_labels": True})
    found = gcsr.evaluate([smalls[1], leaky], graph, runs=1, **QUICK)
    assert found.leaks_test_labels
    assert "leaks test labels" in str(found)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_runs_and_repeats_itself(graph, smalls, model):
    ours, again = (scores(smalls[:2], graph, model=model, runs=2) for _ in range(2))
    assert ours == again
    assert len(ours) == 4


def test_seed_decides(graph, smalls):
    assert scores(smalls[0], graph, seed=0) != scores(smalls[0], graph, seed=1)


@pytest.mark.parametrize("model", ["gcn", "sgc", "mlp", "appnp", "cheby-paper", "sage"])
def test_graphs_in_one_batch_score_as_one_at_a_time(graph, smalls, model):
    """A graph of another size keeps the graphs from being batched, where they are."""
    # Some methods make graphs of several sizes with the same settings.
    odd = replace(Random(nodes=10).condense(graph), provenance=smalls[0].provenance)
    batched = scores(smalls, graph, model=model)
    apart = scores([*smalls, odd], graph, model=model)
    assert apart[:9] == batched


def test_first_runs_do_not_depend_on_how_many_there_are(graph, smalls):
    assert scores(smalls[0], graph, runs=5)[:2] == scores(smalls[0], graph, runs=2)


@pytest.mark.parametrize("inductive", [False, True])
def test_scores_are_those_of_a_plain_loop(inductive, monkeypatch):
    """Weights are taken from the library at their best epoch, the scoring is done by hand."""
    graph = planted_graph(noise=2.5, inductive=inductive)
    small = Random(nodes=9).condense(graph)
    kept: dict[int, Fitted] = {}
    fit = tester.fit

    def keep(*arguments, networks, **rest):
        (number,) = networks
        kept[number] = fit(*arguments, networks=networks, **rest)
        return kept[number]

    monkeypatch.setattr(tester, "fit", keep)
    found = gcsr.evaluate(small, graph, runs=3, **QUICK)
    target = View(graph).test()
    assert len(kept) == 3
    for run in range(3):
        params = [p[0].double() for p in kept[run].params]
        logits = plain_logits("gcn", params, target.x.double(), dense(target.adjacency))
        right = logits[target.nodes].argmax(1) == target.labels
        assert found.scores[run] == pytest.approx(100 * right.double().mean().item())


def test_whole_graph(graph):
    found = gcsr.evaluate_full(graph, runs=3, **QUICK)
    assert found.trained_on == "whole graph"
    assert (found.nodes, found.graphs, found.runs) == (66, 1, 3)
    assert len(found.scores) == 3
    assert not found.leaks_test_labels
    assert gcsr.evaluate_full(graph, runs=2, **QUICK).scores == found.scores[:2]


def test_whole_graph_in_portions_is_the_same(graph, monkeypatch):
    whole = gcsr.evaluate_full(graph, runs=3, **QUICK).scores
    monkeypatch.setitem(training.ACTIVATION_BUDGET, "cpu", 1)
    assert gcsr.evaluate_full(graph, runs=3, **QUICK).scores == whole


def test_whole_inductive_graph_trains_on_the_training_subgraph():
    graph = planted_graph(inductive=True, noise=2.5)
    assert gcsr.evaluate_full(graph, runs=1, **QUICK).nodes == 21


def test_training_on_every_training_node_without_edges_is_an_mlp(graph):
    """The same rows, so an MLP trained on the condensed graph is the one trained on the whole."""
    rows, y = graph.x[graph.train], graph.y[graph.train]
    small = CondensedGraph(rows, torch.eye(len(y)), y, 3)
    ours = scores(small, graph, model="mlp")
    assert ours == gcsr.evaluate_full(graph, model="mlp", runs=3, **QUICK).scores


def test_soft_one_hot_labels_are_hard_labels(graph, smalls):
    soft = replace(smalls[0], y=smalls[0].targets)
    assert soft.y.ndim == 2
    assert scores(soft, graph) == scores(smalls[0], graph)


def test_soft_labels_matter(graph, smalls):
    shares = torch.full((9, 3), 1 / 3)
    flat = replace(smalls[0], y=shares)
    assert scores(flat, graph) != scores(smalls[0], graph)


def test_double_precision_graph_is_accepted(graph, smalls):
    wide = replace(smalls[0], x=smalls[0].x.double(), adjacency=smalls[0].adjacency.double())
    assert scores(wide, graph) == scores(smalls[0], graph)


def test_test_labels_decide_test_scores_only(graph, smalls):
    other = with_other_test_labels(graph)
    ours = gcsr.evaluate(smalls, graph, runs=2, **QUICK)
    theirs = gcsr.evaluate(smalls, other, runs=2, check_origin=False, **QUICK)
    assert ours.validation == theirs.validation
    assert ours.scores != theirs.scores


def test_fitted_weights_do_not_depend_on_test_labels(graph, smalls, monkeypatch):
    fit, seen = tester.fit, []

    def keep(*arguments, networks, **rest):
        fitted = fit(*arguments, networks=networks, **rest)
        seen[-1][networks.start] = fitted.params
        return fitted

    monkeypatch.setattr(tester, "fit", keep)
    for real in (graph, with_other_test_labels(graph)):
        seen.append({})
        gcsr.evaluate(smalls, real, runs=2, check_origin=False, **QUICK)
        seen.append({})
        gcsr.evaluate_full(real, runs=2, **QUICK)
    assert [len(networks) for networks in seen] == [6, 2, 6, 2]
    for ours, theirs in zip(seen[:2], seen[2:], strict=True):
        for number, params in ours.items():
            assert all(torch.equal(a, b) for a, b in zip(params, theirs[number], strict=True))


def test_test_labels_are_asked_for_after_training(graph, smalls, monkeypatch):
    events: list[str] = []
    test = View.test
    monkeypatch.setattr(View, "test", lambda self: events.append("test") or test(self))

    def progress(stage: str, done: int, total: int) -> None:
        events.append(f"{done}/{total}")

    gcsr.evaluate(smalls, graph, runs=1, progress=progress, **QUICK)
    assert events[-2:] == ["48/48", "test"]
    assert events.count("test") == 1


def test_interrupt_gets_out(graph, smalls):
    def interrupt(stage: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gcsr.evaluate(smalls, graph, runs=1, progress=interrupt, **QUICK)


def test_nothing_is_changed_by_evaluating(graph, smalls):
    before = [part.clone() for part in (smalls[0].x, smalls[0].adjacency, smalls[0].y)]
    content = replace(graph, x=graph.x.clone()).content_hash
    torch.manual_seed(0)
    state = torch.get_rng_state()
    scores(smalls[0], graph)
    assert torch.equal(torch.get_rng_state(), state)
    after = (smalls[0].x, smalls[0].adjacency, smalls[0].y)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert replace(graph, x=graph.x.clone()).content_hash == content


# -- what is refused ---------------------------------------------------------------------------------


def test_graph_of_another_content_is_refused(graph, smalls):
    scaled = graph.scaled("standardize")
    with pytest.raises(InputError) as caught:
        gcsr.evaluate(smalls, scaled, runs=1, **QUICK)
    sentence = str(caught.value)
    assert graph.content_hash[:12] in sentence
    assert scaled.content_hash[:12] in sentence
    assert "check_origin=False" in sentence
    assert len(gcsr.evaluate(smalls, scaled, runs=1, check_origin=False, **QUICK).scores) == 3


def test_graph_of_another_name_is_the_same_graph(graph, smalls):
    assert scores(smalls[0], graph.renamed("other")) == scores(smalls[0], graph)


def test_graph_without_provenance_is_accepted(graph, smalls):
    bare = replace(smalls[0], provenance={})
    assert scores(bare, graph) == scores(smalls[0], graph)


def test_graph_of_another_shape_is_refused(smalls):
    other = planted_graph(features=5)
    with pytest.raises(InputError, match="data: the condensed graph has 12 features and 3 classes"):
        gcsr.evaluate(smalls, other, check_origin=False, runs=1, **QUICK)


def test_no_runs_and_no_graphs_are_refused(graph, smalls):
    with pytest.raises(InputError, match=r"runs must be .*, got 0"):
        gcsr.evaluate(smalls, graph, runs=0, **QUICK)
    with pytest.raises(InputError, match=r"runs must be .*, got 0"):
        gcsr.evaluate_full(graph, runs=0, **QUICK)
    with pytest.raises(InputError, match="must have at least one"):
        gcsr.evaluate([], graph, runs=1, **QUICK)


def test_unknown_model_is_refused(graph, smalls):
    with pytest.raises(InputError, match=r"model must be one of .*, got 'resnet'"):
        gcsr.evaluate(smalls, graph, model="resnet", runs=1, **QUICK)


def test_population_deviation_is_numpys(graph, smalls):
    found = gcsr.evaluate(smalls[0], graph, runs=4, **QUICK)
    assert found.std == pytest.approx(np.std(found.scores))


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("model", ["gcn", "sgc", "mlp", "appnp", "cheby-paper", "sage"])
def test_cuda_batch_scores_as_one_graph_at_a_time(graph, smalls, model):
    """A graph of another size keeps the graphs from being batched."""
    # Some methods make graphs of several sizes with the same settings.
    odd = replace(Random(nodes=10).condense(graph), provenance=smalls[0].provenance)
    batched = scores(smalls, graph, model=model, device="cuda")
    apart = scores([*smalls, odd], graph, model=model, device="cuda")
    assert apart[:9] == pytest.approx(batched, abs=4)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("model", MODELS)
def test_cuda_scores_are_close_to_the_cpus(graph, smalls, model):
    here = scores(smalls, graph, model=model)
    there = scores(smalls, graph, model=model, device="cuda")
    assert np.mean(here) == pytest.approx(np.mean(there), abs=3.0)
