"""Features of real nodes, dense or sparse: the few operations that everything else uses, and sizes.

Dense features are a strided tensor, sparse ones a torch CSR tensor without stored zeros. What is
unfolded here is a bounded part of sparse features, or all of them within a share of free memory
(:func:`dense`). Sums run over rows in their order, so results are the same bytes every time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.utils.devices import free_memory_bytes
from gcsr.utils.errors import require
from gcsr.utils.products import csr_matrix, csr_tensor, is_sparse, weighted_sums
from gcsr.utils.safe_io import ALWAYS_BYTES

if TYPE_CHECKING:
    from gcsr.data.stored_matrix import StoredMatrix
    from gcsr.models.sparse import SparseOperator

__all__ = [
    "FLOAT", "LABEL_BYTES", "SparseRows", "StoredParts", "column_variance", "csr_matrix", "dense",
    "filled", "from_csr", "is_sparse", "matmul", "nbytes", "propagated", "real_bytes", "row_blocks",
    "row_scale", "select_rows", "sparse_bytes", "stays_sparse", "take_columns", "take_rows",
    "transposed_matmul", "with_ones",
]  # fmt: skip

# A matrix that is given sparse stays so where fewer than one of so many entries are not zero and its
# dense form would take more bytes than these; a smaller one is dense, which costs nothing.
SPARSE_SHARE, SMALL_BYTES = 10, ALWAYS_BYTES
# The share of free memory that an unfolded matrix may take.
DENSE_SHARE = 0.5
# Bytes of rows or columns that are unfolded at a time.
BLOCK_BYTES = 2**26
# Up to so many numbers variances are those of unfolded columns, to the last bit.
MANY_NUMBERS = 2**30
FLOAT, POINTER_BYTES, LABEL_BYTES = 4, 4, 8


def stays_sparse(matrix: sp.csr_array) -> bool:
    """Whether features that are given sparse stay so."""
    size = math.prod(matrix.shape)
    return bool(matrix.nnz * SPARSE_SHARE < size and size * FLOAT > SMALL_BYTES)


def from_csr(
    matrix: sp.csr_array, device: torch.device | None = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    """A scipy matrix, whose arrays it takes over, as sparse features: sorted, without stored zeros."""
    matrix.sum_duplicates()
    if not matrix.data.all():
        matrix.eliminate_zeros()
    index = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else np.int64
    return csr_tensor(matrix, device or torch.device("cpu"), dtype, index, copy=False)


def filled(x: Tensor) -> int:
    """How many entries are not zero."""
    return int(x.values().numel() if is_sparse(x) else torch.count_nonzero(x))


def nbytes(x: Tensor) -> int:
    """Bytes in memory."""
    if not is_sparse(x):
        return x.nbytes
    return sum(part.nbytes for part in (x.values(), x.col_indices(), x.crow_indices()))


def dense(x: Tensor, what: str = "this") -> Tensor:
    """All features as a dense matrix; refused where it would take too much of the free memory."""
    if not is_sparse(x):
        return x
    needed, free = x.numel() * x.element_size(), free_memory_bytes(x.device)
    require(
        needed <= DENSE_SHARE * free,
        f"x must be dense for {what}, got {x.shape[0]:,} x {x.shape[1]:,} sparse features, which would"
        f" take {needed / 2**30:.1f} GiB of {free / 2**30:.1f} GiB of free memory (at most"
        f" {DENSE_SHARE:.0%}); fewer columns, a smaller graph or another method need less.",
    )
    return x.to_dense()


def select_rows(x: Tensor, nodes: Tensor) -> Tensor:
    """Rows of some nodes, sparse if the features are."""
    if not is_sparse(x):
        return x[nodes.to(x.device)]
    return from_csr(csr_matrix(x)[nodes.cpu().numpy()], x.device, x.dtype)


def take_rows(x: Tensor, nodes: Tensor) -> Tensor:
    """Rows of some nodes, dense."""
    if not is_sparse(x):
        return x[nodes.to(x.device)]
    return torch.from_numpy(csr_matrix(x)[nodes.cpu().numpy()].toarray()).to(x.device)


def take_columns(x: Tensor, columns: Tensor) -> Tensor:
    """Some columns, sparse if the features are."""
    if not is_sparse(x):
        return x[:, columns.to(x.device)]
    return from_csr(sp.csr_array(csr_matrix(x)[:, columns.cpu().numpy()]), x.device, x.dtype)


def with_ones(x: Tensor) -> Tensor:
    """One more column, of ones."""
    if not is_sparse(x):
        return torch.cat([x, x.new_ones((x.shape[0], 1))], 1)
    ones = sp.csr_array(np.ones((x.shape[0], 1)), dtype=csr_matrix(x).dtype)
    return from_csr(sp.csr_array(sp.hstack([csr_matrix(x), ones])), x.device, x.dtype)


def matmul(x: Tensor, w: Tensor) -> Tensor:
    """``x @ w`` with dense ``w``."""
    if not is_sparse(x):
        return x @ w
    return weighted_sums(x.crow_indices(), x.col_indices(), x.values(), w)


def transposed_matmul(x: Tensor, w: Tensor) -> Tensor:
    """``x.T @ w`` of sparse features on the CPU with a dense matrix."""
    return torch.from_numpy(csr_matrix(x).T @ w.numpy())


def propagated(operator: SparseOperator, x: Tensor, hops: int = 1) -> Tensor:
    r""":math:`\hat A^k X`, sparse where X is and less than half of the entries can be non-zero."""
    for _ in range(hops):
        if not is_sparse(x):
            x = operator(x)
            continue
        features, matrix = csr_matrix(x), operator.matrix
        most = int(np.diff(features.indptr)[matrix.indices].sum(dtype=np.int64))
        if 2 * most < matrix.shape[0] * x.shape[1]:
            product = sp.csr_array(matrix.astype(features.dtype) @ features)
            x = from_csr(product, x.device, x.dtype)
        else:
            x = operator(dense(x, "features that edges make dense").to(operator.device))
    return x


def row_blocks(x: Tensor) -> Iterator[np.ndarray]:
    """All rows, unfolded a bounded number at a time."""
    matrix = csr_matrix(x) if is_sparse(x) else x.cpu().contiguous().numpy()
    step = max(1, BLOCK_BYTES // (x.element_size() * x.shape[1])) if is_sparse(x) else len(x)
    for start in range(0, x.shape[0], step):
        block = matrix[start : start + step]
        yield block if isinstance(block, np.ndarray) else block.toarray()


def row_scale(x: Tensor) -> Tensor:
    """Every row divided by its absolute sum; rows of zeros stay zero."""
    if not is_sparse(x):
        sums = x.abs().sum(1, keepdim=True)
        return x / torch.where(sums > 0, sums, torch.ones_like(sums))
    # Sums of unfolded rows: the same last bit as in a dense matrix.
    sums = torch.cat([torch.from_numpy(block).abs().sum(1) for block in row_blocks(x)])
    matrix = csr_matrix(x).copy()
    matrix.data /= np.repeat(sums.numpy(), np.diff(matrix.indptr))
    return from_csr(matrix)


def column_variance(x: Tensor) -> Tensor:
    """The variance of every column."""
    if not is_sparse(x):
        return x.var(0)
    matrix = csr_matrix(x).tocsc()
    rows, width = matrix.shape
    if x.numel() <= MANY_NUMBERS:
        step = max(1, BLOCK_BYTES // (FLOAT * rows))
        parts = (matrix[:, i : i + step].toarray() for i in range(0, width, step))
        return torch.cat([torch.from_numpy(np.ascontiguousarray(part)).var(0) for part in parts])
    sums = np.asarray(matrix.sum(0, dtype=np.float64))
    squares = np.asarray(matrix.astype(np.float64).power(2).sum(0))
    return torch.from_numpy((squares - sums**2 / rows) / max(1, rows - 1)).to(x.dtype)


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Sparse features on the CPU whose rows are unfolded, on ``device``, when they are asked for."""

    x: Tensor
    device: torch.device

    def __getitem__(self, nodes: Tensor, /) -> Tensor:
        return take_rows(self.x, nodes).to(self.device)


