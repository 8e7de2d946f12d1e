r"""Message passing (Eq. 3) on graphs that no single machine holds: :math:`\hat A^k X` in blocks.

Blocks of rows of both matrices are in Ray's object store, which moves them between machines and spills
to disk. A unit has its rows of the matrix, its rows of the result and one block of X in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np
import scipy.sparse as sp
import torch

from gcsr.distributed.pool import Cluster, connected
from gcsr.distributed.worker import Shared
from gcsr.utils.errors import require, require_integer
from gcsr.utils.products import Array, PartialSums, RowBlock, read_only
from gcsr.utils.progress import Progress, silent


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

    ``dense`` yields blocks from the first to the last row, each with the number of its first row;
    ``None`` stands for one that has no entry here.
    """
    sums = torch.zeros((block.count, width))
    buffer = PartialSums(0, width)
    for first, array in dense:
        if array is None:
            continue
        part, rows = block.between(first, first + array.shape[0]), read_only(array)
        if part.columns.size < rows.shape[0]:
            used, part = part.compacted()
            rows = rows[torch.from_numpy(used.astype(np.int64))]
        buffer.place(rows.shape[0]).copy_(rows)
        buffer.add_to(sums, part)
    return sums.numpy()


STAGE = "propagating"
# Blocks as they are, or functions that read them where they are worked on.
RowSource = RowBlock | Callable[[], RowBlock]
FeatureSource = Array | Callable[[], Array]


def propagate(
    rows: Sequence[RowSource],
    x: Sequence[FeatureSource],
    hops: int,
    *,
    cluster: str | Cluster,
    progress: Progress = silent,
) -> Iterator[Array]:
    """Blocks of the matrix's ``hops``-th power times X, from the first to the last.

    Args:
        rows: a square sparse matrix, such as Eq. 2 of a graph, in blocks of rows
            (:func:`row_blocks`), or functions that read one each; functions are
            called by workers, so that no machine ever has all of them.
        x: float32 features in blocks of the same rows, or functions that read them.
        hops: how many products.
        cluster: ``local``, the ``HOST:PORT`` of a Ray cluster's head, or a connected one.
        progress: called with the blocks that are finished.
    """
    require_integer("hops", hops)
    require(len(rows) > 0, "rows must have at least one block, got none.")
    require(
        len(rows) == len(x),
        f"x must have as many blocks as rows ({len(rows)}), got {len(x)}; cut both at the same rows.",
    )
    with connected(cluster) as units:
        blocks, signal = [_stored(units, r) for r in rows], [_stored(units, f) for f in x]
        asked = [units.submit(_sizes, s, near=r) for r, s in zip(blocks, signal, strict=True)]
        sizes: list[tuple[int, int, int]] = units.results(asked)
        for number, (height, count, width) in enumerate(sizes):
            require(
                height == count and width == sizes[0][2],
                f"x must have {height} rows and {sizes[0][2]} columns in block {number},"
                f" got {count} and {width}.",
            )
        cuts = [0, *accumulate(height for height, _, _ in sizes)]
        width = sizes[0][2]
        total = hops * len(blocks)
        for hop in range(hops):
            given = [units.submit(_rows_of_product, cuts, width, signal, near=r) for r in blocks]
            done = hop * len(blocks)
            try:
                for unit in units.finished(given):
                    units.get(unit.done)  # the result stays in the store
                    done += 1
                    progress(STAGE, done, total)
            except BaseException:
                units.cancel(given)
                raise
            signal = [Shared(unit.ref) for unit in given]
        while signal:
            # The store frees a block once it was yielded.
            yield np.array(signal.pop(0).read())


def _stored(cluster: Cluster, source: RowSource | FeatureSource) -> Shared:
    if callable(source):
        return Shared(cluster.submit(_read, source).ref)
    return Shared(cluster.ray.put(source))


def _read(source: Callable[[], RowBlock | Array], progress: Progress) -> RowBlock | Array:
    return source()


def _sizes(block: RowBlock, signal: Shared, progress: Progress) -> tuple[int, int, int]:
    """Rows of the block, and rows and columns of its features."""
    x: Array = signal.read()
    require(
        x.ndim == 2 and x.dtype == np.float32,
        f"x must be float32 matrices, got {x.dtype} of shape {x.shape}.",
    )
    return block.count, int(x.shape[0]), int(x.shape[1])


def _rows_of_product(
    block: RowBlock, cuts: list[int], width: int, signal: list[Shared], progress: Progress
) -> Array:
    """The unit: some rows after one hop."""
    require(
        not block.columns.size or 0 <= block.columns.min() <= block.columns.max() < cuts[-1],
        f"rows must have columns 0..{cuts[-1] - 1}.",
    )
    blocks = zip(pairwise(cuts), signal, strict=True)
    dense = (
        (first, part.read() if block.touches(first, stop) else None)
        for (first, stop), part in blocks
    )
    return product_of_block(block, width, dense)
