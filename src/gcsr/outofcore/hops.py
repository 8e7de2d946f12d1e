"""Message passing on disk (Eq. 3): Â^k X as files that a killed run takes up where it was."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from gcsr.data.array_file import HEADER_BYTES, ArrayFile, ArrayWriter
from gcsr.data.stored_graph import SCRATCH_VARIABLE, OnDisk, StoredAdjacency
from gcsr.distributed.pool import Cluster
from gcsr.distributed.worker import Shared
from gcsr.models.sparse import scaled_both_sides, symmetric_scale
from gcsr.outofcore.products import ArrayRows, DenseRows, Ones, product_rows
from gcsr.utils.errors import InputError, require
from gcsr.utils.files import write_atomically
from gcsr.utils.locks import lock_file
from gcsr.utils.products import ENTRIES_TOGETHER, RowBlock, Table
from gcsr.utils.progress import Progress, silent

# -- Eq. 2 of a graph on disk: rows of the normalized adjacency, as in memory ------------------------


# Entries of the adjacency that are looked at together where only sums are wanted.
ENTRIES_AT_ONCE = 2**18


class NormalizedRows:
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
def normalized_rows(adjacency: StoredAdjacency, content_hash: str) -> NormalizedRows:
    """The same object for the same content: the scale of every node is computed once."""
    return NormalizedRows(adjacency)


def _looped(rows: sp.csr_array, ids: np.ndarray) -> sp.csr_array:
    """Rows of A + I, sorted; float64, as in memory."""
    # Wider indices than those of the rows would widen the sum's.
    places = (np.asarray(part, rows.indices.dtype) for part in (ids, np.arange(ids.size + 1)))
    own = sp.csr_array((np.ones(ids.size), *places), shape=rows.shape)
    return sp.csr_array(rows + own)


# -- Message passing on disk, divided among the workers of a cluster: the same files -----------------


# Units that are under way at a time, for each CPU: what they return waits in the store.
UNITS_PER_CPU = 2


def propagated_by(cluster: Cluster, disk: OnDisk, progress: Progress = silent) -> Propagated:
    """Message passing by a cluster, each of whose workers takes its share of the memory."""
    share = replace(disk, memory=disk.memory // max(1, cluster.cpus))
    return Propagated(share, progress, products_on(cluster))


def products_on(cluster: Cluster) -> Products:
    """One unit per range of rows, some of them at a time."""

    def products(
        normalized: NormalizedRows,
        disk: OnDisk,
        dense: Sequence[Dense],
        ranges: Sequence[tuple[int, int]],
    ) -> Iterator[list[np.ndarray]]:
        shared = cluster.put((disk, normalized.scale, tuple(dense)))
        together = UNITS_PER_CPU * max(1, cluster.cpus)
        for first in range(0, len(ranges), together):
            group = ranges[first : first + together]
            units = [cluster.give(_products_of, shared, one) for one in group]
            yield from cluster.results(units)

    return products


def _products_of(shared: Shared, rows: tuple[int, int], progress: Progress) -> list[np.ndarray]:
    """The unit."""
    disk, scale, dense = shared.get()
    normalized = NormalizedRows(disk.adjacency, scale)
    return next(products_here(normalized, disk, dense, [rows]))


# Seconds of work that a killed run may lose.
SAVE_EVERY = 5.0
# What an entry of the adjacency takes while its row is multiplied: indices, values, their copies.
ENTRY_BYTES = 16
STAGE = "propagating"


@dataclass(frozen=True)
class Plan:
    """How much is in memory at once."""

    rows: int
    entries: int
    columns: int

    @classmethod
    def within(cls, memory: int, nodes: int, width: int, degree: float) -> Plan:
        """Half for rows of the dense side, half for rows of the result and their entries.

        Large blocks of the result save reading the dense side again; where it fits, small ones stay
        closer to the processor.
        """
        half = memory // 2
        columns = max(256, half // (4 * width))
        entries = max(4096, half // ENTRY_BYTES)
        if nodes <= columns:
            entries = min(entries, ENTRIES_TOGETHER)
        rows = int(half / (4 * width + ENTRY_BYTES * (degree + 1)))
        return cls(rows=max(64, rows), entries=entries, columns=columns)


Dense = DenseRows | Ones
# Ranges of rows of Eq. 2 times the dense sides of a hop: a part of each result per range, in order.
Products = Callable[
    [NormalizedRows, OnDisk, Sequence[Dense], Sequence[tuple[int, int]]], Iterator[list[np.ndarray]]
]


def products_here(
    normalized: NormalizedRows,
    disk: OnDisk,
    dense: Sequence[Dense],
    ranges: Sequence[tuple[int, int]],
) -> Iterator[list[np.ndarray]]:
    """One range after the other, in this process."""
    sides = [_Side(one, plan_of(disk, one.shape[1])) for one in dense]
    for first, stop in ranges:
        rows = normalized.rows(first, stop)
        yield [side.times(rows).numpy() for side in sides]


def plan_of(disk: OnDisk, width: int) -> Plan:
    """Blocks for a signal of this width."""
    degree = 1 + disk.adjacency.nnz / disk.num_nodes
    return Plan.within(disk.memory, disk.num_nodes, width, degree)


class Propagated:
    """What message passing makes of the features of a graph on disk.

    ``products`` computes it; others than :func:`products_here` must give the same bytes.
    """

    def __init__(
        self, disk: OnDisk, progress: Progress = silent, products: Products = products_here
    ) -> None:
        self.disk, self._progress, self._products = disk, progress, products
        self.normalized = normalized_rows(disk.adjacency, disk.content_hash)

    def features(self, hops: int) -> ArrayFile:
        """Features after so many hops; computed where they are not there yet."""
        return self._files(hops)[0] if hops else self.disk.features

    def ones(self, hops: int) -> ArrayFile:
        """A column of ones after so many hops: what carries the biases of a linear network."""
        return self._files(hops)[1]

    def plan(self, width: int) -> Plan:
        """Blocks for a signal of this width."""
        return plan_of(self.disk, width)

    def _files(self, hops: int) -> tuple[ArrayFile, ArrayFile]:
        require(hops > 0, f"hops: {hops} is not accepted; 1 or more are.")
        known = [self._known(hop) for hop in range(hops + 1)]
        if (last := known[hops]) is not None:
            return last
        with _alone(self.disk.scratch):
            before: tuple[Dense, Dense] = (self.disk.features, Ones(self.disk.num_nodes))
            for hop in range(1, hops + 1):
                done = self._known(hop) or self._hop(hop, hops, before)
                # The next hop is written where this one was read: memory that is at hand is filled
                # several times faster than memory that a machine has to look for.
                if hop < hops and isinstance(before[0], ArrayFile):
                    before[0].forget()
                before = done
        return done

    def _paths(self, hop: int) -> tuple[Path, Path]:
        key = self.disk.content_hash[:16]
        folder = self.disk.scratch
        return folder / f"features-{hop}-{key}.npy", folder / f"ones-{hop}-{key}.npy"

    def _known(self, hop: int) -> tuple[ArrayFile, ArrayFile] | None:
        """What an earlier run finished."""
        paths = self._paths(hop)
        # Features come last: where they are, ones are.
        if not paths[0].is_file():
            return None
        features, ones = (ArrayFile.open(path) for path in paths)
        nodes, width = self.disk.features.shape
        require(
            (features.shape, ones.shape) == ((nodes, width), (nodes, 1)),
            f"{paths[0]}: is not what message passing wrote; remove it and it is made again.",
        )
        return features, ones

    def _hop(self, hop: int, hops: int, before: tuple[Dense, Dense]) -> tuple[ArrayFile, ArrayFile]:
        """One more hop of features and ones together: rows of Eq. 2 are made once for both."""
        nodes = self.disk.num_nodes
        unfinished = Unfinished(self._paths(hop), self.disk.content_hash)
        widths = [dense.shape[1] for dense in before]
        safe = unfinished.rows(widths)
        plan = self.plan(widths[0])
        cuts = self.disk.adjacency.cuts(plan.rows, plan.entries)
        ranges = [(max(start, safe), stop) for start, stop in cuts if stop > safe]
        _require_space(self.disk.scratch, (nodes - safe) * 4 * sum(widths))
        with unfinished.writers(widths) as writers:
            parts = self._products(self.normalized, self.disk, before, ranges)
            for (first, stop), rows in zip(ranges, parts, strict=True):
                for writer, part in zip(writers, rows, strict=True):
                    writer.write(first, part)
                unfinished.save(writers, stop)
                self._progress(STAGE, (hop - 1) * nodes + stop, hops * nodes)
            for writer in writers:
                writer.finish()
        unfinished.complete()
        found = self._known(hop)
        if found is None:
            raise InputError(f"{self._paths(hop)[0]}: vanished as soon as it was written.")
        return found


class _Side:
    """The dense side of a hop, mapped where it fits."""

    def __init__(self, dense: Dense, plan: Plan) -> None:
        self.plan, self._dense = plan, dense
        self._table = None
        if isinstance(dense, Ones):
            return
        nodes, width = dense.shape
        if nodes > plan.columns:
            self._table = Table(plan.columns, width)
        else:
            whole = dense.map() if isinstance(dense, ArrayFile) else dense.read(0, nodes)
            self._dense = ArrayRows(whole)

    def times(self, rows: RowBlock) -> Tensor:
        """Rows of the product."""
        return product_rows(rows, self._dense, self.plan.columns, self._table)


class Unfinished:
    """Files on their way: ``.part`` beside a note of how many of their rows are safe."""

    def __init__(self, paths: Sequence[Path], key: str) -> None:
        self._paths, self._key = paths, key
        self._parts = [path.with_suffix(".part") for path in paths]
        self._note = paths[0].with_suffix(".json")
        self._saved = time.monotonic()

    def rows(self, widths: Sequence[int]) -> int:
        """How many rows an earlier run left; 0 if there was none, or none of this key."""
        try:
            note = json.loads(self._note.read_bytes())
            rows = int(note["rows"])
            long_enough = all(
                part.stat().st_size >= HEADER_BYTES + rows * 4 * width
                for part, width in zip(self._parts, widths, strict=True)
            )
            return rows if note["key"] == self._key and rows >= 0 and long_enough else 0
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    @contextmanager
    def writers(self, widths: Sequence[int]) -> Iterator[list[ArrayWriter]]:
        """What writes the rows; a disk that is full is one sentence, and what was saved stays."""
        try:
            with ExitStack() as stack:
                yield [
                    stack.enter_context(ArrayWriter(part, "<f4", width))
                    for part, width in zip(self._parts, widths, strict=True)
                ]
        except OSError as error:
            raise InputError(
                f"{self._parts[0]}: cannot be written ({error.strerror}); free some disk or name"
                f" another folder with {SCRATCH_VARIABLE}, and the same command goes on from here."
            ) from None

    def save(self, writers: Sequence[ArrayWriter], rows: int) -> None:
        """Take note, now and then, that all rows before ``rows`` are written."""
        if time.monotonic() - self._saved < SAVE_EVERY:
            return
        for writer in writers:
            writer.sync()
        write_atomically(self._note, json.dumps({"key": self._key, "rows": rows}).encode())
        self._saved = time.monotonic()

    def complete(self) -> None:
        """The files are whole; the first one says so."""
        for part, path in reversed(list(zip(self._parts, self._paths, strict=True))):
            part.replace(path)
        self._note.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Others who want the same files wait, and then find them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise InputError(
            f"{folder}: propagated features cannot be written there ({error.strerror}); name another"
            f" folder with {SCRATCH_VARIABLE}."
        ) from None
    with lock:
        # No locks here: whoever comes last writes the same bytes.
        with suppress(OSError):
            lock_file(lock.fileno(), wait=True)
        yield


def _require_space(folder: Path, wanted: int) -> None:
    free = shutil.disk_usage(folder).free
    require(
        wanted < free,
        f"{folder}: propagated features take {wanted:,} bytes and {free:,} are free; free some disk or"
        f" name another folder with {SCRATCH_VARIABLE}.",
    )
