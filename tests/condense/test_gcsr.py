"""GCSR from the graph to the result, against Algorithm 1 in plain float64."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import gcsr
from gcsr import GCSR, MTT, SFGC, InputError
from gcsr.data.views import View
from gcsr.engines.trajectory.engine import Matching, schedule
from gcsr.equations.prior import class_correlation, class_prior
from gcsr.methods.presets import paper_settings
from gcsr.models.registry import condensing_model
from gcsr.starts.sample import block_labels, class_budget, propagated_features, sample_training_rows
from gcsr.training.expert_recipe import ExpertRecipe, ExpertRequest
from gcsr.training.experts import train_experts
from gcsr.utils.devices import make_generator
from helpers import (
    CPU,
    dense,
    one_network,
    plain_adjacency,
    plain_matching,
    plain_norm,
    planted_graph,
)

SETTINGS = {
    "nodes": 9,
    "num_hops": 2,
    "hidden_channels": 8,
    "iterate": "last",
    "iterations": 5,
    "student_steps": 3,
    "student_lr": 0.05,
    "expert_steps": 2,
    "max_start": 5,
    "experts": 3,
    "expert_epochs": 10,
    "alpha": 0.7,
    "beta": 0.3,
    "tau": 0.8,
    "gamma": 0.4,
}


@pytest.fixture(scope="module")
def graph():
    return planted_graph(noise=1.5)


def made(graph, **changes):
    return GCSR(**(SETTINGS | changes)).condense(graph, seed=2, device="cpu")


def plain_gcsr(graph, *, labels, units="absolute", rate=1e-2, model="sgc"):
    """Algorithm 1 with the library's draws (rows, experts, schedule) and none of its shortcuts."""
    s = SETTINGS
    visible = View(graph).condensing().visible
    y = block_labels(class_budget(visible.train_labels, 3, 9))
    rows = sample_training_rows(
        propagated_features(visible, 2, CPU), visible, y, make_generator(2, "initial rows")
    ).nodes
    norm = plain_norm(dense(graph.adjacency))
    x = (norm @ norm @ graph.x.double())[rows].requires_grad_()
    alpha, beta = s["alpha"], s["beta"]
    if units == "relative":
        rate = rate * (x.detach() ** 2).mean().sqrt().item()
        diagonal = (x.detach() @ x.detach().T).diag().mean().item()
        alpha, beta = alpha * diagonal, beta * diagonal
    correlation = class_correlation(dense(graph.adjacency).to_sparse_csr(), labels, 3)
    p, zh = class_prior(correlation, y), torch.eye(9, dtype=torch.float64)
    recipe = ExpertRecipe(3, 10, 10, 6, 1e-2, 5e-4, 0)
    network = condensing_model(model, 8)
    last = {}
    request = ExpertRequest(network, recipe)
    paths = train_experts(
        request, visible, device=CPU, on_trained=lambda e, w: last.update({e.start: w})
    )
    drawn = schedule(paths, Matching(5, 3, 0.05, 2, 5), make_generator(2, "expert schedule"))
    adam = torch.optim.Adam([x], lr=rate)
    for expert, t in drawn:
        start, goal = (one_network(ends) for ends in paths.pairs([expert], [t], 2))
        a = plain_adjacency(x, p, zh, alpha, beta)
        loss = plain_matching(network.name, x, a, y, start, goal, steps=3, rate=0.05)
        adam.zero_grad()
        loss.backward()
        adam.step()
        p = s["tau"] * p + (1 - s["tau"]) * a.detach()
        zh = s["gamma"] * zh + (1 - s["gamma"]) * a.detach()
    x = x.detach()
    return x, plain_adjacency(x, p, zh, alpha, beta), y, last.values()


def bag_of_words():
    """Few words per node, most of them shared by all classes."""
    graph = planted_graph(
        per_class=60, features=300, train_per_class=20, val_per_class=39, noise=4.0
    )
    x = (graph.x > 6).float()
    return replace(graph, x=x / x.sum(1, keepdim=True).clamp_min(1))


@pytest.mark.parametrize("method", [MTT, SFGC])
def test_starts_without_message_passing_are_improved_by_default(method):
    condenser = method(nodes=6, experts=5, iterations=400, hidden_channels=64, iterate="best-val")
    small = condenser.condense(bag_of_words(), device="cpu")
    values = small.provenance["validation"]["values"]
    assert values[0] < 0.6
    assert values[-1] > 0.9


@pytest.mark.parametrize("units", ["absolute", "relative"])
@pytest.mark.parametrize("model", ["sgc", "gcn"])
def test_result_is_that_of_algorithm_1(graph, units, model):
    labels = View(graph).condensing().visible.labels
    small = made(graph, prior="train", units=units, feature_lr=1e-2, model=model)
    x, a, y, _ = plain_gcsr(graph, labels=labels, units=units, model=model)
    assert (small.x.double() - x).norm() / x.norm() < 1e-4
    assert (small.adjacency.double() - a).norm() / a.norm() < 1e-4
    assert torch.equal(small.y, y)


