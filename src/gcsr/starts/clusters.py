r"""Class-wise centers as initial condensed features, instead of sampled training rows.

Every visible node belongs to its most likely class (training labels are kept), and the nodes of a class
are grouped. No test label is read; validation labels decide when pseudo-labelers have learned enough
and at which temperature they predict.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal

import torch
from torch import Tensor

from gcsr.data.features import (
    SparseRows,
    dense,
    is_sparse,
    matmul,
    select_rows,
    take_rows,
    transposed_matmul,
)
from gcsr.data.views import ViewCache
from gcsr.engines.result import Context
from gcsr.starts.pseudo_labels import class_shares
from gcsr.starts.sample import JITTER, Start, propagated_features, taken
from gcsr.utils.devices import make_generator, release_freed_memory
from gcsr.utils.errors import require

# -- Groups of equal size: rows cut in halves, and these again, where they vary much -----------------


# Steps of the power method toward the direction in which rows vary most. Two come close to it where
# one direction stands out; where none does, another beginning leads to another cut that is as good.
STEPS = 2


def balanced_bisection(x: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """The group of every row, ``0`` to ``count - 1``; ``count`` is at most the number of rows.

    Rows are sorted along a direction of large variance and cut in the middle (or where as many rows
    per group lie on both sides), until there are ``count`` parts. Time is that of some passes over the
    rows for each of the ``log2(count)`` levels.
    """
    groups = torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)

    def cut(rows: Tensor, first: int, last: int) -> None:
        """Give ``rows`` the groups from ``first`` up to, without, ``last``."""
        if last - first == 1:
            groups[rows] = first
            return
        middle = (first + last) // 2
        size = rows.numel() * (middle - first) // (last - first)
        order = rows[_along_most_variance(select_rows(x, rows), generator).argsort(stable=True)]
        cut(order[:size], first, middle)
        cut(order[size:], middle, last)

    cut(torch.arange(x.shape[0], device=x.device), 0, count)
    return groups


def _along_most_variance(x: Tensor, generator: torch.Generator) -> Tensor:
    """Where rows lie along a direction in which they vary much."""
    if is_sparse(x):
        return _along_most_variance_sparse(x, generator)
    x = x - x.mean(0)
    # Squares of squares would overflow; a power of two changes no digit.
    _, exponent = math.frexp(float(x.abs().max()))
    x = x * 2.0 ** -max(-120, min(120, exponent))
    direction = torch.randn(x.shape[1], generator=generator).to(x)
    for _ in range(STEPS):
        direction = x.T @ (x @ direction)
        # Rows that are all the same have no direction, and stay in their order.
        direction = direction / direction.norm().clamp_min(torch.finfo(x.dtype).tiny)
    return x @ direction


def _along_most_variance_sparse(x: Tensor, generator: torch.Generator) -> Tensor:
    """The same without a dense copy of the rows: their mean is subtracted from products instead."""
    _, exponent = math.frexp(float(x.values().abs().max()) if x.values().numel() else 0.0)
    scale = 2.0 ** -max(-120, min(120, exponent))
    mean = _column_mean(x) * scale

    def lengths(direction: Tensor) -> Tensor:
        return matmul(x, scale * direction[:, None]) - mean @ direction

    direction = torch.randn(x.shape[1], generator=generator).to(mean)
    for _ in range(STEPS):
        along = lengths(direction)
        direction = transposed_matmul(x, scale * along)[:, 0] - mean * along.sum()
        direction = direction / direction.norm().clamp_min(torch.finfo(x.dtype).tiny)
    return lengths(direction)[:, 0]


def _column_mean(x: Tensor) -> Tensor:
    if not is_sparse(x):
        return x.mean(0)
    ones = torch.ones((x.shape[0], 1), dtype=x.dtype)
    return transposed_matmul(x, ones)[:, 0] / x.shape[0]


# -- Centers of nodes by class: means of groups of nodes whose features are alike --------------------


ROUNDS = 30
# Where rows are many and this much wider, groups are found in a random projection of so many columns.
PROJECTED, WIDER, MANY = 256, 4, 10**7
# Rows of sparse features are unfolded where they are at most so many numbers.
UNFOLDED = 2**22

# A class of more rows is not grouped spectrally, which takes a dense matrix of its rows.
MOST_SPECTRAL = 4096

Grouping = Literal["bisection", "k-means"]
# From rows, a number of groups and a generator to centers and the group of every row.
Groups = Callable[[Tensor, int, torch.Generator], tuple[Tensor, Tensor]]


def cluster_start(
    features: Tensor | SparseRows,
    shares: Tensor,
    budget: Tensor,
    generator: torch.Generator,
    grouping: str | Groups = "bisection",
    *,
    multi_label: bool = False,
    confidence: Tensor | None = None,
) -> Start:
    """A start whose rows are centers, in blocks by class; labels are the mean shares of their nodes.

    Args:
        features: propagated features of the visible nodes, ``(n, d)``.
        shares: what is known of their classes, ``(n, C)``: one-hot where a label is known.
        budget: condensed nodes of each class.
        generator: decides where the grouping begins.
        grouping: ``bisection``, ``k-means``, ``spectral``, or a function of rows, number and generator.
        multi_label: bisect all nodes together, by ``shares``, the targets of every label: nodes with
            different labels have means that say nothing.
        confidence: a number per row; the rows of a group have weights that are its softmax within
            the group. By default all weigh the same.
    """
    nearest = shares.new_zeros(len(shares)) if multi_label else shares.argmax(1)
    rows, targets, notes = [], [], []
    for label, wanted in enumerate(budget.tolist()):
        if not wanted:
            continue
        members = (nearest == label).nonzero().flatten()
        own = shares[members]
        # Of sparse features many rows stay sparse, on the CPU.
        if isinstance(features, Tensor) or members.numel() * features.x.shape[1] <= UNFOLDED:
            x = features[members]
        else:
            x = select_rows(features.x, members)
        k = min(wanted, members.numel())
        if grouping == "bisection":
            groups = balanced_bisection(own if multi_label else x, k, generator)
            centers = _centers(x, groups, k)
        elif callable(grouping):
            centers, groups = grouping(x, k, generator)
        else:
            seen = spectral_rows(x, k) if grouping == "spectral" else x
            centers, groups = k_means(seen, k, generator)
            if seen is not x:
                centers = _centers(x, groups, k)
        if confidence is not None:
            centers = _centers(x, groups, k, centers, confidence[members].to(x.device))
        centers, groups = centers.to(shares.device), groups.to(shares.device)
        known = _centers(own, groups, centers.shape[0])
        missing = wanted - centers.shape[0]
        if missing:
            x = dense(x)
            again = torch.arange(missing, device=x.device) % centers.shape[0]
            noise = torch.randn((missing, x.shape[1]), generator=generator).to(x)
            size = x.square().mean().sqrt()
            centers = torch.cat([centers, centers[again] + JITTER * size * noise])
            known = torch.cat([known, known[again]])
            notes.append(
                f"{missing} nodes of class {label} repeat another one with jitter, because"
                " it has fewer rows to be grouped"
            )
        rows.append(centers)
        targets.append(known)
        if isinstance(features, SparseRows):
            release_freed_memory()
    none = torch.empty(0, dtype=torch.int64)
    return Start(torch.cat(rows), none, tuple(notes), torch.cat(targets))


def k_means(x: Tensor, k: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Centers ``(k, d)`` and the group of every row, by Lloyd's rounds from random rows.

    A k-means++ start, which prefers rows far from all others, validated worse: a center counts as much
    as any other node, however few nodes are averaged in it. Sums are products with a one-hot matrix,
    which give the same bytes on CUDA each time. A group that runs empty keeps its center.

    Many wide rows are grouped by what a random projection keeps of their distances (Boutsidis,
    Zouzias and Drineas, 2010); centers are means of the rows themselves.
    """
    # Distances are differences of large squares unless the rows lie around zero.
    if x.numel() <= MANY or x.shape[1] <= WIDER * PROJECTED:
        x = dense(x, "k-means")
    middle = _column_mean(x)
    x = x if is_sparse(x) else x - middle
    begin = torch.randperm(x.shape[0], generator=generator)[:k].to(x.device)
    if x.numel() <= MANY or x.shape[1] <= WIDER * PROJECTED:
        centers, groups = _lloyd(x, x[begin].clone())
        return centers + middle, groups
    directions = torch.randn((x.shape[1], PROJECTED), generator=generator).to(middle)
    narrow = matmul(x, directions)
    if is_sparse(x):
        narrow, middle = narrow - middle @ directions, torch.zeros_like(middle)
    _, groups = _lloyd(narrow, narrow[begin].clone())
    return _centers(x, groups, k, take_rows(x, begin)) + middle, groups


