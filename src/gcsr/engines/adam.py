"""Adam on tensors with a leading dimension of graphs, without anything that makes a device wait."""

from __future__ import annotations

import torch
from torch import Tensor

from gcsr.models.base import Params

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Updates ``params`` in place.

    ``rate`` is a number, or a tensor with one rate per graph that broadcasts over each parameter.
    """

    def __init__(self, params: Params, rate: float | Tensor) -> None:
        self.params, self.rate = params, rate
        self.first = tuple(torch.zeros_like(p) for p in params)
        self.second = tuple(torch.zeros_like(p) for p in params)
        self.count = params[0].new_zeros((params[0].shape[0], 1, 1))

    @property
    def buffers(self) -> tuple[Tensor, ...]:
        """Everything a step changes."""
        return (*self.params, *self.first, *self.second, self.count)

    def reset(self) -> None:
        """As if no step had been taken."""
        for moment in (*self.first, *self.second, self.count):
            moment.zero_()

    def step(self, gradients: Params, allowed: Tensor | None = None) -> None:
        """One step; graphs for which ``allowed`` is 0 stay as they are, moments included."""
        one: float | Tensor = 1.0
        if allowed is not None:
            one = allowed.view(-1, 1, 1)
            gradients = tuple(g.nan_to_num(0, 0, 0) for g in gradients)
        self.count += one
        late = (1 - BETA2**self.count).sqrt()
        size = self.rate * one * late / (1 - BETA1**self.count)
        epsilon = EPSILON * late
        if allowed is not None:
            # Before a graph's first step both are 0/0.
            size, epsilon = size.nan_to_num(0, 0, 0), epsilon.clamp_min(EPSILON**2)
        for p, g, m, v in zip(self.params, gradients, self.first, self.second, strict=True):
            if allowed is None:
                m.lerp_(g, 1 - BETA1)
                v.mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
            else:
                m.add_((g - m) * ((1 - BETA1) * one))
                v.add_((g * g - v) * ((1 - BETA2) * one))
            p.sub_((m / v.sqrt().add_(epsilon)).mul_(size))
