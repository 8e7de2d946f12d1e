"""The loop of the trajectory engine against Algorithm 1 written with plain autograd in float64."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from engine_helpers import RATE, STEPS, TALL, WIDE, C, Problem, error

from gcsr.engines.loop import DivergenceGuard, optimize
from gcsr.engines.structure import IdentityStructure, SelfExpressiveStructure, SyntheticFeatures
from gcsr.engines.trajectory.engine import (
    CHECK_EVERY,
    Matching,
    MatchTrajectories,
    Step,
)
from gcsr.engines.trajectory.students import student_for
from gcsr.models.base import init_batch
from gcsr.models.registry import CONDENSING_MODELS
from gcsr.utils.errors import InputError
from gcsr.utils.progress import silent
from helpers import plain_adjacency, plain_matching


class Paths:
    """Expert weights by expert and epoch that remember what was asked of them."""

    def __init__(self, problem: Problem, count: int, epochs: int) -> None:
        seeds = [torch.Generator().manual_seed(100 + s) for s in range(count)]
        at = tuple(p.double() for p in init_batch(problem.model, problem.d, C, seeds))
        self.epochs = [at]
        generator = torch.Generator().manual_seed(9)
        for _ in range(epochs):
            at = tuple(
                p + 0.01 * torch.randn(p.shape, generator=generator, dtype=torch.float64)
                for p in at
            )
            self.epochs.append(at)
        self.recipe = SimpleNamespace(count=count)
        self.asked: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def pairs(self, experts, starts, steps):
        self.asked.append((tuple(experts), tuple(starts)))
        return tuple(
            tuple(
                torch.stack(
                    [self.epochs[t + ahead][i][e] for e, t in zip(experts, starts, strict=True)]
                )
                for i in range(4)
            )
            for ahead in (0, steps)
        )


def run_loop(problem: Problem, structure, state, *, iterations=5, count=3, rate=1e-3, **more):
    paths = Paths(problem, count, 12)
    step = Step(
        problem.x.clone(),
        state,
        problem.targets,
        structure,
        student_for(problem.model, problem.n, problem.d),
        Matching(iterations, STEPS, RATE, expert_steps=2, max_start=10),
        torch.full((problem.graphs, 1, 1), rate, dtype=torch.float64),
    )
    compare = more.pop("compare", None)
    schedules = [torch.Generator().manual_seed(s) for s in range(problem.graphs)]
    losses = optimize(
        MatchTrajectories(step, paths, schedules),
        iterations,
        check_every=CHECK_EVERY["cpu"],
        progress=more.pop("progress", silent),
        compare=None if compare is None else lambda i: compare(i, step.x),
        **more,
    )
    return step, losses, paths


def plain_loop(problem: Problem, paths: Paths, g: int, rate: float, tau: float, gamma: float):
    """Algorithm 1 for one graph with torch's Adam, along the schedule that the engine drew."""
    x = problem.x[g].clone().requires_grad_()
    p, h = problem.prior[g].clone(), problem.history[g].clone()
    alpha, beta = float(problem.alpha[g]), float(problem.beta[g])
    adam = torch.optim.Adam([x], lr=rate)
    losses = []
    for experts, starts in paths.asked:
        start = [w[experts[g]] for w in paths.epochs[starts[g]]]
        goal = [w[experts[g]] for w in paths.epochs[starts[g] + 2]]
        a = plain_adjacency(x, p, h, alpha, beta)
        loss = plain_matching("sgc-linear", x, a, problem.y, start, goal, steps=STEPS, rate=RATE)
        adam.zero_grad()
        loss.backward()
        adam.step()
        p = tau * p + (1 - tau) * a.detach()
        h = gamma * h + (1 - gamma) * a.detach()
        losses.append(loss.item())
    x = x.detach()
    return x, p, h, plain_adjacency(x, p, h, alpha, beta), losses


