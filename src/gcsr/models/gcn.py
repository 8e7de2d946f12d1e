"""Graph convolutional network (Kipf and Welling, 2017)."""

from __future__ import annotations

from dataclasses import dataclass

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
    in_chunks,
    linear,
    prefers_sparse,
    prepared_hop,
)
from gcsr.models.topology import Topology


@dataclass(frozen=True)
class GCN(Model):
    r""":math:`\hat A\, \sigma(\hat A X W_1 + b_1) W_2 + b_2`; :math:`\hat A X` is computed once.

    The paper's GraphSAGE is the same network (root weight off, weighted sums), so ``sage-paper``
    is this class under another name; GraphSAGE itself is :class:`~gcsr.models.sage.SAGE`.
    """

    relu: bool = True
    name: str = "gcn"

    def prepare(self, x: Tensor, topology: Topology, nodes: Tensor | None = None) -> Prepared:
        """Features after one hop, at the nodes and their neighbors."""
        operator = topology.normalized
        return prepared_hop(x, operator, nodes, operator, sparse=prefers_sparse(x))

    def activations(
        self, params: Params, prepared: Prepared, dropout: Dropout | None = None
    ) -> Tensor:
        """Hidden units at the nodes and their neighbors."""
        w1, b1, _, _ = params
        if prepared.inner is None:
            hidden = hidden_layer(prepared.inputs, w1, b1, relu=self.relu)
        else:
            product = prepared.inner.operator(linear(prepared.inputs, w1))
            hidden = activated(product, b1, relu=self.relu)
        return hidden if dropout is None else dropout(hidden)

    def logits(self, params: Params, prepared: Prepared, dropout: Dropout | None = None) -> Tensor:
        """Class scores."""
        (outer,) = prepared.outer
        return outer.operator(self.scores(params, prepared, dropout)) + params[3]

    def scores(self, params: Params, prepared: Prepared, dropout: Dropout | None = None) -> Tensor:
        """Class scores at the nodes and their neighbors, before the second propagation."""
        w1, b1, w2, _ = params
        inputs, kept = prepared.inputs, torch.is_grad_enabled() or w1.is_cuda
        if prepared.inner is not None and w1.shape[0] > 1 and not kept:
            # One network at a time: hidden units of a large graph take the most memory.
            networks = (tuple(p[i : i + 1] for p in params) for i in range(w1.shape[0]))
            return torch.cat([self.scores(one, prepared, dropout) for one in networks])
        if prepared.inner is None and dropout is None and isinstance(inputs, Tensor):
            return in_chunks(inputs, lambda x: hidden_layer(x, w1, b1, relu=self.relu) @ w2)
        return in_chunks(self.activations(params, prepared, dropout), lambda hidden: hidden @ w2)

    def two_layers(self, operator: Tensor) -> TwoLayers | None:
        """Both layers propagate once."""
        return TwoLayers(operator, operator, bias_propagates=False) if self.relu else None
