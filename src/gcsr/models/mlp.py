"""Multilayer perceptron: ignores the graph everywhere."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gcsr.models.base import (
    Dropout,
    Model,
    Params,
    Prepared,
    TwoLayers,
    first_inputs,
    hidden_layer,
    in_chunks,
)
from gcsr.models.sparse import SparseOperator
from gcsr.models.topology import Topology


@dataclass(frozen=True)
class MLP(Model):
    r""":math:`\sigma(X W_1 + b_1) W_2 + b_2`."""

    name: str = "mlp"

    def prepare(self, x: Tensor, topology: Topology, nodes: Tensor | None = None) -> Prepared:
        """The features of the nodes asked for."""
        return Prepared(first_inputs(x, nodes))

    def logits(self, params: Params, prepared: Prepared, dropout: Dropout | None = None) -> Tensor:
        """Class scores."""
        return affine_relu_affine(params, prepared.inputs, dropout)

    def two_layers(self, operator: Tensor) -> TwoLayers:
        """No propagation at all."""
        return TwoLayers(None, None, bias_propagates=True)


def affine_relu_affine(
    params: Params, inputs: Tensor | SparseOperator, dropout: Dropout | None, *, relu: bool = True
) -> Tensor:
    """The perceptron that MLP, SGC and APPNP share."""
    w1, b1, w2, b2 = params
    if dropout is None and isinstance(inputs, Tensor):
        return in_chunks(inputs, lambda x: hidden_layer(x, w1, b1, relu=relu) @ w2) + b2
    hidden = hidden_layer(inputs, w1, b1, relu=relu)
    if dropout is not None:
        hidden = dropout(hidden)
    return in_chunks(hidden, lambda part: part @ w2) + b2
