"""Message passing on disk (Eq. 3): Â^k X as files; an interrupted run continues where it stopped.

Sparse features stay sparse while less than half of the entries can be other than zero, as in memory
(:func:`gcsr.data.features.propagated`).
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gcsr.data.array_file import HEADER_BYTES, ArrayFile, ArrayWriter
from gcsr.data.stored_graph import SCRATCH_VARIABLE, OnDisk
from gcsr.data.stored_matrix import StoredFeatures, StoredMatrix
from gcsr.distributed.pool import Cluster
from gcsr.distributed.worker import Shared
from gcsr.models.sparse import scaled, symmetric_scale, with_loops
from gcsr.outofcore.products import DenseRows, DenseSide, Ones, stored
from gcsr.utils.errors import InputError, require
from gcsr.utils.products import ENTRIES_TOGETHER, RowBlock
from gcsr.utils.progress import Progress, silent
from gcsr.utils.safe_io import accessing, lock_file, write_atomically

# Entries of the adjacency that are read together where only sums are computed.
ENTRIES_AT_ONCE = 2**18
# Units on a cluster at a time, for each CPU: their results wait in the object store.
UNITS_PER_CPU = 2
# Seconds of work that a killed run may lose.
SAVE_EVERY = 5.0
# Bytes of an entry of the adjacency while its row is multiplied: indices, values, their copies.
ENTRY_BYTES = 16
# Bytes of an entry of sparse features while it is multiplied: what is read, its copies, the product.
SPARSE_BYTES = 48
STAGE = "propagating"
Dense = DenseRows | Ones
# The type of a file's numbers, and its columns (``None``: a list).
Kind = tuple[str, int | None]


class NormalizedRows:
    """Rows of the normalized adjacency (Eq. 2); the scale of every node is computed once."""

    def __init__(self, adjacency: StoredMatrix, scale: np.ndarray | None = None) -> None:
        self.adjacency = adjacency
        if scale is not None:
            self.scale = scale

    @cached_property
    def scale(self) -> np.ndarray:
        """One over the root of every node's degree, its self-loop included."""
        scale = np.empty(self.adjacency.shape[0])
        for start, stop in self.adjacency.cuts(ENTRIES_AT_ONCE, ENTRIES_AT_ONCE):
            looped = with_loops(self.adjacency.rows(start, stop), np.arange(start, stop))
            scale[start:stop] = symmetric_scale(looped)
        return scale

    def matrix(self, ids: np.ndarray) -> sp.csr_array:
        """The rows of some nodes in float64; every column."""
        return scaled(with_loops(self.adjacency.take(ids), ids), self.scale[ids], self.scale)

    def take(self, ids: np.ndarray, columns: np.ndarray | None = None) -> RowBlock:
        """The rows of some nodes as float32; ``columns`` are numbered by their place in these."""
        adjacency = self.adjacency
        sizes = adjacency.indptr.take(ids + 1) - adjacency.indptr.take(ids) + 1
        pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        index = np.int32 if adjacency.shape[0] < 2**31 else np.int64
        entries = int(pointers[-1])
        found = RowBlock(pointers, np.empty(entries, index), np.empty(entries, np.float32))
        for first, last in found.cuts():
            part = self.matrix(ids[first:last])
            place = slice(int(pointers[first]), int(pointers[last]))
            require(
                part.nnz == place.stop - place.start,
                f"{adjacency.indices.path}: must have no self-loops or repeated entries; gcsr convert"
                " writes the folder again.",
            )
            named = part.indices if columns is None else np.searchsorted(columns, part.indices)
            found.columns[place], found.values[place] = named, part.data
        return found


@lru_cache(maxsize=1)
def _normalized_rows(adjacency: StoredMatrix, content_hash: str) -> NormalizedRows:
    """The same object for the same content, so that the scale is computed once."""
    return NormalizedRows(adjacency)


