"""Rows of a sparse product, one block of the dense side after the other: the same bytes as at once.

A row is summed in the order of its columns. A sum that goes on in the next block of columns begins
there as one more summand, of weight one, which changes no bit of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some rows of a sparse matrix.

    Args:
        pointers: where each row begins in the other two, from zero; one more than there are rows.
        columns: ascending within a row.
        values: float32.
    """

    pointers: Array
    columns: Array
    values: Array

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.pointers.size) - 1


def row_blocks(matrix: sp.csr_array, rows: int) -> list[RowBlock]:
    """A matrix cut into blocks of so many rows, its entries in float32."""
    found = []
    for first in range(0, matrix.shape[0], rows):
        part = matrix[first : first + rows]
        part.sort_indices()
        found.append(RowBlock(part.indptr, part.indices, part.data.astype(np.float32)))
    return found


def product_of_block(
    block: RowBlock, width: int, dense: Iterable[tuple[int, Array | None]]
) -> Array:
    """The product of some sparse rows and a dense matrix of ``width`` columns, float32.

    ``dense`` gives the matrix in blocks from its top to its bottom, each with the number of its first
    row; only one of them needs to be in memory. ``None`` stands for one without an entry here.
    """
    owners = np.repeat(np.arange(block.count), np.diff(block.pointers))
    sums = torch.zeros((block.count, width))
    for first, rows in dense:
        if rows is None:
            continue
        inside = (block.columns >= first) & (block.columns < first + rows.shape[0])
        if inside.any():
            columns = block.columns[inside] - first
            _add(sums, owners[inside], columns, block.values[inside], read_only(rows))
    return sums.numpy()


def touches(block: RowBlock, first: int, stop: int) -> bool:
    """Whether a block has an entry in columns ``first`` up to, not including, ``stop``."""
    return bool(((block.columns >= first) & (block.columns < stop)).any())


def _add(sums: Tensor, owners: Array, columns: Array, values: Array, rows: Tensor) -> None:
    counts = np.bincount(owners, minlength=sums.shape[0])
    touched = np.flatnonzero(counts)
    if columns.size < rows.shape[0]:
        used, columns = np.unique(columns, return_inverse=True)
        rows = rows[torch.from_numpy(used.astype(np.int64))]
    pointers = np.concatenate([[0], np.cumsum(counts[touched] + 1)])
    so_far = np.zeros(int(pointers[-1]), bool)
    so_far[pointers[:-1]] = True
    places = np.empty(so_far.size, np.int64)
    places[so_far] = np.arange(touched.size)
    places[~so_far] = columns + touched.size
    weights = np.ones(so_far.size, np.float32)
    weights[~so_far] = values
    own = torch.from_numpy(touched)
    added = torch.nn.functional.embedding_bag(
        torch.from_numpy(places),
        torch.cat([sums[own], rows]),
        torch.from_numpy(pointers),
        mode="sum",
        per_sample_weights=torch.from_numpy(weights),
        include_last_offset=True,
    )
    sums.index_copy_(0, own, added)


def read_only(array: Array) -> Tensor:
    """A tensor over memory that nobody writes to."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
        return torch.from_numpy(array)
