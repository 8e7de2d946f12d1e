"""Small pieces that the closed forms share."""

from __future__ import annotations

import torch
from torch import Tensor

from gcsr.models import EmptyTopology, Topology
from gcsr.models.topology import DenseOperator


def dense_operator(topology: Topology) -> Tensor | None:
    """The normalised adjacency of a condensed graph as a matrix; ``None`` for the identity."""
    if isinstance(topology, EmptyTopology):
        return None
    operator = topology.normalised
    if not isinstance(operator, DenseOperator):
        raise TypeError("a student needs a dense condensed graph")
    return operator.matrix


def squared_norm(difference: Tensor) -> Tensor:
    """Squared Frobenius norm of every graph."""
    return inner_product(difference, difference)


def inner_product(first: Tensor, second: Tensor) -> Tensor:
    """Frobenius inner product of every graph, without a tensor of products."""
    return torch.bmm(first.flatten(1).unsqueeze(1), second.flatten(1).unsqueeze(2)).flatten()


class Workspace:
    """A tensor that is written anew every iteration instead of being allocated anew."""

    def __init__(self) -> None:
        self._tensor: Tensor | None = None

    def difference(self, first: Tensor, second: Tensor) -> Tensor:
        """``first - second``; what an earlier call returned is overwritten."""
        if self._tensor is None or self._tensor.shape != first.shape:
            self._tensor = torch.empty_like(first, memory_format=torch.contiguous_format)
        return torch.sub(first, second, out=self._tensor)


def softmax_gradient(gradient: Tensor, probabilities: Tensor) -> Tensor:
    """Gradient before a softmax over the last dimension, given that after it; one kernel."""
    result: Tensor = torch.ops.aten._softmax_backward_data(
        gradient, probabilities, -1, probabilities.dtype
    )
    return result
