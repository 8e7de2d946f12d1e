"""GraphSAGE (Hamilton et al., 2017) with the mean aggregator."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.models.base import Dropout, Params, Prepared
from gcsr.models.pair import pair_layers, pair_logits, prepare_pair
from gcsr.models.topology import Topology


@dataclass(frozen=True)
class SAGE:
    r"""Per layer :math:`X W_0 + \bar X W_1 + b` with :math:`\bar X` the mean over neighbors."""

    hidden_channels: int = 256
    name: str = "sage"

    def init(self, features: int, classes: int, generator: torch.Generator) -> Params:
        """Two layers, each with a weight for the node and one for its neighbors."""
        return pair_layers(features, self.hidden_channels, classes, generator)

    def prepare(self, x: Tensor, topology: Topology, nodes: Tensor | None = None) -> Prepared:
        """Own features beside the neighbors' mean."""
        return prepare_pair(x, topology.mean, nodes, sign=1.0)

    def logits(self, params: Params, prepared: Prepared, dropout: Dropout | None = None) -> Tensor:
        """Class scores."""
        return pair_logits(params, prepared, dropout, sign=1.0)
