"""Bilevel condensation: its gradients, its outer loss, its schedule, and what it returns."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr import Bilevel, CondensedGraph, Graph, InputError, View
from gcsr.data.views import CondensingView
from gcsr.engines.bilevel.engine import (
    STUDENT_MODELS,
    BilevelSchedule,
    BilevelStep,
    RealLoss,
    balanced,
    label_logits,
    minibatches,
)
from gcsr.engines.bilevel.window import TINY as SMALLEST_ROOT
from gcsr.engines.bilevel.window import InnerAdam, SmallGraph, Students, Window, students_apart
from gcsr.engines.iterates import QuickScore
from gcsr.engines.result import Context
from gcsr.engines.structure import SelfExpressiveStructure
from gcsr.methods.bilevel import known_labels
from gcsr.models.sparse import SparseOperator
from gcsr.outofcore.real import real_graph
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.progress import silent
from helpers import (
    CPU,
    dense,
    plain_adjacency,
    plain_logits,
    plain_norm,
    planted_graph,
    with_other_test_labels,
)

method_module = importlib.import_module("gcsr.methods.bilevel")
TINY: dict[str, Any] = {
    "nodes": 9,
    "iterations": 6,
    "students": 2,
    "hidden_channels": 8,
    "window": 3,
    "burn_in": 2,
    "longest": 12,
}
LAST = TINY | {"iterate": "last"}
TINIEST = SMALLEST_ROOT**2


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    """Networks that label or judge are trained for a moment."""
    labels = importlib.import_module("gcsr.starts.pseudo_labels")
    for name in ("SUPERVISED_RECIPE", "CONSISTENT_RECIPE"):
        monkeypatch.setattr(labels, name, TrainingRecipe(epochs=10, dropout=0.5))
    monkeypatch.setattr(method_module, "QUICK", TrainingRecipe(epochs=10, validate_every=5))


@pytest.fixture(scope="module")
def graph() -> Graph:
    """A third of its nodes is labeled."""
    return planted_graph(noise=2.0)


@pytest.fixture(scope="module")
def few_labels() -> Graph:
    return planted_graph(train_per_class=4, noise=2.0)


def made(graph: Graph, seed: int = 0, **settings: Any) -> CondensedGraph:
    return Bilevel(**settings).condense(graph, seed=seed, device="cpu")


def content(small: CondensedGraph) -> tuple[bytes, ...]:
    return tuple(part.numpy().tobytes() for part in (small.x, small.adjacency, small.y))


# -- the window and its adjoint, against plain autograd ----------------------------------------------


def some_students(
    graphs: int, count: int, widths: tuple[int, int, int], *, ages: Sequence[Sequence[float]]
) -> Students:
    """Students in float64 that have been training for a while; those of age 0 have no moments."""
    generator = torch.Generator().manual_seed(1)
    found = Students.zeros(graphs, count, widths, torch.zeros((), dtype=torch.float64))
    found.age.copy_(torch.tensor(ages, dtype=torch.float64))
    h = widths[1]
    for p, m, v in zip(found.params, found.first, found.second, strict=True):
        p.normal_(generator=generator).mul_(0.3)
        m.normal_(generator=generator).mul_(0.01)
        v.uniform_(1e-5, 1e-3, generator=generator)
    for g, s in (found.age == 0).nonzero().tolist():
        for moments in (found.first, found.second):
            for i in (0, 1):
                moments[i][g, :, s * h : (s + 1) * h] = 0
            for i in (2, 3):
                moments[i][g, s] = 0
    return found


def of_student(tensors: Sequence[Tensor], g: int, s: int) -> list[Tensor]:
    """One student's part of weights, moments or gradients."""
    w1, b1, w2, b2 = tensors
    h = w2.shape[2]
    columns = slice(s * h, (s + 1) * h)
    return [w1[g][:, columns], b1[g][:, columns], w2[g, s], b2[g, s]]


