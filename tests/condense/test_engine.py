"""The trajectory engine against Algorithm 1 written with plain autograd in float64."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from gcsr.condense.expressed import expressed_operator
from gcsr.condense.points import Points
from gcsr.condense.recovery import Recovery
from gcsr.condense.structure import IdentityStructure, SelfExpressiveStructure
from gcsr.condense.trajectory.engine import (
    Iterate,
    LearnedRate,
    Matching,
    Step,
    match_trajectories,
)
from gcsr.condense.trajectory.students import AutogradStudent, student_for
from gcsr.condense.trajectory.students.first_layer import FirstLayerStudent
from gcsr.condense.trajectory.students.span import SpanStudent
from gcsr.condense.trajectory.students.weights import WeightsStudent
from gcsr.equations import normalised_adjacency, self_expression_of_gram, symmetric_adjacency
from gcsr.errors import InputError
from gcsr.models import CONDENSING_MODELS, Params, condensing_model, init_batch
from gcsr.progress import silent
from helpers import one_network, plain_adjacency, plain_matching

C, H, STEPS, RATE = 4, 32, 5, 0.01
WIDE, TALL = (20, 50), (40, 12)  # n' <= d as on Cora, n' > d as on ogbn-arxiv
STUDENTS = {
    "span": SpanStudent(),
    "weights": WeightsStudent(),
    "autograd": AutogradStudent(condensing_model("sgc", H)),
}


class Problem:
    """Several condensed graphs with everything an iteration needs, float64."""

    def __init__(self, shape: tuple[int, int], graphs: int = 2, model: str = "sgc") -> None:
        n, self.d = shape
        self.n, self.graphs = n, graphs
        generator = torch.Generator().manual_seed(0)

        def normal(*size: int) -> Tensor:
            return torch.randn(*size, generator=generator, dtype=torch.float64)

        self.y = torch.arange(n) * C // n
        centres = normal(graphs, C, self.d)
        self.x = 0.3 * (centres[:, self.y] + normal(graphs, n, self.d))
        blocks = (self.y[:, None] == self.y[None, :]).double()
        self.prior = (0.8 * blocks + 0.05 + 0.01 * normal(graphs, n, n).abs()).clone()
        self.history = torch.eye(n, dtype=torch.float64) + 0.1 * normal(graphs, n, n).abs()
        self.alpha = torch.linspace(0.5, 2, graphs, dtype=torch.float64).view(-1, 1, 1)
        self.beta = torch.linspace(1, 0.2, graphs, dtype=torch.float64).view(-1, 1, 1)
        self.targets = torch.nn.functional.one_hot(self.y, C).double().expand(graphs, -1, -1)
        self.model = condensing_model(model, H)
        seeds = [torch.Generator().manual_seed(s) for s in range(graphs)]
        start = init_batch(self.model, self.d, C, seeds)
        self.start: Params = tuple(p.double() for p in start)
        self.goal: Params = tuple(p + 0.02 * normal(*p.shape) for p in self.start)

    def structure(self, dtype: torch.dtype = torch.float64) -> SelfExpressiveStructure:
        return SelfExpressiveStructure(self.alpha.to(dtype), self.beta.to(dtype), 0.9, 0.5)

    def state(self, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
        return self.prior.to(dtype, copy=True), self.history.to(dtype, copy=True)

    def engine(self, student, dtype: torch.dtype, which: slice = slice(None)):
        """Loss and gradient of the library."""
        structure = SelfExpressiveStructure(
            self.alpha[which].to(dtype), self.beta[which].to(dtype), 0.9, 0.5
        )
        state = tuple(s[which] for s in self.state(dtype))
        step = Step(
            Iterate.begin(self.x[which].to(dtype), state, RATE),
            self.targets[which].to(dtype),
            structure,
            student,
            Matching(1, STEPS, RATE, expert_steps=2, max_start=1),
            torch.ones(()),
        )
        start, goal = (
            tuple(p[which].to(dtype) for p in params) for params in (self.start, self.goal)
        )
        loss, (gradient,), _ = step.loss_and_gradients(start, goal)
        return loss, gradient

    def plain(self, name: str, g: int) -> tuple[Tensor, Tensor]:
        """Loss and gradient by the reference."""
        x = self.x[g].clone().requires_grad_()
        alpha, beta = float(self.alpha[g]), float(self.beta[g])
        a = plain_adjacency(x, self.prior[g], self.history[g], alpha, beta)
        ends = one_network(self.start, g), one_network(self.goal, g)
        loss = plain_matching(name, x, a, self.y, *ends, steps=STEPS, rate=RATE)
        (gradient,) = torch.autograd.grad(loss, x)
        return loss.detach(), gradient


def error(found: Tensor, expected: Tensor) -> float:
    return float((found.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize("shape", [WIDE, TALL], ids=["wide", "tall"])
@pytest.mark.parametrize("form", STUDENTS)
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_loss_and_gradient_are_those_of_algorithm_1(shape, form, dtype, bound):
    problem = Problem(shape)
    losses, gradients = problem.engine(STUDENTS[form], dtype)
    for g in range(problem.graphs):
        loss, gradient = problem.plain("sgc-linear", g)
        assert error(losses[g], loss) < bound
        assert error(gradients[g], gradient) < bound


OTHERS = [name for name in CONDENSING_MODELS if name != "sgc"]


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("shape", [(16, 20), (20, 9)], ids=["wide", "tall"])
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-10), (torch.float32, 3e-5)])
def test_other_models_too(name, shape, dtype, bound):
    problem = Problem(shape, model=name)
    for student in (AutogradStudent(problem.model), student_for(problem.model, *shape)):
        losses, gradients = problem.engine(student, dtype)
        for g in range(problem.graphs):
            loss, gradient = problem.plain(name, g)
            assert error(losses[g], loss) < bound
            assert error(gradients[g], gradient) < bound


@pytest.mark.parametrize("model", CONDENSING_MODELS)
def test_soft_targets_too(model):
    """Every form takes class shares; the reference is autograd through the model."""
    problem = Problem((12, 18), model=model)
    problem.targets = (3 * torch.rand(2, 12, C, dtype=torch.float64)).softmax(-1)
    expected = problem.engine(AutogradStudent(problem.model), torch.float64)
    forms = [student_for(problem.model, 12, 18)]
    forms += [WeightsStudent()] if model == "sgc" else []
    for form in forms:
        for found, wanted in zip(problem.engine(form, torch.float64), expected, strict=True):
            assert error(found, wanted) < 1e-10


@pytest.mark.parametrize("steps", [1, 2, 30])
@pytest.mark.parametrize("form", STUDENTS)
def test_any_number_of_steps(form, steps, monkeypatch):
    monkeypatch.setitem(globals(), "STEPS", steps)
    monkeypatch.setitem(globals(), "RATE", 0.3)
    problem = Problem((10, 14), graphs=1)
    losses, gradients = problem.engine(STUDENTS[form], torch.float64)
    loss, gradient = problem.plain("sgc-linear", 0)
    assert error(losses[0], loss) < 1e-9
    assert error(gradients[0], gradient) < 1e-9


@pytest.mark.parametrize("form", STUDENTS)
def test_graphs_of_a_batch_do_not_see_each_other(form):
    problem = Problem(WIDE, graphs=3)
    losses, gradients = problem.engine(STUDENTS[form], torch.float64)
    for g in range(3):
        loss, gradient = problem.engine(STUDENTS[form], torch.float64, slice(g, g + 1))
        assert error(losses[g], loss[0]) < 1e-12
        assert error(gradients[g], gradient[0]) < 1e-11


@pytest.mark.parametrize("model", CONDENSING_MODELS)
def test_gradient_of_a_learned_rate(model):
    """Central differences of the loss in the rate of one graph; the other graph's stays as it is."""
    problem = Problem((12, 18), model=model)
    forms = [student_for(problem.model, 12, 18), AutogradStudent(problem.model)]
    forms += [WeightsStudent()] if model == "sgc" else []
    matching = Matching(1, STEPS, RATE, expert_steps=2, max_start=1, learned_rate=LearnedRate())
    for form in forms:

        def at(first: float, form=form):
            iterate = Iterate.begin(problem.x, problem.state(), RATE)
            iterate.student_rate[0] = first
            parts = (iterate, problem.targets, problem.structure(), form, matching)
            return Step(*parts, torch.ones(())).loss_and_gradients(problem.start, problem.goal)

        _, (_, by_rate), _ = at(RATE)
        (above, *_), (below, *_) = at(RATE + 1e-5), at(RATE - 1e-5)
        assert by_rate[0] == pytest.approx(float(above[0] - below[0]) / 2e-5, rel=1e-5)
        assert by_rate[1] != 0
        assert above[1] == below[1]


