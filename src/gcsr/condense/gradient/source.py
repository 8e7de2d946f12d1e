"""Which form the real side takes for a network and a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.condense.gradient.learners import Reach
from gcsr.condense.gradient.neighbours import walks_from
from gcsr.condense.gradient.real import (
    ClassSampler,
    ConstantRows,
    Draws,
    Neighbourhoods,
    RealSide,
    Surroundings,
)
from gcsr.models import SparseTopology
from gcsr.models.sparse import SparseOperator
from gcsr.views import VisibleGraph

Neighbours = Literal["auto", "all", "sampled"]
# From this many rows on, all neighbours of the batches are too many for a network with a ReLU.
MANY_ROWS = 200_000


@dataclass(frozen=True)
class RealSettings:
    """How the real graph is seen: without edges (DCG), and with which neighbours."""

    edges: bool
    neighbours: Neighbours
    fan_outs: tuple[int, int]
    batch: int


@dataclass(frozen=True, eq=False)
class RealSource:
    """What every group of graphs shares of the real graph; made once."""

    visible: VisibleGraph
    reach: Reach
    settings: RealSettings
    classes: Tensor
    device: torch.device
    dtype: torch.dtype
    features: Tensor
    operator: SparseOperator
    neighbours: Literal["all", "sampled"]

    @classmethod
    def of(
        cls,
        visible: VisibleGraph,
        reach: Reach,
        settings: RealSettings,
        classes: Tensor,
        device: torch.device,
        dtype: torch.dtype,
    ) -> RealSource:
        """Decide about neighbours and propagate features as far as weights do not matter."""
        operator = SparseTopology(visible.adjacency, device, dtype).normalised
        if not isinstance(operator, SparseOperator):
            raise TypeError("the real graph is sparse")
        sampler = ClassSampler.of(visible, classes, settings.batch)
        how = _neighbours(visible, operator.matrix, reach, settings, sampler)
        x = visible.x.to(device, dtype)
        if reach.bias == "propagated":
            x = torch.cat([x, x.new_ones((x.shape[0], 1))], 1)
        if settings.edges and how == "all":
            for _ in range(reach.inner):
                x = operator(x)
        return cls(visible, reach, settings, classes, device, dtype, x, operator, how)

    def side(self, draws: Draws) -> RealSide:
        """The real side for some graphs that are condensed together."""
        sampler = ClassSampler.of(self.visible, self.classes, self.settings.batch)
        num_classes = self.visible.num_classes
        if not self.settings.edges or (self.neighbours == "all" and self.reach.outer == 0):
            rows = self.features[self.visible.train.to(self.device)]
            if self.reach.bias == "ones":
                rows = torch.cat([rows, rows.new_ones((rows.shape[0], 1))], 1)
            return ConstantRows(rows, sampler, draws, num_classes)
        hops = self.reach.outer + (self.reach.inner if self.neighbours == "sampled" else 0)
        fan_outs: tuple[int | None, ...] = (None,) * hops
        if self.neighbours == "sampled":
            fan_outs = self.settings.fan_outs[:hops]
        around = Surroundings(
            self.features.cpu().numpy(),
            self.operator.matrix,
            np.asarray(self.visible.train),
            self.reach,
            fan_outs,
        )
        return Neighbourhoods(around, sampler, draws, num_classes, self.device, self.dtype)


def _neighbours(
    visible: VisibleGraph,
    operator: sp.csr_array,
    reach: Reach,
    settings: RealSettings,
    sampler: ClassSampler,
) -> Literal["all", "sampled"]:
    if settings.neighbours != "auto":
        return settings.neighbours
    if reach.outer == 0:
        return "all"
    batch = torch.cat([group[: settings.batch] for group in sampler.members])
    nodes = np.asarray(visible.train[batch])
    return "all" if walks_from(operator, nodes, reach.outer) <= MANY_ROWS else "sampled"