def plain_window(
    students: Students,
    g: int,
    s: int,
    u: Tensor,
    p: Tensor | None,
    y: Tensor,
    adam: InnerAdam,
    k: int,
    *,
    multi_label: bool,
) -> list[Tensor]:
    """Weights of a student after ``k`` steps of Adam, as autograd follows them."""
    weights = [w.detach().clone().requires_grad_() for w in of_student(students.params, g, s)]
    first, second = (of_student(moments, g, s) for moments in (students.first, students.second))
    age = float(students.age[g, s])
    for _ in range(k):
        out = (u @ weights[0] + weights[1]).relu() @ weights[2]
        out = (out if p is None else p @ out) + weights[3]
        # Cross-entropy where rows of Y sum to one.
        loss = (out.logsumexp(-1) - (y * out).sum(-1)).mean()
        if multi_label:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(out, y)
        gradients = torch.autograd.grad(loss, weights, create_graph=True)
        age += 1
        moved = []
        for i, (w, plain) in enumerate(zip(weights, gradients, strict=True)):
            gradient = plain + adam.weight_decay * w
            first[i] = 0.9 * first[i] + 0.1 * gradient
            second[i] = 0.999 * second[i] + 0.001 * gradient.square()
            # The root of zero has no slope; where v is zero so is m.
            root = (second[i].clamp_min(TINIEST) / (1 - 0.999**age)).sqrt()
            moved.append(w - adam.lr * first[i] / (1 - 0.9**age) / (root + 1e-8))
        weights = moved
    return weights


def problem(
    *,
    structured: bool,
    zero_column: bool,
    ages: Sequence[Sequence[float]],
    multi_label: bool = False,
) -> Any:
    generator = torch.Generator().manual_seed(0)
    graphs, count, (n, d, h, c) = len(ages), len(ages[0]), (7, 9, 5, 4)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    u = normal(graphs, n, d)
    if zero_column:
        u[..., 2] = 0
    p = normal(graphs, n, n).abs() / n if structured else None
    logits = normal(graphs, n, c)
    y = logits.sigmoid() if multi_label else logits.softmax(-1)
    small = SmallGraph(u, p, y, multi_label)
    students = some_students(graphs, count, (d, h, c), ages=ages)
    upstream = tuple(normal(*w.shape) for w in students.params)
    return small, students, upstream