def test_learned_rate_moves_by_sgd_with_momentum():
    problem = Problem(WIDE)
    learned = LearnedRate(rate=1e-4, momentum=0.5)
    matching = Matching(2, STEPS, RATE, expert_steps=2, max_start=1, learned_rate=learned)
    iterate = Iterate.begin(problem.x.clone(), problem.state(), RATE)
    rates = torch.full((2, 1, 1), 1e-3, dtype=torch.float64)
    step = Step(iterate, problem.targets, problem.structure(), SpanStudent(), matching, rates)
    expected = torch.full((2,), RATE, dtype=torch.float64).requires_grad_()
    sgd = torch.optim.SGD([expected], lr=1e-4, momentum=0.5)
    for _ in range(3):
        _, (_, expected.grad), _ = step.loss_and_gradients(problem.start, problem.goal)
        sgd.step()
        step(problem.start, problem.goal)
        assert error(iterate.student_rate, expected.detach()) < 1e-12
    assert not torch.allclose(expected.detach(), torch.full_like(expected, RATE))


def test_expressed_operator_is_the_chain_of_equations():
    problem = Problem(WIDE)
    gram = (problem.x @ problem.x.mT).requires_grad_()
    arguments = (gram, *problem.state(), problem.alpha, problem.beta)
    operator, adjacency = expressed_operator(*arguments)
    plain = symmetric_adjacency(self_expression_of_gram(*arguments))
    weights = torch.randn(operator.shape, dtype=torch.float64)
    (found,) = torch.autograd.grad((operator * weights).sum(), gram)
    (expected,) = torch.autograd.grad((normalised_adjacency(plain) * weights).sum(), gram)
    assert error(adjacency, plain.detach()) < 1e-12
    assert error(operator.detach(), normalised_adjacency(plain.detach())) < 1e-12
    # A Gram matrix moves symmetrically.
    assert error(found + found.mT, expected + expected.mT) < 1e-10
    topology, _ = problem.structure().topology(Points.of(problem.x), problem.state())
    assert topology.mean(torch.ones(2, WIDE[0], 1, dtype=torch.float64)).requires_grad


