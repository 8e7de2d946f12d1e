"""Tensors that are learned by the gradient of a loss, without networks in training."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gcsr.engines.loop import OuterStep, finite_graphs
from gcsr.training.adam import Adam

# Iterations between two checks of the loss.
CHECK_EVERY = 10
# From an iteration and the tensors to the loss of every graph.
Loss = Callable[[int, Sequence[Tensor]], Tensor]


class DirectStep(OuterStep):
    """One step of Adam on tensors ``(graphs, ...)`` of which the first is X'.

    Args:
        params: what is learned; updated in place.
        lrs: a learning rate for each, a number or one per graph.
        loss: differentiable in ``params``.
        learned: from an iteration to the places in ``params`` that it changes; by default all.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lrs: Sequence[float | Tensor],
        loss: Loss,
        learned: Callable[[int], Sequence[int]] | None = None,
    ) -> None:
        self.x, self.params, self._lrs, self._loss = params[0], params, lrs, loss
        self._adams = [Adam((p,), lr) for p, lr in zip(params, lrs, strict=True)]
        everything = range(len(params))
        self._learned = learned or (lambda iteration: everything)

    def buffers(self) -> tuple[Tensor, ...]:
        """Everything that a step changes."""
        return tuple(buffer for adam in self._adams for buffer in adam.buffers)

    def __call__(self, iteration: int, lr_scale: Tensor | None = None) -> Tensor:
        """One step; the loss is that before it."""
        places = self._learned(iteration)
        given = [p.detach() for p in self.params]
        for place in places:
            given[place].requires_grad_()
        losses = self._loss(iteration, given)
        gradients = torch.autograd.grad(losses.sum(), [given[place] for place in places])
        for place, gradient in zip(places, gradients, strict=True):
            adam, lr = self._adams[place], self._lrs[place]
            adam.lr = lr if lr_scale is None else lr * lr_scale
            adam.step((gradient,))
        return losses.detach()

    def divergence_message(self, iteration: int) -> str:
        """What to change."""
        return (
            f"feature_lr must be smaller: the loss was not finite by iteration {iteration}, also with"
            " smaller rates"
        )

    def is_finite(self) -> Tensor:
        """Whether all tensors of each graph are finite."""
        return finite_graphs(*self.params)