def error(found: Tensor, expected: Tensor) -> float:
    return float((found.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize(
    ("adam", "zero_column", "ages"),
    [
        (InnerAdam(), False, [[3, 10, 50], [0, 7, 2]]),
        (InnerAdam(0.03, 0.0), True, [[0, 0]]),
        (InnerAdam(0.001, 0.1), True, [[4], [0], [900]]),
    ],
)
def test_the_adjoint_is_what_autograd_finds(structured, adam, zero_column, ages, multi_label):
    steps = 6
    small, students, upstream = problem(
        structured=structured, zero_column=zero_column, ages=ages, multi_label=multi_label
    )
    graphs, count = students.age.shape
    weights = torch.linspace(0.5, 2, graphs * count, dtype=torch.float64).view(graphs, count)
    u, y = small.u.clone().requires_grad_(), small.y.clone().requires_grad_()
    p = None if small.p is None else small.p.clone().requires_grad_()
    total, ends = torch.zeros((), dtype=torch.float64), {}
    for g in range(graphs):
        for s in range(count):
            own = None if p is None else p[g]
            ends[g, s] = plain_window(
                students, g, s, u[g], own, y[g], adam, steps, multi_label=multi_label
            )
            pairs = zip(ends[g, s], of_student(upstream, g, s), strict=True)
            total = total + weights[g, s] * sum((end * up).sum() for end, up in pairs)
    expected = torch.autograd.grad(total, [u, y] if p is None else [u, y, p])

    window = Window(students, adam, steps)
    before = students.age.clone()
    window.advance(small)
    assert torch.equal(students.age, before + steps)
    for (g, s), end in ends.items():
        for found, plain in zip(of_student(students.params, g, s), end, strict=True):
            torch.testing.assert_close(found, plain.detach(), rtol=1e-10, atol=1e-12)
    bar_u, bar_p, bar_y = window.adjoint(small, upstream, lambda _: weights)
    # The same window may be differentiated again.
    again = window.adjoint(small, upstream, lambda _: weights)
    assert torch.equal(again[0], bar_u) and torch.equal(again[2], bar_y)
    assert error(bar_u, expected[0]) < 1e-9
    assert error(bar_y, expected[1]) < 1e-9
    if p is None:
        assert bar_p is None
    else:
        assert bar_p is not None and error(bar_p, expected[2]) < 1e-9


@pytest.mark.parametrize("keep", [True, False])
def test_students_train_as_torch_trains_a_network(keep):
    small, students, _ = problem(structured=False, zero_column=False, ages=[[0, 0]])
    adam = InnerAdam(0.02, 1e-3)
    networks = []
    for s in range(2):
        network = torch.nn.Sequential(
            torch.nn.Linear(9, 5), torch.nn.ReLU(), torch.nn.Linear(5, 4)
        ).double()
        w1, b1, w2, b2 = of_student(students.params, 0, s)
        with torch.no_grad():
            for mine, theirs in zip(network.parameters(), (w1.T, b1[0], w2.T, b2[0]), strict=True):
                mine.copy_(theirs)
        optimizer = torch.optim.Adam(
            network.parameters(), lr=adam.lr, weight_decay=adam.weight_decay
        )
        for _ in range(17):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(small.u[0]), small.y[0]).backward()
            optimizer.step()
        networks.append([w.detach() for w in network.parameters()])
    # In two windows: moments and ages are carried over.
    for steps in (12, 5):
        Window(students, adam, steps, keep=keep).advance(small)
    for s, (w1, b1, w2, b2) in enumerate(networks):
        found = of_student(students.params, 0, s)
        for one, other in zip(found, (w1.T, b1[None], w2.T, b2[None]), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


def test_a_student_whose_gradient_is_not_finite_spoils_no_other():
    small, students, upstream = problem(structured=True, zero_column=False, ages=[[5, 9, 20]])
    found = []
    for bad in (False, True):
        window = Window(copy.deepcopy(students), InnerAdam(), 4)
        window.advance(small)
        given = [g.clone() for g in upstream]
        weights = torch.tensor([[1.0, 0.0, 2.0]], dtype=torch.float64)
        if bad:
            given[2][0, 1] = torch.nan
            given[0][0, :, 5:10] = torch.inf
        found.append(window.adjoint(small, tuple(given), lambda _, w=weights: w))
    for clean, spoiled in zip(*found, strict=True):
        torch.testing.assert_close(spoiled, clean)


# -- a step of the engine ------------------------------------------------------------------------------


def schedule(**changes: Any) -> BilevelSchedule:
    given: dict[str, Any] = {
        "iterations": 40,
        "students": 3,
        "hidden_channels": 16,
        "window": 10,
        "burn_in": 20,
        "longest": 80,
        "feature_lr": 0.02,
        "label_lr": 0.02,
    }
    return BilevelSchedule(**(given | changes))


@pytest.mark.parametrize(
    ("structured", "multi_label"), [(False, False), (True, False), (False, True)]
)
def test_a_float32_step_has_the_gradient_of_plain_autograd(structured, multi_label):
    generator = torch.Generator().manual_seed(3)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    n, d, c = 30, 80, 5
    plan = schedule()
    x, logits = 0.5 * normal(1, n, d), 3 * normal(1, n, c)
    y = logits.sigmoid() if multi_label else logits.softmax(-1)
    prior, history = normal(1, n, n).abs() / n, torch.eye(n, dtype=torch.float64)[None]
    chosen = None
    if structured:
        alpha, beta = torch.full((1, 1, 1), 20.0), torch.full((1, 1, 1), 10.0)
        closed_form = SelfExpressiveStructure(alpha, beta, 0.9, 0.5)
        chosen = (closed_form, (prior.float(), history.float()))
    step = BilevelStep(x.float(), y.float(), plan, None, [4], chosen, multi_label)
    for student in range(plan.students):
        step.renew(0, student)
    before = copy.deepcopy(step.students)
    upstream = tuple(normal(*w.shape) for w in before.params)
    step.windows[0].advance(step.small_graph())
    g_x, g_logits, _ = step.outer_gradients(tuple(g.float() for g in upstream))

    in_double = Students(
        *(tuple(t.double() for t in part) for part in (before.params, before.first, before.second)),
        before.age.double(),
    )
    leaf = x[0].clone().requires_grad_()
    logits = label_logits(y, multi_label)[0].requires_grad_()
    shares, u, p = logits.sigmoid() if multi_label else logits.softmax(-1), leaf, None
    if structured:
        p = plain_norm(plain_adjacency(leaf, prior[0], history[0], 20.0, 10.0))
        u = p @ leaf
    losses = []
    for s in range(plan.students):
        ends = plain_window(
            in_double, 0, s, u, p, shares, InnerAdam(), plan.window, multi_label=multi_label
        )
        pairs = zip(ends, of_student(upstream, 0, s), strict=True)
        losses.append(sum((end * up).sum() for end, up in pairs))
    by_y = [torch.autograd.grad(loss, shares, retain_graph=True)[0] for loss in losses]
    weights = balanced(torch.stack(by_y)[None])[0]
    total = sum(weight * loss for weight, loss in zip(weights, losses, strict=True))
    expected = torch.autograd.grad(total, [leaf, logits])
    assert error(g_x[0], expected[0]) < 1e-4
    assert error(g_logits[0], expected[1]) < 1e-4


def test_no_student_counts_more_than_the_median_one():
    sizes = torch.tensor([[1.0, 100.0, 3.0, 1e6, 0.5], [2.0, 2.0, 2.0, 2.0, 2.0]])
    gradients = sizes[..., None, None] * torch.full((2, 5, 4, 1), 0.5)
    counted = balanced(gradients) * sizes
    # In units of the median: those above count as one of it, those below as they are.
    torch.testing.assert_close(
        counted, torch.tensor([[1 / 3, 1.0, 1.0, 1.0, 0.5 / 3], [1.0] * 5]) / 5
    )


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf, 0.0])
def test_gradients_that_say_nothing_count_nothing(bad):
    gradients = torch.ones(3, 4, 2, 2)
    gradients[0, 1], gradients[1, 1:], gradients[2] = bad, bad, bad
    weights = balanced(gradients)
    assert torch.isfinite(weights).all()
    assert (weights[0] > 0).tolist() == [True, False, True, True]
    assert (weights[1] > 0).tolist() == [True, False, False, False]
    assert weights[2].tolist() == [0.0] * 4


