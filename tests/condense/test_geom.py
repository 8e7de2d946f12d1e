"""GEOM: its curriculum, window, labels and loss against plain formulas."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gcsr import GEOM, Graph, InputError
from gcsr.data.views import View
from gcsr.engines.structure import IdentityStructure
from gcsr.engines.trajectory.engine import Matching, Step, schedule
from gcsr.engines.trajectory.students import student_for
from gcsr.equations.curriculum import Curriculum, neighborhood_entropy
from gcsr.methods.presets import paper_settings
from gcsr.models.gcn import GCN
from gcsr.models.sgc import SGC
from gcsr.training.classification import divergence
from gcsr.training.expert_recipe import ExpertRequest
from gcsr.training.experts import ExpertTrainer, difficulty_ranks
from gcsr.training.obtain_experts import experts_for
from helpers import CPU, dense, planted_graph

TINY: dict[str, Any] = {
    "nodes": 9,
    "hidden_channels": 8,
    "iterations": 6,
    "student_steps": 3,
    "max_start": 4,
    "expert_steps": 2,
    "experts": 2,
    "expert_epochs": 12,
    "curriculum_epochs": 8,
    "embedding_epochs": 4,
    "score_every": 3,
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_graph()


# -- the curriculum ------------------------------------------------------------------------------------


def test_entropy_of_neighborhoods_by_loops(graph):
    a, y = dense(graph.adjacency), graph.y.numpy()
    found = neighborhood_entropy(graph.adjacency, y, 3)
    for i in range(graph.num_nodes):
        near = {i, *a[i].nonzero().flatten().tolist()}
        shares = [sum(y[j] == c for j in near) / len(near) for c in range(3)]
        assert found[i] == pytest.approx(-sum(p * math.log(p) for p in shares if p))


def test_paces():
    shares = {
        pace: [Curriculum(0.25, 100, pace).share(e) for e in (0, 50, 100, 200)]
        for pace in ("linear", "root", "geometric")
    }
    assert shares["linear"] == pytest.approx([0.25, 0.625, 1, 1])
    assert shares["root"] == pytest.approx([0.25, math.sqrt(0.0625 + 0.9375 / 2), 1, 1])
    # The released formula: 2 to the power of log2(0.25) (1 - e/T).
    assert shares["geometric"] == pytest.approx([0.25, 2 ** (-2 * 0.5), 1, 1])
    assert Curriculum(0.5, 0, "root").share(0) == 1


def requested(**more: Any) -> ExpertRequest:
    return GEOM(**TINY, **more, dtype="float64").expert_request


def trainer(graph: Graph, **more: Any) -> ExpertTrainer:
    return ExpertTrainer(requested(**more), View(graph).condensing().visible, CPU)


def test_an_expert_begins_with_the_easiest_nodes(graph):
    """Its first step is that of a network which has no other training nodes."""
    request = requested(easy_share=0.4, pace="linear")
    visible = View(graph).condensing().visible
    ours = ExpertTrainer(request, visible, CPU)
    ranks = difficulty_ranks(request, visible, CPU)
    easy = visible.train[ranks < int(0.4 * visible.train.numel())]
    fewer = replace(visible, train=easy)
    plain = replace(request, recipe=replace(request.recipe, curriculum=None))
    theirs = ExpertTrainer(plain, fewer, CPU)
    states = [one.begin(range(1)) for one in (ours, theirs)]
    for one, state in zip((ours, theirs), states, strict=True):
        one.step(state, 0)
    for a, b in zip(states[0].params, states[1].params, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)
    # From the last epoch of the curriculum on all nodes have the same weight.
    assert ours.weights(8).unique().tolist() == [1.0]


def test_difficulty_knows_training_labels_and_predictions_only(graph):
    one = trainer(graph)
    visible = View(graph).condensing().visible
    shuffled = graph.y.clone()
    shuffled[graph.test] = graph.y[graph.test].roll(1)
    other = View(replace(graph, y=shuffled)).condensing().visible
    for seen in (visible, other):
        ranks = difficulty_ranks(requested(), seen, CPU)
        assert sorted(ranks.tolist()) == list(range(visible.train.numel()))
        assert torch.equal(ranks, one.ranks)
    # Where all labels are training labels nothing is predicted.
    everyone = View(planted_graph(inductive=True)).condensing().visible
    ranks = difficulty_ranks(replace(requested(), model=None), everyone, CPU)
    entropy = neighborhood_entropy(everyone.adjacency, everyone.labels.numpy(), 3)
    assert (np.diff(entropy[ranks.argsort().numpy()]) >= 0).all()


@pytest.mark.parametrize("memory", [None, 0])
def test_final_weights_are_kept_beside_the_snapshots(graph, memory):
    """Where trajectories are kept and where they are trained again: those after the whole schedule."""
    request = GEOM(**{**TINY, "expert_epochs": 23}, snapshot_every=2, expert_memory=memory)
    recipe = request.expert_request.recipe
    assert (recipe.last_snapshot, recipe.final_snapshot, recipe.rows) == (5, 11, 7)
    visible = View(graph).condensing().visible
    experts = experts_for(request.expert_request, visible, device=CPU).trajectories
    assert experts.keeps_everything is (memory is None)
    plain = ExpertTrainer(request.expert_request, visible, CPU)
    states = {
        epoch: tuple(p.clone() for p in state.params) for epoch, state in plain.states(range(1, 2))
    }
    for snapshot in (0, 3, 5, 11):
        found, _ = experts.pairs([1], [snapshot], 0)
        for a, b in zip(found, states[2 * snapshot], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
        if memory is None:
            where = torch.tensor([experts.position(1, snapshot)])
            assert torch.equal(experts.at(where)[0], found[0])


# -- window, labels and loss ---------------------------------------------------------------------------


def test_the_window_expands(graph):
    class Paths:
        recipe = replace(trainer(graph).recipe, snapshot_every=10, count=3)

    matching = Matching(
        iterations=2000, student_steps=1, student_lr=0.1, expert_steps=1, max_start=20, window=50
    )
    starts = [s for _, s in schedule(Paths, matching, torch.Generator().manual_seed(0))]
    assert max(starts[:10]) <= 5 and max(starts) == 19
    # Uniform over epochs 0 to 199 once the window is open.
    assert np.mean(starts[150:]) == pytest.approx(9.5, abs=0.5)


@pytest.mark.parametrize("model", [GCN(5), SGC(5, relu=False, name="sgc-linear")])
@pytest.mark.parametrize("learned", [True, False])
def test_loss_and_gradients_are_those_of_autograd(model, learned):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((2, 4, 6), generator=generator, dtype=torch.float64)
    start, goal, teacher = (
        tuple(
            torch.cat([p, q]).double()
            for p, q in zip(*(model.init(6, 3, generator) for _ in range(2)), strict=True)
        )
        for _ in range(3)
    )
    logits = torch.randn((2, 4, 3), generator=generator, dtype=torch.float64)
    hard = torch.nn.functional.one_hot(torch.tensor([0, 0, 1, 2]), 3).double().repeat(2, 1, 1)
    matching = Matching(
        iterations=1,
        student_steps=3,
        student_lr=0.3,
        expert_steps=1,
        max_start=1,
        label_lr=0.1,
        knowledge=0.7,
        root=True,
    )
    step = Step(
        x.clone(),
        (),
        hard,
        IdentityStructure(),
        student_for(model, 4, 6, learned_labels=learned),
        matching,
        torch.full((2, 1, 1), 1e-3, dtype=torch.float64),
        model,
        logits.clone() if learned else None,
    )
    loss, (of_x, *of_labels), _ = step.loss_and_gradients(start, goal, teacher)
    eye = torch.eye(4, dtype=torch.float64)
    for g in range(2):
        ours, soft = x[g].clone().requires_grad_(), logits[g].clone().requires_grad_()
        targets = soft.softmax(-1) if learned else hard[g]

        def scores(weights, points=ours):
            w1, b1, w2, b2 = weights
            hidden = points @ w1 + b1
            return eye @ (hidden.relu() if isinstance(model, GCN) else hidden) @ w2 + b2

        weights = [p[g].clone().requires_grad_() for p in start]
        for _ in range(3):
            fit = -(targets * scores(weights).log_softmax(-1)).sum(-1).mean()
            slopes = torch.autograd.grad(fit, weights, create_graph=True)
            weights = [w - 0.3 * s for w, s in zip(weights, slopes, strict=True)]
        missed = sum((w - p[g]).square().sum() for w, p in zip(weights, goal, strict=True))
        gone = sum((p[g] - q[g]).square().sum() for p, q in zip(start, goal, strict=True))
        logs = scores([p[g] for p in teacher]).log_softmax(-1)
        known = (
            torch.where(targets > 0, targets * (targets.clamp_min(1e-300).log() - logs), 0)
        ).sum()
        expected = (missed / gone).sqrt() + 0.7 * known / 4
        torch.testing.assert_close(loss[g], expected.detach(), rtol=1e-9, atol=1e-12)
        inputs = (ours, soft) if learned else (ours,)
        found = torch.autograd.grad(expected, inputs)
        torch.testing.assert_close(of_x[g], found[0], rtol=1e-7, atol=1e-10)
        if learned:
            torch.testing.assert_close(of_labels[0][g], found[1], rtol=1e-7, atol=1e-10)
    before = step.current_targets().clone()
    step(start, goal, teacher)
    if learned:
        torch.testing.assert_close(step.logits, logits - 0.1 * of_labels[0])
    else:
        assert torch.equal(step.current_targets(), before)


def test_divergence_is_that_of_torch():
    generator = torch.Generator().manual_seed(0)
    logits, other = (torch.randn((2, 4, 3), generator=generator).double() for _ in range(2))
    expected = [
        torch.nn.functional.kl_div(
            a.log_softmax(-1), b.log_softmax(-1), reduction="batchmean", log_target=True
        )
        for a, b in zip(logits, other, strict=True)
    ]
    torch.testing.assert_close(divergence(logits, other.softmax(-1)), torch.stack(expected))


def test_labels_are_soft_and_kept_with_their_features(graph):
    for iterate in ("best-val", "last"):
        small = GEOM(iterate=iterate, **TINY).condense(graph, device="cpu")
        assert small.y.shape == (9, 3) and small.x.shape == (9, graph.num_features)
        torch.testing.assert_close(small.y.sum(1), torch.ones(9))
        assert torch.equal(small.classes, small.classes.sort().values)
    start = GEOM(iterate="last", **{**TINY, "iterations": 0}).condense(graph, device="cpu")
    # Every node begins in its own class, whatever the expert says.
    assert torch.bincount(start.classes).tolist() == [3, 3, 3]
    hard = GEOM(learn_labels=False, **TINY).condense(graph, device="cpu")
    assert hard.y.ndim == 1 and hard.x.shape == (9, graph.num_features)


def test_published_settings():
    settings, _ = paper_settings("geom", "cora", 70)
    condenser = GEOM(nodes=70, **settings)
    assert (condenser.expert_steps, condenser.student_steps, condenser.window) == (140, 2500, 50)
    assert condenser.learn_labels and condenser.expert_optimizer == "sgd"
    assert not GEOM(nodes=60, **paper_settings("geom", "citeseer", 60)[0]).learn_labels
    for dataset, nodes in (("ogbn-arxiv", 454), ("flickr", 223), ("reddit", 153)):
        GEOM(nodes=nodes, **paper_settings("geom", dataset, nodes)[0])
    with pytest.raises(InputError, match="easy_share must be"):
        GEOM(nodes=70, easy_share=0.0)
