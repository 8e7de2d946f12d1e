"""What a unit of blocked message passing computes: some sparse rows times all blocks of X in turn."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy.sparse as sp
import torch

from gcsr.products import Array, RowBlock, Table, read_only


def row_blocks(matrix: sp.csr_array, rows: int) -> list[RowBlock]:
    """A matrix cut into blocks of so many rows, its entries in float32."""
    found = []
    for first in range(0, matrix.shape[0], rows):
        part = matrix[first : first + rows]
        part.sort_indices()
        found.append(RowBlock.of(part))
    return found


def product_of_block(
    block: RowBlock, width: int, dense: Iterable[tuple[int, Array | None]]
) -> Array:
    """The product of some sparse rows and a dense matrix of ``width`` columns, float32.

    ``dense`` gives the matrix in blocks from its top to its bottom, each with the number of its first
    row; only one of them needs to be in memory. ``None`` stands for one without an entry here.
    """
    sums = torch.zeros((block.count, width))
    table = Table(0, width)
    for first, array in dense:
        if array is None:
            continue
        part, rows = block.between(first, first + array.shape[0]), read_only(array)
        if part.columns.size < rows.shape[0]:
            used, part = part.compacted()
            rows = rows[torch.from_numpy(used.astype(np.int64))]
        table.place(rows.shape[0]).copy_(rows)
        table.add_to(sums, part)
    return sums.numpy()
