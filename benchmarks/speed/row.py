"""One measurement: the engine beside the reference."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch


@dataclass(frozen=True)
class BenchRow:
    """Milliseconds of the same work by both, and how far their results are apart (relative)."""

    bench: str
    case: str
    device: str
    reference_ms: float
    engine_ms: float
    loss_error: float
    gradient_error: float
    unit: str
    note: str = ""

    @property
    def ratio(self) -> float:
        """How many times faster the engine is."""
        return self.reference_ms / self.engine_ms

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the ratio included."""
        return {**asdict(self), "ratio": self.ratio}


def median_ms(work: Callable[[], object], device: torch.device, *, repeats: int) -> float:
    """Median wall-clock time of a call after one that is not counted."""
    times = []
    for attempt in range(repeats + 1):
        synchronize(device)
        began = time.perf_counter()
        work()
        synchronize(device)
        if attempt:
            times.append(1e3 * (time.perf_counter() - began))
    return median(times)


def synchronize(device: torch.device) -> None:
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def relative_error(value: torch.Tensor, reference: torch.Tensor) -> float:
    """Norm of the difference over the norm of the reference."""
    difference = value.double().cpu() - reference.double().cpu()
    return float(difference.norm() / reference.double().cpu().norm())
