"""Candidates of the automatic mode: made side by side, named and scored alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import torch

from gcsr.condense.condenser import Condenser, Made
from gcsr.errors import InputError
from gcsr.parallel import part_of, run_jobs
from gcsr.progress import Progress, silent

# What takes a candidate out instead of ending the run.
FAILURES: tuple[type[Exception], ...] = (
    InputError,
    torch.linalg.LinAlgError,  # type: ignore[attr-defined]
    torch.OutOfMemoryError,
)

# Parts of the automatic mode that there were before.
REMOVED_PARTS = frozenset(
    [
        "teachers",
        "consistent",
        "tempering",
        "grouping",
        "soft-labels",
        "redraws",
        "agreement",
        "matching",
        "calibration",
        "window",
        "class-means",
    ]
)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A method with its settings, what it made, and how that validates, by round."""

    method: Condenser
    made: Made
    validation: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """For the provenance; settings are those that differ from their defaults."""
        return {**named(self.method), "validation": self.validation}


def side_by_side(
    jobs: Sequence[Callable[[Progress], None]], device: torch.device, progress: Progress, stage: str
) -> None:
    """Independent jobs: on the cores of a CPU at the same time, on CUDA one after the other."""

    def counted(job: Callable[[Progress], None]) -> Callable[[Progress], None]:
        def run(report: Progress) -> None:
            job(silent)
            report(stage, 1, 1)

        return run

    counting = [counted(job) for job in jobs]
    if device.type == "cpu":
        run_jobs(counting, progress)
        return
    for done, job in enumerate(counting):
        job(part_of(progress, done, len(jobs)))


def validated(made: Made) -> dict[str, float]:
    """What the iterate that was kept scored; nothing where none was looked at."""
    if "validation" not in made.details:
        return {}
    values = made.details["validation"]["values"]
    return {"quick": float(max(value for value in values if value is not None))}


def class_targets(made: Made, classes: int) -> torch.Tensor:
    """Class shares of the nodes; rows of zeros where there is no label."""
    if made.y.ndim == 2:
        return made.y
    known = (made.y >= 0)[:, None]
    return torch.nn.functional.one_hot(made.y.clamp_min(0), classes) * known


def named(method: Condenser) -> dict[str, Any]:
    """A method and those of its settings that differ from their defaults."""
    settings = {
        f.name: getattr(method, f.name)
        for f in fields(method)
        if f.name not in ("nodes", "ratio") and getattr(method, f.name) != f.default
    }
    return {"method": method.name, "settings": settings}
