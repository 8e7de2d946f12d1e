"""Graph attention network (Velickovic et al., 2018), for testing."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.models.base import Dropout, Model, Params, Prepared, linear, uniform_layer
from gcsr.models.topology import IdentityOperator, Limited, Topology
from gcsr.utils.errors import require

SLOPE = 0.2


@dataclass(frozen=True)
class GAT(Model):
    r"""Two attention layers: ``heads`` heads side by side, then one.

    .. math:: \alpha_{ij} \propto w_{ij} \exp(\mathrm{LeakyReLU}(a^\top [W x_i \Vert W x_j]))

    normalized over the neighbors j of i and i itself. The edge weight :math:`w_{ij}` is one on an
    unweighted graph, which gives the published network; on a condensed graph, where every pair of
    nodes is joined, it is what keeps the structure.
    """

    heads: int = 8
    name: str = "gat"

    def init(self, features: int, classes: int, generator: torch.Generator) -> Params:
        """Per layer a weight, a bias and the two halves of the attention vector of every head."""
        require(
            self.hidden_channels >= self.heads,
            f"hidden_channels must be >= {self.heads} for gat, got {self.hidden_channels}.",
        )
        width = self.hidden_channels // self.heads
        w1, b1 = uniform_layer(features, self.heads * width, generator)
        a1, _ = uniform_layer(width, 2 * self.heads, generator)
        w2, b2 = uniform_layer(self.heads * width, classes, generator)
        a2, _ = uniform_layer(classes, 2, generator)
        return w1, b1, a1, w2, b2, a2

    def prepare(self, x: Tensor, topology: Topology, nodes: Tensor | None = None) -> Prepared:
        """The edge list; attention is computed everywhere and read at the nodes asked for."""
        own = None if nodes is None else nodes.to(x.device)
        return Prepared(x, outer=(Limited(IdentityOperator(), own=own),), edges=topology.edges())

    def logits(self, params: Params, prepared: Prepared, dropout: Dropout | None = None) -> Tensor:
        """Class scores."""
        if prepared.edges is None:
            raise TypeError("GAT needs inputs that GAT prepared")
        w1, b1, a1, w2, b2, a2 = params
        hidden = linear(prepared.inputs, w1)
        hidden = (_attend(hidden, a1, self.heads, prepared.edges) + b1).relu()
        if dropout is not None:
            hidden = dropout(hidden)
        scores = _attend(hidden @ w2, a2, 1, prepared.edges) + b2
        return prepared.outer[0].pick(scores)


def _attend(
    signal: Tensor, attention: Tensor, heads: int, edges: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """Every node's weighted mean of its neighbors, for each head."""
    sources, targets, weights = edges
    batch, nodes, channels = signal.shape
    split = signal.view(batch, nodes, heads, channels // heads)
    sending, receiving = attention.unflatten(-1, (2, heads)).unbind(-2)
    send = torch.einsum("bnhc,bch->bnh", split, sending)
    receive = torch.einsum("bnhc,bch->bnh", split, receiving)
    score = torch.nn.functional.leaky_relu(send[:, sources] + receive[:, targets], SLOPE)
    # The largest score of each node is subtracted so that exp cannot overflow.
    index = targets.view(1, -1, 1).expand_as(score)
    peak = torch.full_like(receive, -torch.inf).scatter_reduce(1, index, score.detach(), "amax")
    strength = weights.view(1, -1, 1) * (score - peak[:, targets]).exp()
    total = torch.zeros_like(receive).index_add(1, targets, strength)
    share = strength / total[:, targets]
    messages = share.unsqueeze(-1) * split[:, sources]
    return torch.zeros_like(split).index_add(1, targets, messages).reshape(batch, nodes, channels)
