"""Herding and K-Center, and what methods that keep real nodes have in common."""

from __future__ import annotations

import importlib

import pytest
import torch
from torch import Tensor

from gcsr import Herding, InputError, KCenter, Random, View
from gcsr.methods.presets import paper_settings
from gcsr.methods.selection import embed_training_nodes, herd, k_center
from helpers import CPU, dense, plain_norm, planted_graph

QUICK = {"epochs": 30, "hidden_channels": 8}


def rows(seed: int, n: int = 40, width: int = 3) -> Tensor:
    return torch.randn(n, width, generator=torch.Generator().manual_seed(seed))


def plain_herding(e: Tensor, count: int) -> list[int]:
    e = e.double()
    mean, chosen = e.mean(0), []
    for i in range(count):
        best, best_distance = -1, float("inf")
        for x in range(e.shape[0]):
            taken = sum((e[j] for j in chosen), torch.zeros(e.shape[1], dtype=e.dtype))
            distance = float(((i + 1) * mean - taken - e[x]).norm())
            if x not in chosen and distance < best_distance - 1e-12:
                best, best_distance = x, distance
        chosen.append(best)
    return chosen


def plain_k_center(e: Tensor, count: int) -> list[int]:
    e = e.double()
    chosen = [min(range(e.shape[0]), key=lambda x: float((e[x] - e.mean(0)).norm()))]
    while len(chosen) < count:
        rest = [x for x in range(e.shape[0]) if x not in chosen]
        chosen.append(max(rest, key=lambda x: min(float((e[x] - e[c]).norm()) for c in chosen)))
    return chosen


@pytest.mark.parametrize("seed", range(5))
def test_both_are_the_plain_loops(seed):
    e = rows(seed)
    assert herd(e, 15).tolist() == plain_herding(e, 15)
    assert k_center(e, 15).tolist() == plain_k_center(e, 15)


@pytest.mark.parametrize("choose", [herd, k_center])
def test_equal_rows_are_not_chosen_twice(choose):
    e = torch.zeros(6, 2)
    e[4] = 1
    assert sorted(choose(e, 6).tolist()) == list(range(6))
    assert choose(e, 0).tolist() == []
    with pytest.raises(ValueError, match="7 rows cannot be chosen from 6"):
        choose(e, 7)


def test_by_hand():
    line = torch.tensor([[0.0], [1.0], [2.0], [10.0]])  # mean 3.25
    assert k_center(line, 3).tolist() == [2, 3, 0]
    # 3.25 -> 2; 6.5 - 2 = 4.5 -> 1 (3.5 away; 10 is 5.5 away); 9.75 - 3 = 6.75 -> 10
    assert herd(line, 3).tolist() == [2, 1, 3]


@pytest.mark.parametrize("inductive", [False, True])
def test_embedding_is_what_the_trained_network_computes(inductive):
    view = View(planted_graph(inductive=inductive, noise=0.5)).condensing()
    scores, hidden = (
        embed_training_nodes(view, layer=layer, seed=1, device=CPU, epochs=60, hidden_channels=8)
        for layer in ("scores", "hidden")
    )
    assert scores.shape == (21, 3)
    assert hidden.shape == (21, 8)
    torch.testing.assert_close(scores.exp().sum(1), torch.ones(21))
    assert (scores.argmax(1) == view.visible.train_labels).float().mean() > 0.9
    assert (hidden >= 0).all()
    other = embed_training_nodes(
        view, layer="scores", seed=2, device=CPU, epochs=60, hidden_channels=8
    )
    assert not torch.equal(scores, other)


def test_hidden_layer_leads_to_the_scores(monkeypatch):
    """The hidden rows are those that the second layer reads, at the training nodes."""
    module = importlib.import_module("gcsr.training.fit")
    view = View(planted_graph()).condensing()
    kept = []
    fit = module.fit
    monkeypatch.setattr(module, "fit", lambda *a, **k: kept.append(fit(*a, **k)) or kept[-1])
    arguments = {"seed": 0, "device": CPU, "epochs": 5, "hidden_channels": 8}
    hidden = embed_training_nodes(view, layer="hidden", **arguments)
    scores = embed_training_nodes(view, layer="scores", **arguments)
    w1, b1, w2, b2 = (p[0].double() for p in kept[0].params)
    p = plain_norm(dense(view.visible.adjacency))
    every = (p @ view.visible.x.double() @ w1 + b1).relu()
    train = view.visible.train
    torch.testing.assert_close(hidden.double(), every[train], rtol=1e-4, atol=1e-5)
    expected = (p @ every @ w2 + b2)[train].log_softmax(1)
    torch.testing.assert_close(scores.double(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("inductive", [False, True])
def test_all_three_agree_when_every_training_node_is_kept(inductive):
    graph = planted_graph(inductive=inductive)
    kept = []
    for method in (Random(nodes=21), Herding(nodes=21, **QUICK), KCenter(nodes=21, **QUICK)):
        small = method.condense(graph, seed=4, device="cpu")
        kept.append(sorted(small.x.tolist()))
        # The edges came along with the nodes.
        ids = graph.train.numpy()
        assert small.adjacency.sum() == graph.adjacency[ids][:, ids].sum()
    assert kept[0] == kept[1] == kept[2] == sorted(graph.x[graph.train].tolist())


def test_nodes_kept_are_training_nodes_of_their_class():
    graph = planted_graph(seed=3)
    for method in (Herding(nodes=9, **QUICK), KCenter(nodes=9, **QUICK)):
        small = method.condense(graph, device="cpu")
        for row, label in zip(small.x, small.y, strict=True):
            (node,) = (graph.x == row).all(1).nonzero().flatten().tolist()
            assert node in graph.train.tolist()
            assert graph.y[node] == label


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"epochs": 0}, "epochs must be an integer >= 1, got 0"),
        ({"hidden_channels": 2.5}, r"hidden_channels must be .*, got 2.5"),
        ({"weight_decay": -1.0}, r"weight_decay must be a number >= 0, got -1.0"),
    ],
)
@pytest.mark.parametrize("method", [Herding, KCenter])
def test_settings_that_cannot_be_are_refused(method, settings, sentence):
    with pytest.raises(InputError, match=sentence):
        method(nodes=5, **settings)


@pytest.mark.parametrize("method", ["herding", "kcenter"])
def test_paper_preset(method):
    decays = {"cora": 5e-4, "citeseer": 5e-4, "flickr": 5e-3, "reddit": 0.0, "ogbn-arxiv": 0.0}
    for dataset, decay in decays.items():
        settings, _ = paper_settings(method, dataset, 60)
        assert settings["weight_decay"] == decay


@pytest.mark.parametrize("method", [Random, Herding, KCenter])
def test_nodes_that_repeat_are_said_once(method, caplog):
    settings = {} if method is Random else QUICK
    graph = planted_graph()
    made = method(nodes=24, **settings).condense_many(graph, seeds=[0, 1], device="cpu")
    (warning,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert warning == f"{method.name}: {made[1].provenance['notes'][0]}"
    assert "3 of 24 nodes repeat a training node" in warning
    caplog.clear()
    method(nodes=21, **settings).condense(graph, device="cpu")
    assert not [one for one in caplog.records if one.levelname == "WARNING"]