def spectral_rows(x: Tensor, k: int) -> Tensor:
    r"""Rows whose k-means is a spectral clustering of ``x`` into k groups (Gao et al., 2025).

    With U the first k left singular vectors of the centered rows, these are the eigenvectors 2 to k + 1
    of :math:`D^{-1/2} K D^{-1/2}`, :math:`K_{ij} = (u_i^\top u_j + 2^{-1/2})^2`, D its row sums. K is
    that of the authors' explicit features, which have k²/2 columns.
    """
    rows = x.shape[0]
    require(
        rows <= MOST_SPECTRAL,
        f"grouping must be 'k-means' for a class of more than {MOST_SPECTRAL} rows, got 'spectral' for"
        f" {rows}.",
    )
    x = dense(x, "spectral clustering")
    if k == rows:
        return x
    centered = x.double() - x.double().mean(0)
    u = torch.linalg.eigh(centered @ centered.T).eigenvectors[:, -k:]
    kernel = (u @ u.T + 2**-0.5).square()
    scale = kernel.sum(1).rsqrt()
    found: Tensor = torch.linalg.eigh(scale[:, None] * kernel * scale).eigenvectors
    return found[:, -k - 1 : -1].to(x)


def _lloyd(x: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
    """Rounds of nearest centers and means, until nothing moves."""
    squares = x.square().sum(1, keepdim=True)
    groups = torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)
    for _ in range(ROUNDS):
        groups = (squares - 2 * x @ centers.T + centers.square().sum(1)).argmin(1)
        moved = _centers(x, groups, len(centers), centers)
        if torch.equal(moved, centers):
            break
        centers = moved
    return centers, groups