def test_the_smaller_form_is_chosen():
    sgc = condensing_model("sgc", H)
    assert isinstance(student_for(sgc, 20, 50), SpanStudent)
    assert isinstance(student_for(sgc, 50, 20), WeightsStudent)
    for name in ("gcn", "sage", "appnp", "cheby", "mlp"):
        assert isinstance(student_for(condensing_model(name, H), 20, 50), FirstLayerStudent)
        assert isinstance(student_for(condensing_model(name, H), 50, 20), AutogradStudent)
    assert isinstance(student_for(condensing_model("sage-textbook", H), 20, 50), AutogradStudent)


def test_student_that_arrives_has_distance_zero():
    """The goal is where the plain student ends: nothing is missed, by any form."""
    problem = Problem(WIDE, graphs=1)
    a = plain_adjacency(problem.x[0], problem.prior[0], problem.history[0], 0.5, 1.0)
    from helpers import plain_logits

    student = [p.requires_grad_() for p in one_network(problem.start)]
    for _ in range(STEPS):
        logits = plain_logits("sgc-linear", student, problem.x[0], a)
        loss = torch.nn.functional.cross_entropy(logits, problem.y)
        gradients = torch.autograd.grad(loss, student)
        student = [
            (p - RATE * g).detach().requires_grad_()
            for p, g in zip(student, gradients, strict=True)
        ]
    problem.goal = tuple(p.detach().unsqueeze(0) for p in student)
    for form in STUDENTS.values():
        assert problem.engine(form, torch.float64)[0].abs() < 1e-9


