"""Loss and gradient of every student against Algorithm 1 written with plain autograd in float64."""

from __future__ import annotations

import pytest
import torch
from engine_helpers import RATE, STEPS, TALL, WIDE, C, H, Problem, error

from gcsr.engines.structure import SyntheticFeatures, expressed_operator
from gcsr.engines.trajectory.engine import Matching, Step
from gcsr.engines.trajectory.students import (
    AutogradStudent,
    FirstLayerStudent,
    SpanStudent,
    WeightsStudent,
    student_for,
)
from gcsr.equations.propagation import normalized_adjacency
from gcsr.equations.self_expression import self_expression_of_gram, symmetric_adjacency
from gcsr.models.registry import CONDENSING_MODELS, condensing_model
from helpers import one_network, plain_adjacency

STUDENTS = {
    "span": SpanStudent(),
    "weights": WeightsStudent(),
    "autograd": AutogradStudent(condensing_model("sgc", H)),
}


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
    matching = Matching(1, STEPS, RATE, expert_steps=2, max_start=1, learn_student_lr=True)
    for form in forms:

        def at(first: float, form=form):
            parts = (problem.x, problem.state(), problem.targets, problem.structure(), form)
            step = Step(*parts, matching, torch.ones(()))
            step.student_lr[0] = first
            return step.loss_and_gradients(problem.start, problem.goal)

        _, (_, by_rate), _ = at(RATE)
        (above, *_), (below, *_) = at(RATE + 1e-5), at(RATE - 1e-5)
        assert by_rate[0] == pytest.approx(float(above[0] - below[0]) / 2e-5, rel=1e-5)
        assert by_rate[1] != 0
        assert above[1] == below[1]


def test_learned_rate_moves_by_sgd_with_momentum():
    problem = Problem(WIDE)
    more = {"learn_student_lr": True, "student_lr_step": 1e-4}
    matching = Matching(2, STEPS, RATE, expert_steps=2, max_start=1, **more)
    rates = torch.full((2, 1, 1), 1e-3, dtype=torch.float64)
    parts = (problem.x.clone(), problem.state(), problem.targets, problem.structure())
    step = Step(*parts, SpanStudent(), matching, rates)
    expected = torch.full((2,), RATE, dtype=torch.float64).requires_grad_()
    sgd = torch.optim.SGD([expected], lr=1e-4, momentum=0.5)
    for _ in range(3):
        _, (_, expected.grad), _ = step.loss_and_gradients(problem.start, problem.goal)
        sgd.step()
        step(problem.start, problem.goal)
        assert error(step.student_lr, expected.detach()) < 1e-12
    assert not torch.allclose(expected.detach(), torch.full_like(expected, RATE))


def test_expressed_operator_is_the_chain_of_equations():
    problem = Problem(WIDE)
    gram = (problem.x @ problem.x.mT).requires_grad_()
    arguments = (gram, *problem.state(), problem.alpha, problem.beta)
    operator, adjacency = expressed_operator(*arguments)
    plain = symmetric_adjacency(self_expression_of_gram(*arguments))
    weights = torch.randn(operator.shape, dtype=torch.float64)
    (found,) = torch.autograd.grad((operator * weights).sum(), gram)
    (expected,) = torch.autograd.grad((normalized_adjacency(plain) * weights).sum(), gram)
    assert error(adjacency, plain.detach()) < 1e-12
    assert error(operator.detach(), normalized_adjacency(plain.detach())) < 1e-12
    # A Gram matrix moves symmetrically.
    assert error(found + found.mT, expected + expected.mT) < 1e-10
    topology, _ = problem.structure().topology(SyntheticFeatures.of(problem.x), problem.state())
    assert topology.mean(torch.ones(2, WIDE[0], 1, dtype=torch.float64)).requires_grad


def test_the_smaller_form_is_chosen():
    sgc = condensing_model("sgc", H)
    assert isinstance(student_for(sgc, 20, 50), SpanStudent)
    assert isinstance(student_for(sgc, 50, 20), WeightsStudent)
    for name in ("gcn", "sage-paper", "appnp", "cheby-paper", "mlp"):
        assert isinstance(student_for(condensing_model(name, H), 20, 50), FirstLayerStudent)
        assert isinstance(student_for(condensing_model(name, H), 50, 20), AutogradStudent)
    assert isinstance(student_for(condensing_model("sage", H), 20, 50), AutogradStudent)


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
