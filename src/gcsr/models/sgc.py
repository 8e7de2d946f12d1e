"""Perceptrons whose scores are propagated: the paper's two-layer SGC (Wu et al., 2019), and APPNP."""

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
    first_inputs,
    in_chunks,
    linear,
    rows,
)
from gcsr.models.mlp import affine_relu_affine
from gcsr.models.topology import Limited, Topology, repeated
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
        ones = None
        if not self.relu:
            ones = torch.ones((*x.shape[:-1], 1), dtype=x.dtype, device=x.device)
            for _ in range(self.hops):
                ones = operator(ones)
            ones = rows(ones, nodes)
            if not is_sparse(x):
                for _ in range(self.hops):
                    x = operator(x)
                return Prepared(rows(x, nodes), ones=ones)
        # Products with the features themselves are propagated.
        outer = repeated(operator, self.hops, nodes)
        return Prepared(first_inputs(x, outer[0].support if outer else nodes), outer, ones=ones)

    def logits(self, params: Params, prepared: Prepared, dropout: Dropout | None = None) -> Tensor:
        """Class scores."""
        if prepared.ones is None:
            return _in_turn(prepared.outer, affine_relu_affine(params, prepared.inputs, dropout))
        w1, b1, w2, b2 = params
        if dropout is None:
            # Multiplying the weights first leaves C columns instead of the hidden width: about ten
            # times less work for an expert's epoch, forwards and backwards.
            both = w1 @ w2
            inputs = prepared.inputs
            if isinstance(inputs, Tensor):
                products = in_chunks(inputs, lambda x: linear(x, both))
            else:
                products = _in_turn(prepared.outer, linear(inputs, both))
            return products + prepared.ones * (b1 @ w2 + b2)
        product = _in_turn(prepared.outer, linear(prepared.inputs, w1))
        hidden = dropout(product + prepared.ones * b1)
        return hidden @ w2 + prepared.ones * b2

    def two_layers(self, operator: Tensor) -> TwoLayers | None:
        """A perceptron whose scores are propagated."""
        if not self.relu:
            return None
        return TwoLayers(None, torch.linalg.matrix_power(operator, self.hops), bias_propagates=True)


@dataclass(frozen=True)
class APPNP(Model):
    r"""Personalized propagation of neural predictions (Gasteiger et al., 2019).

    :math:`H = MLP(X)`, then K times :math:`Z \leftarrow (1-\alpha)\hat A Z + \alpha H`.
    """

    relu: bool = True
    steps: int = 2
    teleport: float = 0.1
    name: str = "appnp"

    def prepare(self, x: Tensor, topology: Topology, nodes: Tensor | None = None) -> Prepared:
        """The features that the propagation steps reach."""
        outer = repeated(topology.normalized, self.steps, nodes)
        return Prepared(first_inputs(x, outer[0].support), outer=outer)

    def logits(self, params: Params, prepared: Prepared, dropout: Dropout | None = None) -> Tensor:
        """Class scores."""
        predictions = affine_relu_affine(params, prepared.inputs, dropout, relu=self.relu)
        scores = predictions
        for limited in prepared.outer:
            predictions = limited.pick(predictions)
            scores = (1 - self.teleport) * limited.operator(scores) + self.teleport * predictions
        return scores

    def two_layers(self, operator: Tensor) -> TwoLayers | None:
        """A perceptron whose scores are propagated, with teleport."""
        if not self.relu:
            return None
        identity = torch.eye(operator.shape[-1], dtype=operator.dtype, device=operator.device)
        reach = identity
        for _ in range(self.steps):
            reach = (1 - self.teleport) * (operator @ reach) + self.teleport * identity
        return TwoLayers(None, reach, bias_propagates=True)


def _in_turn(outer: tuple[Limited, ...], signal: Tensor) -> Tensor:
    """A signal after one hop after the other."""
    for limited in outer:
        signal = limited.operator(signal)
    return signal
