"""Graphs whose nodes may have several labels; and what is no node classification."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.metrics import f1_score, roc_auc_score
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, one_hot
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import gcsr
from gcsr import CondensedGraph, Graph, InputError, View
from gcsr.cli.app import main
from gcsr.evaluation.networks import multi_label_metrics_of
from gcsr.methods.registry import methods
from gcsr.training.classification import predicted, score_of, training_loss
from gcsr.training.fit import TrainingRecipe
from helpers import tiny

RECIPE = TrainingRecipe(epochs=40, validate_every=5)
CAN = sorted(name for name, method in methods().items() if method.multi_label)


def multi_label_arrays(nodes: int = 150, labels: int = 4) -> tuple[Any, Any, np.ndarray]:
    """Features, edges and labels: nodes with a common label are often neighbors."""
    rng = np.random.default_rng(0)
    y = (rng.random((nodes, labels)) < np.linspace(0.6, 0.2, labels)).astype(np.int64)
    x = y @ rng.normal(size=(labels, 12)) + rng.normal(size=(nodes, 12))
    upper = np.triu(rng.random((nodes, nodes)) < 0.03 * (y @ y.T), 1)
    return x.astype(np.float32), sp.csr_array((upper | upper.T).astype(np.float32)), y


def multi_label_graph(**options: Any) -> Graph:
    x, edges, y = multi_label_arrays()
    order = np.random.default_rng(1).permutation(len(y))
    split = {"train": order[:60], "val": order[60:100], "test": order[100:]}
    return Graph.from_arrays(x, edges, y, **split, name="planted", **options)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return multi_label_graph()


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    """Networks that label or judge are trained for a moment."""
    for name in ("starts.pseudo_labels", "methods.bilevel", "auto.automatic"):
        module = importlib.import_module(f"gcsr.{name}")
        recipe = "SUPERVISED_RECIPE" if name.startswith("starts") else "QUICK"
        monkeypatch.setattr(module, recipe, RECIPE)


# -- the graph ---------------------------------------------------------------------------------------


def test_a_matrix_of_labels_survives_files_and_pyg(graph, tmp_path):
    assert graph.multi_label and graph.num_classes == 4 and "4 labels per node" in repr(graph)
    again = gcsr.load(str(graph.to_npz(tmp_path / "g.npz")))
    assert torch.equal(again.y, graph.y) and again.content_hash == graph.content_hash
    data = graph.to_pyg()
    data.y = data.y.float()  # as in PPI
    assert gcsr.load(data).content_hash == graph.content_hash
    other = replace(graph, y=graph.y.index_copy(0, graph.test[:1], 1 - graph.y[graph.test[:1]]))
    assert other.content_hash != graph.content_hash


def test_rows_without_labels_leave_the_split_and_a_fifth_is_held_out():
    x, edges, y = multi_label_arrays()
    some = np.where(np.arange(150)[:, None] < 50, np.nan, y)
    with pytest.warns(gcsr.InputWarning):
        graph = Graph.from_arrays(x, edges, some, train=np.arange(40, 150))
    assert graph.train.numel() == 80 and graph.val.numel() == 20
    assert int(torch.cat([graph.train, graph.val]).min()) == 50
    assert (graph.y[:50] == -1).all()


@pytest.mark.parametrize("inductive", [False, True])
def test_labels_outside_the_training_nodes_are_hidden(inductive):
    view = View(multi_label_graph(inductive=inductive)).condensing()
    hidden = torch.ones(view.visible.num_nodes, dtype=torch.bool)
    hidden[view.visible.train] = False
    assert view.every_label is None
    assert (view.visible.labels[hidden] == -1).all() and (view.visible.train_labels >= 0).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda y: np.where(y > 0, 0.3, 0.0), "0.3; this library is for node classification"),
        (lambda y: 2 * y, "y must be 0 or 1 for every label, or -1 in a whole row .*, got 2"),
        (lambda y: np.where(np.eye(*y.shape) > 0, -1, y), "got rows with both"),
        (lambda y: np.eye(4, dtype=int)[y.argmax(1)], r"y\.argmax\(1\) converts one-hot labels"),
        (lambda y: y[:-1], r"one class per row of x \(150\), got shape \(149, 4\)"),
    ],
)
def test_other_matrices_are_refused(change, sentence):
    x, edges, y = multi_label_arrays()
    with pytest.raises(InputError, match=sentence):
        Graph.from_arrays(x, edges, change(y), train=range(60), val=range(60, 100))


def test_regression_and_link_prediction_are_refused(graph):
    data = graph.to_pyg()
    data.y = torch.rand(150)
    with pytest.raises(InputError, match="node classification, not for regression"):
        gcsr.load(data)
    links = Data(x=data.x, edge_index=data.edge_index, edge_label_index=data.edge_index[:, :5])
    with pytest.raises(InputError, match="node classification, not for link prediction"):
        gcsr.load(links)


# -- losses and scores -------------------------------------------------------------------------------


def test_loss_and_metrics_are_those_of_torch_and_scikit_learn():
    generator = torch.Generator().manual_seed(0)
    logits = 20 * torch.randn((3, 40, 5), generator=generator, dtype=torch.float64)
    labels = (torch.rand((40, 5), generator=generator) < 0.3).long()
    found = training_loss(logits, labels.double(), multi_label=True)
    expected = [binary_cross_entropy_with_logits(one, labels.double()) for one in logits]
    torch.testing.assert_close(found, torch.stack(expected))
    scores = score_of(predicted(logits, multi_label=True), labels)
    micro = [f1_score(labels, one > 0, average="micro") for one in logits]
    assert scores.tolist() == pytest.approx(micro)
    shares = logits[0].sigmoid().numpy()
    metrics = multi_label_metrics_of(shares, labels.numpy())
    areas = [roc_auc_score(labels[:, c], shares[:, c]) for c in range(5)]
    assert metrics["auc"] == pytest.approx(100 * np.mean(areas))
    assert metrics["micro_f1"] == pytest.approx(100 * micro[0])
    assert metrics["macro_f1"] == pytest.approx(
        100 * f1_score(labels, shares > 0.5, average="macro")
    )


# -- condensing --------------------------------------------------------------------------------------


def test_methods_that_cannot_condense_it_name_those_that_can(graph):
    assert CAN == ["auto", "bilevel", "herding", "kcenter", "random"]
    for name in sorted(set(methods()) - set(CAN)):
        with pytest.raises(InputError, match=r"auto, bilevel, herding, kcenter or random .* got"):
            gcsr.condense(graph, nodes=6, method=name)


@pytest.mark.parametrize("name", CAN)
def test_condensed_targets_are_labels_of_real_nodes_or_between_0_and_1(graph, name, tmp_path):
    small = gcsr.condense(graph, nodes=8, method=name, device="cpu", **tiny(name))
    assert (
        small.multi_label
        and small.y.shape == (8, 4)
        and small.describe()["labels"] == "multi-label"
    )
    again = CondensedGraph.load(small.save(tmp_path / "small.safetensors"))
    assert again.multi_label and torch.equal(again.y, small.y)
    data = again.to_pyg()
    assert torch.equal(data.y, small.y) and data.train_mask.all() and "y_soft" not in data
    if name in ("herding", "kcenter", "random"):
        rows = {(*x.tolist(), *y.tolist()) for x, y in zip(graph.x, graph.y, strict=True)}
        assert {(*x.tolist(), *y.tolist()) for x, y in zip(small.x, small.y, strict=True)} <= rows


@pytest.mark.parametrize("inductive", [False, True])
@pytest.mark.parametrize("name", ["bilevel", "random"])
def test_test_labels_change_nothing(name, inductive):
    settings: dict[str, Any] = (
        {"window": 2, "burn_in": 1, "longest": 7} if name == "bilevel" else {}
    )
    method = methods()[name](nodes=6, **tiny(name), **settings)
    gcsr.check_leaks(method, multi_label_graph(inductive=inductive))


@pytest.mark.parametrize("pseudo_labels", ["none", "gcn"])
def test_bilevel_beats_random_and_comes_near_the_whole_graph(graph, pseudo_labels):
    options: dict[str, Any] = {"runs": 3, "recipe": TrainingRecipe(epochs=200, validate_every=5)}
    learned = gcsr.condense(
        graph, nodes=8, method="bilevel", pseudo_labels=pseudo_labels, iterations=60
    )
    found = gcsr.evaluate(learned, graph, **options)
    chance = gcsr.evaluate(gcsr.condense(graph, nodes=8, method="random"), graph, **options)
    whole = gcsr.evaluate_full(graph, **options)
    assert found.mean > chance.mean + 5 and found.mean > whole.mean - 10


def test_settings_that_need_classes_are_refused(graph):
    with pytest.raises(InputError, match="structure must be 'none' for a multi-label graph"):
        gcsr.condense(graph, nodes=6, method="bilevel", structure="self-expressive")
    with pytest.raises(InputError, match="pseudo_labels must be gcn or appnp for a multi-label"):
        gcsr.condense(graph, nodes=6, method="bilevel", pseudo_labels="consistent")
    small = gcsr.condense(graph, nodes=6, method="random")
    for call in (gcsr.analyze, gcsr.cost):
        with pytest.raises(InputError, match="one class per node, got the multi-label planted"):
            call(small, graph)
    with pytest.raises(
        InputError, match="pseudo_labels must be of a graph with one class per node"
    ):
        gcsr.evaluate_full(graph, pseudo_labels=True)


def test_a_page_with_a_multi_label_graph_is_refused_before_networks_are_trained(graph):
    small = gcsr.condense(graph, nodes=6, method="random")
    stages = []
    with pytest.raises(InputError, match="results must be of a graph with one class per node"):
        gcsr.report(small, graph, progress=lambda stage, *_: stages.append(stage))
    assert not stages
    assert gcsr.report(small).startswith("<!doctype html>")  # a page without the real graph


# -- evaluation --------------------------------------------------------------------------------------


class Network(torch.nn.Module):
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = GCNConv(12, 4)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return self.layer(x, edge_index, edge_weight)


@pytest.mark.parametrize("model", ["gcn", "mlp", Network()])
def test_an_evaluation_is_micro_f1_of_its_predictions(graph, model):
    small = gcsr.condense(graph, nodes=20, method="random")
    found = gcsr.evaluate(small, graph, model=model, runs=2, recipe=RECIPE, metrics=True)
    assert found.measure == found.to_dict()["measure"] == "micro-F1"
    assert str(found).startswith("micro-F1 ")
    assert found.metrics is not None and found.predictions is not None
    assert found.scores == pytest.approx(found.metrics["micro_f1"])
    truth = graph.y[graph.test]
    assert found.predictions.shape == (2, *truth.shape)
    f1 = [100 * f1_score(truth, one, average="micro") for one in found.predictions]
    assert found.scores == pytest.approx(f1)
    assert gcsr.evaluate_full(graph, model=model, runs=1, recipe=RECIPE).measure == "micro-F1"


def test_a_trained_network_predicts_every_label(graph):
    small = gcsr.condense(graph, nodes=20, method="random")
    for network in (gcsr.train(small, "gcn"), gcsr.train(small, Network(), graph)):
        data = graph.to_pyg()
        logits = network(data.x, data.edge_index)
        f1 = f1_score(graph.y[graph.test], logits[graph.test] > 0, average="micro")
        assert f1 > 0.5


def test_single_label_and_multi_label_are_not_mixed(graph):
    x, edges, y = multi_label_arrays()
    classes = Graph.from_arrays(x, edges, y.argmax(1), train=range(60), val=range(60, 100))
    small = gcsr.condense(classes, nodes=6, method="random")
    with pytest.raises(InputError, match="must both be multi-label or neither"):
        gcsr.evaluate(small, graph, check_origin=False)
    with pytest.raises(InputError, match="targets between 0 and 1"):
        CondensedGraph(
            small.x, small.adjacency, 2 * one_hot(small.y, 4).float(), 4, multi_label=True
        )


def test_the_command_line(graph, tmp_path, capsys):
    data, out = str(graph.to_npz(tmp_path / "g.npz")), str(tmp_path / "small.safetensors")
    assert main(["condense", data, "--method", "gcsr", "--nodes", "6", "--out", out]) == 2
    assert "for a multi-label graph, got 'gcsr'" in capsys.readouterr().err
    assert main(["condense", data, "--method", "random", "--nodes", "6", "--out", out]) == 0
    assert (
        main(["evaluate", out, "--data", data, "--runs", "1", "--epochs", "10", "--metrics"]) == 0
    )
    assert "micro-F1" in capsys.readouterr().out
    assert main(["inspect", out]) == 0
    assert main(["convert", data, str(tmp_path / "folder")]) == 2
    assert "multi-label" in capsys.readouterr().err
