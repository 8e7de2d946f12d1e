"""Adam (Kingma and Ba, 2015) in place, without anything that waits for the device."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gcsr.models.base import Params

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Adam on tensors with a leading dimension of graphs.

    ``lr`` is a number, or a tensor with one number per graph that broadcasts over each parameter.
    """

    def __init__(self, params: Params, lr: float | Tensor) -> None:
        self.params, self.lr = params, lr
        self.first = tuple(torch.zeros_like(p) for p in params)
        self.second = tuple(torch.zeros_like(p) for p in params)
        self.count = params[0].new_zeros((params[0].shape[0], 1, 1))
        # Everything a step changes.
        self.buffers = (*self.params, *self.first, *self.second, self.count)

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
        size = self.lr * one * late / (1 - BETA1**self.count)
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


class FusedAdam:
    """Adam on one tensor ``(graphs, n', d)`` with torch's fused kernel."""

    def __init__(self, x: Tensor) -> None:
        self._x = x
        self._first, self._second = torch.zeros_like(x), torch.zeros_like(x)
        self._count = torch.zeros((), dtype=torch.float32, device=x.device)

    @property
    def moments(self) -> tuple[Tensor, ...]:
        """Everything a step changes, apart from the tensor itself."""
        return self._first, self._second, self._count

    def step(self, gradient: Tensor, lrs: Sequence[float]) -> None:
        """One step with one learning rate per graph."""
        self._count += 1
        gradient = gradient.contiguous()
        for g, lr in enumerate(lrs):
            moments = [self._first[g]], [self._second[g]]
            fused_adam([self._x[g]], [gradient[g]], *moments, [self._count], lr=lr)


def fused_adam(
    params: list[Tensor],
    gradients: list[Tensor],
    first: list[Tensor],
    second: list[Tensor],
    steps: list[Tensor],
    *,
    lr: float | Tensor,
    weight_decay: float = 0.0,
) -> None:
    """``torch.optim.Adam(fused=True)`` without its class, whose first use imports the compiler.

    It takes one pass over memory. ``steps`` count this step already. Gradients must have the memory
    layout of the parameters.
    """
    torch._fused_adam_(
        params,
        gradients,
        first,
        second,
        [],
        steps,
        lr=lr,
        beta1=BETA1,
        beta2=BETA2,
        weight_decay=weight_decay,
        eps=EPSILON,
        amsgrad=False,
        maximize=False,
    )


def adam_step(
    p: Tensor, gradient: Tensor, first: Tensor, second: Tensor, *, lr: float, steps: int
) -> None:
    """One step on one tensor, with the number of steps on the host."""
    first.lerp_(gradient, 0.1)
    second.mul_(BETA2).addcmul_(gradient, gradient, value=0.001)
    scale = second.sqrt().div_((1 - BETA2**steps) ** 0.5).add_(EPSILON)
    p.addcdiv_(first, scale, value=-lr / (1 - BETA1**steps))
