"""Graph attention network (Velickovic et al., 2018), for testing."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.models.base import (
    Dropout,
    Edges,
    Model,
    Params,
    Prepared,
    first_inputs,
    linear,
    uniform_layer,
)
from gcsr.models.topology import IdentityOperator, Limited, Topology
from gcsr.utils.errors import require
from gcsr.utils.products import weighted_sums

SLOPE = 0.2
# Where one of so many pairs is an edge, as in condensed graphs, a dense product is faster.
DENSE = 8


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
        """The edges of each layer: those into the nodes asked for, and into their neighbors."""
        second = first = topology.edges()
        own = None
        if nodes is not None:
            own = nodes.to(x.device)
            second = _into(first, own)
            first = _into(first, torch.cat([second[0], own]))
        outer = (Limited(IdentityOperator(), own=own),)
        return Prepared(first_inputs(x, None), outer=outer, edges=(first, second))

    def logits(self, params: Params, prepared: Prepared, dropout: Dropout | None = None) -> Tensor:
        """Class scores."""
        if prepared.edges is None:
            raise TypeError("GAT needs inputs that GAT prepared")
        w1, b1, a1, w2, b2, a2 = params
        hidden = linear(prepared.inputs, w1)
        first, second = prepared.edges
        hidden = (_attend(hidden, a1, self.heads, first) + b1).relu()
        if dropout is not None:
            hidden = dropout(hidden)
        scores = _attend(hidden @ w2, a2, 1, second) + b2
        return prepared.outer[0].pick(scores)


def _into(edges: Edges, nodes: Tensor) -> Edges:
    """The edges whose targets are among some nodes."""
    sources, targets, weights = edges
    kept = torch.isin(targets, nodes)
    return sources[kept], targets[kept], weights[kept]


def _attend(signal: Tensor, attention: Tensor, heads: int, edges: Edges) -> Tensor:
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
    if signal.device.type == "cpu" and not torch.is_grad_enabled():
        # No message is stored: several times as fast, for the many validations on the real graph.
        ends = torch.bincount(targets, minlength=nodes).cumsum(0)
        pointers = torch.cat([ends.new_zeros(1), ends])
        sums = [
            weighted_sums(
                pointers, sources, share[b, :, h].contiguous(), split[b, :, h].contiguous()
            )
            for b in range(batch)
            for h in range(heads)
        ]
        return torch.cat(sums, 1).view(nodes, batch, channels).transpose(0, 1)
    if DENSE * sources.numel() > nodes * nodes:
        matrix = share.new_zeros(batch, nodes * nodes, heads)
        matrix = matrix.index_copy(1, targets * nodes + sources, share)
        matrix = matrix.view(batch, nodes, nodes, heads)
        return torch.einsum("btsh,bshc->bthc", matrix, split).reshape(batch, nodes, channels)
    messages = share.unsqueeze(-1) * split[:, sources]
    return torch.zeros_like(split).index_add(1, targets, messages).reshape(batch, nodes, channels)
