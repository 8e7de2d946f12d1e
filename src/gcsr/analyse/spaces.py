"""Which features real and condensed nodes are compared in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gcsr.condensed import CondensedGraph
from gcsr.equations import normalised_adjacency, propagate
from gcsr.errors import require, require_one_of
from gcsr.models import SparseTopology
from gcsr.views import VisibleGraph

Space = Literal["features", "propagated", "start"]
SPACES: tuple[Space, ...] = ("features", "propagated", "start")


@dataclass(frozen=True)
class FeatureSpace:
    r"""Where nodes are looked at.

    - ``features``: X and X', as they are.
    - ``propagated``: :math:`\hat A^k X` and :math:`\hat A'^k X'`: what a network of k hops sees.
    - ``start``: :math:`\hat A^k X` and X': where condensed features of GCSR begin (Eq. 3-4).
    """

    name: Space = "features"
    hops: int = 2

    def __post_init__(self) -> None:
        require_one_of("space", self.name, SPACES)
        whole = isinstance(self.hops, int) and not isinstance(self.hops, bool)
        require(
            whole and self.hops >= 0,
            f"hops: {self.hops!r} is not accepted; a whole number >= 0 is.",
        )

    def real(self, visible: VisibleGraph) -> Tensor:
        """The rows of the real nodes, ``(N, d)``."""
        x = visible.x
        if self.name == "features" or self.hops == 0:
            return x
        operator = SparseTopology(visible.adjacency, torch.device("cpu")).normalised
        for _ in range(self.hops):
            x = operator(x)
        return x

    def condensed(self, small: CondensedGraph) -> Tensor:
        """The rows of the condensed nodes, ``(n', d)``."""
        x = small.x.detach().cpu()
        if self.name != "propagated":
            return x
        adjacency = small.adjacency.detach().cpu().to(x.dtype)
        return propagate(normalised_adjacency(adjacency), x, self.hops)
