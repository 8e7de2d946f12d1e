r"""The linear student in the span of its inputs (for n' <= d).

The first layer never leaves the span of :math:`H = [T X', T 1]`, :math:`T = \hat A'^2`:
:math:`W_1(t) = W_1(0) - H^\top F_t` with :math:`F_t = \sum_{i<t} E_i W_2(i)^\top`. So the steps need
only :math:`K = H H^\top` and the hidden units :math:`Z_t = H W_1(t)`:

.. math:: E = c\,(\mathrm{softmax}(Z W_2 + s b_2) - Y), \quad Z \leftarrow Z - (K E) W_2^\top, \quad
          W_2 \leftarrow W_2 - Z^\top E,

c the rate over n', each O(n' h C), and d appears only in three products per iteration: X'X'ᵀ (shared
with the reconstruction), :math:`X' W_1(0)` and :math:`X' D` with :math:`D = W_1^* - W_1(0)`. The missed
distance of the first layer is :math:`|D|^2 + 2\langle H D, F\rangle + \langle F, K F\rangle`.

Below, s is kept as a last column of Z and b₂ with W₂; ``mask`` keeps it out of the update of the first
layer. Z and H D lie side by side in ``hidden``. W₂, E and K E are transposed, classes first: a softmax
over a handful of classes is several times faster down the columns than along the rows. Everything,
propagation included, is one function with one hand-written adjoint: between small products autograd's
own work would count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
from gcsr.models import Params


@dataclass(frozen=True)
class SpanStudent:
    """See :class:`~gcsr.condense.trajectory.students.Student`."""

    _way: Workspace = field(default_factory=Workspace, repr=False, compare=False)

    def __call__(self, lesson: Lesson) -> Tensor:
        """The loss, with a hand-written gradient."""
        x, gram = lesson.points.x, lesson.points.gram
        way = self._way.difference(lesson.goal[0], lesson.start[0])
        loss: Tensor = _Distance.apply(  # type: ignore[no-untyped-call]
            x, gram, dense_operator(lesson.topology), lesson.step_size, way, lesson
        )
        return loss


class _Propagated(NamedTuple):
    """What the steps start from, and what its adjoint needs."""

    hidden: Tensor
    kernel: Tensor
    before: Tensor
    twice: Tensor | None
    twice_gram: Tensor | None


class _Taught(NamedTuple):
    """The steps as they went."""

    history: list[tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]]
    errors: Tensor
    coordinates: Tensor
    pulled: Tensor
    miss: Tensor
    gone: Tensor


class _Distance(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        gram: Tensor,
        operator: Tensor | None,
        c: Tensor,
        way: Tensor,
        lesson: Lesson,
    ) -> Tensor:
        start, goal = lesson.start, lesson.goal
        way_b1 = goal[1] - start[1]
        ahead = _propagate(x, gram, operator, start, way, way_b1)
        gone_first = squared_norm(way) + squared_norm(way_b1)
        loss, taught = _teach(ahead, c, gone_first, lesson)
        ctx.save_for_backward(operator, c, start[0], way)
        ctx.ahead, ctx.taught = ahead, taught
        return loss

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        operator, c, w1, way = ctx.saved_tensors
        ahead, taught = ctx.ahead, ctx.taught
        learned = ctx.needs_input_grad[3]
        bar_hidden, bar_kernel, bar_c = _teach_adjoint(ahead, taught, c, gradient, learned=learned)
        bar_operator = None
        if ahead.twice is not None:
            bar_twice = torch.bmm(bar_hidden, ahead.before.mT)
            bar_twice = torch.baddbmm(bar_twice, bar_kernel + bar_kernel.mT, ahead.twice_gram)
            bar_operator = torch.baddbmm(torch.bmm(bar_twice, operator.mT), operator.mT, bar_twice)
            bar_hidden = torch.bmm(ahead.twice.mT, bar_hidden)
            bar_kernel = torch.bmm(torch.bmm(ahead.twice.mT, bar_kernel), ahead.twice)
        h = w1.shape[-1]
        bar_x = torch.bmm(bar_hidden[..., :h], w1.mT).baddbmm_(bar_hidden[..., h + 1 :], way.mT)
        return bar_x, bar_kernel, bar_operator, bar_c, None, None


def _propagate(
    x: Tensor, gram: Tensor, operator: Tensor | None, start: Params, way: Tensor, way_b1: Tensor
) -> _Propagated:
    """``[H W1, s, H D]`` and K."""
    ones = x.new_ones((*x.shape[:-1], 1))
    before = torch.cat(
        [torch.baddbmm(start[1], x, start[0]), ones, torch.baddbmm(way_b1, x, way)], -1
    )
    kernel = gram + 1
    if operator is None:
        return _Propagated(before, kernel, before, None, None)
    twice = torch.bmm(operator, operator)
    twice_gram = torch.bmm(twice, kernel)
    hidden, kernel = torch.bmm(twice, before), torch.bmm(twice_gram, twice.mT)
    return _Propagated(hidden, kernel, before, twice, twice_gram)


def _teach(
    ahead: _Propagated, c: Tensor, gone_first: Tensor, lesson: Lesson
) -> tuple[Tensor, _Taught]:
    start, goal = lesson.start, lesson.goal
    second, second_goal = (
        torch.cat([w2.mT, b2.mT], -1) for w2, b2 in ((start[2], start[3]), (goal[2], goal[3]))
    )
    h = start[0].shape[-1]
    mask = second.new_ones(h + 1)
    mask[-1] = 0
    pull = -c * lesson.targets.mT
    kernel = ahead.kernel.mT
    z, w = ahead.hidden[..., : h + 1], second
    history = []
    for step in range(lesson.steps):
        probabilities = torch.bmm(w, z.mT).softmax(-2)
        error = torch.addcmul(pull, probabilities, c)
        pulled = torch.bmm(error, kernel)
        inner = w * mask
        history.append((z, w, inner, probabilities, error, pulled))
        w = torch.baddbmm(w, error, z, alpha=-1)
        if step < lesson.steps - 1:
            z = torch.baddbmm(z, pulled.mT, inner, alpha=-1)
    errors = torch.cat([entry[4] for entry in history], -2)
    inners = torch.cat([entry[2] for entry in history], -2)
    coordinates = torch.bmm(errors.mT, inners[..., :-1])
    pulled_all = torch.bmm(ahead.kernel, coordinates)
    toward = torch.add(pulled_all, ahead.hidden[..., h + 1 :], alpha=2)
    miss = w - second_goal
    gone = gone_first + squared_norm(second - second_goal)
    missed = gone_first + inner_product(toward, coordinates) + squared_norm(miss)
    return missed / gone, _Taught(history, errors, coordinates, pulled_all, miss, gone)


def _teach_adjoint(
    ahead: _Propagated, taught: _Taught, c: Tensor, gradient: Tensor, *, learned: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Gradients of ``hidden``, K and a learned c: the lines of :func:`_teach` read backwards."""
    scale = (2 * gradient / taught.gone).view(-1, 1, 1)
    h = taught.coordinates.shape[-1]
    bar_f = torch.nn.functional.pad(
        (ahead.hidden[..., h + 1 :] + taught.pulled).mul_(scale), (0, 1)
    )
    bar_w = scale * taught.miss
    bar_z: Tensor | None = None
    bars_pulled: list[Tensor] = []
    bars_error: list[Tensor] = []
    for z, w, inner, probabilities, error, pulled in reversed(taught.history):
        bar_error = torch.bmm(inner, bar_f.mT).baddbmm_(bar_w, z.mT, alpha=-1)
        bar_inner = torch.bmm(error, bar_f)
        if bar_z is None:
            # The last step moves Z no more.
            bar_z = torch.bmm(error.mT, bar_w).neg_()
        else:
            bar_pulled = torch.bmm(inner, bar_z.mT).neg_()
            bars_pulled.append(bar_pulled)
            bar_error.baddbmm_(bar_pulled, ahead.kernel)
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
    scaled = scale * taught.coordinates
    bar_kernel = torch.bmm(scaled, taught.coordinates.mT).mul_(0.5)
    if bars_pulled:
        moving = taught.errors[:, : -bar_w.shape[-2]]
        bar_kernel.baddbmm_(torch.cat(bars_pulled[::-1], -2).mT, moving)
    bar_c = None
    if learned:
        bar_c = inner_product(torch.cat(bars_error[::-1], -2), taught.errors).view(-1, 1, 1) / c
    return torch.cat([bar_z, scaled], -1), bar_kernel, bar_c