def test_features_move_and_structure_follows(graph):
    start, end = made(graph, iterations=0), made(graph, feature_lr=1e-2)
    assert not torch.equal(start.x, end.x)
    assert not torch.equal(start.adjacency, end.adjacency)
    assert start.provenance["matching_loss"]["values"] == []
    assert len(end.provenance["matching_loss"]["values"]) == 5


def test_predicted_prior_counts_training_labels_and_predictions(graph):
    from helpers import plain_logits

    small = made(graph)
    *_, experts = plain_gcsr(graph, labels=graph.y)
    x, a = graph.x.double(), dense(graph.adjacency)
    mean = sum(plain_logits("sgc-linear", one_network(e), x, a).softmax(1) for e in experts)
    labels = mean.argmax(1)
    labels[graph.train] = graph.y[graph.train]
    expected = class_correlation(a.to_sparse_csr(), labels, 3)
    found = torch.tensor(small.provenance["class_correlation"], dtype=torch.float64)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found.sum(1), torch.ones(3, dtype=torch.float64))


def test_prior_over_all_labels_is_eq_5(graph):
    found = torch.tensor(made(graph, prior="all").provenance["class_correlation"])
    expected = class_correlation(dense(graph.adjacency).to_sparse_csr(), graph.y, 3)
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=1e-7)


def test_substructure_prior_is_the_sampled_subgraph(graph):
    """Without history and features so small that only P speaks, A' is P itself."""
    tiny_features = replace(graph, x=1e-6 * graph.x)
    small = made(
        tiny_features,
        regularizer="substructure",
        units="absolute",
        beta=0.0,
        iterations=0,
        num_hops=0,
    )
    visible = View(tiny_features).condensing().visible
    rows = sample_training_rows(
        visible.x, visible, small.y, make_generator(2, "initial rows")
    ).nodes
    expected = torch.from_numpy(graph.adjacency.toarray()[rows][:, rows])
    torch.testing.assert_close(small.adjacency, expected, rtol=1e-4, atol=1e-6)


def test_mtt_has_no_edges_and_raw_rows(graph):
    start = MTT(nodes=9, iterations=0, hidden_channels=8, experts=1, max_start=2, expert_epochs=4)
    small = start.condense(graph, device="cpu")
    assert torch.equal(small.adjacency, torch.eye(9))
    rows = {tuple(row) for row in graph.x[graph.train].tolist()}
    assert {tuple(row) for row in small.x.tolist()} <= rows


def test_matching_brings_the_loss_down(graph):
    small = made(graph, iterations=300, feature_lr=5e-3, student_lr=0.5)
    losses = small.provenance["matching_loss"]["values"]
    assert sum(losses[-20:]) < 0.9 * sum(losses[:20])


def test_small_expert_memory_changes_nothing(graph):
    kept, replayed = made(graph), made(graph, expert_memory=0)
    assert torch.equal(kept.x, replayed.x)
    assert torch.equal(kept.adjacency, replayed.adjacency)


def test_best_validated_iterate_is_one_of_those_seen(graph):
    small = made(graph, iterations=20, feature_lr=0.3, iterate="best-val")
    curve = small.provenance["validation"]
    assert curve["iterations"][0] == 0
    assert curve["iterations"][-1] == 20
    best = curve["iterations"][curve["values"].index(max(curve["values"]))]
    there = made(graph, iterations=20, feature_lr=0.3)
    if best == 20:
        assert torch.equal(small.x, there.x)
    else:
        assert not torch.equal(small.x, there.x)
    assert len(curve["values"]) == len(curve["iterations"]) == 11


