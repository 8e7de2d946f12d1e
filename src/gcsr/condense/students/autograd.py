"""Any model, by differentiating through the steps: the reference."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.condense.points import Points
from gcsr.equations import cross_entropy, trajectory_distance
from gcsr.models import Model, Params, Topology


@dataclass(frozen=True)
class AutogradStudent:
    """See :class:`~gcsr.condense.students.Student`."""

    model: Model

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
        """The loss, differentiable by autograd."""
        prepared = self.model.prepare(points.x, topology)
        params = tuple(p.detach().requires_grad_() for p in start)
        for _ in range(steps):
            loss = cross_entropy(self.model.logits(params, prepared), targets).sum()
            gradients = torch.autograd.grad(loss, params, create_graph=True)
            params = tuple(p - rate * g for p, g in zip(params, gradients, strict=True))
        return trajectory_distance(params, start, goal)
