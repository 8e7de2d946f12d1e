r"""The generator of SGDD (Yang et al., 2023): a graphon that features modulate.

Two branches of the edge generator's form run side by side: u on pairs of grid coordinates
:math:`(t_i, t_j) \in [-1, 1]^2`, c on pairs of features. After every hidden layer u is multiplied
with c, and the scores are :math:`(1-\epsilon)u + \epsilon c` with :math:`\epsilon = 1/2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.condense.gradient.generator import (
    branch,
    finished,
    first_layer,
    next_layer,
    stacked,
)
from gcsr.devices import stream
from gcsr.models import Params

# The share of the features' branch in the scores.
SHARE = 0.5
# Weights of one branch.
_LENGTH = 9


@dataclass(frozen=True)
class GraphonGenerator:
    """See the module."""

    hidden: int = 128

    def init(self, features: int, seeds: Sequence[int]) -> Params:
        """Weights of the features' branch, then of the grid's."""
        return stacked(
            [
                branch(features, self.hidden, stream(seed, "graphon features"))
                + branch(1, self.hidden, stream(seed, "graphon grid"))
                for seed in seeds
            ]
        )

    def adjacency(self, x: Tensor, params: Params) -> Tensor:
        """A' of every graph."""
        c, u = params[:_LENGTH], params[_LENGTH:]
        grid = torch.linspace(-1, 1, x.shape[-2], dtype=x.dtype, device=x.device).unsqueeze(-1)
        of_features = _first(x, c)
        of_grid = _first(grid, u) * of_features
        of_features = _second(of_features, c)
        of_grid = _second(of_grid, u) * of_features
        scores = (1 - SHARE) * _last(of_grid, u) + SHARE * _last(of_features, c)
        return finished(scores, x.shape[-2])


def _first(inputs: Tensor, params: Params) -> Tensor:
    left, right, scale, shift = params[:4]
    return first_layer((inputs @ left).mT, (inputs @ right).mT, scale, shift)


def _second(pairs: Tensor, params: Params) -> Tensor:
    return next_layer(pairs, *params[4:7])


def _last(pairs: Tensor, params: Params) -> Tensor:
    weight, bias = params[7:]
    return torch.baddbmm(bias, weight, pairs)