def test_best_validated_iterate_is_the_first_of_equals(graph, monkeypatch):
    from gcsr.engines.iterates import QuickScore

    scores = iter([0.5, 0.7, 0.7, 0.6])
    monkeypatch.setattr(QuickScore, "__call__", lambda *_: next(scores))
    small = made(graph, iterations=3, iterate="best-val", feature_lr=0.1)
    assert small.provenance["validation"]["values"] == [0.5, 0.7, 0.7, 0.6]
    # The schedule of a shorter run is another one; the iterate is found by its distance instead.
    moves = [made(graph, iterations=0).x, made(graph, iterations=3, feature_lr=0.1).x]
    step = 0.1 * moves[0].square().mean().sqrt()
    assert (small.x - moves[0]).abs().max() == pytest.approx(float(step), rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"alpha": -1.0}, "alpha must be a number >= 0, got -1.0"),
        ({"alpha": 0.0, "beta": 0.0}, r"alpha \+ beta must be > 0, got 0.0 \+ 0.0"),
        ({"tau": 1.5}, "tau must be a number >= 0 and <= 1, got 1.5"),
        ({"gamma": float("nan")}, "gamma must be .*, got nan"),
        ({"prior": "test"}, "prior must be one of train, predicted, all"),
        ({"regularizer": "x"}, "regularizer must be one of .*, got 'x'"),
        ({"model": "gat"}, "model must be one of .*, got 'gat'"),
        ({"units": "cm"}, "units must be one of .*, got 'cm'"),
        ({"iterate": "best-test"}, "iterate must be one of last, best-val"),
        ({"iterations": -1}, "iterations must be an integer >= 0, got -1"),
        ({"iterations": 1.0}, "iterations must be .*, got 1.0"),
        ({"student_steps": 0}, "student_steps must be an integer >= 1, got 0"),
        ({"student_lr": 0.0}, "student_lr must be a number > 0, got 0.0"),
        ({"feature_lr": float("inf")}, "feature_lr must be .*, got inf"),
        ({"max_start": 100, "expert_epochs": 20}, "got max_start = 100 and expert_steps = 2"),
        ({"experts": 0}, "experts must be .*, got 0"),
        ({"expert_memory": -5}, "expert_memory must be .*, got -5"),
        ({"expert_weight_decay": -1e-3}, "expert_weight_decay must be .*, got -0.001"),
    ],
)
def test_settings_out_of_range_are_refused_before_any_data(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        GCSR(**(SETTINGS | changes))


# -- the public face ---------------------------------------------------------------------------------

SMALL = {key: value for key, value in SETTINGS.items() if key != "nodes"}


def test_condense_takes_the_papers_letters(graph):
    letters = SMALL | {"N": 4, "M": 1, "iterations": 2, "eta1": 0.1, "eta2": 0.01, "hops": 1}
    for name in ("student_steps", "expert_steps", "student_lr", "num_hops"):
        del letters[name]
    settings = gcsr.condense(graph, method="gcsr", nodes=9, device="cpu", **letters).provenance[
        "settings"
    ]
    named = {
        "student_steps": 4,
        "expert_steps": 1,
        "iterations": 2,
        "student_lr": 0.1,
        "feature_lr": 0.01,
        "num_hops": 1,
    }
    assert named.items() <= settings.items()


def test_condense_is_the_class_of_that_name(graph):
    ours = gcsr.condense(graph, method="gcsr", nodes=9, seed=2, device="cpu", **SMALL)
    assert torch.equal(ours.x, made(graph).x)
    assert ours.provenance["preset"] == "default"


def test_setting_given_under_two_names_is_refused(graph):
    with pytest.raises(InputError, match="given twice"):
        gcsr.condense(graph, method="gcsr", nodes=9, N=3, student_steps=4)


def test_paper_preset_holds_the_authors_numbers():
    settings, cell = paper_settings("gcsr", "cora", 70)
    assert cell == "paper (cora, 70 nodes)"
    expected = {
        "units": "absolute",
        "iterations": 7000,
        "feature_lr": 1e-6,
        "student_steps": 5,
        "expert_steps": 2,
        "student_lr": 0.01,
        "max_start": 60,
        "num_hops": 2,
        "alpha": 1.0,
        "beta": 1.0,
        "tau": 0.9,
        "gamma": 0.5,
        "prior": "all",
        "experts": 100,
        "expert_lr": 1e-3,
    }
    assert expected.items() <= settings.items()
    assert paper_settings("gcsr", "ogbn-arxiv", 454)[0]["expert_lr"] == 5e-2
    assert paper_settings("mtt", "citeseer", 60)[0]["num_hops"] == 0
    assert paper_settings("gcsr", "cora", 70, model="appnp")[0]["iterations"] == 4000
    assert paper_settings("gcsr", "cora", 75)[1] == cell


def test_paper_preset_makes_condensers_that_are_accepted():
    sizes = {
        "citeseer": (30, 60, 120),
        "cora": (35, 70, 140),
        "ogbn-arxiv": (90, 454, 909),
        "flickr": (44, 223, 446),
        "reddit": (76, 153, 307),
    }
    for dataset, published in sizes.items():
        for nodes in published:
            settings, cell = paper_settings("gcsr", dataset, nodes)
            assert cell == f"paper ({dataset}, {nodes} nodes)"
            GCSR(nodes=nodes, **settings)
            MTT(nodes=nodes, **paper_settings("mtt", dataset, nodes)[0])


def test_paper_preset_of_an_unknown_graph_is_refused(graph):
    with pytest.raises(InputError, match="for preset 'paper', got 'planted'"):
        gcsr.condense(graph, method="gcsr", nodes=9, preset="paper")
    with pytest.raises(InputError, match=r"preset must be one of .*, got 'best'"):
        gcsr.condense(graph, method="gcsr", nodes=9, preset="best")


def test_settings_win_over_the_preset(graph):
    named = graph.renamed("cora")
    short = {key: SMALL[key] for key in ("hidden_channels", "expert_epochs", "max_start")}
    small = gcsr.condense(
        named, nodes=9, preset="paper", iterations=2, experts=2, alpha=3.0, device="cpu", **short
    )
    assert small.provenance["settings"]["alpha"] == 3.0
    assert small.provenance["settings"]["iterations"] == 2
    assert small.provenance["settings"]["student_lr"] == 0.01
    assert small.provenance["preset"] == "paper (cora, 35 nodes)"
    assert small.leaks_test_labels
