"""Students: the matching loss of Algorithm 1 (lines 6-11) in four exact forms.

A student is called with :class:`MatchingInputs` and returns, for every condensed graph, the squared
distance from the expert's goal after the steps, relative to the distance that the expert moved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gcsr.engines.structure import SyntheticFeatures
from gcsr.equations.trajectory import trajectory_distance
from gcsr.models.base import Model, Params
from gcsr.models.sgc import SGC
from gcsr.models.topology import DenseOperator, EmptyTopology, Topology
from gcsr.training.classification import cross_entropy


@dataclass(frozen=True, eq=False)
class MatchingInputs:
    """The training data of a student, its initial weights and its target weights.

    Attributes:
        points, topology, targets: the condensed graphs: features, structure, class shares.
        start, goal: the expert's weights now and M epochs later.
        steps: N.
        lr: the rate of the student's SGD, ``(graphs, 1, 1)``.
    """

    points: SyntheticFeatures
    topology: Topology
    targets: Tensor
    start: Params
    goal: Params
    steps: int
    lr: Tensor

    @property
    def step_size(self) -> Tensor:
        """The learning rate over n': what multiplies a sum over nodes in place of their mean."""
        return self.lr / self.points.x.shape[-2]


def dense_operator(topology: Topology) -> Tensor | None:
    """The normalized adjacency of a condensed graph as a matrix; ``None`` for the identity."""
    if isinstance(topology, EmptyTopology):
        return None
    operator = topology.normalized
    if not isinstance(operator, DenseOperator):
        raise TypeError("a student needs a dense condensed graph")
    return operator.matrix


def squared_norm(difference: Tensor) -> Tensor:
    """Squared Frobenius norm of every graph."""
    return inner_product(difference, difference)


def inner_product(first: Tensor, second: Tensor) -> Tensor:
    """Frobenius inner product of every graph, without a tensor of products."""
    if first.shape[0] == 1:
        return torch.dot(first.reshape(-1), second.reshape(-1)).view(1)
    return torch.bmm(first.flatten(1).unsqueeze(1), second.flatten(1).unsqueeze(2)).flatten()


class Workspace:
    """Memory for a large difference, reused by every iteration.

    Allocating it each time costs more than the subtraction: the system takes the memory back and hands
    out cleared pages.
    """

    def __init__(self) -> None:
        self._tensor = torch.empty(0)

    def difference(self, first: Tensor, second: Tensor) -> Tensor:
        """``first - second``; overwrites what an earlier call returned."""
        kept = self._tensor
        same = (kept.shape, kept.dtype, kept.device) == (first.shape, first.dtype, first.device)
        if not same:
            self._tensor = torch.empty_like(first, memory_format=torch.contiguous_format)
        return torch.sub(first, second, out=self._tensor)


def softmax_gradient(gradient: Tensor, probabilities: Tensor, dim: int = -1) -> Tensor:
    """Gradient before a softmax over a dimension, given that after it; one kernel."""
    result: Tensor = torch.ops.aten._softmax_backward_data(
        gradient, probabilities, dim, probabilities.dtype
    )
    return result


@dataclass(frozen=True)
class AutogradStudent:
    """Any model, by differentiating through the steps: the reference."""

    model: Model

    def __call__(self, inputs: MatchingInputs) -> Tensor:
        """The loss, differentiable by autograd."""
        prepared = self.model.prepare(inputs.points.x, inputs.topology)
        params = tuple(p.detach().requires_grad_() for p in inputs.start)
        for _ in range(inputs.steps):
            loss = cross_entropy(self.model.logits(params, prepared), inputs.targets).sum()
            gradients = torch.autograd.grad(loss, params, create_graph=True)
            params = tuple(p - inputs.lr * g for p, g in zip(params, gradients, strict=True))
        return trajectory_distance(params, inputs.start, inputs.goal)


@dataclass(frozen=True)
class WeightsStudent:
    """The linear SGC with explicit weights, for n' > d."""

    def __call__(self, inputs: MatchingInputs) -> Tensor:
        """The loss, with a hand-written gradient."""
        x = inputs.points.x
        features = torch.cat([x, x.new_ones((*x.shape[:-1], 1))], -1)
        operator = dense_operator(inputs.topology)
        if operator is not None:
            features = operator @ (operator @ features)
        loss: Tensor = _Steps.apply(  # type: ignore[no-untyped-call]
            features,
            inputs.step_size,
            inputs.targets,
            inputs.start,
            inputs.goal,
            inputs.steps,
        )
        return loss