# -- the loop ----------------------------------------------------------------------------------------


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
    iterate = Iterate.begin(problem.x.clone(), state, RATE)
    expanding = more.pop("expanding", False)
    step = Step(
        iterate,
        problem.targets,
        structure,
        student_for(problem.model, problem.n, problem.d),
        Matching(iterations, STEPS, RATE, expert_steps=2, max_start=10, expanding=expanding),
        torch.full((problem.graphs, 1, 1), rate, dtype=torch.float64),
    )
    losses = match_trajectories(
        step,
        paths,
        schedules=[torch.Generator().manual_seed(s) for s in range(problem.graphs)],
        progress=more.pop("progress", silent),
        **more,
    )
    return iterate, losses, paths


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
    iterate, losses, paths = run_loop(problem, structure, problem.state(), iterations=6)
    adjacency = structure.topology(Points(iterate.x), iterate.state)[1]
    for g in range(problem.graphs):
        x, p, h, a, expected = plain_loop(problem, paths, g, 1e-3, 0.9, 0.5)
        assert error(iterate.x[g], x) < 1e-8
        assert error(iterate.state[0][g], p) < 1e-8
        assert error(iterate.state[1][g], h) < 1e-8
        assert error(adjacency[g], a) < 1e-8
        torch.testing.assert_close(losses[:, g].double(), torch.tensor(expected).double())


@pytest.mark.parametrize("model", ["sgc", "gcn", "mlp"])
@pytest.mark.parametrize("shape", [WIDE, TALL], ids=["wide", "tall"])
def test_loop_without_structure_is_algorithm_1_with_identity(shape, model):
    problem = Problem(shape, graphs=1, model=model)
    name = "sgc-linear" if model == "sgc" else model
    iterate, _, paths = run_loop(problem, IdentityStructure(), (), iterations=4)
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
    assert error(iterate.x[0], x.detach()) < 1e-8


def test_graphs_have_feature_rates_of_their_own():
    problem = Problem(WIDE, graphs=2)
    problem.x[1] = problem.x[0]
    paths = Paths(problem, 2, 12)
    iterate = Iterate.begin(problem.x.clone(), (), RATE)
    step = Step(
        iterate,
        problem.targets,
        IdentityStructure(),
        student_for(problem.model, *WIDE),
        Matching(1, STEPS, RATE, 2, 10),
        torch.tensor([1e-3, 1e-5], dtype=torch.float64).view(2, 1, 1),
    )
    match_trajectories(
        step,
        paths,
        schedules=[torch.Generator().manual_seed(0) for _ in range(2)],
        progress=silent,
    )
    moved = (iterate.x - problem.x).abs().amax((1, 2))
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
        assert min(starts) >= 0
        assert max(starts) == 9
        assert len(set(starts)) >= 7
    assert [a[1][0] for a in paths.asked] != [a[1][1] for a in paths.asked]


def test_an_expanding_window_begins_early_and_ends_where_the_other_is():
    problem = Problem((8, 10), graphs=2)
    args = (problem, problem.structure(), problem.state())
    _, _, paths = run_loop(*args, iterations=400, count=4, expanding=True)
    starts = [asked[1][0] for asked in paths.asked]
    assert starts[0] == 0
    for i, start in enumerate(starts):
        assert 0 <= start <= 10 * i // 400
    assert set(starts[300:]) == set(range(10))
    _, _, fixed = run_loop(*args, iterations=400, count=4)
    assert [asked[0] for asked in paths.asked] == [asked[0] for asked in fixed.asked]


def test_onlooker_sees_the_start_and_the_end():
    problem = Problem((8, 10), graphs=1)
    seen = []
    iterate, _, _ = run_loop(
        problem,
        problem.structure(),
        problem.state(),
        iterations=7,
        look=lambda i, at: seen.append((i, at.x.clone())),
        look_every=3,
    )
    assert [i for i, _ in seen] == [0, 3, 6, 7]
    assert torch.equal(seen[0][1], problem.x)
    assert torch.equal(seen[-1][1], iterate.x)