@pytest.mark.parametrize("shape", [WIDE, TALL], ids=["wide", "tall"])
def test_loop_is_algorithm_1(shape):
    problem = Problem(shape)
    structure = problem.structure()
    step, losses, paths = run_loop(problem, structure, problem.state(), iterations=6)
    adjacency = structure.topology(SyntheticFeatures(step.x), step.state)[1]
    for g in range(problem.graphs):
        x, p, h, a, expected = plain_loop(problem, paths, g, 1e-3, 0.9, 0.5)
        assert error(step.x[g], x) < 1e-8
        assert error(step.state[0][g], p) < 1e-8
        assert error(step.state[1][g], h) < 1e-8
        assert error(adjacency[g], a) < 1e-8
        torch.testing.assert_close(losses[:, g].double(), torch.tensor(expected).double())


@pytest.mark.parametrize("model", ["sgc", "gcn", "mlp"])
@pytest.mark.parametrize("shape", [WIDE, TALL], ids=["wide", "tall"])
def test_loop_without_structure_is_algorithm_1_with_identity(shape, model):
    problem = Problem(shape, graphs=1, model=model)
    name = "sgc-linear" if model == "sgc" else model
    step, _, paths = run_loop(problem, IdentityStructure(), (), iterations=4)
    x = problem.x[0].clone().requires_grad_()
    adam = torch.optim.Adam([x], lr=1e-3)
    eye = torch.eye(problem.n, dtype=torch.float64)
    for (expert,), (t,) in paths.asked:
        start = [w[expert] for w in paths.epochs[t]]
        goal = [w[expert] for w in paths.epochs[t + 2]]
        loss = plain_matching(name, x, eye, problem.y, start, goal, steps=STEPS, rate=RATE)
        adam.zero_grad()
        loss.backward()
        adam.step()
    assert error(step.x[0], x.detach()) < 1e-8


def test_graphs_have_feature_rates_of_their_own():
    problem = Problem(WIDE, graphs=2)
    problem.x[1] = problem.x[0]
    paths = Paths(problem, 2, 12)
    step = Step(
        problem.x.clone(),
        (),
        problem.targets,
        IdentityStructure(),
        student_for(problem.model, *WIDE),
        Matching(1, STEPS, RATE, 2, 10),
        torch.tensor([1e-3, 1e-5], dtype=torch.float64).view(2, 1, 1),
    )
    schedules = [torch.Generator().manual_seed(0) for _ in range(2)]
    optimize(MatchTrajectories(step, paths, schedules), 1, progress=silent, check_every=50)
    moved = (step.x - problem.x).abs().amax((1, 2))
    # Adam's first step is the rate itself.
    torch.testing.assert_close(
        moved, torch.tensor([1e-3, 1e-5], dtype=torch.float64), rtol=1e-3, atol=0
    )


def test_schedule_takes_every_expert_once_per_round_and_early_starts_only():
    problem = Problem((8, 10), graphs=2)
    _, _, paths = run_loop(problem, problem.structure(), problem.state(), iterations=40, count=4)
    for g in range(2):
        experts = [asked[0][g] for asked in paths.asked]
        starts = [asked[1][g] for asked in paths.asked]
        for first in range(0, 40, 4):
            assert sorted(experts[first : first + 4]) == [0, 1, 2, 3]
        assert len({tuple(experts[first : first + 4]) for first in range(0, 40, 4)}) >= 4
        assert min(starts) >= 0
        assert max(starts) == 9
        assert len(set(starts)) >= 7
    assert [a[1][0] for a in paths.asked] != [a[1][1] for a in paths.asked]


def test_compare_sees_the_start_and_the_end():
    problem = Problem((8, 10), graphs=1)
    seen = []
    step, _, _ = run_loop(
        problem,
        problem.structure(),
        problem.state(),
        iterations=7,
        compare=lambda i, x: seen.append((i, x.clone())),
        compare_at=range(0, 7, 3),
    )
    assert [i for i, _ in seen] == [0, 3, 6, 7]
    assert torch.equal(seen[0][1], problem.x)
    assert torch.equal(seen[-1][1], step.x)


def test_no_iterations_leave_the_start_as_it_is():
    problem = Problem((8, 10), graphs=1)
    step, losses, _ = run_loop(problem, problem.structure(), problem.state(), iterations=0)
    assert torch.equal(step.x, problem.x)
    assert losses.shape == (0, 1)


def test_loss_that_is_not_finite_is_one_sentence():
    problem = Problem((8, 10), graphs=1)
    problem.x[0, 0, 0] = torch.nan
    with pytest.raises(InputError, match=r"^expert_lr: .* not a number from the start"):
        run_loop(problem, problem.structure(), problem.state(), iterations=3)


