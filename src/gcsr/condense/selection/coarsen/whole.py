"""A whole graph, component by component."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch

from gcsr.condense.selection.coarsen.components import shares
from gcsr.condense.selection.coarsen.levels import Coarse, Rules, coarsen
from gcsr.progress import Progress

STAGE = "contracting"
# How many times progress is reported at most.
REPORTS = 1000


@dataclass(frozen=True, eq=False)
class Whole:
    """A coarse graph of several components.

    Attributes:
        matrix: C, a row per super-node; columns of dropped nodes are empty.
        weights: summed weights between super-nodes.
        sizes: nodes of the largest component after every level.
        edges: how many nodes went by contracting single edges.
        residual: of the eigensolver, the largest over components.
    """

    matrix: sp.csr_array
    weights: sp.csr_array
    sizes: tuple[int, ...]
    edges: int
    residual: float


def coarsen_graph(
    adjacency: sp.csr_array,
    target: int,
    train: np.ndarray,
    validation: np.ndarray,
    rules: Rules,
    generator: torch.Generator,
    progress: Progress,
) -> Whole:
    """Exactly ``target`` super-nodes; components get their share of them."""
    weights = without_loops(adjacency)
    parts = shares(weights, target, train, validation)
    total = sum(part.nodes.size - part.target for part in parts)
    made: list[Coarse] = []
    before = 0
    for part in parts:
        inside = sp.csr_array(weights[part.nodes][:, part.nodes])
        report = _throttled(progress, before, total)
        made.append(coarsen(inside, part.target, rules, generator, report))
        before += part.nodes.size - part.target
    progress(STAGE, total + 1, total + 1)
    firsts = np.cumsum([0, *(part.target for part in parts)])
    groups = np.concatenate([one.groups + first for one, first in zip(made, firsts, strict=False)])
    columns = np.concatenate([part.nodes for part in parts])
    return Whole(
        matrix=sp.csr_array(
            (np.concatenate([one.shares for one in made]), (groups, columns)),
            shape=(target, weights.shape[0]),
        ),
        weights=sp.csr_array(sp.block_diag([one.weights for one in made])),
        sizes=max((one.sizes for one in made), key=lambda sizes: sizes[0]),
        edges=sum(one.edges for one in made),
        residual=max(one.residual for one in made),
    )


def without_loops(adjacency: sp.csr_array) -> sp.csr_array:
    """The same weights in double precision, without a diagonal."""
    coo = sp.coo_array(adjacency)
    rows, columns = coo.coords
    off = rows != columns
    return sp.csr_array(
        (coo.data[off].astype(np.float64), (rows[off], columns[off])), shape=adjacency.shape
    )


def _throttled(progress: Progress, before: int, total: int) -> Callable[[int], None]:
    """Reports nodes gone so far; what comes after the last is reported by the caller."""
    step = max(1, total // REPORTS)
    reported = -step

    def report(gone: int) -> None:
        nonlocal reported
        if gone >= reported + step:
            reported = gone
            progress(STAGE, before + gone, total + 1)

    return report