class _Steps(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        c: Tensor,
        targets: Tensor,
        start: Params,
        goal: Params,
        steps: int,
    ) -> Tensor:
        first, b1, second, bias = start
        w1, w2 = torch.cat([first, b1], -2), second
        history = []
        transposed = inputs.mT
        pull = -c * targets
        for _ in range(steps):
            m = torch.bmm(w1, w2)
            m[:, -1:] += bias
            probabilities = torch.bmm(inputs, m).softmax(-1)
            error = torch.addcmul(pull, probabilities, c)
            g = torch.bmm(transposed, error)
            history.append((w1, w2, m, probabilities, error, g))
            w1, w2, bias = (
                torch.baddbmm(w1, g, w2.mT, alpha=-1),
                torch.baddbmm(w2, w1.mT, g, alpha=-1),
                bias - g[:, -1:],
            )
        misses = (w1 - torch.cat([goal[0], goal[1]], -2), w2 - goal[2], bias - goal[3])
        ways = [squared_norm(a - b) for a, b in zip(start, goal, strict=True)]
        gone = torch.stack(ways).sum(0)
        ctx.history, ctx.misses, ctx.gone = history, misses, gone
        ctx.save_for_backward(inputs, c)
        return torch.stack([squared_norm(miss) for miss in misses]).sum(0) / gone

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, c = ctx.saved_tensors
        scale = (2 * gradient / ctx.gone).view(-1, 1, 1)
        bar_w1, bar_w2, bar_bias = (scale * miss for miss in ctx.misses)
        left: list[Tensor] = []
        right: list[Tensor] = []
        learned = ctx.needs_input_grad[1]
        bar_c = torch.zeros_like(c)
        for w1, w2, m, probabilities, error, g in reversed(ctx.history):
            # The negative of what the gradient of g is.
            bar_g = torch.bmm(bar_w1, w2).baddbmm_(w1, bar_w2)
            bar_g[:, -1:] += bar_bias
            bar_error = torch.bmm(inputs, bar_g)
            if learned:
                bar_c -= inner_product(bar_error, error).view(-1, 1, 1) / c
            bar_scores = softmax_gradient(bar_error * c, probabilities)
            bar_m = torch.bmm(inputs.mT, bar_scores)
            bar_w1, bar_w2, bar_bias = (
                torch.baddbmm(bar_w1, g, bar_w2.mT, alpha=-1).baddbmm_(bar_m, w2.mT, alpha=-1),
                torch.baddbmm(bar_w2, bar_w1.mT, g, alpha=-1).baddbmm_(w1.mT, bar_m, alpha=-1),
                bar_bias - bar_m[:, -1:],
            )
            left += [error, bar_scores]
            right += [bar_g, m]
        bar_inputs = torch.bmm(torch.cat(left, -1), torch.cat(right, -1).mT).neg_()
        return bar_inputs, bar_c, None, None, None, None


@dataclass(frozen=True)
class SpanStudent:
    """The linear SGC in the span of its inputs, for n' <= d."""

    _way: Workspace = field(default_factory=Workspace, repr=False, compare=False)

    def __call__(self, inputs: MatchingInputs) -> Tensor:
        """The loss, with a hand-written gradient."""
        x, gram = inputs.points.x, inputs.points.gram
        way = self._way.difference(inputs.goal[0], inputs.start[0])
        loss: Tensor = _Distance.apply(  # type: ignore[no-untyped-call]
            x, gram, dense_operator(inputs.topology), inputs.step_size, way, inputs
        )
        return loss


