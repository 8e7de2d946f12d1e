"""What a student is."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from gcsr.condense.points import Points
from gcsr.models import Params, Topology


class Student(Protocol):
    """The matching loss of Algorithm 1 (lines 6-11), one value per condensed graph."""

    def __call__(
        self,
        points: Points,
        topology: Topology,
        targets: Tensor,
        start: Params,
        goal: Params,
        *,
        steps: int,
        rate: float,
    ) -> Tensor:
        """Distance from ``goal`` after ``steps`` of SGD from ``start``, relative to the expert's."""
        ...
