"""What a student is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from gcsr.condense.points import Points
from gcsr.models import Params, Topology


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a student learns from, where it starts and where it should end.

    Attributes:
        points, topology, targets: the condensed graphs: features, structure, class shares.
        start, goal: the expert's weights now and M epochs later.
        steps: N.
        rate: the rate of the student's SGD, ``(graphs, 1, 1)``.
    """

    points: Points
    topology: Topology
    targets: Tensor
    start: Params
    goal: Params
    steps: int
    rate: Tensor

    @property
    def step_size(self) -> Tensor:
        """The rate over n': what multiplies a sum over nodes in place of their mean."""
        return self.rate / self.points.x.shape[-2]


class Student(Protocol):
    """The matching loss of Algorithm 1 (lines 6-11), one value per condensed graph."""

    def __call__(self, lesson: Lesson) -> Tensor:
        """Distance from the goal after the steps, relative to the expert's own way there."""
        ...
