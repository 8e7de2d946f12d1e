"""Networks whose layers weigh a node and its neighborhood separately.

Per layer ``X W0 + s T X W1 + b``: the textbook GraphSAGE (T the mean over neighbors, s = 1) and
the textbook Chebyshev network (T the loopless normalized adjacency, s = -1). Both weights of a
layer are kept in one tensor: stacked by rows in the first layer, side by side in the second.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gcsr.models.base import Dropout, Params, Prepared, hidden_layer, rows, uniform_layer
from gcsr.models.topology import Operator


def pair_layers(
    features: int, hidden_channels: int, classes: int, generator: torch.Generator
) -> Params:
    """Weights ``(2d, h)`` and ``(h, 2C)`` with one bias each."""
    w1, b1 = uniform_layer(2 * features, hidden_channels, generator, bound_fan=features)
    w2, b2 = uniform_layer(hidden_channels, 2 * classes, generator)
    return w1, b1, w2, b2[..., :classes].clone()


def prepare_pair(x: Tensor, operator: Operator, nodes: Tensor | None, *, sign: float) -> Prepared:
    """Own features beside those of the neighborhood."""
    outer = operator.limited_to(nodes)
    both = torch.cat([x, sign * operator(x)], -1)
    return Prepared(rows(both, outer.support), outer=(outer,))


def pair_logits(
    params: Params, prepared: Prepared, dropout: Dropout | None, *, sign: float
) -> Tensor:
    """Class scores."""
    w1, b1, w2, b2 = params
    hidden = hidden_layer(prepared.inputs, w1, b1)
    if dropout is not None:
        hidden = dropout(hidden)
    own, neighbors = (hidden @ w2).chunk(2, -1)
    (outer,) = prepared.outer
    return outer.pick(own) + sign * outer.operator(neighbors) + b2
