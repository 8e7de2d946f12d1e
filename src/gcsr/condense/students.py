"""Students: N steps of SGD on the condensed graph, and how far they end from the expert.

Three forms of the same function. :func:`autograd_distance` differentiates through any model and is
the reference. For the linear SGC the student's gradient is known in closed form, and propagation
(:math:`H = [\\hat A'^2 X', \\hat A'^2 1]`) is constant over the steps:

- :func:`linear_distance` keeps the first layer as it is (for n' > d);
- :func:`gram_distance` keeps only its coordinates in the span of H (for n' <= d): with
  :math:`W_1(i) = W_1(0) - \\eta H^\\top C_i` the steps need :math:`K = H H^\\top`, n' x n', instead of
  the d x h weights.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from gcsr.equations import cross_entropy, trajectory_distance
from gcsr.models import Model, Params, Topology
from gcsr.models.sgc import SGC


class Student(Protocol):
    """The matching loss of Algorithm 1, one value per condensed graph."""

    def __call__(
        self,
        x: Tensor,
        topology: Topology,
        targets: Tensor,
        start: Params,
        goal: Params,
        *,
        steps: int,
        rate: float,
    ) -> Tensor:
        """Distance of the student after ``steps`` from ``goal``, relative to ``start``."""
        ...


def student_for(model: Model, nodes: int, features: int) -> Student:
    """The cheapest exact form for a model and a size."""
    if isinstance(model, SGC) and not model.relu:
        form = gram_distance if nodes <= features else linear_distance
        return _LinearStudent(model, form)
    return AutogradStudent(model)


class AutogradStudent:
    """Any model, by differentiating through the steps: the reference."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __call__(
        self,
        x: Tensor,
        topology: Topology,
        targets: Tensor,
        start: Params,
        goal: Params,
        *,
        steps: int,
        rate: float,
    ) -> Tensor:
        """See :class:`Student`."""
        prepared = self.model.prepare(x, topology)
        params = tuple(p.detach().requires_grad_() for p in start)
        for _ in range(steps):
            loss = cross_entropy(self.model.logits(params, prepared), targets).sum()
            gradients = torch.autograd.grad(loss, params, create_graph=True)
            params = tuple(p - rate * g for p, g in zip(params, gradients, strict=True))
        return trajectory_distance(params, start, goal)


class _LinearStudent:
    def __init__(self, model: SGC, form: LinearForm) -> None:
        self.model, self.form = model, form

    def __call__(
        self,
        x: Tensor,
        topology: Topology,
        targets: Tensor,
        start: Params,
        goal: Params,
        *,
        steps: int,
        rate: float,
    ) -> Tensor:
        prepared = self.model.prepare(x, topology)
        ones = prepared.ones
        if ones is None:
            raise TypeError("a linear student needs a linear model")
        inputs = torch.cat([prepared.inputs, ones], -1)
        return self.form(
            inputs, ones, targets, _with_bias(start), _with_bias(goal), steps=steps, rate=rate
        )


class LinearForm(Protocol):
    """A closed form of the linear student, with first-layer weights and biases in one matrix."""

    def __call__(
        self,
        inputs: Tensor,
        ones: Tensor,
        targets: Tensor,
        start: Params,
        goal: Params,
        *,
        steps: int,
        rate: float,
    ) -> Tensor:
        """See :class:`Student`."""
        ...


def linear_distance(
    inputs: Tensor,
    ones: Tensor,
    targets: Tensor,
    start: Params,
    goal: Params,
    *,
    steps: int,
    rate: float,
) -> Tensor:
    """The student with explicit first-layer weights."""
    w1, w2, b2 = start
    share = 1 / inputs.shape[-2]
    for _ in range(steps):
        hidden = inputs @ w1
        error = ((hidden @ w2 + ones * b2).softmax(-1) - targets) * share
        w1, w2, b2 = (
            w1 - rate * (inputs.mT @ (error @ w2.mT)),
            w2 - rate * (hidden.mT @ error),
            b2 - rate * (ones.mT @ error),
        )
    return trajectory_distance((w1, w2, b2), start, goal)


def gram_distance(
    inputs: Tensor,
    ones: Tensor,
    targets: Tensor,
    start: Params,
    goal: Params,
    *,
    steps: int,
    rate: float,
) -> Tensor:
    r"""The student in the span of its inputs.

    The missed distance of the first layer is, with :math:`D = W_1^* - W_1(0)`,
    :math:`|D|^2 + 2\eta\langle H D, C\rangle + \eta^2 \langle C, K C\rangle`.
    """
    w1, w2, b2 = start
    way = goal[0] - w1
    gram = inputs @ inputs.mT
    # One product of the (large) inputs with both weights.
    seen, seen_way = (inputs @ torch.cat([w1, way], -1)).chunk(2, -1)
    share = 1 / inputs.shape[-2]
    coordinates = torch.zeros_like(seen)
    hidden = seen
    for step in range(steps):
        if step:
            hidden = seen - rate * (gram @ coordinates)
        error = ((hidden @ w2 + ones * b2).softmax(-1) - targets) * share
        coordinates = coordinates + error @ w2.mT
        w2, b2 = w2 - rate * (hidden.mT @ error), b2 - rate * (ones.mT @ error)
    gone_first = _squared(way)
    missed_first = (
        gone_first
        + 2 * rate * (seen_way * coordinates).flatten(1).sum(1)
        + rate**2 * (coordinates * (gram @ coordinates)).flatten(1).sum(1)
    )
    missed = missed_first + _squared(w2 - goal[1]) + _squared(b2 - goal[2])
    gone = gone_first + _squared(start[1] - goal[1]) + _squared(start[2] - goal[2])
    return missed / gone


def _with_bias(params: Params) -> Params:
    w1, b1, w2, b2 = params
    return torch.cat([w1, b1], -2), w2, b2


def _squared(difference: Tensor) -> Tensor:
    return difference.flatten(1).square().sum(1)
