"""The outer loop of every learned method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping
from typing import Any

import torch
from torch import Tensor

from gcsr.engines.divergence import DivergedError, DivergenceGuard
from gcsr.utils.progress import Progress


class OuterStep(ABC):
    """One iteration of several condensed graphs, which lie along the first dimension of ``x``."""

    x: Tensor

    @abstractmethod
    def buffers(self) -> tuple[Tensor, ...]:
        """Every tensor that an iteration changes in place."""

    @abstractmethod
    def __call__(self, iteration: int, lr_scale: Tensor | None = None) -> Tensor:
        """Run an iteration and return the loss of every graph.

        ``lr_scale`` has shape ``(graphs, 1, 1)`` and scales all learning rates. It is ``None`` until a
        graph was rolled back, and a new tensor after every rollback.
        """

    @abstractmethod
    def divergence_message(self, iteration: int) -> str:
        """The error if a graph diverges too often, without the final period."""

    @abstractmethod
    def release(self) -> None:
        """Free what was captured on a device."""

    def is_finite(self) -> Tensor:
        """Whether the state of each graph is finite."""
        return finite_graphs(self.x)

    def values(self) -> dict[str, Any]:
        """State that is not a tensor, for the checkpoint."""
        return {}

    def resume(self, values: Mapping[str, Any]) -> None:  # noqa: B027 - most have no values
        """Take over :meth:`values` of a checkpoint, after its tensors were copied to the buffers."""


def finite_graphs(*tensors: Tensor) -> Tensor:
    """For every graph, whether its slice of each tensor is finite."""
    return torch.stack([torch.isfinite(tensor.flatten(1)).all(1) for tensor in tensors]).all(0)


def optimize(
    step: OuterStep,
    iterations: int,
    *,
    guard: DivergenceGuard,
    progress: Progress,
    check_every: int,
    keep_every: int | None = None,
    compare: Callable[[int], None] | None = None,
    compare_at: Container[int] = (),
    stop_if_diverged: bool = False,
) -> Tensor:
    """Run the loop in place and return the losses ``(iterations, graphs)``.

    A graph with a loss that is not finite is rolled back to the last good state, with half of its
    learning rates. A graph that diverges too often raises :class:`InputError`.

    Args:
        step: the iteration.
        iterations: their number; a run that is resumed does the rest of them.
        guard: keeps good states, and writes them to the checkpoint.
        progress: called after every check.
        check_every: iterations between two checks of the losses. A check waits for the device.
        keep_every: iterations between two states that are kept; by default every check.
        compare: called before the iterations in ``compare_at``, and after the last one.
        compare_at: see ``compare``.
        stop_if_diverged: return the losses so far instead of raising an error.
    """
    keep_every = keep_every or check_every
    graphs = step.x.shape[0]
    losses = torch.zeros((iterations, graphs), dtype=torch.float64, device=step.x.device)
    i, values = guard.begin(step.buffers(), losses)
    step.resume(values)
    lr_scale = guard.lr_scale(step.x)
    try:
        while i < iterations:
            if compare is not None and i in compare_at:
                compare(i)
            losses[i] = step(i, lr_scale)
            i += 1
            keep = i % keep_every == 0 or i == iterations
            if i % check_every and not keep:
                continue
            bad = ~finite_graphs(losses[(i - 1) // check_every * check_every : i].T)
            if keep:
                bad |= ~step.is_finite()
            if not bool(bad.any()):
                if keep:
                    guard.accept(i, step.buffers(), losses, step.values())
                progress("condensing", i, iterations)
                continue
            back = guard.rollback(i, bad, step.buffers(), losses)
            if back is not None:
                i, lr_scale = back, guard.lr_scale(step.x)
            elif stop_if_diverged:
                progress("condensing", iterations, iterations)
                return losses[:i].cpu()
            else:
                reason = step.divergence_message(i)
                raise DivergedError(f"{reason}{guard.saved_at}.", f"{reason}.")
    finally:
        step.release()
    if compare is not None:
        compare(iterations)
    return losses.cpu()
