r"""Statistics of classes that a condensed graph shares with the real one (SimGC; Xiao et al., 2024)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# Differences of features that are in memory at once.
AT_ONCE = 2**24


def class_moments(rows: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    r"""Mean and deviation (with :math:`n_c - 1`) of every class.

    ``rows`` are ``(..., n, d)``; ``share`` is ``(classes, n)``, one over the size of the class for its
    nodes and 0 for others. Every node has one class. A class of one node has the deviation 0.
    """
    mean = share @ rows
    members = (share > 0).to(rows.dtype)
    size = members.sum(-1, keepdim=True)
    variance = share @ (rows - members.mT @ mean).square() * (size / (size - 1).clamp_min(1))
    tiny = torch.finfo(rows.dtype).tiny
    # A root has no slope at zero.
    deviation = variance.clamp_min(tiny).sqrt() * (variance > tiny)
    return mean, deviation


def alignment(
    condensed: tuple[Tensor, Tensor], real: tuple[Tensor, Tensor], sizes: Tensor
) -> Tensor:
    r"""Mean over classes of :math:`\mathrm{mse}(\mu_c, \mu'_c) + \mathrm{mse}(\sigma_c, \sigma'_c)`.

    Weights are the ``sizes`` of the condensed classes. Deviations count for classes of two nodes or
    more.
    """
    mean, deviation = ((a - b).square().mean(-1) for a, b in zip(condensed, real, strict=True))
    weights = sizes.to(mean.dtype)
    total = ((mean + torch.where(sizes > 1, deviation, 0)) * weights).sum(-1)
    return total / weights.sum()


def smoothness(x: Tensor, adjacency: Tensor) -> Tensor:
    r""":math:`-\sum_{ij} A_{ij} k(x_i, x_j) / \sum_{ij} A_{ij}`: low if edges join similar nodes.

    :math:`k(x, y) = \frac1d \sum_m \exp(-\frac12 (x_m - y_m)^2)`.
    """
    kernel: Tensor = _Similarity.apply(x)  # type: ignore[no-untyped-call]
    weights = adjacency.sum((-2, -1)).clamp_min(torch.finfo(x.dtype).tiny)
    return -(adjacency * kernel).sum((-2, -1)) / weights


class _Similarity(torch.autograd.Function):
    """k of all pairs, without keeping the differences of their features."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        kernel = x.new_zeros((*x.shape[:-1], x.shape[-2]))
        for part in _parts(x):
            kernel += _differences(part).square_().mul_(-0.5).exp_().sum(-1)
        return kernel / x.shape[-1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        both = ((gradient + gradient.mT) / x.shape[-1]).unsqueeze(-1)
        slopes = []
        for part in _parts(x):
            gap = _differences(part)
            slopes.append(-(gap.square().mul_(-0.5).exp_() * gap * both).sum(-2))
        return torch.cat(slopes, -1)


def _parts(x: Tensor) -> tuple[Tensor, ...]:
    parts: tuple[Tensor, ...] = x.split(max(1, AT_ONCE // (x.shape[-2] * x[..., 0].numel())), -1)
    return parts


def _differences(x: Tensor) -> Tensor:
    return x.unsqueeze(-2) - x.unsqueeze(-3)