@dataclass(frozen=True)
class BlockSizes:
    """Sizes of blocks: rows and entries of the result, and rows of the dense side."""

    rows: int
    entries: int
    columns: int

    @classmethod
    def of(cls, disk: OnDisk, width: int) -> BlockSizes:
        """Half of the memory for rows of the dense side, half for rows of the result.

        Large blocks of the result save reading the dense side again; where it fits, small ones stay
        in the processor's cache.
        """
        half, nodes = disk.memory // 2, disk.num_nodes
        columns = max(256, half // (4 * width))
        entries = max(4096, half // ENTRY_BYTES)
        if nodes <= columns:
            entries = min(entries, ENTRIES_TOGETHER)
        degree = 1 + disk.adjacency.nnz / nodes
        rows = int(half / (4 * width + ENTRY_BYTES * (degree + 1)))
        return cls(rows=max(64, rows), entries=entries, columns=columns)


def cut_at(ends: np.ndarray, room: int, most: int | None = None) -> Iterator[tuple[int, int]]:
    """Places in parts of at most ``most`` within ``room``, from the sums up to each place.

    One place beyond the room is a part of its own.
    """
    start = 0
    while start < ends.size:
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + room, "right"))
        stop = max(start + 1, stop if most is None else min(stop, start + most))
        yield start, stop
        start = stop


def sparse_product(rows: RowBlock, read: Callable[[np.ndarray], sp.csr_array]) -> sp.csr_array:
    """Sparse rows times a sparse matrix of which only the rows that have an entry are read."""
    used, narrow = rows.compacted()
    arrays = (narrow.values, narrow.columns, narrow.pointers)
    return sp.csr_array(sp.csr_array(arrays, shape=(rows.count, used.size)) @ read(used))


def _products(
    normalized: NormalizedRows,
    disk: OnDisk,
    dense: Sequence[Dense],
    ranges: Iterable[tuple[int, int]],
    sparse: StoredFeatures | None = None,
) -> Iterator[list[np.ndarray]]:
    """Ranges of rows of Eq. 2 times each of the dense matrices.

    Before these comes the product with ``sparse`` features: ends of rows, columns and values.
    """
    sides = [DenseSide(one, BlockSizes.of(disk, one.shape[1]).columns) for one in dense]
    for first, stop in ranges:
        rows = normalized.take(np.arange(first, stop))
        products = [side.times(rows).numpy() for side in sides]
        if sparse is not None:
            found = sparse_product(rows, sparse.matrix.take)
            found.sort_indices()
            found.eliminate_zeros()
            products = [found.indptr[1:], found.indices, found.data, *products]
        yield products


def _unit(shared: Shared, rows: tuple[int, int], progress: Progress) -> list[np.ndarray]:
    """One range on a worker of a cluster."""
    disk, scale, dense, sparse = shared.get()
    return next(_products(NormalizedRows(disk.adjacency, scale), disk, dense, [rows], sparse))


