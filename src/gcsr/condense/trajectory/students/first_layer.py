r"""Two-layer networks with their first layer in the span of its inputs (for n' <= d).

GCN, SAGE, APPNP, Cheby and MLP all begin with a linear map of (propagated) features, so what
:mod:`.span` does for the linear SGC holds for their first layer too. With :math:`T_1, T_2` the
propagation of the first and second layer, :math:`K = T_1 X'X'^\top T_1^\top` and
:math:`Z = T_1 X' W_1 + b_1`:

.. math:: R = \sigma(Z), \quad O = T_2 R W_2, \quad \bar U = T_2^\top (\mathrm{softmax}(O) - Y),
          \quad \bar R = \bar U W_2^\top \circ [Z > 0], \quad Z \leftarrow Z - c K \bar R.

The student's own gradient is written out, so that autograd differentiates once and not twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeGuard

import torch
from torch import Tensor

from gcsr.condense.trajectory.students.algebra import (
    Workspace,
    dense_operator,
    inner_product,
    squared_norm,
)
from gcsr.condense.trajectory.students.base import Lesson
from gcsr.models import Model
from gcsr.models.base import TwoLayerModel


@dataclass(frozen=True)
class FirstLayerStudent:
    """See :class:`~gcsr.condense.trajectory.students.Student`."""

    model: TwoLayerModel
    _way: Workspace = field(default_factory=Workspace, repr=False, compare=False)

    @staticmethod
    def covers(model: Model) -> TypeGuard[TwoLayerModel]:
        """Whether the model has this form."""
        return isinstance(model, TwoLayerModel) and model.two_layers(torch.eye(1)) is not None

    def __call__(self, lesson: Lesson) -> Tensor:
        """The loss; the steps' own gradients are in closed form."""
        operator = dense_operator(lesson.topology)
        if operator is None:
            x = lesson.points.x
            operator = torch.eye(x.shape[-2], dtype=x.dtype, device=x.device)
        layers = self.model.two_layers(operator)
        if layers is None:
            raise TypeError(f"{self.model} has no first-layer form")
        points, goal = lesson.points, lesson.goal
        w1, b1, w2, b2 = lesson.start
        way = self._way.difference(goal[0], w1)
        z, z_way, gram = points.x @ w1, points.x @ way, points.gram
        if layers.first is not None:
            z, z_way = layers.first @ z, layers.first @ z_way
            gram = layers.first @ gram @ layers.first.mT
        c = lesson.step_size
        coordinates = torch.zeros_like(z)
        for _ in range(lesson.steps):
            before = z + b1
            hidden = before.relu()
            scores = hidden @ w2
            if layers.bias_propagates:
                scores = scores + b2
            if layers.second is not None:
                scores = layers.second @ scores
            if not layers.bias_propagates:
                scores = scores + b2
            error = scores.softmax(-1) - lesson.targets
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
        rest = zip((b1, w2, b2), lesson.start[1:], goal[1:], strict=True)
        missed, gone = missed_first, gone_first
        for reached, begun, wanted in rest:
            missed = missed + squared_norm(reached - wanted)
            gone = gone + squared_norm(begun - wanted)
        return missed / gone
