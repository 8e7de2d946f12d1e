"""Simple graph convolution (Wu et al., 2019), the two-layer form of the paper."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gcsr.models.base import (
    Dropout,
    Model,
    Params,
    Prepared,
    TwoLayers,
    first_inputs,
    in_chunks,
    linear,
    rows,
    uniform_layer,
)
from gcsr.models.mlp import affine_relu_affine
from gcsr.models.topology import Limited, Operator, Topology, repeated
from gcsr.utils.products import is_sparse


@dataclass(frozen=True)
class SGC(Model):
    r""":math:`\hat A^2 [\sigma(X W_1 + b_1) W_2 + b_2]`: biases come *before* propagation.

    With ``relu=False`` (the condensing model of the paper) everything is linear and propagation is
    done once: with :math:`H = \hat A^2 X` and :math:`s = \hat A^2 1` the scores are
    :math:`(H W_1 + s b_1) W_2 + s b_2`.
    """

    relu: bool = True
    hops: int = 2
    name: str = "sgc"

    def prepare(self, x: Tensor, topology: Topology, nodes: Tensor | None = None) -> Prepared:
        """Linear: the propagated features. Otherwise: the operators from the inside out."""
        operator = topology.normalized
        if self.relu:
            return propagated_after(x, operator, self.hops, nodes)
        ones = torch.ones((*x.shape[:-1], 1), dtype=x.dtype, device=x.device)
        for _ in range(self.hops):
            ones = operator(ones)
        prepared = propagated_before(x, operator, self.hops, nodes)
        return replace(prepared, ones=rows(ones, nodes))

    def logits(self, params: Params, prepared: Prepared, dropout: Dropout | None = None) -> Tensor:
        """Class scores."""
        if prepared.ones is None:
            return in_turn(prepared.outer, affine_relu_affine(params, prepared.inputs, dropout))
        w1, b1, w2, b2 = params
        if dropout is None:
            # Multiplying the weights first leaves C columns instead of the hidden width: about ten
            # times less work for an expert's epoch, forwards and backwards.
            both = w1 @ w2
            inputs = prepared.inputs
            if isinstance(inputs, Tensor):
                products = in_chunks(inputs, lambda x: linear(x, both))
            else:
                products = in_turn(prepared.outer, linear(inputs, both))
            return products + prepared.ones * (b1 @ w2 + b2)
        product = in_turn(prepared.outer, linear(prepared.inputs, w1))
        hidden = dropout(product + prepared.ones * b1)
        return hidden @ w2 + prepared.ones * b2

    def two_layers(self, operator: Tensor) -> TwoLayers | None:
        """A perceptron whose scores are propagated."""
        if not self.relu:
            return None
        return TwoLayers(None, torch.linalg.matrix_power(operator, self.hops), bias_propagates=True)


@dataclass(frozen=True)
class SingleSGC(Model):
    r""":math:`\hat A^2 X W + b` (Wu et al., 2019), as gradient matching uses it."""

    hops: int = 2
    name: str = "sgc-single"

    def init(self, features: int, classes: int, generator: torch.Generator) -> Params:
        """One affine layer."""
        return uniform_layer(features, classes, generator)

    def prepare(self, x: Tensor, topology: Topology, nodes: Tensor | None = None) -> Prepared:
        """The propagated features."""
        return propagated_before(x, topology.normalized, self.hops, nodes)

    def logits(self, params: Params, prepared: Prepared, dropout: Dropout | None = None) -> Tensor:
        """Class scores; there is no hidden layer to drop units of."""
        weight, bias = params
        return in_turn(prepared.outer, linear(prepared.inputs, weight)) + bias


def propagated_before(x: Tensor, operator: Operator, hops: int, nodes: Tensor | None) -> Prepared:
    """Propagated features of a linear model; sparse ones are multiplied first."""
    if is_sparse(x):
        return propagated_after(x, operator, hops, nodes)
    for _ in range(hops):
        x = operator(x)
    return Prepared(rows(x, nodes))


def propagated_after(x: Tensor, operator: Operator, hops: int, nodes: Tensor | None) -> Prepared:
    """Products with the features themselves, which are then propagated."""
    outer = repeated(operator, hops, nodes)
    return Prepared(first_inputs(x, outer[0].support if outer else nodes), outer=outer)


def in_turn(outer: tuple[Limited, ...], signal: Tensor) -> Tensor:
    """A signal after one hop after the other."""
    for limited in outer:
        signal = limited.operator(signal)
    return signal
