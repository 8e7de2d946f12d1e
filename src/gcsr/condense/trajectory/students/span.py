r"""The linear student in the span of its inputs (for n' <= d).

The first layer never leaves the span of :math:`H = [\hat A'^2 X', \hat A'^2 1]`:
:math:`W_1(t) = W_1(0) - c H^\top F_t` with :math:`F_t = \sum_{i<t} E_i W_2(i)^\top`. So the steps need
only :math:`K = H H^\top` and the hidden units :math:`Z_t = H W_1(t)`:

.. math:: E = \mathrm{softmax}(Z W_2 + s b_2) - Y, \quad Z \leftarrow Z - c (K E) W_2^\top, \quad
          W_2 \leftarrow W_2 - c Z^\top E,

each O(n' h C), and d appears only in three products per iteration: X'X'ᵀ (shared with the
reconstruction), :math:`X' W_1(0)` and :math:`X' D` with :math:`D = W_1^* - W_1(0)`. The missed distance
of the first layer is :math:`|D|^2 + 2c\langle H D, F\rangle + c^2\langle F, K F\rangle`.

Below, s is kept as a last column of Z and b₂ as a last row of W₂; ``mask`` keeps that row out of the
update of the first layer. Z and H D lie side by side in ``hidden``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gcsr.condense.trajectory.students.algebra import (
    Workspace,
    dense_operator,
    inner_product,
    softmax_gradient,
    squared_norm,
)
from gcsr.condense.trajectory.students.base import Lesson


@dataclass(frozen=True)
class SpanStudent:
    """See :class:`~gcsr.condense.trajectory.students.Student`."""

    _way: Workspace = field(default_factory=Workspace, repr=False, compare=False)

    def __call__(self, lesson: Lesson) -> Tensor:
        """The loss, with a hand-written gradient of the steps."""
        x, goal = lesson.points.x, lesson.goal
        w1, b1, w2, b2 = lesson.start
        way, way_b1 = self._way.difference(goal[0], w1), goal[1] - b1
        ones = x.new_ones((*x.shape[:-1], 1))
        hidden = torch.cat([x @ w1 + b1, ones, x @ way + way_b1], -1)
        gram = lesson.points.gram + 1
        operator = dense_operator(lesson.topology)
        if operator is not None:
            twice = torch.bmm(operator, operator)
            hidden = torch.bmm(twice, hidden)
            gram = torch.bmm(torch.bmm(twice, gram), twice.mT)
        gone_first = squared_norm(way) + squared_norm(way_b1)
        loss: Tensor = _Steps.apply(  # type: ignore[no-untyped-call]
            hidden,
            gram,
            lesson.targets,
            torch.cat([w2, b2], -2),
            torch.cat([goal[2], goal[3]], -2),
            gone_first,
            lesson.steps,
            lesson.rate / x.shape[-2],
        )
        return loss


class _Steps(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        gram: Tensor,
        targets: Tensor,
        second: Tensor,
        second_goal: Tensor,
        gone_first: Tensor,
        steps: int,
        c: float,
    ) -> Tensor:
        mask = torch.ones_like(second[0])
        mask[-1] = 0
        width = second.shape[-2]
        z, hidden_way, w = hidden[..., :width], hidden[..., width:], second
        history = []
        for step in range(steps):
            probabilities = torch.bmm(z, w).softmax(-1)
            error = probabilities - targets
            pulled = torch.bmm(gram, error)
            inner = w * mask
            history.append((z, w, inner, probabilities, error, pulled))
            if step < steps - 1:
                z, w = (
                    torch.baddbmm(z, pulled, inner.mT, alpha=-c),
                    torch.baddbmm(w, z.mT, error, alpha=-c),
                )
            else:
                w = torch.baddbmm(w, z.mT, error, alpha=-c)
        errors = torch.cat([entry[4] for entry in history], -1)
        inners = torch.cat([entry[2] for entry in history], -1)
        coordinates = errors @ inners[:, :-1].mT
        pulled_coordinates = gram @ coordinates
        missed_first = (
            gone_first
            + 2 * c * inner_product(hidden_way, coordinates)
            + c**2 * inner_product(coordinates, pulled_coordinates)
        )
        miss = w - second_goal
        gone = gone_first + squared_norm(second - second_goal)
        ctx.history, ctx.miss, ctx.gone, ctx.c, ctx.mask = history, miss, gone, c, mask
        ctx.errors, ctx.coordinates, ctx.pulled = errors, coordinates, pulled_coordinates
        ctx.save_for_backward(hidden, gram)
        return (missed_first + squared_norm(miss)) / gone

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        hidden, gram = ctx.saved_tensors
        c, mask = ctx.c, ctx.mask
        hidden_way = hidden[..., mask.shape[0] :]
        scale = (2 * gradient / ctx.gone).view(-1, 1, 1)
        bar_f = torch.nn.functional.pad(scale * c * (hidden_way + c * ctx.pulled), (0, 1))
        bar_w = scale * ctx.miss
        bar_z = torch.empty(0)
        bars_pulled: list[Tensor] = []
        for z, w, inner, probabilities, error, pulled in reversed(ctx.history):
            bar_error = torch.baddbmm(torch.bmm(bar_f, inner), z, bar_w, alpha=-c)
            bar_inner = torch.bmm(bar_f.mT, error)
            if not bars_pulled:
                bar_z = -c * torch.bmm(error, bar_w.mT)
                bars_pulled.append(torch.zeros_like(pulled))
            else:
                bar_pulled = -c * torch.bmm(bar_z, inner)
                bars_pulled.append(bar_pulled)
                bar_error = torch.baddbmm(bar_error, gram, bar_pulled)
                bar_inner = torch.baddbmm(bar_inner, bar_z.mT, pulled, alpha=-c)
                bar_z = torch.baddbmm(bar_z, error, bar_w.mT, alpha=-c)
            bar_scores = softmax_gradient(bar_error, probabilities)
            bar_z = torch.baddbmm(bar_z, bar_scores, w.mT)
            bar_w = torch.baddbmm(torch.addcmul(bar_w, bar_inner, mask), z.mT, bar_scores)
        bars_pulled.reverse()
        bar_gram = torch.cat(bars_pulled, -1) @ ctx.errors.mT
        coordinates = ctx.coordinates
        half = scale * c**2 / 2
        bar_gram = torch.baddbmm(bar_gram, half * coordinates, coordinates.mT)
        bar_hidden = torch.cat([bar_z, scale * c * coordinates], -1)
        return bar_hidden, bar_gram, *[None] * 6
