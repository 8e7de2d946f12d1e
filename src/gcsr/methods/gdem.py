r"""GDEM: eigenbasis matching (Liu et al., 2024).

With K eigenpairs :math:`(\lambda_k, u_k)` of the real graph's :math:`L = I - \mathrm{norm}(A)`, learned
vectors U' and features X' should agree with the real ones in every direction, in the class means of
:math:`H = U(I - \Lambda)U^\top X`, and be orthogonal:

.. math:: \min_{U', X'} \frac{\alpha}{K} \sum_k \|\hat x'_k \hat x_k'^\top - \hat x_k \hat x_k^\top\|^2
          + \beta\, \mathrm{mse}(\bar H \bar H'^\top, I) + \gamma\, \mathrm{mse}(U'^\top U', I),

where :math:`x_k = X^\top u_k`, and hats and bars (class means) have length one. For these vectors
:math:`\|\hat x' \hat x'^\top - \hat x \hat x^\top\|^2 = 2 - 2(\hat x'^\top \hat x)^2`, which needs no
matrix of d x d.

The authors use :math:`S' = I - U'\Lambda U'^\top` as the operator of message passing. A condensed graph
has a non-negative A' that networks normalize, here

.. math:: A'_{ij} = \max(S'_{ij}, 0) / \sqrt{S'_{ii} S'_{jj}}, \quad i \ne j,

whose normalization is S' where S' is the normalization of any graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from gcsr.data.features import csr_matrix, is_sparse
from gcsr.data.views import VisibleGraph
from gcsr.engines.direct import CHECK_EVERY, DirectStep
from gcsr.engines.iterates import QUICK_RUNS
from gcsr.engines.loop import COMPARISONS, Units, advance_together, feature_unit, learn
from gcsr.engines.result import CondensationResult, Context
from gcsr.equations.propagation import normalized_adjacency
from gcsr.methods.base import Condenser
from gcsr.models.sparse import SparseTopology
from gcsr.outofcore.estimate import Work
from gcsr.starts.sample import Start, block_labels, class_budget, sampled_starts
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import Count, Share, Weight, Whole

# The least share of itself that a node has in S', so that weights stay bounded.
LEAST_SELF = 1e-2
# Products with the adjacency that take as long as an eigenpair.
HOPS_PER_PAIR = 20


@dataclass(frozen=True, kw_only=True)
class GDEM(Condenser):
    """Features and eigenvectors that agree with the real ones, direction by direction.

    Eigenpairs are those of the largest connected component. No network is trained, except to choose
    the iterate.

    Args:
        eigenpairs: K, at most the number of condensed nodes, which it is by default.
        low_share: share of the eigenpairs that have the smallest eigenvalues; the others the largest.
        alpha, beta, gamma: weights of the three terms.
        iterations: steps of Adam.
        eigen_steps, feature_steps: steps on U' and on X', in turns.
        feature_lr, eigen_lr: Adam's rates for X' and U'.
        units: ``relative``: ``feature_lr`` in root mean squares of the initial X', the first term as a
            sum over columns; ``absolute``: as the authors have it, with a mean over d x d numbers.
        iterate: ``best-val``: the iterate on which quickly trained GCNs validate best; or ``last``.
    """

    name = "gdem"
    summary = "features and eigenvectors that match those of the real graph"
    reference = 'Liu et al., "Graph Distillation with Eigenbasis Matching", ICML 2024'
    # Where eigenvalues coincide, any basis of their space may be found.
    same_on_every_device = False

    eigenpairs: Count | None = None
    low_share: Share = 0.9
    alpha: Weight = 1.0
    beta: Weight = 100.0
    gamma: Weight = 1000.0
    iterations: Whole = 500
    eigen_steps: Count = 5
    feature_steps: Count = 5
    feature_lr: Weight = 0.02
    eigen_lr: Weight = 0.005
    units: Units = "relative"
    iterate: Literal["best-val", "last"] = "best-val"

    def _work(self, nodes: int) -> Work:
        comparisons = QUICK_RUNS * (COMPARISONS + 1) * (self.iterate == "best-val")
        pairs = min(nodes, self.eigenpairs or nodes)
        return Work(
            nodes,
            hops=HOPS_PER_PAIR * pairs,
            iterations=self.iterations,
            comparisons=comparisons,
        )

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        visible = ctx.view.visible
        labels = block_labels(class_budget(visible.train_labels, visible.num_classes, ctx.nodes))
        starts = sampled_starts(visible.features, visible, labels, ctx.seeds)
        pairs = min(ctx.nodes, self.eigenpairs or ctx.nodes)
        real = RealBasis.of(visible, pairs, self.low_share, ctx.device)
        return advance_together(
            lambda part, group: self._run(part, real, labels, starts[group]), ctx
        )

    def _run(
        self, ctx: Context, real: RealBasis, labels: Tensor, starts: Sequence[Start]
    ) -> list[CondensationResult]:
        """Condense some graphs along one leading dimension, in float64."""
        classes = ctx.view.visible.num_classes
        x = torch.stack([start.x for start in starts]).to(ctx.device, torch.float64)
        vectors = torch.stack(
            [block_model_vectors(labels, len(real.values), seed) for seed in ctx.seeds]
        ).to(x)
        targets = one_hot(labels, classes).to(x)
        present = real.means.abs().sum(1) > 0
        alpha = self.alpha
        if self.units == "absolute":
            alpha /= x.shape[-1] ** 2

        def loss(iteration: int, params: Sequence[Tensor]) -> Tensor:
            x, u = params
            terms = matching_terms(x, u, real, targets[:, present], real.means[present])
            return alpha * terms[0] + self.beta * terms[1] + self.gamma * terms[2]

        def learned(iteration: int) -> Sequence[int]:
            turn = iteration % (self.eigen_steps + self.feature_steps)
            return [1] if turn < self.eigen_steps else [0]

        def iterate(_: int) -> tuple[Tensor, ...]:
            a = torch.stack([spectral_adjacency(u, real.values) for u in vectors])
            return x, a, targets.expand(len(starts), -1, -1)

        lrs = (self.feature_lr * feature_unit(x, self.units), self.eigen_lr)
        step = DirectStep((x, vectors), lrs, loss, learned)
        made = learn(ctx, step, self.iterations, iterate, self.iterate, check_every=CHECK_EVERY)
        return [
            CondensationResult(
                made.iterate[0][g].float(),
                made.iterate[1][g].float(),
                labels,
                (*start.notes, *made.notes[g]),
                made.details[g] | {"eigenvalues": real.values.tolist(), "component": real.nodes},
            )
            for g, start in enumerate(starts)
        ]


@dataclass(frozen=True, eq=False)
class RealBasis:
    """What is matched: eigenvalues, directions :math:`\\hat x_k` and class means of length one.

    Classes without a training node in the component have a mean of zeros. ``nodes`` are those of the
    component.
    """

    values: Tensor
    directions: Tensor
    means: Tensor
    nodes: int

    @classmethod
    def of(cls, visible: VisibleGraph, pairs: int, low: float, device: torch.device) -> RealBasis:
        """Of the largest connected component; training nodes outside it do not count."""
        _, component = connected_components(visible.adjacency, directed=False)
        inside = np.flatnonzero(component == np.bincount(component).argmax())
        hop = SparseTopology(visible.adjacency[inside][:, inside], device).normalized.matrix
        values, vectors = eigenpairs(hop, min(pairs, len(inside)), low)
        x = (
            csr_matrix(visible.x)[inside]
            if is_sparse(visible.x)
            else visible.x[torch.from_numpy(inside)].cpu().numpy()
        )
        coefficients = vectors.T @ x.astype(np.float64)
        labels = visible.labels.numpy()[inside]
        known = labels >= 0
        shares = np.eye(visible.num_classes)[labels[known]]
        shares /= np.maximum(shares.sum(0), 1)
        means = shares.T @ vectors[known] @ ((1 - values)[:, None] * coefficients)
        found = (
            torch.from_numpy(np.asarray(one)).to(device) for one in (values, coefficients, means)
        )
        own, directions, centers = found
        return cls(own, normalize(directions, dim=1), normalize(centers, dim=1), len(inside))


def eigenpairs(hop: sp.csr_array, count: int, low: float) -> tuple[np.ndarray, np.ndarray]:
    """Ascending eigenvalues of I - hop and their vectors: a share ``low`` of the smallest, the largest.

    By the Lanczos method, which needs fewer pairs than nodes; a graph of hardly more nodes is dense.
    """
    nodes = hop.shape[0]
    smallest = math.ceil(low * count)
    if count >= nodes - 1:
        values, vectors = np.linalg.eigh(np.eye(nodes) - hop.toarray())
        kept = np.r_[:smallest, nodes - (count - smallest) : nodes]
        return values[kept], vectors[:, kept]
    start = torch.rand(nodes, generator=make_generator(0, "eigenpairs"), dtype=torch.float64)
    found = [
        eigsh(hop, wanted, which=end, v0=start.numpy())
        for wanted, end in ((smallest, "LA"), (count - smallest, "SA"))
        if wanted
    ]
    values = 1 - np.concatenate([one for one, _ in found])
    order = np.argsort(values, kind="stable")
    return values[order], np.concatenate([vectors for _, vectors in found], 1)[:, order]


def block_model_vectors(labels: Tensor, count: int, seed: int) -> Tensor:
    """Eigenvectors of a random graph whose nodes of one class are joined three times as often."""
    classes = int(labels.unique().numel())
    same = labels[:, None] == labels
    chance = torch.where(same, 1 / classes, 1 / (3 * classes))
    drawn = torch.rand(same.shape, generator=make_generator(seed, "initial edges"))
    upper = torch.triu(drawn < chance, 1).double()
    laplacian = torch.eye(len(labels)).double() - normalized_adjacency(upper + upper.T)
    vectors: Tensor = torch.linalg.eigh(laplacian).eigenvectors[:, :count]
    return vectors


def matching_terms(
    x: Tensor, vectors: Tensor, real: RealBasis, shares: Tensor, means: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The three terms for every graph, without their weights."""
    coefficients = vectors.mT @ x
    directions = normalize(coefficients, dim=-1)
    squares = (directions.square().sum(-1), real.directions.square().sum(-1))
    cosines = (directions * real.directions).sum(-1)
    apart = (squares[0].square() + squares[1].square() - 2 * cosines.square()).mean(-1)
    embedded = vectors @ ((1 - real.values)[:, None] * coefficients)
    own = normalize((shares / shares.sum(0)).mT @ embedded, dim=-1)
    agree = means @ own.mT - torch.eye(len(means)).to(x)
    orthogonal = vectors.mT @ vectors - torch.eye(vectors.shape[-1]).to(x)
    return apart, agree.square().mean((-2, -1)), orthogonal.square().mean((-2, -1))


def spectral_adjacency(vectors: Tensor, values: Tensor) -> Tensor:
    """A' whose normalization is I - U' diag(values) U'ᵀ as far as that has no negative entries."""
    eye = torch.eye(vectors.shape[0]).to(vectors)
    operator = eye - vectors @ (values[:, None] * vectors.T)
    scale = operator.diagonal().clamp_min(LEAST_SELF).rsqrt()
    adjacency = (scale[:, None] * operator * scale).clamp_min(0).fill_diagonal_(0)
    # To the last bit.
    return (adjacency + adjacency.T) / 2
