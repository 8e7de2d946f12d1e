r"""Message passing (Eq. 3) on graphs that no single machine holds: :math:`\hat A^k X` in blocks.

Blocks of rows of both matrices lie in Ray's object store, which moves them where they are needed and
writes to disk what does not fit. A unit has in memory its rows of the matrix, its rows of the result
and one block of X at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np
import scipy.sparse as sp
import torch

from gcsr.distributed.pool import Cluster, Unit, connected
from gcsr.distributed.worker import Shared
from gcsr.utils.errors import require
from gcsr.utils.products import Array, RowBlock, Table, read_only
from gcsr.utils.progress import Progress, silent

# -- What a unit of blocked message passing computes: some sparse rows times all blocks of X in turn ---


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


STAGE = "propagating"
# Blocks as they are, or functions that read them where they are worked on.
Rows = RowBlock | Callable[[], RowBlock]
Features = Array | Callable[[], Array]


def propagate(
    rows: Sequence[Rows],
    x: Sequence[Features],
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
    whole = isinstance(hops, int) and not isinstance(hops, bool) and hops >= 0
    require(whole, f"hops: {hops!r} is not accepted; a whole number >= 0 is.")
    require(len(rows) > 0, "rows: at least one block is needed.")
    require(
        len(rows) == len(x),
        f"x: {len(x)} blocks do not match {len(rows)} blocks of rows; cut both at the same rows.",
    )
    with connected(cluster) as units:
        blocks, signal = [_stored(units, r) for r in rows], [_stored(units, f) for f in x]
        looks = [units.give(_sizes, s, near=r) for r, s in zip(blocks, signal, strict=True)]
        sizes: list[tuple[int, int, int]] = units.results(looks)
        _check(sizes)
        cuts = [0, *accumulate(height for height, _, _ in sizes)]
        width = sizes[0][2]
        total = hops * len(blocks)
        for hop in range(hops):
            given = [units.give(_rows_of_product, cuts, width, signal, near=r) for r in blocks]
            done = hop * len(blocks)
            for unit in units.finished(given):
                _raise_failure(units, unit, given)
                done += 1
                progress(STAGE, done, total)
            signal = [Shared(unit.ref) for unit in given]
        while signal:
            # A block goes from the store once it was handed over.
            yield np.array(signal.pop(0).read())


def _stored(cluster: Cluster, source: Rows | Features) -> Shared:
    if callable(source):
        return Shared(cluster.give(_read, source).ref)
    return Shared(cluster.ray.put(source))


def _read(source: Callable[[], RowBlock | Array], progress: Progress) -> RowBlock | Array:
    return source()


def _sizes(block: RowBlock, signal: Shared, progress: Progress) -> tuple[int, int, int]:
    """Rows of the block, and rows and columns of its features."""
    x: Array = signal.read()
    require(
        x.ndim == 2 and x.dtype == np.float32,
        f"x: a block of {x.dtype} {x.shape} is not accepted; float32 matrices are.",
    )
    return block.count, int(x.shape[0]), int(x.shape[1])


def _check(sizes: Sequence[tuple[int, int, int]]) -> None:
    for number, (height, rows, width) in enumerate(sizes):
        require(
            height == rows and width == sizes[0][2],
            f"x: block {number} has {rows} rows and {width} columns; {height} and {sizes[0][2]} are"
            " needed.",
        )


def _rows_of_product(
    block: RowBlock, cuts: list[int], width: int, signal: list[Shared], progress: Progress
) -> Array:
    """The unit: some rows after one hop."""
    require(
        not block.columns.size or 0 <= block.columns.min() <= block.columns.max() < cuts[-1],
        f"rows: a block has a column outside of 0..{cuts[-1] - 1}.",
    )
    blocks = zip(pairwise(cuts), signal, strict=True)
    dense = (
        (first, part.read() if block.touches(first, stop) else None)
        for (first, stop), part in blocks
    )
    return product_of_block(block, width, dense)


def _raise_failure(cluster: Cluster, unit: Unit, given: Sequence[Unit]) -> None:
    """A unit that failed ends the others; what the others made stays where it is."""
    try:
        cluster.check(unit)
    except BaseException:
        cluster.call_off(given)
        raise
