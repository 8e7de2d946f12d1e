"""Simple graph convolution with a single layer (Wu et al., 2019), as gradient matching uses it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.models.base import Dropout, Params, Prepared, linear, rows, uniform_layer
from gcsr.models.topology import Topology


@dataclass(frozen=True)
class SingleSGC:
    r""":math:`\hat A^2 X W + b`: one linear map from features to classes, its bias not propagated."""

    hops: int = 2
    name: str = "sgc-single"

    def init(self, features: int, classes: int, generator: torch.Generator) -> Params:
        """One affine layer."""
        return uniform_layer(features, classes, generator)

    def prepare(self, x: Tensor, topology: Topology, nodes: Tensor | None = None) -> Prepared:
        """The propagated features."""
        operator = topology.normalized
        for _ in range(self.hops):
            x = operator(x)
        return Prepared(rows(x, nodes))

    def logits(self, params: Params, prepared: Prepared, dropout: Dropout | None = None) -> Tensor:
        """Class scores; there is no hidden layer to drop units of."""
        weight, bias = params
        return linear(prepared.inputs, weight) + bias
