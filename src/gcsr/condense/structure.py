"""How a condensed graph gets its edges: ``topology(points, state)`` and ``update(state, adjacency)``.

States are tuples of tensors with a leading dimension for the graphs condensed together, so that an
engine can carry them without knowing what they mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from gcsr.condense.expressed import expressed_operator
from gcsr.condense.points import Points
from gcsr.equations import momentum_update, self_expression_of_gram, symmetric_adjacency
from gcsr.models import DenseTopology, EmptyTopology, Topology
from gcsr.models.topology import DenseOperator, Operator

State = tuple[Tensor, ...]


class Structure(Protocol):
    """A way to derive edges from features."""

    def topology(self, points: Points, state: State) -> tuple[Topology, Tensor]:
        """The topology that a student sees, differentiable in X', and A' itself."""
        ...

    def update(self, state: State, adjacency: Tensor) -> State:
        """The state after an iteration that used ``adjacency``."""
        ...


@dataclass(frozen=True)
class IdentityStructure:
    """No edges: A' = I (MTT, SFGC)."""

    def topology(self, points: Points, state: State) -> tuple[Topology, Tensor]:
        """Identity, whatever the features."""
        x = points.x
        n = x.shape[-2]
        identity = torch.eye(n, dtype=x.dtype, device=x.device).expand(*x.shape[:-2], n, n)
        return EmptyTopology(n, x.device), identity

    def update(self, state: State, adjacency: Tensor) -> State:
        """Nothing to remember."""
        return state


@dataclass(frozen=True, eq=False)
class ExpressedTopology:
    """A :class:`DenseTopology` of which Eq. 2 is known; A' is differentiated only if asked for."""

    normalised: Operator
    differentiable_adjacency: Callable[[], Tensor]

    @cached_property
    def _plain(self) -> DenseTopology:
        return DenseTopology(self.differentiable_adjacency())

    @property
    def mean(self) -> Operator:
        """Rows of A' divided by their sums."""
        return self._plain.mean

    @property
    def loopless(self) -> Operator:
        """A' scaled by the roots of its row sums."""
        return self._plain.loopless

    def edges(self) -> tuple[Tensor, Tensor, Tensor]:
        """Entries of A' + I that are not zero."""
        return self._plain.edges()


@dataclass(frozen=True, eq=False)
class SelfExpressiveStructure:
    """Eq. 8-10 with bootstrapped regularisers; the state is ``(P, Z_h)``.

    ``alpha`` and ``beta`` are tensors ``(graphs, 1, 1)``, one weight per graph.
    """

    alpha: Tensor
    beta: Tensor
    tau: float
    gamma: float

    def topology(self, points: Points, state: State) -> tuple[Topology, Tensor]:
        """The structure that the features express, given P and Z_h."""
        prior, history = state
        gram, alpha, beta = points.gram, self.alpha, self.beta
        operator, adjacency = expressed_operator(gram, prior, history, alpha, beta)

        def differentiable() -> Tensor:
            return symmetric_adjacency(self_expression_of_gram(gram, prior, history, alpha, beta))

        return ExpressedTopology(DenseOperator(operator), differentiable), adjacency

    def update(self, state: State, adjacency: Tensor) -> State:
        """Eq. 14-15."""
        prior, history = state
        return (
            momentum_update(prior, adjacency, self.tau),
            momentum_update(history, adjacency, self.gamma),
        )