def test_no_iterations_leave_the_start_as_it_is():
    problem = Problem((8, 10), graphs=1)
    iterate, losses, _ = run_loop(problem, problem.structure(), problem.state(), iterations=0)
    assert torch.equal(iterate.x, problem.x)
    assert losses.shape == (0, 1)


def test_loss_that_is_not_finite_is_one_sentence():
    problem = Problem((8, 10), graphs=1)
    problem.x[0, 0, 0] = torch.nan
    with pytest.raises(InputError, match=r"^expert_rate: .* not a number from the start"):
        run_loop(problem, problem.structure(), problem.state(), iterations=3)


def test_loss_that_stops_being_finite_is_another_sentence():
    problem = Problem((8, 10))
    with pytest.raises(InputError, match=r"^feature_rate: .* stopped being finite by iteration 5,"):
        run_loop(problem, problem.structure(), problem.state(), rate=1e200)


def test_one_graph_goes_back_and_the_other_stays_as_it_was(monkeypatch):
    """A loss that is not finite halves the rate of its own graph from the last good state on."""
    problem = Problem((8, 10))
    settings = {"iterations": 120, "rate": 1e-2}
    whole, _, _ = run_loop(problem, problem.structure(), problem.state(), **settings)
    honest, calls = Step.loss_and_gradients, []

    def spoiled(self, start, goal):
        loss, gradients, adjacency = honest(self, start, goal)
        calls.append(self.feature_rate.flatten().tolist())
        if len(calls) == 71:
            loss = loss * torch.tensor([1.0, torch.nan])
            gradients[0][1] = torch.nan
        return loss, gradients, adjacency

    monkeypatch.setattr(Step, "loss_and_gradients", spoiled)
    recovery = Recovery()
    iterate, losses, paths = run_loop(
        problem, problem.structure(), problem.state(), recovery=recovery, **settings
    )
    assert calls == [[1e-2, 1e-2]] * 100 + [[1e-2, 5e-3]] * 70
    assert torch.equal(iterate.x[0], whole.x[0])
    assert not torch.equal(iterate.x[1], whole.x[1])
    assert torch.isfinite(losses).all() and torch.isfinite(iterate.x).all()
    assert paths.asked[50:100] == paths.asked[100:150]
    (note,) = recovery.notes(1)
    assert "by iteration 100: the run went back to iteration 50" in note
    assert recovery.notes(0) == ()


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
    from gcsr.experts import ExpertRecipe, train_experts
    from gcsr.views import View
    from helpers import planted_graph

    caplog.set_level("DEBUG", logger="gcsr")
    graph = planted_graph(classes=C, features=shape[1])
    problem = Problem(shape, model=model)
    results = []
    for device in (torch.device("cpu"), torch.device("cuda")):
        recipe = ExpertRecipe(3, 20, 12, 12, 1e-2, 5e-4, 0)
        visible = View(graph).condensing().visible
        paths = train_experts(problem.model, visible, recipe, device=device)
        state = tuple(s.to(device, torch.float32, copy=True) for s in problem.state())
        iterate = Iterate.begin(problem.x.to(device, torch.float32, copy=True), state, RATE)
        step = Step(
            iterate,
            problem.targets.to(device, torch.float32).contiguous(),
            SelfExpressiveStructure(
                problem.alpha.to(device).float(), problem.beta.to(device).float(), 0.9, 0.5
            ),
            student_for(problem.model, *shape),
            Matching(12, STEPS, 0.1, expert_steps=2, max_start=10),
            torch.full((2, 1, 1), 1e-3, device=device),
        )
        losses = match_trajectories(
            step,
            paths,
            schedules=[torch.Generator().manual_seed(s) for s in range(2)],
            progress=silent,
        )
        results.append((losses, iterate.x.cpu(), *(s.cpu() for s in iterate.state)))
    assert "capture failed" not in caplog.text
    for here, there in zip(*results, strict=True):
        torch.testing.assert_close(there, here, rtol=2e-3, atol=2e-3)
