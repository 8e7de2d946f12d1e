"""What the learned methods share: graphs advanced together, and rates in units of the features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor

from gcsr.condense.condenser import Made
from gcsr.parallel import run_jobs
from gcsr.progress import Progress

Units = Literal["relative", "absolute"]
UNITS = ("relative", "absolute")
Precision = Literal["float32", "float64"]
PRECISIONS: dict[str, torch.dtype] = {"float32": torch.float32, "float64": torch.float64}
# A matching-loss curve of at most about this many points is kept with a result.
CURVE_POINTS = 100


def advance_together(
    run: Callable[[slice, Progress], list[Made]],
    seeds: Sequence[int],
    device: torch.device,
    progress: Progress,
) -> list[Made]:
    """``run`` for every graph: all along one leading dimension on CUDA, each on a thread on a CPU.

    Small products leave a CUDA device idle; on a CPU a graph of its own stays in the cache.
    """
    if device.type == "cuda":
        return run(slice(None), progress)

    def job(i: int) -> Callable[[Progress], list[Made]]:
        return lambda report: run(slice(i, i + 1), report)

    groups = run_jobs([job(i) for i in range(len(seeds))], progress)
    return [made for group in groups for made in group]


def feature_unit(x: Tensor, units: Units) -> Tensor:
    """What Adam's rate for X' is measured in, one number per graph: 1, or the root mean square."""
    if units == "absolute":
        return torch.ones((x.shape[0], 1, 1), dtype=x.dtype, device=x.device)
    return x.square().mean((1, 2), keepdim=True).sqrt()
