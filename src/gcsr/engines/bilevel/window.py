r"""A window of Adam steps of two-layer students, and its adjoint, both written by hand.

A student is the two-layer network that a GCN, SGC, APPNP or MLP is on the condensed graph:

.. math:: O = P\,\sigma(U W_1 + b_1) W_2 + b_2, \qquad
          L = \tfrac1{n'} \sum_i -\langle Y_i, \log\mathrm{softmax}(O_i)\rangle,

with :math:`U = X'` and :math:`P = I` where the condensed graph has no edges, and
:math:`U = \hat A'X'`, :math:`P = \hat A'` where it has. Training is torch's Adam with weight decay
(Kingma and Ba, 2015): with :math:`g = \nabla L + \lambda\theta`,

.. math:: m \leftarrow \beta_1 m + (1-\beta_1) g, \quad v \leftarrow \beta_2 v + (1-\beta_2) g^2, \quad
          \theta \leftarrow \theta - \eta \frac{m / (1-\beta_1^t)}{\sqrt{v / (1-\beta_2^t)} + \epsilon}.

:meth:`Window.adjoint` takes the gradient of any loss with respect to the weights after the last step
and returns its gradient with respect to U, P and Y. It runs the recurrences of θ, m and v backwards;
the product of the Hessian with a vector is written down, so nothing is recorded by autograd.

Layout: students of one condensed graph lie side by side in the hidden dimension, ``W1`` is
``(graphs, d, students * hidden)``. The wide products are then single matrix products, and the sum over
students that the gradient of U needs is part of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.training.classification import probabilities

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
TINY = 1e-18


@dataclass(frozen=True)
class InnerAdam:
    """How students are trained: by default as the test protocol trains its networks."""

    lr: float = 0.01
    weight_decay: float = 5e-4


@dataclass(frozen=True, eq=False)
class Students:
    """Weights of all students with Adam's moments and the steps that each has taken.

    ``params`` are ``W1 (graphs, d, S h)``, ``b1 (graphs, 1, S h)``, ``W2 (graphs, S, h, C)`` and
    ``b2 (graphs, S, 1, C)``; ``age`` is ``(graphs, S)``, a whole number as a float.
    """

    params: tuple[Tensor, ...]
    first: tuple[Tensor, ...]
    second: tuple[Tensor, ...]
    age: Tensor

    @classmethod
    def zeros(
        cls, graphs: int, students: int, widths: tuple[int, int, int], like: Tensor
    ) -> Students:
        """Students without weights yet; ``widths``: features, hidden units, classes."""
        d, h, c = widths
        shapes = (
            (graphs, d, students * h),
            (graphs, 1, students * h),
            (graphs, students, h, c),
            (graphs, students, 1, c),
        )
        params, first, second = (tuple(like.new_zeros(shape) for shape in shapes) for _ in range(3))
        return cls(params, first, second, like.new_zeros((graphs, students)))

    def buffers(self) -> tuple[Tensor, ...]:
        """Everything that training changes."""
        return (*self.params, *self.first, *self.second, self.age)

    def begin(self, weights: tuple[Tensor, ...]) -> None:
        """Start again from the weights of new networks, one of every graph along a batch dimension."""
        for place, fresh in zip(self.params, weights, strict=True):
            place.copy_(fresh.view_as(place))
        for place in (*self.first, *self.second, self.age):
            place.zero_()

    def take(self, student: int, newcomers: Students) -> None:
        """Replace a student by the only student of ``newcomers``, moments and age included."""
        hidden = self.params[2].shape[2]
        columns = slice(student * hidden, (student + 1) * hidden)
        for (w1, b1, w2, b2), new in (
            (self.params, newcomers.params),
            (self.first, newcomers.first),
            (self.second, newcomers.second),
        ):
            w1[:, :, columns], b1[:, :, columns] = new[:2]
            w2[:, student], b2[:, student] = new[2][:, 0], new[3][:, 0]
        self.age[:, student] = newcomers.age[:, 0]


@dataclass(frozen=True, eq=False)
class SmallGraph:
    """What students train on: U, P (``None``: the identity) and Y of every graph.

    ``multi_label``: the loss is binary cross-entropy, the mean over nodes and labels.
    """

    u: Tensor
    p: Tensor | None
    y: Tensor
    multi_label: bool = False


class _Track:
    """Values of one weight tensor over a window, and their adjoints, in memory that is taken once.

    Slot t of ``value`` and ``first`` is before step t; ``gradient``, ``root`` (of v) and ``directions``
    (adjoints of the gradient) belong to step t itself. ``second`` is that of the students and changes
    in place: the adjoint needs its root alone. ``bar_first`` has the opposite sign of an adjoint.
    """

    def __init__(self, second: Tensor, steps: int, *, keep: bool, directions: int = 1) -> None:
        # Without an adjoint two slots are enough, used in turns.
        slots = steps + 1 if keep else 2
        self.value, self.first, self.gradient, self.root = (
            [torch.empty_like(second) for _ in range(count)]
            for count in (slots, slots, slots - 1, slots - 1)
        )
        self.second, self._spare = second, torch.empty_like(second)
        if keep:
            self.directions = [torch.empty_like(second) for _ in range(directions)]
            self.bar_value, self.bar_first, self.bar_second = (
                torch.empty_like(second) for _ in range(3)
            )

    def step(self, t: int, decays: tuple[Tensor, Tensor]) -> None:
        """Adam's step from slot t to t + 1, by the gradient in slot t."""
        scale, shift = decays
        now, then = t % len(self.value), (t + 1) % len(self.value)
        g, root = self.gradient[t % len(self.gradient)], self.root[t % len(self.root)]
        torch.lerp(self.first[now], g, 1 - BETA1, out=self.first[then])
        self.second.mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
        # Where v is zero so is m: the bound keeps zero divided by zero out of the adjoint.
        torch.sqrt(self.second, out=root).clamp_min_(TINY)
        torch.addcmul(shift, root, scale, out=self._spare)
        torch.addcdiv(
            self.value[now], self.first[then], self._spare, value=-1, out=self.value[then]
        )

    def step_back(self, t: int, decays: tuple[Tensor, Tensor], decay: float) -> Tensor:
        """Back through Adam's step t: the adjoint of its gradient."""
        scale, shift = decays
        direction = self.directions[t % len(self.directions)]
        root, below, pushed = self.root[t], self._spare, direction
        torch.addcmul(shift, root, scale, out=below)
        torch.div(self.bar_value, below, out=pushed)
        torch.add(pushed, self.bar_first, alpha=BETA1, out=self.bar_first)
        pushed.mul_(self.first[t + 1]).div_(below.mul_(root)).mul_(scale)
        self.bar_second.mul_(BETA2).add_(pushed, alpha=0.5)
        torch.mul(self.bar_first, BETA1 - 1, out=direction)
        direction.addcmul_(self.gradient[t], self.bar_second, value=2 * (1 - BETA2))
        self.bar_value.add_(direction, alpha=decay)
        return direction


