"""GraphSAGE (Hamilton et al., 2017) with the mean aggregator, and Chebyshev convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gcsr.models.base import (
    Dropout,
    Model,
    Params,
    Prepared,
    TwoLayers,
    activated,
    hidden_layer,
    linear,
    prepared_hop,
    uniform_layer,
)
from gcsr.models.topology import Operator, Topology
from gcsr.utils.products import is_sparse


@dataclass(frozen=True)
class SAGE(Model):
    r"""Per layer :math:`X W_0 + s T X W_1 + b`; T is the mean over neighbors and s = 1.

    Both weights of a layer are one tensor: stacked by rows in the first layer, ``(2d, h)``, side by
    side in the second, ``(h, 2C)``.
    """

    name: str = "sage"
    sign: ClassVar[float] = 1.0

    def init(self, features: int, classes: int, generator: torch.Generator) -> Params:
        """Two layers, each with a weight for the node and one for its neighbors."""
        w1, b1 = uniform_layer(2 * features, self.hidden_channels, generator, bound_fan=features)
        w2, b2 = uniform_layer(self.hidden_channels, 2 * classes, generator)
        return w1, b1, w2, b2[..., :classes].clone()

    def prepare(self, x: Tensor, topology: Topology, nodes: Tensor | None = None) -> Prepared:
        """Own features beside those of the neighborhood."""
        operator = self._operator(topology)

        def first(x: Tensor) -> Tensor:
            return torch.cat([x, self.sign * operator(x)], -1)

        return prepared_hop(x, operator, nodes, first, sparse=is_sparse(x))

    def logits(self, params: Params, prepared: Prepared, dropout: Dropout | None = None) -> Tensor:
        """Class scores."""
        w1, b1, w2, b2 = params
        if (inner := prepared.inner) is None:
            hidden = hidden_layer(prepared.inputs, w1, b1)
        else:  # sparse features: their products are propagated instead
            own, neighbors = (linear(prepared.inputs, w) for w in w1.chunk(2, -2))
            hidden = activated(inner.pick(own) + self.sign * inner.operator(neighbors), b1)
        if dropout is not None:
            hidden = dropout(hidden)
        own, neighbors = (hidden @ w2).chunk(2, -1)
        (outer,) = prepared.outer
        return outer.pick(own) + self.sign * outer.operator(neighbors) + b2

    @staticmethod
    def _operator(topology: Topology) -> Operator:
        return topology.mean


@dataclass(frozen=True)
class PaperCheby(Model):
    r"""The network the paper calls Cheby: per layer :math:`(X + \hat A X) W + b`.

    One weight shared by both terms and no scaled Laplacian; :math:`\hat A` is Eq. 2 everywhere.
    """

    relu: bool = True
    name: str = "cheby-paper"

    def init(self, features: int, classes: int, generator: torch.Generator) -> Params:
        """Two layers; biases start at zero."""
        w1, b1 = uniform_layer(features, self.hidden_channels, generator)
        w2, b2 = uniform_layer(self.hidden_channels, classes, generator)
        return w1, torch.zeros_like(b1), w2, torch.zeros_like(b2)

    def prepare(self, x: Tensor, topology: Topology, nodes: Tensor | None = None) -> Prepared:
        """The sum of the features and their first hop."""
        operator = topology.normalized
        return prepared_hop(x, operator, nodes, lambda x: x + operator(x), sparse=is_sparse(x))

    def logits(self, params: Params, prepared: Prepared, dropout: Dropout | None = None) -> Tensor:
        """Class scores."""
        w1, b1, w2, b2 = params
        if (inner := prepared.inner) is None:
            hidden = hidden_layer(prepared.inputs, w1, b1, relu=self.relu)
        else:  # sparse features: their products are propagated instead
            product = linear(prepared.inputs, w1)
            hidden = activated(inner.pick(product) + inner.operator(product), b1, relu=self.relu)
        if dropout is not None:
            hidden = dropout(hidden)
        scores = hidden @ w2
        (outer,) = prepared.outer
        return outer.pick(scores) + outer.operator(scores) + b2

    def two_layers(self, operator: Tensor) -> TwoLayers | None:
        """Both layers add a node to its neighborhood."""
        # Made on the device: a copy from the host cannot be captured in a CUDA graph.
        nodes = operator.shape[-1]
        both = operator + torch.eye(nodes, dtype=operator.dtype, device=operator.device)
        return TwoLayers(both, both, bias_propagates=False) if self.relu else None


@dataclass(frozen=True)
class Cheby(SAGE):
    r"""Defferrard et al. (2016), K = 2: :math:`X W_0 + \tilde L X W_1 + b` with
    :math:`\tilde L = 2L/\lambda_{max} - I = -D^{-1/2} A D^{-1/2}` for :math:`\lambda_{max} = 2`.
    """

    name: str = "cheby"
    sign: ClassVar[float] = -1.0

    @staticmethod
    def _operator(topology: Topology) -> Operator:
        return topology.loopless
