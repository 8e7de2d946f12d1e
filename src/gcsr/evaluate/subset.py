"""A random part of the real graph that takes as many bytes as a condensed one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.condense.labels import class_budget
from gcsr.devices import stream
from gcsr.graph.size import StoredParts, stored_parts
from gcsr.views import Target, VisibleGraph


def real_bytes(x: Tensor, adjacency: sp.csr_array, *, itemsize: int = 4) -> StoredParts:
    """Bytes of real nodes, stored as sparingly as a condensed graph is."""
    shape = int(x.shape[0]), int(x.shape[1])
    weighted = bool((adjacency.data != 1).any())
    filled = int(torch.count_nonzero(x))
    return stored_parts(shape, filled, int(adjacency.nnz), weighted=weighted, itemsize=itemsize)


@dataclass(frozen=True, eq=False)
class Subset:
    """Some training nodes and the edges among them; ``note`` says if it could not be as asked."""

    target: Target
    size: StoredParts
    note: str | None = None


def random_subsets(
    visible: VisibleGraph, budget: int, itemsize: int, seed: int, count: int
) -> list[Subset]:
    """Subsets of several seeds; of all training nodes there is only one."""
    first = random_subset(visible, budget, itemsize=itemsize, seed=seed)
    if first.target.nodes.numel() == visible.train.numel():
        return [first] * count
    others = range(seed + 1, seed + count)
    return [first, *(random_subset(visible, budget, itemsize=itemsize, seed=s) for s in others)]


def random_subset(visible: VisibleGraph, budget: int, *, itemsize: int, seed: int) -> Subset:
    """As many random training nodes, class by class, as fit into ``budget`` bytes.

    Classes share them as in :func:`~gcsr.condense.labels.class_budget`, that is as Random does.
    """
    generator = stream(seed, "random subset of the same bytes")
    order = visible.train[torch.randperm(visible.train.numel(), generator=generator)]
    by_class = [order[visible.labels[order] == c] for c in range(visible.num_classes)]

    def of_size(nodes: int) -> Subset:
        shares = class_budget(visible.train_labels, visible.num_classes, nodes)
        parts = [ids[:count] for ids, count in zip(by_class, shares.tolist(), strict=True)]
        return _part(visible, torch.cat(parts).sort().values, itemsize)

    least = sum(ids.numel() > 0 for ids in by_class)
    fits, beyond = least, visible.train.numel() + 1
    # Bytes grow with the nodes, but for the luck of the draw in a class: the last word is below.
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        fits, beyond = (middle, beyond) if of_size(middle).size.total <= budget else (fits, middle)
    subset = of_size(fits)
    if subset.size.total > budget:
        note = (
            f"a random subset of {budget:,} bytes does not exist: a node of every class takes"
            f" {subset.size.total:,}"
        )
        return Subset(subset.target, subset.size, note)
    if fits == visible.train.numel():
        note = (
            f"the random subset is all {fits:,} training nodes: they take {subset.size.total:,} bytes,"
            f" and {budget:,} were allowed"
        )
        return Subset(subset.target, subset.size, note)
    return subset


def _part(visible: VisibleGraph, nodes: Tensor, itemsize: int) -> Subset:
    ids = np.asarray(nodes)
    adjacency = sp.csr_array(visible.adjacency[ids][:, ids])
    x = visible.x[nodes]
    if itemsize == 2:
        # Where the condensed graph is stored in half precision, so is its rival.
        x = x.half().float()
    target = Target(x, adjacency, torch.arange(nodes.numel()), visible.labels[nodes])
    return Subset(target, real_bytes(x, adjacency, itemsize=itemsize))
