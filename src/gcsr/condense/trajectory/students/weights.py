r"""The linear student with explicit weights (for n' > d).

With :math:`H = [\hat A'^2 X', \hat A'^2 1]`, which is constant, and :math:`M = W_1 W_2` the scores are
:math:`H M`: multiplying the weights first leaves C columns where the hidden width would stand. With
:math:`E = \mathrm{softmax}(HM) - Y` and :math:`g = H^\top E` a step of SGD is

.. math:: W_1 \leftarrow W_1 - c\, g W_2^\top, \qquad W_2 \leftarrow W_2 - c\, W_1^\top g,

c the rate over n'. The last row of :math:`W_1` holds the first bias; the second bias is added to the
last row of M. The adjoint below is these lines read backwards; what it adds to the gradient of H is
collected and multiplied once at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gcsr.condense.trajectory.students.algebra import dense_operator, softmax_gradient, squared_norm
from gcsr.condense.trajectory.students.base import Lesson
from gcsr.models import Params


@dataclass(frozen=True)
class WeightsStudent:
    """See :class:`~gcsr.condense.trajectory.students.Student`."""

    def __call__(self, lesson: Lesson) -> Tensor:
        """The loss, with a hand-written gradient."""
        x = lesson.points.x
        inputs = torch.cat([x, x.new_ones((*x.shape[:-1], 1))], -1)
        operator = dense_operator(lesson.topology)
        if operator is not None:
            inputs = operator @ (operator @ inputs)
        loss: Tensor = _Steps.apply(  # type: ignore[no-untyped-call]
            inputs,
            lesson.targets,
            lesson.start,
            lesson.goal,
            lesson.steps,
            lesson.rate / x.shape[-2],
        )
        return loss


class _Steps(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        targets: Tensor,
        start: Params,
        goal: Params,
        steps: int,
        c: float,
    ) -> Tensor:
        first, b1, second, bias = start
        w1, w2 = torch.cat([first, b1], -2), second
        history = []
        transposed = inputs.mT
        for _ in range(steps):
            m = torch.bmm(w1, w2)
            m[:, -1:] += bias
            probabilities = torch.bmm(inputs, m).softmax(-1)
            error = probabilities - targets
            g = torch.bmm(transposed, error)
            history.append((w1, w2, m, probabilities, error, g))
            w1, w2, bias = (
                torch.baddbmm(w1, g, w2.mT, alpha=-c),
                torch.baddbmm(w2, w1.mT, g, alpha=-c),
                bias - c * g[:, -1:],
            )
        misses = (w1 - torch.cat([goal[0], goal[1]], -2), w2 - goal[2], bias - goal[3])
        ways = [squared_norm(a - b) for a, b in zip(start, goal, strict=True)]
        gone = torch.stack(ways).sum(0)
        ctx.history, ctx.misses, ctx.gone, ctx.c = history, misses, gone, c
        ctx.save_for_backward(inputs)
        return torch.stack([squared_norm(miss) for miss in misses]).sum(0) / gone

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (inputs,) = ctx.saved_tensors
        c = ctx.c
        scale = (2 * gradient / ctx.gone).view(-1, 1, 1)
        bar_w1, bar_w2, bar_bias = (scale * miss for miss in ctx.misses)
        left: list[Tensor] = []
        right: list[Tensor] = []
        for w1, w2, m, probabilities, error, g in reversed(ctx.history):
            bar_g = torch.baddbmm(torch.bmm(bar_w1, w2), w1, bar_w2)
            bar_g[:, -1:] += bar_bias
            # Its factor -c is applied where it is used.
            bar_scores = softmax_gradient(torch.bmm(inputs, bar_g), probabilities)
            bar_m = torch.bmm(inputs.mT, bar_scores)
            bar_w1, bar_w2, bar_bias = (
                torch.baddbmm(
                    torch.baddbmm(bar_w1, g, bar_w2.mT, alpha=-c), bar_m, w2.mT, alpha=-c
                ),
                torch.baddbmm(
                    torch.baddbmm(bar_w2, bar_w1.mT, g, alpha=-c), w1.mT, bar_m, alpha=-c
                ),
                bar_bias - c * bar_m[:, -1:],
            )
            left += [error, bar_scores]
            right += [bar_g, m]
        bar_inputs = -c * (torch.cat(left, -1) @ torch.cat(right, -1).mT)
        return bar_inputs, None, None, None, None, None
