"""Tensors that are learned by the gradient of a loss, without networks in training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gcsr.data.views import Target
from gcsr.engines.iterates import BestValidated, comparison, loss_curves
from gcsr.engines.loop import DivergenceGuard, OuterStep, finite_graphs, optimize
from gcsr.engines.result import Context
from gcsr.training.adam import Adam

# From an iteration and the tensors to the loss of every graph.
Loss = Callable[[int, Sequence[Tensor]], Tensor]


class DirectStep(OuterStep):
    """One step of Adam on tensors ``(graphs, ...)`` of which the first is X'.

    Args:
        params: what is learned; updated in place.
        rates: a learning rate for each, a number or one per graph.
        loss: differentiable in ``params``.
        learned: from an iteration to the places in ``params`` that it changes; by default all.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        rates: Sequence[float | Tensor],
        loss: Loss,
        learned: Callable[[int], Sequence[int]] | None = None,
    ) -> None:
        self.x, self.params, self._rates, self._loss = params[0], params, rates, loss
        self._adams = [Adam((p,), rate) for p, rate in zip(params, rates, strict=True)]
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
            adam, rate = self._adams[place], self._rates[place]
            adam.rate = rate if lr_scale is None else rate * lr_scale
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


# From two learned tensors of one graph, of which the first is X', to A' and class shares.
Reading = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
CHECK_EVERY, COMPARISONS = 10, 10


class _BestRead(BestValidated):
    """Keeps the two tensors of the graph that validates best."""

    def __init__(self, validation: Target, device: torch.device, read: Reading) -> None:
        super().__init__(torch.empty(0), validation, device)
        self._read = read

    def score(self, x: Tensor, a: Tensor) -> Tensor:
        """Validation accuracy of every graph."""
        graphs = zip(x, a, strict=True)
        found = [self._quick(one, *self._read(one, other)) for one, other in graphs]
        return torch.tensor(found, dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class Learned:
    """The two tensors of every graph, with what goes into its provenance."""

    first: Tensor
    second: Tensor
    details: list[dict[str, Any]]
    notes: list[tuple[str, ...]]


def learn(ctx: Context, step: DirectStep, iterations: int, read: Reading, *, best: bool) -> Learned:
    """Run the loop on two tensors; ``best`` returns the iterate on which GCNs validate best."""
    view, seeds, device = ctx.view, ctx.seeds, ctx.device
    first, second = step.params
    scored = None
    if best or view.watch is not None:
        scored = _BestRead(view.validation, device, read)
    guard = DivergenceGuard(scored, view.checkpoint, seeds, device)
    compare = comparison(scored, view, seeds, second, device)
    losses = optimize(
        step,
        iterations,
        progress=ctx.progress,
        guard=guard,
        check_every=CHECK_EVERY,
        compare=None if compare is None else lambda i: compare(i, first, second),
        compare_at=range(0, iterations, max(1, iterations // COMPARISONS)),
    )
    details: list[dict[str, Any]] = [
        {"matching_loss": curve} for curve in loss_curves(losses, iterations)
    ]
    if best and scored is not None and scored.x is not None and scored.a is not None:
        first, second = scored.x, scored.a
        for g, one in enumerate(details):
            one[scored.measure] = scored.curve(g)
    return Learned(first, second, details, [guard.notes(g) for g in range(len(seeds))])
