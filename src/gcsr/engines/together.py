"""What the learned methods share: graphs advanced together, and rates in units of the features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from gcsr.engines.result import CondensationResult
from gcsr.utils.devices import free_memory_bytes, within_memory
from gcsr.utils.parallel import run_jobs_on
from gcsr.utils.progress import Progress

Units = Literal["relative", "absolute"]
UNITS = ("relative", "absolute")
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
