r"""Distances between the gradients of a network on two graphs (Zhao et al., 2021; Jin et al., 2022).

A weight ``(in, out)`` is compared per *output unit*, column by column. All that a distance needs of two
gradients are inner products of their columns, so that gradients which are known only as products of
smaller matrices never have to be written out. Gradients of biases take no part.
"""

from __future__ import annotations

import torch
from torch import Tensor

# What is added to the product of two norms.
SMOOTHING = 1e-6


def unit_products(first: Tensor, second: Tensor) -> Tensor:
    """Inner products of the columns of two gradients ``(..., in, out)``, one per output unit."""
    return (first * second).sum(-2)


def cosine_distance(inner: Tensor, ours: Tensor, theirs: Tensor) -> Tensor:
    r""":math:`\sum_j 1 - \langle a_j, b_j\rangle / (|a_j||b_j| + 10^{-6})` over output units j.

    ``inner`` are the inner products, ``ours`` and ``theirs`` the squared norms, each ``(..., out)``.
    """
    return (1 - inner / (_root(ours) * _root(theirs) + SMOOTHING)).sum(-1)


def squared_distance(difference: Tensor) -> Tensor:
    r""":math:`\sum_j |a_j - b_j|^2` from the squared norms of the columns of the difference."""
    return difference.sum(-1)


def _root(squared: Tensor) -> Tensor:
    # A root has no slope at zero, where a unit that is never active has its gradient.
    return squared.clamp_min(torch.finfo(squared.dtype).tiny).sqrt()
