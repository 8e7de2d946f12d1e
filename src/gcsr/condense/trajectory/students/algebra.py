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
    if first.shape[0] == 1:
        return torch.dot(first.reshape(-1), second.reshape(-1)).view(1)
    return torch.bmm(first.flatten(1).unsqueeze(1), second.flatten(1).unsqueeze(2)).flatten()


class Workspace:
    """A tensor that is written anew every iteration instead of being allocated anew.

    Large tensors that come and go cost more than what is computed in them: the system takes the
    memory back and hands out cleared pages.
    """

    def __init__(self) -> None:
        self._tensor: Tensor | None = None

    def like(self, tensor: Tensor) -> Tensor:
        """Memory for a tensor of this shape; what an earlier call returned is overwritten."""
        kept = self._tensor
        if kept is None or (kept.shape, kept.dtype, kept.device) != (
            tensor.shape,
            tensor.dtype,
            tensor.device,
        ):
            kept = torch.empty_like(tensor, memory_format=torch.contiguous_format)
            self._tensor = kept
        return kept

    def difference(self, first: Tensor, second: Tensor) -> Tensor:
        """``first - second``."""
        return torch.sub(first, second, out=self.like(first))


def softmax_gradient(gradient: Tensor, probabilities: Tensor, dim: int = -1) -> Tensor:
    """Gradient before a softmax over a dimension, given that after it; one kernel."""
    result: Tensor = torch.ops.aten._softmax_backward_data(
        gradient, probabilities, dim, probabilities.dtype
    )
    return result
