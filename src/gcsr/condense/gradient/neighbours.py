"""Neighbourhoods of a few nodes in a large sparse graph: all of them, or a random sample.

Samples are drawn from the rows of an operator that is already normalised and keep its weights as they
are, as in GCond; a self-connection counts as one of the neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True, eq=False)
class Chain:
    """Propagation from far to near: one matrix per hop, the outermost last.

    ``support`` are the nodes that the outermost matrix reads from.
    """

    hops: tuple[sp.csr_array, ...]
    support: np.ndarray

    def product(self, start: int, stop: int) -> sp.csr_array | None:
        """Hops ``start`` up to ``stop`` as one matrix; ``None`` if there is none."""
        result: sp.csr_array | None = None
        for matrix in self.hops[start:stop]:
            result = matrix if result is None else sp.csr_array(result @ matrix)
        return result


def chain(
    operator: sp.csr_array,
    nodes: np.ndarray,
    fan_outs: Sequence[int | None],
    rng: np.random.Generator,
) -> Chain:
    """Hops from ``nodes`` outwards; a fan-out of ``None`` takes every neighbour."""
    hops = []
    for fan_out in fan_outs:
        taken = operator[nodes] if fan_out is None else sampled_rows(operator, nodes, fan_out, rng)
        support = np.unique(taken.indices)
        columns = np.searchsorted(support, taken.indices)
        shape = (nodes.size, support.size)
        hops.append(sp.csr_array((taken.data, columns, taken.indptr), shape=shape))
        nodes = support
    return Chain(tuple(hops), nodes)


def sampled_rows(
    operator: sp.csr_array, nodes: np.ndarray, fan_out: int, rng: np.random.Generator
) -> sp.csr_array:
    """Rows of an operator with at most ``fan_out`` entries each, drawn without replacement.

    Floyd's algorithm for all rows at once: time grows with the entries drawn, not with degrees.
    """
    begins = operator.indptr[nodes].astype(np.int64)
    degrees = operator.indptr[nodes + 1].astype(np.int64) - begins
    places = np.tile(np.arange(fan_out), (nodes.size, 1))
    large = np.flatnonzero(degrees > fan_out)
    picks = np.empty((large.size, fan_out), np.int64)
    for step in range(fan_out):
        last = degrees[large] - fan_out + step
        draw = (rng.random(large.size) * (last + 1)).astype(np.int64)
        seen = (picks[:, :step] == draw[:, None]).any(1)
        picks[:, step] = np.where(seen, last, draw)
    places[large] = picks
    counts = np.minimum(degrees, fan_out)
    entries = (begins[:, None] + places)[np.arange(fan_out) < counts[:, None]]
    pointers = np.concatenate([[0], np.cumsum(counts)])
    return sp.csr_array(
        (operator.data[entries], operator.indices[entries], pointers),
        shape=(nodes.size, operator.shape[1]),
    )


def walks_from(operator: sp.csr_array, nodes: np.ndarray, hops: int) -> int:
    """How many walks of ``hops`` steps leave ``nodes``: a bound on the size of their neighbourhood."""
    ones = sp.csr_array(
        (np.ones(operator.nnz), operator.indices, operator.indptr), shape=operator.shape
    )
    walks = np.ones(operator.shape[0])
    for _ in range(hops):
        walks = ones @ walks
    return int(walks[nodes].sum())
