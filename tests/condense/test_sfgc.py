"""SFGC: its start, its choice of the iterate, its experts and its presets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import gcsr
from gcsr import SFGC, CondensedGraph, Graph, InputError
from gcsr.data.views import View
from gcsr.engines.iterates import Best
from gcsr.equations.gntk import KernelTarget, kernel_error
from gcsr.methods.presets import SIZES, paper_settings, preset_settings
from gcsr.methods.selection import embed_training_nodes, k_center
from gcsr.methods.sfgc import BestByKernel, validation_draws
from helpers import CPU, dense, planted_graph, with_other_test_labels

SMALL: dict[str, Any] = {
    "nodes": 9,
    "hidden_channels": 8,
    "iterations": 6,
    "student_steps": 2,
    "max_start": 4,
    "experts": 2,
    "expert_epochs": 8,
    "embedding_epochs": 5,
}


@pytest.fixture(params=[False, True], ids=["transductive", "inductive"])
def graph(request) -> Graph:
    return planted_graph(inductive=request.param)


def made(graph: Graph, seed: int = 2, **changes: Any):
    return SFGC(**(SMALL | changes)).condense(graph, seed=seed, device="cpu")


def one_hot(labels: Tensor, classes: int = 3) -> Tensor:
    return torch.nn.functional.one_hot(labels, classes).double()


# -- the iterate ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("lowest", "expected"), [(True, [30, 11]), (False, [10, 21])])
def test_each_graph_keeps_its_own_best_the_first_of_equals(lowest, expected):
    best = Best(lowest=lowest)
    nan = float("nan")
    scores = [[0.9, 0.2], [0.5, 0.8], [0.2, nan], [0.2, 0.2]]
    for i, pair in enumerate(scores, 1):
        x = torch.tensor([[[10.0 * i]], [[10.0 * i + 1]]])
        best.offer(i, (x, x), torch.tensor(pair))
    assert [part.flatten().tolist() for part in best.kept] == [expected, expected]


def test_a_first_score_that_is_no_number_is_beaten():
    best = Best(lowest=True)
    for i, score in enumerate([float("nan"), 3.0, 4.0]):
        best.offer(i, (torch.full((1, 1, 1), i),), torch.tensor([score]))
    assert best.kept[0].item() == 1


def test_the_kernel_sees_the_graph_of_the_validation_nodes(graph):
    validation = View(graph).condensing().validation
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    shares = one_hot(labels).repeat(2, 1, 1)
    x = torch.randn(2, 6, graph.num_features, generator=torch.Generator().manual_seed(0))
    chooser = BestByKernel(3, validation, CPU, ridge=0.5)
    chooser(0, (x, x, shares))
    # Straight from the whole graph, without the view.
    ids = np.asarray(graph.val)
    a = dense(graph.adjacency[ids][:, ids]) + torch.eye(ids.size, dtype=torch.float64)
    mean = a / a.sum(1, keepdim=True)
    target = KernelTarget.of(graph.x[graph.val].double(), lambda signal: mean @ signal)
    expected = kernel_error(target, one_hot(graph.y[graph.val]), x.double(), shares, 0.5)
    torch.testing.assert_close(chooser.scores[0][1], expected)
    better = int(torch.argmin(expected))
    chooser(1, (x[[better, better]], x, shares))
    assert chooser.curve(better)["chosen"] == 0
    assert chooser.curve(1 - better)["chosen"] == 1
    assert torch.equal(chooser.kept[0], x[[better, better]])


def test_features_of_the_classes_score_below_shuffled_ones(graph):
    validation = View(graph).condensing().validation
    centers = torch.stack([graph.x[graph.y == c].mean(0) for c in range(3)])
    labels = torch.arange(3)
    shares = one_hot(labels).repeat(2, 1, 1)
    chooser = BestByKernel(3, validation, CPU)
    right, wrong = chooser.score(
        torch.stack([centers, centers[[1, 2, 0]]]), centers, shares
    ).tolist()
    assert right < 1 / 2 * (2 / 9) < wrong


def test_draws_are_balanced_bounded_and_the_same_every_time():
    labels = torch.arange(3000) % 4
    (usual,) = validation_draws(labels, 4, None, 1)
    assert torch.bincount(labels[usual]).tolist() == [250] * 4
    (few,) = validation_draws(labels[:40], 4, None, 3)
    assert few.tolist() == list(range(40))
    draws = validation_draws(labels, 4, 5, 2)
    assert [torch.bincount(labels[draw]).tolist() for draw in draws] == [[5] * 4] * 2
    assert not torch.equal(*draws)
    assert torch.equal(draws[0], validation_draws(labels, 4, 5, 2)[0])
    with pytest.raises(InputError, match="got 2000 of each class, which are 6,000"):
        validation_draws(torch.arange(9000) % 3, 3, 2000, 1)


def test_the_returned_iterate_has_the_lowest_error(graph):
    small = made(graph, iterations=8, score_every=2, feature_lr=0.3)
    told = small.provenance["kernel_error"]
    assert told["iterations"] == [0, 2, 4, 6, 8]
    best = min(told["values"])
    assert told["values"][told["iterations"].index(told["chosen"])] == best
    validation = View(graph).condensing().validation
    chooser = BestByKernel(3, validation, CPU)
    shares = one_hot(small.classes).unsqueeze(0)
    assert chooser.score(small.x.unsqueeze(0), small.adjacency, shares).item() == pytest.approx(
        best, rel=1e-6
    )


def test_test_labels_have_no_say():
    graph = planted_graph(noise=2.0)
    ours, theirs = made(graph), made(with_other_test_labels(graph))
    assert torch.equal(ours.x, theirs.x)
    assert not ours.leaks_test_labels


# -- the start -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 2])
def test_start_is_the_k_center_of_hidden_units(graph, k):
    small = made(graph, iterations=0, num_hops=k)
    view = View(graph).condensing()
    visible = view.visible
    hidden = embed_training_nodes(view, layer="hidden", seed=2, device=CPU, epochs=5)
    assert hidden.shape[1] == 256
    x = visible.x.double()
    a = dense(visible.adjacency) + torch.eye(visible.num_nodes, dtype=torch.float64)
    root = a.sum(1).rsqrt()
    for _ in range(k):
        x = (root.unsqueeze(1) * a * root) @ x
    for label in range(3):
        own = visible.train_labels == label
        expected = visible.train[own][k_center(hidden[own], 3)]
        torch.testing.assert_close(
            small.x[small.classes == label].double(), x[expected], rtol=1e-5, atol=1e-6
        )
    assert torch.equal(small.adjacency, torch.eye(9))


def test_random_start_is_that_of_mtt(graph):
    ours = made(graph, iterations=0, selection="random")
    shared = {key: value for key, value in SMALL.items() if key != "embedding_epochs"}
    theirs = gcsr.MTT(**(shared | {"iterations": 0})).condense(graph, seed=2, device="cpu")
    assert torch.equal(ours.x, theirs.x)
    assert not torch.equal(ours.x, made(graph, iterations=0).x)


def test_a_class_with_too_few_training_nodes_repeats_them():
    graph = planted_graph()
    lopsided = replace(graph, train=torch.cat([graph.train[:7], graph.train[14:16]]))
    small = made(lopsided, iterations=0, nodes=18)
    rows = small.x[small.classes == 2]
    assert rows.shape[0] == 4
    assert rows.unique(dim=0).shape[0] == 4
    assert len(small.provenance["notes"]) == 1


# -- experts and settings ------------------------------------------------------------------------


def test_spans_are_counted_in_snapshots_and_only_their_ends_are_kept(graph):
    shared = {"max_start": 1, "iterate": "last", "expert_epochs": 40, "expert_restart": False}
    ours = made(graph, snapshot_every=3, expert_steps=4, **shared)
    theirs = made(graph, snapshot_every=1, expert_steps=12, **shared)
    assert torch.equal(ours.x, theirs.x)
    assert not torch.equal(ours.x, made(graph, expert_steps=4, **shared).x)
    told = ours.provenance["measured"]["experts"]
    weights = 4 * (graph.num_features * 8 + 8 + 8 * 3 + 3)
    # Two experts; a start and a goal of each.
    assert told["bytes"] == 2 * 2 * weights


def test_a_run_that_diverges_returns_its_best_iterate(graph, tmp_path):
    settings = {"iterations": 120, "score_every": 1, "feature_lr": 1e30}
    small = made(graph, iterate="gntk", **settings)
    assert torch.isfinite(small.x).all()
    assert any("stopped being finite by iteration 50" in n for n in small.provenance["notes"])
    again = CondensedGraph.load(small.save(tmp_path / "small.safetensors"))
    assert again.provenance["matching_loss"]["values"][-1] is None
    with pytest.raises(InputError, match="feature_lr"):
        made(graph, iterate="last", **settings)


def test_student_rate_is_learned_where_asked_for(graph):
    settings = {"iterate": "last", "expert_lr": 1e-2}
    learned, fixed = (made(graph, learn_student_lr=on, **settings) for on in (True, False))
    rate = learned.provenance["learned_student_lr"]
    assert rate != torch.tensor(0.01).item()
    assert rate == pytest.approx(0.01, abs=1e-3)
    assert "learned_student_lr" not in fixed.provenance
    assert not torch.equal(learned.x, fixed.x)


@pytest.mark.parametrize("model", ["gcn", "sgc"])
def test_sgd_experts_and_other_models(graph, model):
    small = made(
        graph, model=model, expert_optimizer="sgd", expert_lr=0.5, snapshot_every=2, max_start=3
    )
    assert torch.isfinite(small.x).all()
    assert not torch.equal(small.x, made(graph, model=model, max_start=3).x)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"selection": "best"}, "selection must be one of kcenter, random"),
        ({"iterate": "best"}, "iterate must be one of gntk, last, best-val"),
        ({"score_every": 0}, "score_every must be an integer >= 1, got 0"),
        ({"gntk_ridge": 0.0}, "gntk_ridge must be a number > 0, got 0.0"),
        ({"gntk_nodes": 0}, "gntk_nodes must be .*, got 0"),
        ({"gntk_draws": 1.5}, "gntk_draws must be .*, got 1.5"),
        ({"snapshot_every": 0}, "snapshot_every must be .*, got 0"),
        ({"embedding_weight_decay": -1.0}, "embedding_weight_decay must be .*, got -1.0"),
        ({"embedding_epochs": 0}, "embedding_epochs must be .*, got 0"),
        ({"expert_optimizer": "lion"}, "expert_optimizer must be one of adam"),
        ({"expert_restart": 1}, "expert_restart must be .*, got 1"),
        ({"learn_student_lr": "yes"}, "learn_student_lr must be .*, got 'yes'"),
        (
            {"snapshot_every": 3},
            "in snapshots every 3 epochs.* got max_start = 4 and expert_steps = 2",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        SFGC(**(SMALL | changes))


# -- presets -------------------------------------------------------------------------------------


def test_presets_are_accepted_and_fit_the_experts():
    for dataset, published in SIZES.items():
        for nodes in published:
            paper = SFGC(nodes=nodes, **paper_settings("sfgc", dataset, nodes)[0])
            mtt = paper_settings("mtt", dataset, nodes)[0]
            shared = mtt | {"iterate": "gntk"}
            assert shared.items() <= paper.settings.items()
            assert paper.learn_student_lr and paper.selection == "kcenter"
            settings, cell = preset_settings("official", "sfgc", dataset, nodes)
            assert cell == f"official ({dataset}, {nodes} nodes)"
            official = SFGC(nodes=nodes, **settings)
            assert official.model == "gcn" and official.experts == 200


def test_official_spans_are_the_authors_epochs():
    def epochs(dataset: str, nodes: int) -> tuple[int, list[int]]:
        chosen = SFGC(nodes=nodes, **preset_settings("official", "sfgc", dataset, nodes)[0])
        every = chosen.snapshot_every
        return chosen.expert_steps * every, [every * start for start in range(chosen.max_start)]

    assert epochs("cora", 35) == (1500, [0, 100, 200, 300, 400, 500])
    assert epochs("cora", 140) == (2000, [0, 100, 200, 300])
    assert epochs("citeseer", 120) == (400, [0, 10, 20, 30])
    assert epochs("ogbn-arxiv", 909) == (1900, [0, 10])
    assert epochs("reddit", 153) == (900, [0, 10, 20, 30, 40, 50])


def test_methods_without_an_official_preset_say_so(graph):
    with pytest.raises(
        InputError, match="method must be one of sfgc for preset 'official', got 'mtt'"
    ):
        gcsr.condense(graph.renamed("cora"), nodes=9, method="mtt", preset="official")
    with pytest.raises(InputError, match="for preset 'official', got 'planted'"):
        gcsr.condense(graph, nodes=9, method="sfgc", preset="official")
