"""What counts as an edge: one rule for every reader.

- Self-loops are dropped: normalization (Eq. 2) adds exactly one to every node.
- Duplicates of an unweighted edge count once; weights of a repeated edge are summed.
- Edges of weight zero are dropped; negative or non-finite weights are an error.
- The adjacency must be symmetric. A directed graph is an error unless the caller asks for its
  reverse edges (``undirected=True``); where both directions exist with different weights, the
  larger one is kept for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from gcsr.data.array_file import ArrayWriter
from gcsr.data.arrays import converts, kind_of
from gcsr.utils.errors import require

# Differences in the last bits of sums of float32 do not make a graph directed.
TOLERANCE = 1e-6
LARGEST = float(np.finfo(np.float32).max)


def adjacency_from_edges(
    sources: ArrayLike,
    targets: ArrayLike,
    num_nodes: int,
    weights: ArrayLike | None = None,
    *,
    undirected: bool = False,
) -> sp.csr_array:
    """Clean symmetric CSR adjacency from an edge list, by the rules of this module."""
    rows, columns = np.asarray(sources), np.asarray(targets)
    require(
        rows.ndim == 1 and rows.shape == columns.shape,
        f"edges must have sources and targets of equal length, got {rows.shape} and {columns.shape}.",
    )
    if rows.size:
        require_node_ids(num_nodes, rows, columns)
    values = np.ones(rows.size, np.float32) if weights is None else _weights(weights, rows.size)
    matrix = sp.coo_array((values, (rows, columns)), shape=(num_nodes, num_nodes))
    return clean_adjacency(matrix, weighted=weights is not None, undirected=undirected)


def clean_adjacency(
    matrix: sp.spmatrix | sp.sparray, *, weighted: bool, undirected: bool = False
) -> sp.csr_array:
    """Apply the rules of this module to a square sparse matrix; the input is left unchanged."""
    require(
        matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1],
        f"edges must be a square matrix, got shape {matrix.shape}.",
    )
    coo = sp.coo_array(matrix)
    values = _weights(coo.data, coo.data.size) if weighted else (coo.data != 0).astype(np.float32)
    keep = (coo.row != coo.col) & (values != 0)
    cleaned = sp.csr_array((values[keep], (coo.row[keep], coo.col[keep])), shape=coo.shape)
    cleaned.sum_duplicates()
    if not weighted:
        cleaned.data = np.ones_like(cleaned.data)
    require_weights(cleaned.data)
    reverse = cleaned.T.tocsr()
    if undirected:
        cleaned = sp.csr_array(cleaned.maximum(reverse))
    else:
        # Without abs: of two entries that differ, only the larger one is counted.
        excess = cleaned - reverse
        if excess.nnz:
            largest = cleaned.maximum(reverse)
            differing = int((excess > TOLERANCE * largest).sum())
            require_undirected(differing, cleaned.nnz, one_way=largest.nnz > cleaned.nnz)
    cleaned.sum_duplicates()  # sorts the columns of a row, too
    return read_only(cleaned)


def read_only(matrix: sp.csr_array) -> sp.csr_array:
    """The same matrix, whose arrays cannot be written to."""
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.setflags(write=False)
    return matrix


def _weights(weights: ArrayLike, count: int) -> np.ndarray:
    values = np.asarray(weights)
    require(
        values.shape == (count,),
        f"edge_weights must have one number per edge ({count}), got shape {values.shape}.",
    )
    require(values.dtype.kind in "iuf", f"edge_weights must be numbers, got {values.dtype}.")
    require_weights(values)
    return values.astype(np.float32)


def require_node_ids(num_nodes: int, *ids: np.ndarray) -> None:
    """Refuse sources or targets that are no node ids."""
    for array in ids:
        require(
            array.dtype.kind in "iu",
            f"edges must be integers, got {kind_of(array)}; {_as_integers(array)}.",
        )
    low = min((int(array.min()) for array in ids if array.size), default=0)
    high = max((int(array.max()) for array in ids if array.size), default=0)
    from_one = "; subtract 1 from ids that begin at 1" if low == 1 and high == num_nodes else ""
    require(
        low >= 0 and high < num_nodes,
        f"edges must be node ids 0..{num_nodes - 1}, got {low if low < 0 else high}{from_one}.",
    )


def _as_integers(array: np.ndarray) -> str:
    """What makes node ids of other types; texts that are no digits need a reader that numbers them."""
    if array.dtype.kind in "OSU" and not converts(array, "int64"):
        return "node ids of NetworkX graphs and of pandas frames may be texts"
    return "edges.astype('int64') converts them"


def require_weights(values: np.ndarray) -> None:
    """Refuse weights that are not finite, negative or beyond float32."""
    finite = bool(np.isfinite(values).all())
    wrong = values[~np.isfinite(values)][0] if not finite else values.max(initial=0)
    require(
        finite and bool(wrong <= LARGEST),
        f"edge_weights must be finite and at most 3.4e38 (float32), also the sum of a repeated edge,"
        f" got {wrong}; numpy.nan_to_num(edge_weights, posinf=0)"
        " replaces NaN and infinity.",
    )
    lowest = values.min(initial=0)
    require(bool(lowest >= 0), f"edge_weights must be >= 0, got {lowest}.")


# What functions without this option replace in the sentences below.
UNDIRECTED_HINT = "pass undirected=True"


def require_undirected(differing: int, entries: int, *, one_way: bool) -> None:
    """Refuse a directed graph, and name what makes it undirected.

    ``one_way`` is whether an edge lacks its reverse: otherwise only weights differ.
    """
    require(
        one_way or not differing,
        f"edge_weights must be equal in both directions, got {differing} of {entries // 2} edges"
        f" with two weights; {UNDIRECTED_HINT} to keep the larger one.",
    )
    require(
        not differing,
        f"edges must be undirected, got {differing} of {entries} entries that differ from their"
        f" reverse; {UNDIRECTED_HINT} to add the reverse edges.",
    )


# -- An adjacency on disk from edges that come in blocks ----------------------------------------------

# At least so many files of edges, and so many bits' worth of nodes in each.
BUCKETS, NODES_PER_BUCKET = 64, 16
_PLAIN: np.dtype = np.dtype("<i8")
_WEIGHTED: np.dtype = np.dtype([("key", "<i8"), ("weight", "<f8")])


class EdgeBlocks:
    """Takes edges in any order and writes ``indptr.npy``, ``indices.npy`` and ``weights.npy``.

    Never more than a part of them is in memory: every edge is put, once in each direction, into the
    bucket of its row; buckets are then sorted, cleaned and written one after the other.
    """

    def __init__(self, folder: Path, nodes: int) -> None:
        require(0 < nodes < 2**31, f"nodes must be 1..{2**31 - 1}, got {nodes}.")
        self._folder, self._nodes = folder, nodes
        self._kind: np.dtype | None = None  # of records; set by the first edges
        self._shift = max(1, (nodes - 1).bit_length())
        self._rows = -(-nodes // max(BUCKETS, nodes >> NODES_PER_BUCKET))

    def add(
        self, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None = None
    ) -> None:
        """Add edges, all of them with or without weights; loops and zero weights are dropped."""
        require_node_ids(self._nodes, sources, targets)
        keep = sources != targets
        kind = _PLAIN if weights is None else _WEIGHTED
        if weights is not None:
            require_weights(weights)
            keep &= weights != 0
        if self._kind not in (None, kind):
            raise RuntimeError("all edges have weights, or none")
        self._kind = kind
        there, back = sources[keep].astype(np.int64), targets[keep].astype(np.int64)
        pairs, reverse = (there << self._shift) | back, (back << self._shift) | there
        # The lowest bit distinguishes an edge from its reverse.
        keys = np.concatenate([pairs << 1, reverse << 1 | 1])
        if weights is None:
            keys.sort()
            records = keys
        else:
            order = np.argsort(keys, kind="stable")
            records = np.empty(keys.size, kind)
            keys = records["key"] = keys[order]
            records["weight"] = np.tile(weights[keep], 2)[order]
        firsts = [first << (self._shift + 1) for first, _ in self._spans()]
        cuts = [*np.searchsorted(keys, firsts), keys.size]
        for number, (start, stop) in enumerate(pairwise(cuts)):
            if stop > start:
                with self._bucket(number).open("ab") as stream:
                    stream.write(np.ascontiguousarray(records[start:stop]).data)

    def finish(self, *, undirected: bool) -> None:
        """Write the arrays."""
        directed, one_way = 0, False
        with (
            ArrayWriter(self._folder / "indptr.npy", "<i8") as pointers,
            ArrayWriter(self._folder / "indices.npy", "<i4") as columns,
            ArrayWriter(self._folder / "weights.npy", "<f4") as values,
        ):
            pointers.append(np.zeros(1, np.int64))
            heavy = False
            for bucket, (first, stop) in enumerate(self._spans()):
                pairs, weights, lonely, missing = self._cleaned(bucket, undirected=undirected)
                directed += lonely
                one_way = one_way or missing
                counts = np.bincount((pairs >> self._shift) - first, minlength=stop - first)
                pointers.append(columns.rows + np.cumsum(counts))
                columns.append(pairs & ((1 << self._shift) - 1))
                if weights is not None:
                    heavy = heavy or bool((weights != 1).any())
                    values.append(weights)
            if not undirected:
                require_undirected(directed, columns.rows, one_way=one_way)
            for writer in (pointers, columns, values):
                writer.finish()
        if not heavy:
            # Where every weight is one there are no weights.
            (self._folder / "weights.npy").unlink()

    def _spans(self) -> Iterator[tuple[int, int]]:
        for first in range(0, self._nodes, self._rows):
            yield first, min(self._nodes, first + self._rows)

    def _bucket(self, number: int) -> Path:
        return self._folder / f"edges-{number}.bucket"

    def _cleaned(
        self, bucket: int, *, undirected: bool
    ) -> tuple[np.ndarray, np.ndarray | None, int, bool]:
        """Distinct pairs of a bucket in order, and their weights.

        Also how many have no equal reverse, and whether any has none at all.
        """
        path = self._bucket(bucket)
        kind = _PLAIN if self._kind is None else self._kind
        records = np.fromfile(path, kind) if path.is_file() else np.empty(0, kind)
        path.unlink(missing_ok=True)
        if kind is _PLAIN:
            pairs = np.unique(records) >> 1
            distinct = np.unique(pairs)
            # A pair that came in both directions is there twice.
            lonely = 2 * distinct.size - pairs.size
            return distinct, None, lonely, lonely > 0
        records = records[np.argsort(records["key"], kind="stable")]
        keys, places = np.unique(records["key"], return_index=True)
        sums = np.add.reduceat(records["weight"], places) if keys.size else np.empty(0)
        pairs = keys >> 1
        distinct = np.unique(pairs)
        both = np.zeros((2, distinct.size))
        both[keys & 1, np.searchsorted(distinct, pairs)] = sums
        there, back = both
        largest = np.maximum(there, back)
        require_weights(largest)
        lonely = int((there - back > TOLERANCE * largest).sum())
        if not undirected:
            distinct, largest = distinct[there > 0], there[there > 0]
        return distinct, largest.astype(np.float32), lonely, bool((both == 0).any())
