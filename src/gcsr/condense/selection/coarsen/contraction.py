"""Which nodes of a level become one: cheap sets first, none overlapping."""

from __future__ import annotations

import heapq

import numpy as np
import scipy.sparse as sp

from gcsr.condense.selection.coarsen.variation import Variation


def contract_neighbourhoods(weights: sp.csr_array, variation: Variation, budget: int) -> np.ndarray:
    """The new number of every node after contracting closed neighbourhoods, cheapest first.

    A set of s nodes takes s - 1 of the ``budget``. A set that no longer fits is discarded; one that
    lost nodes to a cheaper set is priced again without them. Prices are only renewed when a set
    comes up: one that was not touched since is still right.
    """
    n = weights.shape[0]
    neighbours = np.split(weights.indices, weights.indptr[1:-1])
    sets = {v: np.append(near, v) for v, near in enumerate(neighbours) if near.size}
    heap = [(variation.cost(members), v) for v, members in sets.items()]
    heapq.heapify(heap)
    taken = np.zeros(n, dtype=bool)
    leader = np.arange(n)
    left = budget
    while heap and left > 0:
        _, v = heapq.heappop(heap)
        members = sets[v]
        free = members[~taken[members]]
        if free.size == members.size:
            if free.size - 1 <= left:
                taken[free] = True
                leader[free] = free.min()
                left -= free.size - 1
        elif free.size > 1:
            sets[v] = free
            heapq.heappush(heap, (variation.cost(free), v))
    return numbered(leader)


def contract_edges(weights: sp.csr_array, variation: Variation, budget: int) -> np.ndarray:
    """The same with pairs of neighbours as the only sets: at least one always fits."""
    upper = sp.triu(weights, 1).tocoo()
    first, second = upper.coords
    order = np.argsort(variation.of_pairs(first, second), kind="stable")
    leader = np.arange(weights.shape[0])
    taken = np.zeros(weights.shape[0], dtype=bool)
    left = budget
    for i, j in zip(first[order].tolist(), second[order].tolist(), strict=True):
        if left == 0:
            break
        if not taken[i] and not taken[j]:
            taken[i] = taken[j] = True
            leader[j] = i
            left -= 1
    return numbered(leader)


def numbered(leader: np.ndarray) -> np.ndarray:
    """Groups counted from zero, in the order of their leaders."""
    groups: np.ndarray = np.unique(leader, return_inverse=True)[1]
    return groups


def coarse_weights(weights: sp.csr_array, groups: np.ndarray) -> sp.csr_array:
    """W_c = S'WS without its diagonal, S the 0/1 assignment to groups."""
    count = int(groups.max()) + 1
    assignment = sp.csr_array(
        (np.ones(groups.size), (np.arange(groups.size), groups)), shape=(groups.size, count)
    )
    summed = sp.coo_array(assignment.T @ weights @ assignment)
    rows, columns = summed.coords
    off = rows != columns
    return sp.csr_array((summed.data[off], (rows[off], columns[off])), shape=(count, count))
