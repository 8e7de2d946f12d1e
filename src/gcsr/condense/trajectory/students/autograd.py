"""Any model, by differentiating through the steps: the reference."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.condense.trajectory.students.base import Lesson
from gcsr.equations import cross_entropy, trajectory_distance
from gcsr.models import Model


@dataclass(frozen=True)
class AutogradStudent:
    """See :class:`~gcsr.condense.trajectory.students.Student`."""

    model: Model

    def __call__(self, lesson: Lesson) -> Tensor:
        """The loss, differentiable by autograd."""
        prepared = self.model.prepare(lesson.points.x, lesson.topology)
        params = tuple(p.detach().requires_grad_() for p in lesson.start)
        for _ in range(lesson.steps):
            loss = cross_entropy(self.model.logits(params, prepared), lesson.targets).sum()
            gradients = torch.autograd.grad(loss, params, create_graph=True)
            params = tuple(p - lesson.rate * g for p, g in zip(params, gradients, strict=True))
        return trajectory_distance(params, lesson.start, lesson.goal)
