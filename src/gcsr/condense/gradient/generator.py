r"""The edge generator of GCond (Jin et al., 2022): an MLP on pairs of condensed nodes.

.. math:: A'_{ij} = \mathrm{sigmoid}\bigl((q_{ij} + q_{ji})/2\bigr), \qquad
          q_{ij} = \mathrm{MLP}_\Phi([x'_i \Vert x'_j]), \qquad A'_{ii} = 0,

2d -> h -> h -> 1 with batch normalisation over all n'² pairs and a ReLU after the first two layers;
statistics are those of the batch whenever the generator is used. The first layer is
:math:`x_iW_a + x_jW_b`, and the statistics of sums over all pairs are sums of statistics, so that
everything up to the first ReLU costs n' rows instead of n'². Biases in front of a normalisation
cancel and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from gcsr.devices import stream
from gcsr.models import Params
from gcsr.models.base import uniform_layer

EPSILON = 1e-5


class Generator(Protocol):
    """A learned map from features to a symmetric A' with entries between 0 and 1."""

    def init(self, features: int, seeds: Sequence[int]) -> Params:
        """Fresh weights, one set per graph, on the CPU."""
        ...

    def adjacency(self, x: Tensor, params: Params) -> Tensor:
        """A' of every graph; differentiable in both."""
        ...


@dataclass(frozen=True)
class EdgeGenerator:
    """See the module."""

    hidden: int = 128

    def init(self, features: int, seeds: Sequence[int]) -> Params:
        """As ``torch.nn.Linear`` and ``BatchNorm1d`` begin."""
        return stacked([branch(features, self.hidden, stream(s, "edge generator")) for s in seeds])

    def adjacency(self, x: Tensor, params: Params) -> Tensor:
        """A' of every graph."""
        left, right, *rest = params
        scale, shift, middle, scale2, shift2, last, bias = rest
        pairs = first_layer((x @ left).mT, (x @ right).mT, scale, shift)
        pairs = next_layer(pairs, middle, scale2, shift2)
        return finished(torch.baddbmm(bias, last, pairs), x.shape[-2])


def branch(features: int, hidden: int, generator: torch.Generator) -> Params:
    """Weights of one branch; channels come first but for the two that features are multiplied with."""
    first, _ = uniform_layer(2 * features, hidden, generator)
    middle, _ = uniform_layer(hidden, hidden, generator)
    last, bias = uniform_layer(hidden, 1, generator)
    norm = (torch.ones(1, hidden, 1), torch.zeros(1, hidden, 1))
    return (
        first[:, :features].contiguous(),
        first[:, features:].contiguous(),
        *norm,
        middle.mT.contiguous(),
        *(t.clone() for t in norm),
        last.mT.contiguous(),
        bias,
    )


def stacked(graphs: Sequence[Params]) -> Params:
    """Weights of several graphs along the first dimension."""
    return tuple(torch.cat(parts) for parts in zip(*graphs, strict=True))


def first_layer(left: Tensor, right: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """ReLU of the normalised ``left_i + right_j``: ``(graphs, h, n)`` twice to ``(graphs, h, n²)``."""
    left = left - left.mean(-1, keepdim=True)
    right = right - right.mean(-1, keepdim=True)
    variance = left.square().mean(-1, keepdim=True) + right.square().mean(-1, keepdim=True)
    factor = scale * (variance + EPSILON).rsqrt()
    pairs = (left * factor + shift).unsqueeze(-1) + (right * factor).unsqueeze(-2)
    return pairs.relu().flatten(-2)


def next_layer(pairs: Tensor, weight: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Linear map, normalisation over all pairs, ReLU."""
    mapped = torch.bmm(weight, pairs)
    if mapped.shape[-1] == 1:
        # One pair is its own mean; the kernel below refuses it.
        return (shift + 0 * mapped).relu()
    flat = torch.nn.functional.batch_norm(
        mapped.flatten(0, 1).unsqueeze(0),
        None,
        None,
        scale.flatten(),
        shift.flatten(),
        training=True,
        eps=EPSILON,
    )
    return flat.view_as(mapped).relu()


def finished(scores: Tensor, nodes: int) -> Tensor:
    """From scores of all pairs ``(graphs, 1, n²)`` to A'."""
    q = scores.view(-1, nodes, nodes)
    off_diagonal = 1 - torch.eye(nodes, dtype=q.dtype, device=q.device)
    return ((q + q.mT) / 2).sigmoid() * off_diagonal
