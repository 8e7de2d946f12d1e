"""The outer loop of every learned method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from gcsr.engines.divergence import DivergedError, DivergenceGuard
from gcsr.engines.result import CondensationResult
from gcsr.utils.devices import free_memory_bytes, within_memory
from gcsr.utils.parallel import run_jobs_on
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
    progress: Progress,
    guard: DivergenceGuard | None = None,
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
        progress: called after every check.
        guard: keeps good states, and writes them to the checkpoint; by default without a checkpoint.
        check_every: iterations between two checks of the losses. A check waits for the device.
        keep_every: iterations between two states that are kept; by default every check.
        compare: called before the iterations in ``compare_at``, and after the last one.
        compare_at: see ``compare``.
        stop_if_diverged: return the losses so far instead of raising an error.
    """
    guard, keep_every = guard or DivergenceGuard(), keep_every or check_every
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


Units = Literal["relative", "absolute"]
Precision = Literal["float32", "float64"]
PRECISIONS: dict[str, torch.dtype] = {"float32": torch.float32, "float64": torch.float64}


def advance_together(
    run: Callable[[slice, Progress], list[CondensationResult]],
    seeds: Sequence[int],
    device: torch.device,
    progress: Progress,
    *,
    bytes_each: int = 0,
) -> list[CondensationResult]:
    """``run`` for every graph: all along one leading dimension on CUDA, each on a thread on a CPU.

    Small products leave a CUDA device idle; on a CPU a graph of its own stays in the cache. Graphs
    that take ``bytes_each`` go together only as far as half of the device's free memory, and half as
    many where that does not suffice.
    """
    count, size = len(seeds), 1
    if device.type == "cuda":
        size = count
        if bytes_each:
            size = min(count, max(1, free_memory_bytes(device) // 2 // bytes_each))

    def everyone(size: int) -> list[CondensationResult]:
        jobs = [partial(run, slice(first, first + size)) for first in range(0, count, size)]
        return [made for group in run_jobs_on(device, jobs, progress) for made in group]

    return within_memory(everyone, size, "condensed graphs")


def feature_unit(x: Tensor, units: Units) -> Tensor:
    """What Adam's rate for X' is measured in, one number per graph: 1, or the root mean square."""
    if units == "absolute":
        return torch.ones((x.shape[0], 1, 1), dtype=x.dtype, device=x.device)
    return x.square().mean((1, 2), keepdim=True).sqrt()
