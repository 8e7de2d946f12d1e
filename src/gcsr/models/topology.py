"""The operators that models propagate with, on a small dense or a large sparse graph.

A model asks a topology for an operator (``normalized``, ``mean``, ``loopless``) and does not
depend on the kind of graph. Signals are ``(n, c)`` or ``(batch, n, c)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from gcsr.equations.propagation import normalized_adjacency


class Operator(Protocol):
    """A linear map of node signals."""

    def __call__(self, signal: Tensor) -> Tensor:
        """The signal after one hop."""
        ...

    def limited_to(self, nodes: Tensor | None) -> Limited:
        """The same map where only its output at ``nodes`` is wanted (``None``: at every node)."""
        ...


@dataclass(frozen=True, eq=False)
class Limited:
    """An operator whose output is wanted at some nodes only.

    Attributes:
        operator: maps signals on ``support`` to signals on the wanted nodes.
        support: the wanted nodes and those they read from (``None``: every node).
        own: where the wanted nodes lie within ``support`` (``None``: they are the same).
    """

    operator: Operator
    support: Tensor | None = None
    own: Tensor | None = None

    def pick(self, signal: Tensor) -> Tensor:
        """A signal on ``support``, at the wanted nodes."""
        return signal if self.own is None else signal[..., self.own, :]


class Topology(Protocol):
    """The structure of a graph, as the operators that models propagate with."""

    @property
    def normalized(self) -> Operator:
        """Eq. 2: self-connections added, symmetrically normalized."""
        ...

    @property
    def mean(self) -> Operator:
        """The mean over neighbors, without self-connections (GraphSAGE)."""
        ...

    @property
    def loopless(self) -> Operator:
        """Symmetrically normalized without self-connections (Chebyshev's scaled Laplacian)."""
        ...

    def edges(self) -> tuple[Tensor, Tensor, Tensor]:
        """Sources, ascending targets and weights, with self-connections added (attention models)."""
        ...


@dataclass(frozen=True, eq=False)
class IdentityOperator:
    """No propagation: the operator of a graph without structure."""

    def __call__(self, signal: Tensor) -> Tensor:
        """The signal itself."""
        return signal

    def limited_to(self, nodes: Tensor | None) -> Limited:
        """A node reads only from itself."""
        return Limited(self, nodes)


@dataclass(frozen=True, eq=False)
class DenseOperator:
    """A small dense matrix, or a batch of them; differentiable."""

    matrix: Tensor

    def __call__(self, signal: Tensor) -> Tensor:
        """The product."""
        return self.matrix @ signal

    def limited_to(self, nodes: Tensor | None) -> Limited:
        """Selected rows; every column is kept."""
        if nodes is None:
            return Limited(self)
        return Limited(DenseOperator(self.matrix[..., nodes, :]), own=nodes)


@dataclass(frozen=True, eq=False)
class EmptyTopology:
    """A' = I: every operator is the identity, since norm(I) = I."""

    num_nodes: int
    device: torch.device
    normalized: Operator = IdentityOperator()
    mean: Operator = normalized
    loopless: Operator = normalized

    def edges(self) -> tuple[Tensor, Tensor, Tensor]:
        """A self-connection per node."""
        nodes = torch.arange(self.num_nodes, device=self.device)
        return nodes, nodes, torch.ones(self.num_nodes, device=self.device)


@dataclass(frozen=True, eq=False)
class DenseTopology:
    """A small weighted graph: A' as ``(n, n)`` or ``(batch, n, n)``."""

    adjacency: Tensor

    @cached_property
    def normalized(self) -> Operator:
        """Eq. 2 on A'."""
        return DenseOperator(normalized_adjacency(self.adjacency))

    @cached_property
    def mean(self) -> Operator:
        """Rows of A' divided by their sums."""
        sums = self.adjacency.sum(-1, keepdim=True)
        return DenseOperator(self.adjacency / torch.where(sums > 0, sums, torch.ones_like(sums)))

    @cached_property
    def loopless(self) -> Operator:
        """A' scaled by the roots of its row sums."""
        sums = self.adjacency.sum(-1)
        scale = torch.where(sums > 0, sums, torch.ones_like(sums)).rsqrt()
        return DenseOperator(scale.unsqueeze(-1) * self.adjacency * scale.unsqueeze(-2))

    def edges(self) -> tuple[Tensor, Tensor, Tensor]:
        """Entries of A' + I that are not zero (a single graph only)."""
        looped = self.adjacency + torch.eye(
            self.adjacency.shape[-1], dtype=self.adjacency.dtype, device=self.adjacency.device
        )
        targets, sources = looped.nonzero(as_tuple=True)
        return sources, targets, looped[targets, sources]


def repeated(operator: Operator, hops: int, nodes: Tensor | None) -> tuple[Limited, ...]:
    """``hops`` applications of an operator, from the inside out, each limited to what is needed."""
    chain: list[Limited] = []
    for _ in range(hops):
        chain.append(operator.limited_to(nodes))
        nodes = chain[-1].support
    return tuple(reversed(chain))