class _Distance(torch.autograd.Function):
    """The steps in coordinates: rows of ``hidden`` are ``[H W1, s, H D]``, D = goal - start."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        gram: Tensor,
        operator: Tensor | None,
        c: Tensor,
        way: Tensor,
        inputs: MatchingInputs,
    ) -> Tensor:
        (w1, b1, w2, b2), goal = inputs.start, inputs.goal
        way_b1 = goal[1] - b1
        ones = x.new_ones((*x.shape[:-1], 1))
        before = torch.cat([torch.baddbmm(b1, x, w1), ones, torch.baddbmm(way_b1, x, way)], -1)
        hidden, kernel = before, gram + 1
        twice = twice_gram = None
        if operator is not None:
            twice = torch.bmm(operator, operator)
            twice_gram = torch.bmm(twice, kernel)
            hidden, kernel = torch.bmm(twice, before), torch.bmm(twice_gram, twice.mT)
        second = torch.cat([w2.mT, b2.mT], -1)
        second_goal = torch.cat([goal[2].mT, goal[3].mT], -1)
        h = w1.shape[-1]
        mask = torch.nn.functional.pad(second.new_ones(h), (0, 1))
        pull = -c * inputs.targets.mT
        z, w = hidden[..., : h + 1], second
        history = []
        for step in range(inputs.steps):
            probabilities = torch.bmm(w, z.mT).softmax(-2)
            error = torch.addcmul(pull, probabilities, c)
            pulled = torch.bmm(error, kernel.mT)
            inner = w * mask
            history.append((z, w, inner, probabilities, error, pulled))
            w = torch.baddbmm(w, error, z, alpha=-1)
            if step < inputs.steps - 1:
                z = torch.baddbmm(z, pulled.mT, inner, alpha=-1)
        errors = torch.cat([entry[4] for entry in history], -2)
        inners = torch.cat([entry[2] for entry in history], -2)
        coordinates = torch.bmm(errors.mT, inners[..., :-1])
        pulled_all = torch.bmm(kernel, coordinates)
        toward = torch.add(pulled_all, hidden[..., h + 1 :], alpha=2)
        miss = w - second_goal
        gone_first = squared_norm(way) + squared_norm(way_b1)
        gone = gone_first + squared_norm(second - second_goal)
        missed = gone_first + inner_product(toward, coordinates) + squared_norm(miss)
        ctx.save_for_backward(operator, c, w1, way)
        ctx.propagated = before, twice, twice_gram, hidden, kernel
        ctx.history, ctx.errors, ctx.coordinates = history, errors, coordinates
        ctx.pulled, ctx.miss, ctx.gone = pulled_all, miss, gone
        return missed / gone

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        operator, c, w1, way = ctx.saved_tensors
        before, twice, twice_gram, hidden, kernel = ctx.propagated
        scale = (2 * gradient / ctx.gone).view(-1, 1, 1)
        h = w1.shape[-1]
        # First the steps, from the last to the first.
        bar_f = torch.nn.functional.pad((hidden[..., h + 1 :] + ctx.pulled).mul_(scale), (0, 1))
        bar_w = scale * ctx.miss
        bar_z: Tensor | None = None
        bars_pulled: list[Tensor] = []
        bars_error: list[Tensor] = []
        for z, w, inner, probabilities, error, pulled in reversed(ctx.history):
            bar_error = torch.bmm(inner, bar_f.mT).baddbmm_(bar_w, z.mT, alpha=-1)
            bar_inner = torch.bmm(error, bar_f)
            if bar_z is None:
                # The last step moves Z no more.
                bar_z = torch.bmm(error.mT, bar_w).neg_()
            else:
                bar_pulled = torch.bmm(inner, bar_z.mT).neg_()
                bars_pulled.append(bar_pulled)
                bar_error.baddbmm_(bar_pulled, kernel)
                bar_inner.baddbmm_(pulled, bar_z, alpha=-1)
                bar_z.baddbmm_(error.mT, bar_w, alpha=-1)
            bars_error.append(bar_error)
            bar_scores = softmax_gradient(bar_error * c, probabilities, -2)
            bar_z.baddbmm_(bar_scores.mT, w)
            # The bias took no part in the first layer's update.
            bar_inner[..., -1] = 0
            bar_w = bar_inner.add_(bar_w).baddbmm_(bar_scores, z)
        if bar_z is None:
            raise RuntimeError("a student takes at least one step")
        scaled = scale * ctx.coordinates
        bar_kernel = torch.bmm(scaled, ctx.coordinates.mT).mul_(0.5)
        if bars_pulled:
            moving = ctx.errors[:, : -bar_w.shape[-2]]
            bar_kernel.baddbmm_(torch.cat(bars_pulled[::-1], -2).mT, moving)
        bar_c = None
        if ctx.needs_input_grad[3]:
            bar_c = inner_product(torch.cat(bars_error[::-1], -2), ctx.errors).view(-1, 1, 1) / c
        # Then the propagation.
        bar_hidden = torch.cat([bar_z, scaled], -1)
        bar_operator = None
        if twice is not None:
            bar_twice = torch.bmm(bar_hidden, before.mT)
            bar_twice = torch.baddbmm(bar_twice, bar_kernel + bar_kernel.mT, twice_gram)
            bar_operator = torch.baddbmm(torch.bmm(bar_twice, operator.mT), operator.mT, bar_twice)
            bar_hidden = torch.bmm(twice.mT, bar_hidden)
            bar_kernel = torch.bmm(torch.bmm(twice.mT, bar_kernel), twice)
        bar_x = torch.bmm(bar_hidden[..., :h], w1.mT).baddbmm_(bar_hidden[..., h + 1 :], way.mT)
        return bar_x, bar_kernel, bar_operator, bar_c, None, None


@dataclass(frozen=True)
class FirstLayerStudent:
    """Two-layer networks with their first layer in the span of its inputs, for n' <= d."""

    model: Model
    _way: Workspace = field(default_factory=Workspace, repr=False, compare=False)

    def __call__(self, inputs: MatchingInputs) -> Tensor:
        """The loss; the steps' own gradients are in closed form."""
        operator = dense_operator(inputs.topology)
        if operator is None:
            x = inputs.points.x
            operator = torch.eye(x.shape[-2], dtype=x.dtype, device=x.device)
        layers = self.model.two_layers(operator)
        if layers is None:
            raise TypeError(f"{self.model} has no first-layer form")
        points, goal = inputs.points, inputs.goal
        w1, b1, w2, b2 = inputs.start
        way = self._way.difference(goal[0], w1)
        z, z_way, gram = points.x @ w1, points.x @ way, points.gram
        if layers.first is not None:
            z, z_way = layers.first @ z, layers.first @ z_way
            gram = layers.first @ gram @ layers.first.mT
        c = inputs.step_size
        coordinates = torch.zeros_like(z)
        for _ in range(inputs.steps):
            before = z + b1
            hidden = before.relu()
            scores = hidden @ w2
            if layers.bias_propagates:
                scores = scores + b2
            if layers.second is not None:
                scores = layers.second @ scores
            if not layers.bias_propagates:
                scores = scores + b2
            error = scores.softmax(-1) - inputs.targets
            inner = error if layers.second is None else layers.second.mT @ error
            bar_hidden = (inner @ w2.mT) * (before.detach() > 0)
            bar_b2 = (inner if layers.bias_propagates else error).sum(-2, keepdim=True)
            coordinates = coordinates + bar_hidden
            z = z - c * (gram @ bar_hidden)
            w2, b2 = w2 - c * (hidden.mT @ inner), b2 - c * bar_b2
            b1 = b1 - c * bar_hidden.sum(-2, keepdim=True)
        gone_first = squared_norm(way)
        missed_first = (
            gone_first
            + 2 * inner_product(z_way, c * coordinates)
            + inner_product(c * coordinates, gram @ (c * coordinates))
        )
        rest = zip((b1, w2, b2), inputs.start[1:], goal[1:], strict=True)
        missed, gone = missed_first, gone_first
        for reached, begun, wanted in rest:
            missed = missed + squared_norm(reached - wanted)
            gone = gone + squared_norm(begun - wanted)
        return missed / gone


Student = AutogradStudent | WeightsStudent | SpanStudent | FirstLayerStudent


def student_for(
    model: Model, nodes: int, features: int, *, learned_labels: bool = False
) -> Student:
    """The cheapest exact form for a model and a size.

    Hand-written gradients are not those of ``learned_labels``.
    """
    if isinstance(model, SGC) and not model.relu and model.hops == 2 and not learned_labels:
        return SpanStudent() if nodes <= features else WeightsStudent()
    if nodes <= features and model.two_layers(torch.eye(1)) is not None:
        return FirstLayerStudent(model)
    return AutogradStudent(model)
