"""Personalized propagation of neural predictions (Gasteiger et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.models.base import Dropout, Model, Params, Prepared, TwoLayers, first_inputs
from gcsr.models.mlp import affine_relu_affine
from gcsr.models.topology import Topology, repeated


@dataclass(frozen=True)
class APPNP(Model):
    r""":math:`H = MLP(X)`, then K times :math:`Z \leftarrow (1-\alpha)\hat A Z + \alpha H`."""

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
