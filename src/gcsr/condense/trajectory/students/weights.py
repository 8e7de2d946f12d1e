r"""The linear student with explicit weights (for n' > d).

With :math:`H = [\hat A'^2 X', \hat A'^2 1]`, which is constant, and :math:`M = W_1 W_2` the scores are
:math:`H M`: multiplying the weights first leaves C columns where the hidden width would stand. With
:math:`E = c\,(\mathrm{softmax}(HM) - Y)` and :math:`g = H^\top E` a step of SGD is

.. math:: W_1 \leftarrow W_1 - g W_2^\top, \qquad W_2 \leftarrow W_2 - W_1^\top g,

c the rate over n'. The last row of :math:`W_1` holds the first bias; the second bias is added to the
last row of M. The adjoint below is these lines read backwards; what it adds to the gradient of H is
collected and multiplied once at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gcsr.condense.trajectory.students.algebra import (
    dense_operator,
    inner_product,
    softmax_gradient,
    squared_norm,
)
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
            lesson.step_size,
            lesson.targets,
            lesson.start,
            lesson.goal,
            lesson.steps,
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