@pytest.mark.parametrize(
    ("students", "window", "burn_in", "longest"),
    [(4, 10, 40, 200), (3, 5, 0, 60), (5, 7, 10, 40), (1, 10, 5, 15), (6, 10, 10, 20)],
)
def test_every_student_is_replaced_once_in_a_life_and_ages_are_spread(
    students, window, burn_in, longest
):
    plan = schedule(students=students, window=window, burn_in=burn_in, longest=longest)
    life, born = (longest - burn_in) // window, [0] * students
    assert plan.replaced_at(0) == list(range(students))
    for iteration in range(1, 4 * life + 1):
        new = plan.replaced_at(iteration)
        for student in new:
            if iteration > life:
                assert iteration - born[student] == life
            born[student] = iteration
        ages = [burn_in + window * (iteration - one + 1) for one in born]
        assert burn_in + window <= min(ages) and max(ages) <= longest
        if iteration >= life:
            # One after the other: as few at a time as there can be.
            assert len(new) <= -(-students // life)
            assert len(set(ages)) == min(students, life)


def test_students_have_the_ages_of_the_schedule(graph):
    plan = schedule(iterations=9, students=2, hidden_channels=4, window=2, burn_in=3, longest=12)
    view = View(graph).condensing()
    shares = torch.nn.functional.one_hot(graph.y.clamp_min(0), 3).float()
    real = RealLoss(real_graph(view.visible, CPU), shares[graph.train], graph.train, ["gcn"], 4)
    x, y = graph.x[None, :6].clone(), shares[None, :6]
    step = BilevelStep(x, y, plan, real, [0])
    seen = []
    for iteration in range(9):
        before = step.students.params[0].clone()
        loss = step(iteration)
        assert torch.isfinite(loss).all() and not torch.equal(step.students.params[0], before)
        seen.append(step.students.age[0].tolist())
    assert seen[:6] == [[5, 5], [7, 7], [9, 5], [11, 7], [5, 9], [7, 11]]


def test_rates_fall_to_zero():
    plan = schedule(iterations=20)
    shares = [plan.lr_share(iteration) for iteration in range(21)]
    assert shares[0] == 1 and shares[20] == 0 and shares == sorted(shares, reverse=True)


# -- the real loss -------------------------------------------------------------------------------------


def random_real_graph(*, sparse: bool) -> Graph:
    rng = np.random.default_rng(5)
    n, d = (520, 200) if sparse else (60, 12)
    x = rng.normal(size=(n, d)) * (rng.random((n, d)) < (0.01 if sparse else 1))
    upper = np.triu(rng.random((n, n)) < 3 / n, 1)
    place = rng.permutation(n)
    return Graph.from_arrays(
        x.astype(np.float32),
        sp.csr_array((upper | upper.T).astype(np.float32)),
        rng.integers(0, 4, n),
        train=place < n // 2,
        val=(place >= n // 2) & (place < 3 * n // 4),
        test=place >= 3 * n // 4,
    )


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("models", [*[(name,) for name in STUDENT_MODELS], ("gcn", "mlp")])
def test_the_real_loss_is_that_of_the_plain_formulas(models, sparse):
    graph = random_real_graph(sparse=sparse)
    visible = View(graph).condensing().visible
    generator = torch.Generator().manual_seed(6)
    shares = torch.randn(graph.num_nodes, 4, generator=generator).double().softmax(-1)
    nodes = torch.randperm(graph.num_nodes, generator=generator)[:25]
    unasked = torch.ones(graph.num_nodes, dtype=torch.bool)
    unasked[nodes] = False
    shares[unasked] = torch.nan
    students = some_students(2, 3, (graph.num_features, 5, 4), ages=[[1, 2, 3], [4, 5, 6]])
    seen = real_graph(visible, CPU, torch.float64)
    real = RealLoss(seen, shares[nodes], nodes, models, 5, dtype=torch.float64)
    ((prepared, _),) = real._batches
    assert all(isinstance(one.inputs, SparseOperator) == sparse for one in prepared)
    losses, gradients = real.losses_and_gradients(students, 7)

    a, x = dense(graph.adjacency), graph.x.double()
    leaves = [p.clone().requires_grad_() for p in students.params]
    expected = torch.zeros(2, 3, dtype=torch.float64)
    for g in range(2):
        for s in range(3):
            for name in models:
                logits = plain_logits(name, of_student(leaves, g, s), x, a)[nodes]
                loss = -(shares[nodes] * logits.log_softmax(-1)).sum(-1).mean()
                expected[g, s] = expected[g, s] + loss / len(models)
    torch.testing.assert_close(losses, expected.detach(), rtol=1e-9, atol=1e-12)
    plain = torch.autograd.grad(expected.sum(), leaves)
    for found, gradient in zip(gradients, plain, strict=True):
        torch.testing.assert_close(found, gradient, rtol=1e-8, atol=1e-12)


def test_minibatches_take_turns_among_the_nodes_asked_for(graph):
    visible = View(graph).condensing().visible
    numbered = torch.arange(graph.num_nodes).double()[:, None].expand(-1, 3)
    nodes = torch.arange(5, 60)
    some = {"batch_nodes": 16, "batches": 2, "dtype": torch.float64}
    seen = real_graph(visible, CPU, torch.float64)
    real = RealLoss(seen, numbered[nodes], nodes, ["gcn"], 4, **some)
    drawn = [targets[:, 0].long().tolist() for _, targets in real._batches]
    assert [len(set(batch)) for batch in drawn] == [14, 14]
    assert not set(drawn[0]) & set(drawn[1]) and set(drawn[0]) | set(drawn[1]) <= set(range(5, 60))
    everyone = [nodes[part].tolist() for part in minibatches(nodes, 16, 4)]
    assert sorted(node for part in everyone for node in part) == nodes.tolist()
    assert sorted(map(len, everyone)) == [13, 14, 14, 14]
    students = some_students(1, 1, (12, 4, 3), ages=[[1]])
    losses = [float(real.losses_and_gradients(students, number)[0]) for number in range(4)]
    assert losses[0] == losses[2] != losses[1] == losses[3]
    whole = RealLoss(seen, numbered[nodes[:16]], nodes[:16], ["gcn"], 4, **some)
    assert [targets[:, 0].tolist() for _, targets in whole._batches] == [list(range(5, 21))]


def test_students_side_by_side_come_apart_in_their_order():
    students = some_students(2, 3, (4, 5, 2), ages=[[1, 2, 3], [4, 5, 6]])
    apart = students_apart(students.params[0], 3)
    for g in range(2):
        for s in range(3):
            assert torch.equal(apart[g, s], of_student(students.params, g, s)[0])


# -- the method ----------------------------------------------------------------------------------------


def test_features_and_labels_are_learned(graph):
    start = made(graph, **(LAST | {"iterations": 0}))
    # Nothing is taken from the labels of a start: here those of its training nodes.
    assert start.y.unique().tolist() == [0.0, 1.0]
    small = made(graph, **LAST)
    assert not torch.equal(small.x, start.x) and not torch.allclose(small.y, start.y, atol=1e-3)
    fixed = made(graph, **LAST, label_lr=0.0)
    assert not torch.equal(fixed.x, start.x)
    torch.testing.assert_close(fixed.y, start.y, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(small.y.sum(1), torch.ones(9))


def test_only_the_columns_that_vary_most_are_learned(graph):
    start = Bilevel(**LAST | {"iterations": 0, "label_lr": 0.0}).condense(graph, device="cpu")
    narrow = Bilevel(**LAST, label_lr=0.0, max_columns=3).condense(graph, device="cpu")
    changed = (narrow.x != start.x).any(0).nonzero().flatten()
    most = graph.x.var(0).topk(3).indices.sort().values
    assert changed.tolist() == most.tolist()
    everything = Bilevel(**LAST, label_lr=0.0).condense(graph, device="cpu")
    assert bool((everything.x != start.x).any(0).all())


def test_a_start_that_was_scored_is_not_scored_again(graph, monkeypatch):
    view = View(graph).condensing()
    scored: list[int] = []
    score = QuickScore.score
    monkeypatch.setattr(
        QuickScore, "score", lambda *args, **more: (scored.append(1), score(*args, **more))[1]
    )
    ctx = Context(view, 9, [0], CPU, silent)
    method = Bilevel(**TINY)
    starts = method.starts(ctx, known_labels(method, ctx))
    (start,) = Bilevel(**TINY | {"iterations": 0}).run(ctx, starts)
    assert len(scored) == 1
    (made,) = method.run(ctx, starts)
    curve = made.details["validation"]
    assert len(scored) == len(curve["iterations"])
    assert curve["values"][0] == start.details["validation"]["values"][0]
    (fresh,) = Bilevel(**TINY).run(Context(View(graph).condensing(), 9, [0], CPU, silent))
    assert torch.equal(made.x, fresh.x) and torch.equal(made.y, fresh.y)


def test_other_validation_nodes_score_a_start_anew(graph):
    view = View(graph).condensing()
    method = Bilevel(**TINY | {"iterations": 0})

    def scored(view: CondensingView) -> float:
        (start,) = method.run(Context(view, 9, [0], CPU, silent))
        return start.details["validation"]["values"][0]

    whole, few = view.validation, view.validation.nodes[:5]
    other = replace(view, validation=replace(whole, nodes=few, labels=(whole.labels[:5] + 1) % 3))
    assert scored(view) > scored(other)


def test_the_real_loss_falls(graph):
    long = LAST | {"iterations": 60, "feature_lr": 0.05, "init": "sample"}
    curve = made(graph, **long).provenance["real_loss"]["values"]
    assert np.mean(curve[-10:]) < 0.9 * np.mean(curve[:10])


def test_nodes_lie_in_blocks_by_class_whatever_became_of_their_labels(graph):
    start = made(graph, **(LAST | {"iterations": 0}))
    small = made(graph, **LAST, label_lr=3.0, structure="none")
    classes = small.y.argmax(1)
    assert torch.equal(classes, classes.sort().values)
    assert not torch.equal(classes, start.y.argmax(1))


def scripted(monkeypatch: pytest.MonkeyPatch, score: Callable[..., float]) -> list[Tensor]:
    """Networks validate as ``score`` says; returns the iterates that they are trained on."""
    seen: list[Tensor] = []

    def scored(self: QuickScore, x: Tensor, a: Tensor, y: Tensor, *_: Any, **__: Any) -> float:
        seen.append(x.clone())
        return score(len(seen) - 1, a)

    monkeypatch.setattr(QuickScore, "score", scored)
    return seen


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ([0.5, 0.4, 0.3, 0.2], 0),
        ([0.5, 0.7, 0.6, 0.7], 3),
        ([0.5, 0.5, 0.4, 0.3], 1),
        ([0.5, 0.4, 0.3, 0.6], 3),
    ],
)
def test_the_best_iterate_is_kept_the_start_included(graph, monkeypatch, scores, kept):
    seen = scripted(monkeypatch, lambda number, _: scores[number])
    small = made(graph, **TINY)
    assert small.provenance["validation"] == {"iterations": [0, 2, 4, 6], "values": scores}
    assert small.x[small.x[:, 0].argsort()].equal(seen[kept][seen[kept][:, 0].argsort()])
    if kept == 0:
        monkeypatch.undo()
        start = made(graph, **(LAST | {"iterations": 0}))
        assert content(small) == content(start)


def test_a_result_never_validates_below_its_start(graph):
    for seed in range(3):
        values = made(graph, seed, **TINY).provenance["validation"]["values"]
        start = made(graph, seed, **(TINY | {"iterations": 0})).provenance["validation"]
        assert start == {"iterations": [0], "values": values[:1]}
        # The same networks on what was kept.
        small = made(graph, seed, **TINY)
        score = QuickScore(View(graph).condensing().validation, CPU)
        again = score.score(
            small.x,
            small.adjacency,
            small.y,
            range(method_module.QUICK_NETWORKS),
            0,
            hidden_channels=method_module.QUICK_HIDDEN,
            recipe=method_module.QUICK,
        )
        assert again == pytest.approx(max(values), abs=0.02)


def test_whoever_watches_is_told_how_iterates_validate(graph):
    told: list[tuple[int, dict[int, float]]] = []
    view = replace(View(graph).condensing(), watch=lambda i, scores: told.append((i, dict(scores))))
    small = Bilevel(**TINY).condense(view, seed=3, device="cpu")
    curve = small.provenance["validation"]
    assert told == [(i, {3: v}) for i, v in zip(*curve.values(), strict=True)]


# -- pseudo-labels -------------------------------------------------------------------------------------


def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The nodes that real losses are computed on from now on."""
    found: list[list[int]] = []

    class Watched(RealLoss):
        def __init__(self, real: Any, targets: Tensor, nodes: Tensor, *rest: Any, **named: Any):
            found.append(nodes.tolist())
            super().__init__(real, targets, nodes, *rest, **named)

    monkeypatch.setattr(method_module, "RealLoss", Watched)
    return found


def test_pseudo_labels_are_used_where_labels_are_few(graph, few_labels, monkeypatch):
    share = method_module.FEW_LABELS
    assert few_labels.train.numel() < share * few_labels.num_nodes
    assert graph.train.numel() >= share * graph.num_nodes
    nodes = asked_for(monkeypatch)
    told = made(few_labels, **LAST).provenance["pseudo_labels"]
    assert told["temperature"] > 0
    assert told["labeler"] == max(told["validation"], key=told["validation"].get)
    assert "pseudo_labels" not in made(graph, **LAST).provenance
    asked = made(graph, **LAST, pseudo_labels="gcn").provenance["pseudo_labels"]
    assert asked["labeler"] == "gcn"
    everyone = list(range(graph.num_nodes))
    assert nodes == [everyone, graph.train.tolist(), everyone]


def test_where_every_label_is_known_nobody_is_asked(monkeypatch):
    nodes = asked_for(monkeypatch)
    known = planted_graph(inductive=True)
    small = made(known, **LAST, pseudo_labels="consistent")
    assert "pseudo_labels" not in small.provenance
    assert nodes == [list(range(known.train.numel()))]


def test_without_pseudo_labels_other_labels_cannot_matter(few_labels, monkeypatch):
    nodes = asked_for(monkeypatch)
    others = torch.ones(few_labels.num_nodes, dtype=torch.bool)
    others[few_labels.train] = False
    y = torch.where(others, (few_labels.y + 1) % 3, few_labels.y)
    changed = replace(few_labels, y=y)
    ours, theirs = (made(g, **LAST, pseudo_labels="none") for g in (few_labels, changed))
    assert content(ours) == content(theirs) and "pseudo_labels" not in ours.provenance
    assert nodes == [few_labels.train.tolist()] * 2
    # With them validation labels have a say, when networks stop and how sure they are.
    assert content(made(few_labels, **LAST)) != content(ours)


@pytest.mark.parametrize("settings", [TINY, TINY | {"structure": "self-expressive"}])
def test_test_labels_change_nothing(few_labels, settings):
    ours, theirs = (made(g, **settings) for g in (few_labels, with_other_test_labels(few_labels)))
    assert content(ours) == content(theirs)
    assert ours.provenance["validation"] == theirs.provenance["validation"]


# -- structure -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plain", "edged", "kept"),
    [(0.5, 0.6, "self-expressive"), (0.6, 0.5, "none"), (0.5, 0.5, "none")],
)
def test_a_structure_is_kept_only_where_it_validates_better(graph, monkeypatch, plain, edged, kept):
    eye = torch.eye(9)
    scripted(monkeypatch, lambda _, a: plain if torch.equal(a, eye) else edged)
    small = made(graph, **TINY, structure="self-expressive")
    assert small.provenance["bilevel"]["structure"] == kept
    assert torch.equal(small.adjacency, eye) == (kept == "none")
    assert torch.equal(small.adjacency, small.adjacency.T) and (small.adjacency >= 0).all()
    if kept == "none":
        assert content(small) == content(made(graph, **TINY))


def test_a_structure_is_learned_and_validated(few_labels):
    small = made(few_labels, **TINY, structure="self-expressive")
    alone = made(few_labels, **TINY)
    best = [max(one.provenance["validation"]["values"]) for one in (small, alone)]
    assert best[0] >= best[1]


# -- settings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("models", ["gcn, sgc", "appnp,mlp"])
def test_several_student_models_make_another_graph(graph, models):
    small = made(graph, **LAST, models=models)
    assert torch.isfinite(small.x).all()
    assert not torch.equal(small.x, made(graph, **LAST).x)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"iterations": -1}, "iterations must be an integer >= 0, got -1."),
        ({"students": 0}, "students must be an integer >= 1, got 0."),
        ({"window": 2.5}, "window must be an integer >= 1, got 2.5."),
        ({"feature_lr": 0}, "feature_lr must be a number > 0, got 0."),
        ({"label_lr": -0.1}, "label_lr must be a number >= 0, got -0.1."),
        ({"student_lr": float("inf")}, "student_lr must be a number > 0, got inf."),
        ({"init": "zeros"}, "init must be one of clusters, sample"),
        (
            {"pseudo_labels": "oracle"},
            "pseudo_labels must be one of auto, none,",
        ),
        ({"structure": "dense"}, "structure must be one of none, self-expre"),
        ({"iterate": "first"}, "iterate must be one of best-val, last"),
        ({"models": "gcn,gat"}, "models must be one of gcn, sgc, appnp, mlp"),
        ({"models": ""}, "models must be one of gcn, sgc, appnp, mlp"),
        ({"models": 3}, "models must be a string, got 3."),
        (
            {"models": "gcn,mlp", "structure": "self-expressive"},
            "models must be 'gcn' for structure 'self-expressive', got 'gcn,mlp'.",
        ),
        (
            {"iterate": "last", "structure": "self-expressive"},
            "iterate must be 'best-val' for structure 'self-expressive', got 'last'.",
        ),
        (
            {"burn_in": 20, "window": 10, "longest": 29},
            "longest must be >= 30, which is burn_in + window, got 29.",
        ),
    ],
)
def test_settings_that_cannot_be_used_are_refused_with_one_sentence(settings, said):
    with pytest.raises(InputError) as refused:
        Bilevel(nodes=9, **settings)
    assert str(refused.value).startswith(said)
    assert len(str(refused.value).splitlines()) == 1 and str(refused.value).endswith(".")