def _centers(
    x: Tensor,
    groups: Tensor,
    count: int,
    otherwise: Tensor | None = None,
    confidence: Tensor | None = None,
) -> Tensor:
    """The mean row of every group, weighted by the softmax of ``confidence`` within the group.

    Where a group is empty, it is its row of ``otherwise``, by default the mean of all rows.
    """
    if otherwise is None:
        otherwise = _column_mean(x).expand(count, -1)
    inside = torch.nn.functional.one_hot(groups, count).to(x.device, x.dtype)
    if confidence is not None:
        # The most confident row of a group weighs one, so that no group's weights all vanish.
        most = confidence.new_full((count,), -torch.inf)
        most = most.scatter_reduce(0, groups, confidence, "amax")
        inside = inside * (confidence - most[groups]).exp().to(x.dtype)[:, None]
    counts = inside.sum(0)[:, None]
    sums = transposed_matmul(x, inside).T if is_sparse(x) else inside.T @ x
    return torch.where(counts > 0, sums / counts.where(counts > 0, 1), otherwise)


# Several methods may begin at the same starts.
_STARTS: ViewCache[Start] = ViewCache()


def class_centers(
    ctx: Context, budget: Tensor, method: Any, dtype: torch.dtype = torch.float32
) -> list[Start]:
    """A clustered start for every seed; all use the same pseudo-labels.

    ``method`` has the settings ``num_hops``, ``pseudo_labels``, ``tempered``, ``grouping``,
    ``soft_labels`` and ``expert_seed``.
    """
    view, device, progress, labeler = ctx.view, ctx.device, ctx.progress, method.pseudo_labels
    labels = class_shares(
        view,
        labeler,
        seed=method.expert_seed,
        device=device,
        tempered=method.tempered,
        progress=progress,
    )
    # With soft labels and with hard ones the centers are the same.
    settings = (method.num_hops, labeler, method.tempered, method.grouping, method.expert_seed)
    same = (*settings, str(device), dtype, *budget.tolist())

    @cache
    def propagated() -> Tensor | SparseRows:
        rows = propagated_features(view.visible, method.num_hops, device, dtype, progress)
        return taken(rows, labels.nodes, device)

    def start(seed: int) -> Start:
        features = propagated()
        shares, generator = labels.shares.to(device, dtype), make_generator(seed, "clusters")
        found = cluster_start(features, shares, budget, generator, method.grouping)
        known = labels.provenance
        return replace(found, provenance={} if known is None else {"pseudo_labels": known})

    starts = []
    for seed in ctx.seeds:
        found = _STARTS.get(view.visible, view.validation, (seed, *same), partial(start, seed))
        shares = found.targets
        assert shares is not None
        if not method.soft_labels:
            # Every center has one class.
            shares = torch.nn.functional.one_hot(shares.argmax(1), shares.shape[1]).to(shares)
        # A copy, which may be written into.
        starts.append(replace(found, x=found.x.clone(), targets=shares.clone()))
    return starts
