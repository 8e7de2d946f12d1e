"""Level by level, from a connected graph to a given number of super-nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch

from gcsr.condense.selection.coarsen.contraction import (
    coarse_weights,
    contract_edges,
    contract_neighbourhoods,
)
from gcsr.condense.selection.coarsen.spectrum import rescaled, residual, smooth_directions
from gcsr.condense.selection.coarsen.variation import Variation

# A level that removes no more nodes than this is the last that contracts neighbourhoods.
STALLED = 2


@dataclass(frozen=True)
class Rules:
    """How far and by what a graph is contracted.

    Attributes:
        directions: how many of the smoothest directions count (K).
        levels: how many levels may contract neighbourhoods.
        reduction: the largest share of its nodes that a level may remove.
    """

    directions: int = 10
    levels: int = 10
    reduction: float = 0.99


@dataclass(frozen=True, eq=False)
class Coarse:
    r"""A coarse graph and the matrix C that made it.

    Attributes:
        weights: :math:`S^\top W S` without its diagonal.
        groups: the super-node of every node.
        shares: the one non-zero of every column of C, the product of :math:`1/\sqrt{s}` over levels.
        sizes: nodes after every level, the original graph first.
        edges: how many nodes went by contracting single edges, at the end.
        residual: how far the first level's directions are from eigenvectors.
    """

    weights: sp.csr_array
    groups: np.ndarray
    shares: np.ndarray
    sizes: tuple[int, ...]
    edges: int
    residual: float


def coarsen(
    weights: sp.csr_array,
    target: int,
    rules: Rules,
    generator: torch.Generator,
    report: Callable[[int], None],
) -> Coarse:
    """Contract a connected graph to exactly ``target`` nodes; ``report`` hears how many are gone.

    Neighbourhoods alone may not get there: those left can all be larger than what remains to be
    removed. Then, or when the levels are used up, single edges are contracted, of which a connected
    graph always has one.
    """
    n = weights.shape[0]
    groups, shares, sizes = np.arange(n), np.ones(n), [n]
    edges, stalled, off = 0, False, 0.0
    report(0)
    if n > target:
        basis = directions = smooth_directions(weights, rules.directions, generator)
        off = residual(weights, directions)
    while sizes[-1] > target:
        now = sizes[-1]
        variation = Variation(weights, directions)
        budget = min(now - target, max(1, int(rules.reduction * now)))
        if stalled or len(sizes) > rules.levels:
            step = contract_edges(weights, variation, budget)
            edges += now - int(step.max()) - 1
        else:
            step = contract_neighbourhoods(weights, variation, budget)
        members = np.bincount(step)
        stalled = stalled or now - members.size <= STALLED
        if members.size == now:
            continue
        share = 1 / np.sqrt(members)
        shares *= share[step[groups]]
        groups = step[groups]
        weights = coarse_weights(weights, step)
        basis = _level_matrix(step, share) @ basis
        directions = rescaled(basis, weights)
        sizes.append(members.size)
        report(n - members.size)
    return Coarse(weights, groups, shares, tuple(sizes), edges, off)


def _level_matrix(step: np.ndarray, share: np.ndarray) -> sp.csr_array:
    """C of one level: a row per super-node, 1/sqrt(s) at its members."""
    return sp.csr_array((share[step], (step, np.arange(step.size))))
