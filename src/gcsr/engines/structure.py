"""How a condensed graph gets its edges: ``topology(points, state)`` and ``update(state, adjacency)``.

States are tuples of tensors with a leading dimension for the graphs condensed together, so that an
engine can carry them without knowing what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gcsr.equations.self_expression import (
    momentum_update,
    positive_solve,
    self_expression_of_gram,
    symmetric_adjacency,
)
from gcsr.models.topology import DenseOperator, DenseTopology, EmptyTopology, Operator, Topology

# -- Condensed features and their Gram matrix, which structure and student both need -----------------


@dataclass(frozen=True, eq=False)
class SyntheticFeatures:
    r"""X' of every graph, ``(graphs, n', d)``; X'X'ᵀ is computed once per iteration.

    To autograd both are inputs of their own. :meth:`gradients` puts their gradients together with one
    product, :math:`\bar X + (\bar K + \bar K^\top) X`, where differentiating :math:`K = XX^\top` would
    take two.
    """

    x: Tensor

    @classmethod
    def of(cls, x: Tensor) -> SyntheticFeatures:
        """SyntheticFeatures to differentiate with respect to."""
        return cls(x.detach().requires_grad_())

    @cached_property
    def gram(self) -> Tensor:
        """X'X'ᵀ."""
        with torch.no_grad():
            gram = torch.bmm(self.x, self.x.mT)
        return gram.requires_grad_(self.x.requires_grad)

    def gradients(self, loss: Tensor, others: Sequence[Tensor] = ()) -> tuple[Tensor, ...]:
        """Gradients of ``loss`` with respect to X' and to other inputs."""
        # Not computed just to be differentiated.
        used = (self.gram,) if "gram" in vars(self) else ()
        found = torch.autograd.grad(
            loss, (self.x, *used, *others), allow_unused=True, materialize_grads=True
        )
        gradient, rest = found[0], found[1 + len(used) :]
        for bar_gram in found[1 : 1 + len(used)]:
            gradient = torch.baddbmm(gradient, bar_gram + bar_gram.mT, self.x.detach())
        return (gradient, *rest)


# -- From X'X'ᵀ to the normalized structure in one function with one hand-written adjoint ------------


def expressed_operator(
    gram: Tensor, prior: Tensor, history: Tensor, alpha: Tensor, beta: Tensor
) -> tuple[Tensor, Tensor]:
    """Eq. 9, 10 and 2 in one function: the normalized A', differentiable in X'X'ᵀ, and A' itself.

    The plain references are in :mod:`gcsr.equations.self_expression`; tests compare both.
    """
    operator, adjacency = _Expressed.apply(  # type: ignore[no-untyped-call]
        gram, prior, history, alpha, beta
    )
    return operator, adjacency


class _Expressed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gram: Tensor, prior: Tensor, history: Tensor, alpha: Tensor, beta: Tensor
    ) -> tuple[Tensor, Tensor]:
        both = alpha + beta
        pull = alpha * prior + beta * history
        system = gram.clone()
        pull.diagonal(dim1=-2, dim2=-1).sub_(both.squeeze(-1))
        system.diagonal(dim1=-2, dim2=-1).add_(both.squeeze(-1))
        # cholesky_ex does not wait for the device; the system is positive definite by construction.
        factor, _ = torch.linalg.cholesky_ex(system)
        correction = positive_solve(factor, pull)
        z = correction.clone()
        z.diagonal(dim1=-2, dim2=-1).add_(1)
        magnitude = z.abs()
        adjacency = (magnitude + magnitude.mT).mul_(0.5)
        looped = adjacency.clone()
        looped.diagonal(dim1=-2, dim2=-1).add_(1)
        scale = looped.sum(-1, keepdim=True).rsqrt_()
        scales = scale * scale.mT
        operator = looped.mul_(scales)
        ctx.save_for_backward(factor, correction, z, scale, scales, operator)
        ctx.mark_non_differentiable(adjacency)
        return operator, adjacency

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        factor, correction, z, scale, scales, operator = ctx.saved_tensors
        both_ways = gradient + gradient.mT
        v = (both_ways * operator).sum(-1, keepdim=True).mul_(scale.square()).mul_(0.5)
        twice_bar_z = both_ways.mul_(scales).sub_(v).sub_(v.mT).mul_(z.sign())
        bar_system = torch.bmm(positive_solve(factor, twice_bar_z), correction.mT).mul_(-0.5)
        return bar_system, None, None, None, None


State = tuple[Tensor, ...]


@dataclass(frozen=True)
class IdentityStructure:
    """No edges: A' = I (MTT, SFGC)."""

    def topology(self, points: SyntheticFeatures, state: State) -> tuple[Topology, Tensor]:
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

    normalized: Operator
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
    """Eq. 8-10 with bootstrapped regularizers; the state is ``(P, Z_h)``.

    ``alpha`` and ``beta`` are tensors ``(graphs, 1, 1)``, one weight per graph.
    """

    alpha: Tensor
    beta: Tensor
    tau: float
    gamma: float

    def topology(self, points: SyntheticFeatures, state: State) -> tuple[Topology, Tensor]:
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


Structure = IdentityStructure | SelfExpressiveStructure
