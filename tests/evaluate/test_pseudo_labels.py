"""Training on pseudo-labels of the whole graph, and the accuracy of the pseudo-labels themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module

import pytest
import torch

import gcsr
from gcsr import Evaluation, Graph, InputError, TrainingRecipe, View
from gcsr.evaluation.origin import PSEUDO_LABELS_NOTE, used_pseudo_labels
from gcsr.models.registry import testing_model as model_by_name
from gcsr.models.sparse import SparseTopology
from gcsr.starts.pseudo_labels import class_shares
from gcsr.training.fit import fit
from helpers import CPU, dense, plain_logits, planted_graph, with_other_test_labels

tester = import_module("gcsr.evaluation.trial")
RECIPE = TrainingRecipe(epochs=16, lr=0.02)
QUICK = {"recipe": RECIPE, "hidden_channels": 16, "device": "cpu"}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_graph(noise=8.0, per_class=30, train_per_class=2, val_per_class=10, isolated=30)


@pytest.fixture(scope="module")
def shares(graph) -> torch.Tensor:
    view = View(graph).condensing()
    return class_shares(view, "consistent", seed=0, device=CPU, tempered=True).shares


@pytest.fixture(scope="module")
def found(graph) -> Evaluation:
    return gcsr.evaluate_full(graph, runs=2, pseudo_labels=True, **QUICK)


def test_the_labeler_is_scored_as_by_hand(graph, shares, found):
    for name, nodes in (("test", graph.test), ("validation", graph.val)):
        right = 0
        for node in nodes.tolist():
            row = shares[node].tolist()
            right += row.index(max(row)) == int(graph.y[node])
        assert found.pseudo_labels[name] == pytest.approx(100 * right / nodes.numel())
    assert set(found.pseudo_labels) == {"test", "validation"}


def test_networks_are_those_that_fit_trains_on_the_shares(graph, shares, found, monkeypatch):
    kept = {}

    def keep(*arguments, networks, **rest):
        kept[networks.start] = fit(*arguments, networks=networks, **rest)
        return kept[networks.start]

    monkeypatch.setattr(tester, "fit", keep)
    gcsr.evaluate_full(graph, runs=2, pseudo_labels=True, **QUICK)
    assert torch.equal(shares[graph.train].argmax(1), graph.y[graph.train])
    assert (shares[graph.train].max(1).values == 1).all()
    model, topology = model_by_name("gcn", 16), SparseTopology(graph.adjacency, CPU)
    fitted = fit(
        model,
        model.prepare(graph.x, topology),
        shares,
        model.prepare(graph.x, topology, graph.val),
        graph.y[graph.val],
        features=graph.num_features,
        recipe=RECIPE,
        networks=range(2),
        seed=0,
        purpose="test",
    )
    for run in range(2):
        for ours, theirs in zip(fitted.params, kept[run].params, strict=True):
            assert torch.allclose(ours[run], theirs[0], atol=1e-5)
        params = [p[run].double() for p in fitted.params]
        logits = plain_logits("gcn", params, graph.x.double(), dense(graph.adjacency))
        right = logits[graph.test].argmax(1) == graph.y[graph.test]
        assert found.scores[run] == pytest.approx(100 * right.double().mean().item())
    assert found.validation == pytest.approx((100 * fitted.validation).tolist())


def test_it_says_what_it_was_trained_on(graph, found):
    assert found.trained_on == "whole graph, pseudo-labels"
    assert (found.nodes, found.graphs, found.runs) == (90, 1, 2)
    assert not found.leaks_test_labels
    assert str(found).startswith(
        f"{found.accuracy} on planted (gcn trained on the whole graph with pseudo-labels, 2 runs; "
    )
    told = json.loads(json.dumps(found.to_dict()))
    assert told["pseudo_labels"] == found.pseudo_labels


def test_without_it_nothing_changes(graph, found):
    plain = gcsr.evaluate_full(graph, runs=2, **QUICK)
    assert plain.pseudo_labels is None and "pseudo_labels" not in plain.to_dict()
    assert plain.trained_on == "whole graph"
    assert plain.validation != found.validation


def test_test_labels_decide_test_scores_only(graph, found, monkeypatch):
    fitted, test_labels = [], []
    train, test = tester.fit, View.test

    def keep(*arguments, **rest):
        assert not test_labels
        fitted.append(train(*arguments, **rest))
        return fitted[-1]

    monkeypatch.setattr(tester, "fit", keep)
    monkeypatch.setattr(View, "test", lambda self: test_labels.append(1) or test(self))
    other = gcsr.evaluate_full(with_other_test_labels(graph), runs=2, pseudo_labels=True, **QUICK)
    assert len(test_labels) == 1 and len(fitted) == 2
    assert other.validation == found.validation
    assert other.pseudo_labels["validation"] == found.pseudo_labels["validation"]
    assert other.pseudo_labels["test"] != found.pseudo_labels["test"]
    assert other.scores != found.scores


def test_every_model_can_be_trained_with_them(graph):
    for model in ("sgc", "mlp", "appnp", "gat"):
        assert (
            len(gcsr.evaluate_full(graph, model=model, runs=1, pseudo_labels=True, **QUICK).scores)
            == 1
        )


def test_what_cannot_be_is_refused(graph):
    inductive = planted_graph(inductive=True)
    with pytest.raises(
        InputError, match=r"^pseudo_labels must be false for the inductive graph planted"
    ):
        gcsr.evaluate_full(inductive, runs=1, pseudo_labels=True, **QUICK)
    with pytest.raises(InputError, match=r"^pseudo_labels must be false with a cluster"):
        gcsr.evaluate_full(graph, runs=1, pseudo_labels=True, cluster="local", **QUICK)


# -- the cost sheet ----------------------------------------------------------------------------------


def test_used_pseudo_labels_is_what_the_file_says(graph):
    small = gcsr.condense(graph, nodes=6, method="random", device="cpu")
    assert not used_pseudo_labels(small)
    for told, used in (({"pseudo_labels": "consistent"}, True), ({}, False), (None, False)):
        made = replace(small, provenance=small.provenance | {"pseudo_labels": told})
        assert used_pseudo_labels(made) == used


def test_the_sheet_has_both_references_where_they_were_used(graph, found):
    small = gcsr.condense(graph, nodes=6, method="random", device="cpu")
    how = {"runs": 2, "sparsify": "none", **QUICK}
    plain = gcsr.cost(small, graph, **how)
    assert plain.whole_with_pseudo_labels is plain.pseudo_labels is None
    assert not {"whole_with_pseudo_labels", "pseudo_labels"} & set(plain.to_dict())
    assert PSEUDO_LABELS_NOTE not in plain.notes

    made = replace(
        small, provenance=small.provenance | {"pseudo_labels": {"pseudo_labels": "consistent"}}
    )
    sheet = gcsr.cost(made, graph, **how)
    told = json.loads(json.dumps(sheet.to_dict()))
    row = told["whole_with_pseudo_labels"]
    assert row["accuracy"]["scores"] == found.scores
    assert row["seconds"] > 0 and row["seconds_alone"] > 0
    assert (row["nodes"], row["bytes"]) == (90, told["whole"]["bytes"])
    assert told["pseudo_labels"] == found.pseudo_labels
    assert PSEUDO_LABELS_NOTE in sheet.notes
    assert sheet.whole.accuracy == plain.whole.accuracy
    assert sheet.condensed.accuracy == plain.condensed.accuracy


def test_a_sheet_of_an_inductive_graph_has_none():
    graph = planted_graph(inductive=True)
    small = gcsr.condense(graph, nodes=6, method="random", device="cpu")
    made = replace(
        small, provenance=small.provenance | {"pseudo_labels": {"pseudo_labels": "consistent"}}
    )
    sheet = gcsr.cost(made, graph, runs=1, sparsify="none", **QUICK)
    assert sheet.whole_with_pseudo_labels is sheet.pseudo_labels is None


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_is_close_to_the_cpu(graph, found):
    there = gcsr.evaluate_full(graph, runs=2, pseudo_labels=True, **(QUICK | {"device": "cuda"}))
    assert there.mean == pytest.approx(found.mean, abs=6)
    assert there.pseudo_labels["test"] == pytest.approx(found.pseudo_labels["test"], abs=6)
