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

from gcsr.utils.errors import InputError, require

_TOO_LARGE = "edge weights: a weight, or the sum of a repeated edge, is beyond float32 (3.4e38)."


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
        f"edges: sources {rows.shape} and targets {columns.shape} must be lists of equal length.",
    )
    if rows.size:
        require(
            rows.dtype.kind in "iu" and columns.dtype.kind in "iu",
            f"edges: node ids must be integers, not {rows.dtype}.",
        )
        low = int(min(rows.min(), columns.min()))
        high = int(max(rows.max(), columns.max()))
        require(
            low >= 0 and high < num_nodes,
            f"edges: node id {low if low < 0 else high} is outside 0..{num_nodes - 1}.",
        )
    values = np.ones(rows.size, np.float32) if weights is None else _weights(weights, rows.size)
    matrix = sp.coo_array((values, (rows, columns)), shape=(num_nodes, num_nodes))
    return clean_adjacency(matrix, weighted=weights is not None, undirected=undirected)


def clean_adjacency(
    matrix: sp.spmatrix | sp.sparray, *, weighted: bool, undirected: bool = False
) -> sp.csr_array:
    """Apply the rules of this module to a square sparse matrix; the input is left unchanged."""
    require(
        matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1],
        f"edges: the adjacency must be square, not {matrix.shape}.",
    )
    coo = sp.coo_array(matrix)
    values = _weights(coo.data, coo.data.size) if weighted else (coo.data != 0).astype(np.float32)
    keep = (coo.row != coo.col) & (values != 0)
    cleaned = sp.csr_array((values[keep], (coo.row[keep], coo.col[keep])), shape=coo.shape)
    cleaned.sum_duplicates()
    if not weighted:
        cleaned.data = np.ones_like(cleaned.data)
    require(bool(np.isfinite(cleaned.data).all()), _TOO_LARGE)
    # Sums of float32 may differ in their last bit between (i, j) and (j, i).
    reverse = cleaned.T.tocsr()
    if undirected:
        cleaned = sp.csr_array(cleaned.maximum(reverse))
    else:
        _require_symmetric(cleaned, reverse)
    cleaned.sum_duplicates()
    cleaned.sort_indices()
    for array in (cleaned.data, cleaned.indices, cleaned.indptr):
        array.setflags(write=False)
    return cleaned


def _weights(weights: ArrayLike, count: int) -> np.ndarray:
    values = np.asarray(weights)
    require(
        values.shape == (count,),
        f"edge weights: shape {values.shape} does not match {count} edges.",
    )
    require(values.dtype.kind in "iuf", f"edge weights: must be numbers, not {values.dtype}.")
    require(bool(np.isfinite(values).all()), "edge weights: contain NaN or infinity.")
    lowest = values.min(initial=0)
    require(bool(lowest >= 0), f"edge weights: {lowest} is negative; accepted: >= 0.")
    require(bool((values <= np.finfo(np.float32).max).all()), _TOO_LARGE)
    return values.astype(np.float32)


def _require_symmetric(matrix: sp.csr_array, reverse: sp.csr_array) -> None:
    # Without abs: of two entries that differ, only the larger one is counted.
    excess = matrix - reverse
    unmatched = int((excess > 1e-6 * matrix.maximum(reverse)).sum()) if excess.nnz else 0
    if unmatched:
        raise InputError(
            f"edges: the graph is directed ({unmatched} of {matrix.nnz} entries differ from their "
            "reverse) and an undirected one is needed; pass undirected=True (command line: "
            "--undirected) to add the reverse edges."
        )
