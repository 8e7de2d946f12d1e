r"""Centres of nodes by class: means of groups of nodes whose features are alike.

The nodes of a class are grouped by their propagated features :math:`\hat A^k X`, in halves of halves
(:mod:`gcsr.condense.halves`) or by k-means; a centre is a condensed node, and the mean of what is known
of its nodes is its label. Nothing is larger than nodes x features or nodes x classes.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gcsr.condense.halves import halves_of_halves
from gcsr.condense.initialise import JITTER, Start

ROUNDS = 30
# Where rows are many and this much wider, groups are found in a random projection of so many columns.
PROJECTED, WIDER, MANY = 256, 4, 10**7

Grouping = Literal["halves", "k-means"]
GROUPINGS: tuple[str, ...] = ("halves", "k-means")


def cluster_start(
    features: Tensor,
    shares: Tensor,
    budget: Tensor,
    generator: torch.Generator,
    grouping: str = "halves",
) -> Start:
    """A start whose rows are centres, in blocks by class; labels are the mean shares of their nodes.

    Args:
        features: propagated features of the visible nodes, ``(n, d)``.
        shares: what is known of their classes, ``(n, C)``: one-hot where a label is known.
        budget: condensed nodes of each class.
        generator: decides where the grouping begins.
        grouping: one of :data:`GROUPINGS`.
    """
    nearest = shares.argmax(1)
    rows, targets, notes = [], [], []
    for label, wanted in enumerate(budget.tolist()):
        if not wanted:
            continue
        members = (nearest == label).nonzero().flatten()
        x, own = features[members], shares[members]
        centres, groups = _grouped(x, min(wanted, members.numel()), generator, grouping)
        known = _means(own, groups, centres.shape[0])
        missing = wanted - centres.shape[0]
        if missing:
            again = torch.arange(missing, device=x.device) % centres.shape[0]
            noise = torch.randn((missing, x.shape[1]), generator=generator).to(x)
            size = x.square().mean().sqrt()
            centres = torch.cat([centres, centres[again] + JITTER * size * noise])
            known = torch.cat([known, known[again]])
            notes.append(
                f"{missing} nodes of class {label} repeat another one with jitter, because"
                " fewer visible nodes count as it"
            )
        rows.append(centres)
        targets.append(known)
    none = torch.empty(0, dtype=torch.int64)
    return Start(torch.cat(rows), none, tuple(notes), torch.cat(targets))


def _grouped(x: Tensor, k: int, generator: torch.Generator, grouping: str) -> tuple[Tensor, Tensor]:
    """Centres of the rows of one class, and the group of every row."""
    if grouping == "k-means":
        return k_means(x, k, generator)
    groups = halves_of_halves(x, k, generator)
    return _means(x, groups, k), groups


def k_means(x: Tensor, k: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Centres ``(k, d)`` and the group of every row, by Lloyd's rounds from random rows.

    A k-means++ start, which prefers rows far from all others, validated worse: a centre counts as much
    as any other node, however few stand behind it. Sums are products with a one-hot matrix, which give
    the same bytes on CUDA each time. A group that runs empty keeps its centre.

    Many wide rows are grouped by what a random projection keeps of their distances (Boutsidis,
    Zouzias and Drineas, 2010); centres are means of the rows themselves.
    """
    # Distances are differences of large squares unless the rows lie around zero.
    middle = x.mean(0)
    x = x - middle
    begin = torch.randperm(x.shape[0], generator=generator)[:k].to(x.device)
    if x.numel() <= MANY or x.shape[1] <= WIDER * PROJECTED:
        centres, groups = _lloyd(x, x[begin].clone())
        return centres + middle, groups
    directions = torch.randn((x.shape[1], PROJECTED), generator=generator).to(x)
    narrow = x @ directions
    _, groups = _lloyd(narrow, narrow[begin].clone())
    return _centres(x, groups, x[begin]) + middle, groups


def _lloyd(x: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """Rounds of nearest centres and means, until nothing moves."""
    squares = x.square().sum(1, keepdim=True)
    groups = torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)
    for _ in range(ROUNDS):
        groups = (squares - 2 * x @ centres.T + centres.square().sum(1)).argmin(1)
        moved = _centres(x, groups, centres)
        if torch.equal(moved, centres):
            break
        centres = moved
    return centres, groups


def _centres(x: Tensor, groups: Tensor, otherwise: Tensor) -> Tensor:
    """The mean row of every group; where one is empty, its row of ``otherwise``."""
    inside = torch.nn.functional.one_hot(groups, otherwise.shape[0]).to(x)
    counts = inside.sum(0)[:, None]
    return torch.where(counts > 0, inside.T @ x / counts.clamp_min(1), otherwise)


def _means(values: Tensor, groups: Tensor, count: int) -> Tensor:
    """The mean row of every group; of all rows where a group is empty."""
    return _centres(values, groups, values.mean(0).expand(count, -1))