def test_loss_that_stops_being_finite_is_another_sentence():
    problem = Problem((8, 10))
    with pytest.raises(InputError, match=r"^feature_lr: .* stopped being finite by iteration 5,"):
        run_loop(problem, problem.structure(), problem.state(), rate=1e200)


def test_one_graph_goes_back_and_the_other_stays_as_it_was(monkeypatch):
    """A loss that is not finite halves the rate of its own graph from the last good state on."""
    problem = Problem((8, 10))
    settings = {"iterations": 120, "rate": 1e-2}
    whole, _, _ = run_loop(problem, problem.structure(), problem.state(), **settings)
    honest, calls = Step.loss_and_gradients, []

    def spoiled(self, *weights):
        loss, gradients, adjacency = honest(self, *weights)
        calls.append(self.lrs)
        if len(calls) == 71:
            loss = loss * torch.tensor([1.0, torch.nan])
            gradients[0][1] = torch.nan
        return loss, gradients, adjacency

    monkeypatch.setattr(Step, "loss_and_gradients", spoiled)
    guard = DivergenceGuard()
    step, losses, paths = run_loop(
        problem, problem.structure(), problem.state(), guard=guard, **settings
    )
    assert calls == [[1e-2, 1e-2]] * 100 + [[1e-2, 5e-3]] * 70
    assert torch.equal(step.x[0], whole.x[0])
    assert not torch.equal(step.x[1], whole.x[1])
    assert torch.isfinite(losses).all() and torch.isfinite(step.x).all()
    assert paths.asked[50:100] == paths.asked[100:150]
    (note,) = guard.notes(1)
    assert "by iteration 100: the run went back to iteration 50" in note
    assert guard.notes(0) == ()


def test_progress_ends_at_the_last_iteration():
    problem = Problem((8, 10), graphs=1)
    calls = []
    run_loop(
        problem,
        problem.structure(),
        problem.state(),
        iterations=55,
        progress=lambda stage, done, total: calls.append((stage, done, total)),
    )
    assert calls == [("condensing", 50, 55), ("condensing", 55, 55)]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("model", CONDENSING_MODELS)
@pytest.mark.parametrize("shape", [(16, 20), (20, 9)], ids=["wide", "tall"])
def test_captured_loop_on_cuda_is_the_loop_on_the_cpu(model, shape, caplog):
    """Real expert trajectories, so that the iteration is captured as a CUDA graph."""
    from gcsr.data.views import View
    from gcsr.training.expert_recipe import ExpertRecipe, ExpertRequest
    from gcsr.training.experts import train_experts
    from helpers import planted_graph

    caplog.set_level("DEBUG", logger="gcsr")
    graph = planted_graph(classes=C, features=shape[1])
    problem = Problem(shape, model=model)
    results = []
    for device in (torch.device("cpu"), torch.device("cuda")):
        recipe = ExpertRecipe(3, 20, 12, 12, 1e-2, 5e-4, 0)
        visible = View(graph).condensing().visible
        paths = train_experts(ExpertRequest(problem.model, recipe), visible, device=device)
        state = tuple(s.to(device, torch.float32, copy=True) for s in problem.state())
        step = Step(
            problem.x.to(device, torch.float32, copy=True),
            state,
            problem.targets.to(device, torch.float32).contiguous(),
            SelfExpressiveStructure(
                problem.alpha.to(device).float(), problem.beta.to(device).float(), 0.9, 0.5
            ),
            student_for(problem.model, *shape),
            Matching(12, STEPS, RATE, expert_steps=2, max_start=10),
            torch.full((2, 1, 1), 1e-3, device=device),
        )
        schedules = [torch.Generator().manual_seed(s) for s in range(2)]
        losses = optimize(
            MatchTrajectories(step, paths, schedules), 12, progress=silent, check_every=250
        )
        results.append((losses, step.x.cpu(), *(s.cpu() for s in step.state)))
    assert "capture failed" not in caplog.text
    for here, there in zip(*results, strict=True):
        torch.testing.assert_close(there, here, rtol=2e-3, atol=2e-3)