class Propagated:
    """Propagated features of a graph on disk, computed here or on a cluster: the same bytes.

    Each worker of a cluster takes its share of the memory.
    """

    def __init__(
        self, disk: OnDisk, progress: Progress = silent, cluster: Cluster | None = None
    ) -> None:
        if cluster is not None:
            disk = replace(disk, memory=disk.memory // max(1, cluster.cpus))
        self.disk, self._progress, self._cluster = disk, progress, cluster
        self.normalized = _normalized_rows(disk.adjacency, disk.content_hash)

    def features(self, hops: int) -> ArrayFile | StoredFeatures:
        """Features after so many hops; computed if no earlier run did."""
        return self._files(hops)[0] if hops else self.disk.features

    def ones(self, hops: int) -> ArrayFile:
        """A column of ones after so many hops, which carries the biases of a linear network."""
        return self._files(hops)[1]

    def _files(self, hops: int) -> tuple[ArrayFile | StoredFeatures, ArrayFile]:
        require(hops > 0, f"hops must be >= 1, got {hops}.")
        if (known := self._known(hops)) is not None:
            return known
        folder = self.disk.scratch
        refusal = f"{folder}: propagated features cannot be written there"
        with accessing(refusal, f"; name another folder with {SCRATCH_VARIABLE}"):
            folder.mkdir(parents=True, exist_ok=True)
            lock = (folder / ".lock").open("w")
        with lock:
            # Other processes that need the same files wait, and then find them. Without locks the last
            # process writes the same bytes.
            with suppress(OSError):
                lock_file(lock.fileno(), wait=True)
            before: tuple[Dense, Dense] = (self.disk.features, Ones(self.disk.num_nodes))
            for hop in range(1, hops + 1):
                done = self._known(hop) or self._hop(hop, hops, before)
                # Freeing the page cache of the features before makes writing the next hop faster.
                if hop < hops and isinstance(before[0], ArrayFile):
                    before[0].forget()
                before = done
        return done

    def _paths(self, hop: int, *, sparse: bool) -> list[Path]:
        """Files of the features, the one that is renamed last first, and of ones."""
        key = f"{hop}-{self.disk.content_hash[:16]}"
        names = [f"features-{key}"]
        if sparse:
            names = [f"features-{key}-{part}" for part in ("indptr", "indices", "values")]
        return [self.disk.scratch / f"{name}.npy" for name in (*names, f"ones-{key}")]

    def _known(self, hop: int) -> tuple[ArrayFile | StoredFeatures, ArrayFile] | None:
        """What an earlier run finished."""
        nodes, width = self.disk.features.shape
        for sparse in (False, True):
            paths = self._paths(hop, sparse=sparse)
            if not paths[0].is_file():
                continue
            *parts, ones = (ArrayFile.open(path) for path in paths)
            wanted = [(nodes + 1,), *[(parts[-1].rows,)] * 2] if sparse else [(nodes, width)]
            require(
                [file.shape for file in (*parts, ones)] == [*wanted, (nodes, 1)],
                f"{paths[0]}: must have shape {wanted[0]}, got {parts[0].shape}; remove it, and it is"
                " computed again.",
            )
            if not sparse:
                return parts[0], ones
            pointers, columns, values = parts
            return StoredFeatures(StoredMatrix(pointers, columns, values, width)), ones
        return None

    def _sparse_ranges(self, features: StoredFeatures) -> tuple[list[tuple[int, int]], int] | None:
        """Ranges of rows of a sparse hop, and its entries at most; ``None``: it is not sparse."""
        lengths = np.diff(features.matrix.indptr.read()).astype(np.int32)
        adjacency, (nodes, width) = self.disk.adjacency, features.shape
        room = max(4096, self.disk.memory // 2 // SPARSE_BYTES)
        ranges, most = [], 0
        for first, last in adjacency.cuts(ENTRIES_AT_ONCE, ENTRIES_AT_ONCE):
            rows = adjacency.rows(first, last)
            sums = np.concatenate([[0], np.cumsum(lengths[rows.indices], dtype=np.int64)])
            ends = np.cumsum(np.diff(sums[rows.indptr]) + lengths[first:last])
            most += int(ends[-1])
            ranges += [(first + start, first + stop) for start, stop in cut_at(ends, room)]
        return (ranges, most) if 2 * most < nodes * width else None

    def _hop(
        self, hop: int, hops: int, before: tuple[Dense, Dense]
    ) -> tuple[ArrayFile | StoredFeatures, ArrayFile]:
        """One more hop of features and ones together: rows of Eq. 2 are made once for both."""
        features, nodes = before[0], self.disk.num_nodes
        sparse: StoredFeatures | None = None
        dense: Sequence[Dense] = before
        kinds: list[Kind] = [("<f4", one.shape[1]) for one in dense]
        if isinstance(features, StoredFeatures) and (found := self._sparse_ranges(features)):
            (cuts, most), sparse, dense = found, features, before[1:]
            index = "<i4" if features.shape[1] < 2**31 else "<i8"
            kinds = [("<i8", None), (index, None), ("<f4", None), ("<f4", 1)]
            wanted = most * 8 + nodes * 12
        else:
            sizes = BlockSizes.of(self.disk, features.shape[1])
            cuts = list(self.disk.adjacency.cuts(sizes.rows, sizes.entries))
            wanted = nodes * 4 * (features.shape[1] + 1)
        paths = self._paths(hop, sparse=sparse is not None)
        unfinished = Unfinished(paths, kinds, self.disk.content_hash)
        safe = unfinished.rows()[-1]
        ranges = [(max(start, safe), stop) for start, stop in cuts if stop > safe]
        wanted, free = wanted * (nodes - safe) // nodes, shutil.disk_usage(self.disk.scratch).free
        require(
            wanted < free,
            f"{self.disk.scratch}: propagated features take {wanted:,} bytes and {free:,} are free;"
            f" free some disk or name another folder with {SCRATCH_VARIABLE}.",
        )
        with unfinished.writers() as writers:
            parts = self._products_of(dense, ranges, sparse)
            for (_, stop), rows in zip(ranges, parts, strict=True):
                if sparse is not None:
                    # Row pointers begin at zero and continue those before.
                    rows[0] = rows[0].astype(np.int64) + writers[1].rows
                    rows[0] = rows[0] if writers[0].rows else np.concatenate([[0], rows[0]])
                for writer, part in zip(writers, rows, strict=True):
                    writer.append(part)
                unfinished.save(writers)
                self._progress(STAGE, (hop - 1) * nodes + stop, hops * nodes)
            for writer in writers:
                writer.finish()
        unfinished.complete()
        known = self._known(hop)
        if known is None:
            raise InputError(f"{paths[0]}: vanished as soon as it was written.")
        return known

    def _products_of(
        self,
        dense: Sequence[Dense],
        ranges: Sequence[tuple[int, int]],
        sparse: StoredFeatures | None,
    ) -> Iterator[list[np.ndarray]]:
        cluster = self._cluster
        if cluster is None:
            yield from _products(self.normalized, self.disk, dense, ranges, sparse)
            return
        shared = cluster.put((self.disk, self.normalized.scale, dense, sparse))
        together = UNITS_PER_CPU * max(1, cluster.cpus)
        for first in range(0, len(ranges), together):
            units = [cluster.submit(_unit, shared, one) for one in ranges[first : first + together]]
            yield from cluster.results(units)


@contextmanager
def smoothed_in_blocks(
    work: Propagated, columns: np.ndarray, hops: int, weights: np.ndarray | None = None
) -> Iterator[DenseRows]:
    r"""The mean of :math:`X, \hat A X, \dots, \hat A^K X`: some columns, each row times its weight."""
    disk, width = work.disk, columns.size
    sizes = BlockSizes.of(disk, width)
    ranges = list(disk.adjacency.cuts(sizes.rows, sizes.entries))

    def first() -> Iterator[np.ndarray]:
        for start, stop in ranges:
            rows = disk.features.read(start, stop, columns)
            yield rows if weights is None else rows * weights[start:stop].astype(rows.dtype)

    def added(total: DenseRows, rows: DenseRows, share: int) -> Iterator[np.ndarray]:
        for start, stop in ranges:
            both = total.read(start, stop) + rows.read(start, stop)
            yield both / np.float32(share) if share > 1 else both

    def kept(parts: Iterable[np.ndarray]) -> AbstractContextManager[DenseRows]:
        return stored(disk, disk.num_nodes, width, parts)

    held = ExitStack()
    try:
        current = total = held.enter_context(kept(first()))
        for hop in range(1, hops + 1):
            before, held = held, ExitStack()
            with before:  # freed after each hop
                products = (rows for (rows,) in _products(work.normalized, disk, [current], ranges))
                current = held.enter_context(kept(products))
                share = hops + 1 if hop == hops else 1
                total = held.enter_context(kept(added(total, current, share)))
        yield total
    finally:
        held.close()


class Unfinished:
    """Files that are being written (``.part``), and a note of how many of their rows are safe."""

    def __init__(self, paths: Sequence[Path], kinds: Sequence[Kind], key: str) -> None:
        self._paths, self._kinds, self._key = paths, kinds, key
        self._parts = [path.with_suffix(".part") for path in paths]
        self._note = paths[0].with_suffix(".json")
        self._saved = time.monotonic()

    def rows(self) -> list[int]:
        """How many rows of each file an earlier run left; 0 if there was none, or of another key."""
        try:
            note = json.loads(self._note.read_bytes())
            rows = [int(count) for count in note["rows"]]
            long_enough = all(
                part.stat().st_size
                >= HEADER_BYTES + count * np.dtype(dtype).itemsize * (width or 1)
                for part, count, (dtype, width) in zip(self._parts, rows, self._kinds, strict=True)
            )
            if note["key"] == self._key and min(rows) >= 0 and long_enough:
                return rows
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            pass  # the note is cut or of another program
        return [0 for _ in self._parts]

    @contextmanager
    def writers(self) -> Iterator[list[ArrayWriter]]:
        """Writers of the rows after those that are safe; if the disk is full, saved rows stay."""
        refusal = f"{self._parts[0]}: cannot be written"
        advice = (
            f"; free some disk or name another folder with {SCRATCH_VARIABLE}, and the same command"
            " continues from here"
        )
        with accessing(refusal, advice), ExitStack() as stack:
            yield [
                stack.enter_context(ArrayWriter(part, *kind, rows=rows))
                for part, kind, rows in zip(self._parts, self._kinds, self.rows(), strict=True)
            ]

    def save(self, writers: Sequence[ArrayWriter]) -> None:
        """Note every few seconds how many rows are written."""
        if time.monotonic() - self._saved < SAVE_EVERY:
            return
        for writer in writers:
            writer.sync()
        note = {"key": self._key, "rows": [writer.rows for writer in writers]}
        write_atomically(self._note, json.dumps(note).encode())
        self._saved = time.monotonic()

    def complete(self) -> None:
        """Give the files their names, the first one last."""
        for part, path in reversed(list(zip(self._parts, self._paths, strict=True))):
            part.replace(path)
        self._note.unlink(missing_ok=True)