class Window:
    """Steps that were taken and can be differentiated; its memory is used again and again.

    Args:
        students: the networks, which :meth:`advance` updates in place.
        adam: how they are trained.
        steps: the length of the window.
        keep: whether :meth:`adjoint` will be asked for.
    """

    def __init__(
        self, students: Students, adam: InnerAdam, steps: int, *, keep: bool = True
    ) -> None:
        self.students, self.adam, self.length = students, adam, steps
        self._count, self._hidden_channels = students.params[2].shape[1:3]
        # Gradients of U need the directions of W1 at every step.
        self._tracks = tuple(
            _Track(v, steps, keep=keep, directions=steps if i == 0 else 1)
            for i, v in enumerate(students.second)
        )
        self._keep = keep
        self._steps: list[_Activations] = []

    def advance(self, small: SmallGraph) -> None:
        """Train every student."""
        self._steps.clear()
        s = self.students
        for track, value, m in zip(self._tracks, s.params, s.first, strict=True):
            track.value[0].copy_(value)
            track.first[0].copy_(m)
        for t in range(self.length):
            s.age.add_(1)
            activations = self._step(t, small)
            if self._keep:
                self._steps.append(activations)
        last = self.length % len(self._tracks[0].value)
        for track, value, m in zip(self._tracks, s.params, s.first, strict=True):
            value.copy_(track.value[last])
            m.copy_(track.first[last])

    def _step(self, t: int, small: SmallGraph) -> _Activations:
        now = t % len(self._tracks[0].value)
        w1, b1, w2, b2 = (track.value[now] for track in self._tracks)
        hidden = torch.baddbmm(b1, small.u, w1).relu_()
        apart = students_apart(hidden, self._count)
        scores = apart @ w2
        if small.p is not None:
            scores = small.p.unsqueeze(1) @ scores
        found = probabilities(scores + b2, small.multi_label)
        terms = small.y[0].numel() if small.multi_label else small.y.shape[1]
        d_output = (found - small.y.unsqueeze(1)) / terms
        d_scores = d_output if small.p is None else small.p.mT.unsqueeze(1) @ d_output
        d_hidden = (d_scores @ w2.mT).transpose(1, 2).flatten(2).mul_(hidden > 0)
        g1, c1, g2, c2 = (track.gradient[t % len(track.gradient)] for track in self._tracks)
        decay = self.adam.weight_decay
        torch.baddbmm(w1, small.u.mT, d_hidden, beta=decay, out=g1)
        torch.add(d_hidden.sum(1, keepdim=True), b1, alpha=decay, out=c1)
        torch.add(apart.mT @ d_scores, w2, alpha=decay, out=g2)
        torch.add(d_output.sum(2, keepdim=True), b2, alpha=decay, out=c2)
        # A step is m / (scale * sqrt(v) + shift): both by student, in each weight's shape.
        shift = (1 - BETA1**self.students.age) / self.adam.lr
        both = shift / (1 - BETA2**self.students.age).sqrt(), shift * EPSILON
        scale, shift = (t.repeat_interleave(self._hidden_channels, 1).unsqueeze(1) for t in both)
        wide, small_scale = (scale, shift), (both[0][..., None, None], both[1][..., None, None])
        scales = (wide, wide, small_scale, small_scale)
        for track, decays in zip(self._tracks, scales, strict=True):
            track.step(t, decays)
        return _Activations(scales, hidden, d_hidden, found, d_scores)

    def adjoint(
        self, small: SmallGraph, last: tuple[Tensor, ...], weigh: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Gradients of U, P and Y, given those of the weights after the last step.

        They are weighted sums over students: ``weigh`` maps the students' gradients of Y,
        ``(graphs, S, n', C)``, to weights ``(graphs, S)``. Who weighs nothing may be anything, NaN
        included.
        """
        students, (graphs, n, _) = self._count, small.u.shape
        # What the loss is the mean over: nodes, or nodes and labels.
        terms = small.y[0].numel() if small.multi_label else small.y.shape[1]
        bar_p = None if small.p is None else small.u.new_zeros((graphs, students, n, n))
        bar_y = small.u.new_zeros((graphs, students, *small.y.shape[1:]))
        r_d_hiddens: list[Tensor] = []
        for track, gradient in zip(self._tracks, last, strict=True):
            track.bar_value.copy_(gradient)
            track.bar_first.zero_()
            track.bar_second.zero_()
        for t, step in reversed(list(enumerate(self._steps))):
            a1, c1, a2, c2 = (
                track.step_back(t, decays, self.adam.weight_decay)
                for track, decays in zip(self._tracks, step.scales, strict=True)
            )
            w2 = self._tracks[2].value[t]
            active = step.hidden > 0
            apart = students_apart(step.hidden, students)
            # The derivative of every quantity of the step along the direction.
            r_hidden = torch.baddbmm(c1, small.u, a1).mul_(active)
            r_apart = students_apart(r_hidden, students)
            r_scores = r_apart @ w2 + apart @ a2
            r_output = r_scores if small.p is None else small.p.unsqueeze(1) @ r_scores
            r_output = r_output + c2
            prob = step.probabilities
            r_d_output = logits_gradient(prob, r_output, small.multi_label) / terms
            r_d_scores = r_d_output
            if small.p is not None and bar_p is not None:
                r_d_scores = small.p.mT.unsqueeze(1) @ r_d_output
                d_output = (prob - small.y.unsqueeze(1)) / terms
                bar_p.add_(r_d_output @ (apart @ w2).mT + d_output @ r_scores.mT)
            r_d_hidden = (
                (r_d_scores @ w2.mT + step.d_scores @ a2.mT).transpose(1, 2).flatten(2).mul_(active)
            )
            bar_y.sub_(r_output, alpha=1 / terms)
            r_d_hiddens.append(r_d_hidden)
            bar_w1, bar_b1, bar_w2, bar_b2 = (track.bar_value for track in self._tracks)
            bar_w1.baddbmm_(small.u.mT, r_d_hidden)
            bar_b1.add_(r_d_hidden.sum(1, keepdim=True))
            bar_w2.add_(apart.mT @ r_d_scores).add_(r_apart.mT @ step.d_scores)
            bar_b2.add_(r_d_output.sum(2, keepdim=True))
        weights = weigh(bar_y)
        columns = weights.repeat_interleave(self._hidden_channels, 1).unsqueeze(1)
        # Zero times infinity is not zero. On CUDA, checking the weights would synchronize.
        left_out = columns == 0
        some = left_out.is_cuda or bool(left_out.any())
        bar_u = torch.zeros_like(small.u)
        first_layer = self._tracks[0]
        for t, r_d_hidden in zip(reversed(range(self.length)), r_d_hiddens, strict=True):
            d_hidden = self._steps[t].d_hidden * columns
            factors = (d_hidden, first_layer.directions[t], r_d_hidden.mul_(columns))
            for factor in (*factors, first_layer.value[t]) if some else ():
                factor.masked_fill_(left_out, 0)
            bar_u.baddbmm_(d_hidden, first_layer.directions[t].mT)
            bar_u.baddbmm_(r_d_hidden, first_layer.value[t].mT)
        nobody = (weights == 0)[..., None, None]
        bar_y.masked_fill_(nobody, 0)
        if bar_p is not None:
            bar_p = torch.einsum("gs,gsij->gij", weights, bar_p.masked_fill_(nobody, 0))
        return bar_u, bar_p, torch.einsum("gs,gsij->gij", weights, bar_y)


@dataclass(frozen=True, eq=False)
class _Activations:
    """Activations of a step that the adjoint needs beside the weights."""

    scales: tuple[tuple[Tensor, Tensor], ...]
    hidden: Tensor
    d_hidden: Tensor
    probabilities: Tensor
    d_scores: Tensor


def logits_gradient(found: Tensor, gradient: Tensor, multi_label: bool) -> Tensor:
    """The gradient of logits, given that of their softmax or sigmoid ``found``."""
    if multi_label:
        return found * (1 - found) * gradient
    return found * (gradient - (found * gradient).sum(-1, keepdim=True))


def students_apart(side_by_side: Tensor, students: int) -> Tensor:
    """``(graphs, n', S h)`` as ``(graphs, S, n', h)``."""
    graphs, n, width = side_by_side.shape
    return side_by_side.view(graphs, n, students, width // students).transpose(1, 2)
