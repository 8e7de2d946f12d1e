"""Eq. 2 of a graph on disk: rows of the normalised adjacency, as in memory."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import scipy.sparse as sp

from gcsr.errors import require
from gcsr.graph.stored import StoredAdjacency
from gcsr.models.sparse import scaled_both_sides, symmetric_scale
from gcsr.products import RowBlock

# Entries of the adjacency that are looked at together where only sums are wanted.
ENTRIES_AT_ONCE = 2**18


class NormalisedRows:
    """Rows of Eq. 2; the scale of every node is computed once and kept, eight bytes each."""

    def __init__(self, adjacency: StoredAdjacency, scale: np.ndarray | None = None) -> None:
        self.adjacency, self._scale = adjacency, scale

    @cached_property
    def scale(self) -> np.ndarray:
        """One over the root of every node's degree, its self-connection included."""
        if self._scale is not None:
            return self._scale
        scale = np.empty(self.adjacency.shape[0])
        for start, stop in self.adjacency.cuts(ENTRIES_AT_ONCE, ENTRIES_AT_ONCE):
            looped = _looped(self.adjacency.rows(start, stop), np.arange(start, stop))
            scale[start:stop] = symmetric_scale(looped)
        return scale

    def matrix(self, ids: np.ndarray) -> sp.csr_array:
        """The rows of some nodes in float64; every column."""
        looped = _looped(self.adjacency.take(ids), ids)
        return scaled_both_sides(looped, self.scale[ids], self.scale)

    def rows(self, start: int, stop: int) -> RowBlock:
        """Rows ``start`` up to, not including, ``stop``."""
        return self.take(np.arange(start, stop))

    def take(self, ids: np.ndarray, columns: np.ndarray | None = None) -> RowBlock:
        """The rows of some nodes as float32; ``columns`` are numbered by their place in these."""
        adjacency = self.adjacency
        sizes = adjacency.indptr.take(ids + 1) - adjacency.indptr.take(ids) + 1
        pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        index = np.int32 if adjacency.shape[0] < 2**31 else np.int64
        found = RowBlock(
            pointers,
            np.empty(int(pointers[-1]), index),
            np.empty(int(pointers[-1]), np.float32),
        )
        for first, last in found.cuts():
            part = self.matrix(ids[first:last])
            place = slice(int(pointers[first]), int(pointers[last]))
            require(
                part.nnz == place.stop - place.start,
                f"{adjacency.indices.path}: holds self-loops or repeated entries.",
            )
            named = part.indices if columns is None else np.searchsorted(columns, part.indices)
            found.columns[place], found.values[place] = named, part.data
        return found


@lru_cache(maxsize=1)
def normalised_rows(adjacency: StoredAdjacency, content_hash: str) -> NormalisedRows:
    """The same object for the same content: the scale of every node is computed once."""
    return NormalisedRows(adjacency)


def _looped(rows: sp.csr_array, ids: np.ndarray) -> sp.csr_array:
    """Rows of A + I, sorted; float64, as in memory."""
    # Wider indices than those of the rows would widen the sum's.
    places = (np.asarray(part, rows.indices.dtype) for part in (ids, np.arange(ids.size + 1)))
    own = sp.csr_array((np.ones(ids.size), *places), shape=rows.shape)
    return sp.csr_array(rows + own)