# -- Bytes in a file: features and edges as compressed sparse rows where that is smaller ---------------


@dataclass(frozen=True)
class StoredParts:
    """Bytes of a graph in a file."""

    features: int
    adjacency: int
    labels: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.features + self.adjacency + self.labels


def sparse_bytes(rows: int, width: int, entries: int, itemsize: int) -> int:
    """Bytes of a matrix as compressed sparse rows, in numbers of ``itemsize`` bytes."""
    column = 2 if width <= 2**15 else 4
    return entries * (itemsize + column) + (rows + 1) * POINTER_BYTES


def real_bytes(
    x: Tensor,
    adjacency: sp.csr_array | StoredMatrix,
    *,
    entries: int | None = None,
    weighted: bool | None = None,
    itemsize: int = FLOAT,
    label_bytes: int = LABEL_BYTES,
) -> StoredParts:
    """Bytes of real nodes, stored as sparingly as a condensed graph is.

    ``entries`` of ``x`` are not zero; they and ``weighted`` are computed where they are not given.
    """
    nodes, width = x.shape
    if entries is None:
        entries = filled(x)
    if weighted is None:
        weighted = bool((adjacency.data != 1).any())
    return StoredParts(
        features=min(nodes * width * itemsize, sparse_bytes(nodes, width, entries, itemsize)),
        adjacency=sparse_bytes(nodes, nodes, adjacency.nnz, itemsize if weighted else 0),
        labels=nodes * label_bytes,
    )
