"""What counts as an edge: one rule for every reader.

- Self-loops are dropped: normalization (Eq. 2) adds exactly one to every node.
- Duplicates of an unweighted edge count once; weights of a repeated edge are summed.
- Edges of weight zero are dropped; negative or non-finite weights are an error.
- The adjacency must be symmetric. A directed graph is an error unless the caller asks for its
  reverse edges (``undirected=True``); where both directions exist with different weights, the
  larger one is kept for both.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

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
        large = excess > TOLERANCE * cleaned.maximum(reverse) if excess.nnz else excess
        require_undirected(int(large.sum()), cleaned.nnz)
    cleaned.sum_duplicates()
    cleaned.sort_indices()
    for array in (cleaned.data, cleaned.indices, cleaned.indptr):
        array.setflags(write=False)
    return cleaned


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
            f"edges must be integers, got {array.dtype}; edges.astype('int64') converts them.",
        )
    low = min((int(array.min()) for array in ids if array.size), default=0)
    high = max((int(array.max()) for array in ids if array.size), default=0)
    from_one = "; subtract 1 from ids that begin at 1" if low == 1 and high == num_nodes else ""
    require(
        low >= 0 and high < num_nodes,
        f"edges must be node ids 0..{num_nodes - 1}, got {low if low < 0 else high}{from_one}.",
    )


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


def require_undirected(differing: int, entries: int) -> None:
    """Refuse a directed graph, and name what makes it undirected."""
    require(
        not differing,
        f"edges must be undirected, got {differing} of {entries} entries that differ from their"
        " reverse; pass undirected=True (command line: --undirected) to add the reverse edges.",
    )
