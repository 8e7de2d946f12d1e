"""Message passing on disk (Eq. 3): Â^k X as files that a killed run takes up where it was."""

from __future__ import annotations

import fcntl
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from gcsr.blocks.normalised import NormalisedRows, normalised_rows
from gcsr.blocks.product import ArrayRows, DenseRows, Ones, product_rows
from gcsr.errors import InputError, require
from gcsr.files import write_atomically
from gcsr.graph.array_file import HEADER_BYTES, ArrayFile, ArrayWriter
from gcsr.graph.stored import SCRATCH_VARIABLE, OnDisk
from gcsr.products import ENTRIES_TOGETHER, RowBlock, Table
from gcsr.progress import Progress, silent

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
    [NormalisedRows, OnDisk, Sequence[Dense], Sequence[tuple[int, int]]], Iterator[list[np.ndarray]]
]


def products_here(
    normalised: NormalisedRows,
    disk: OnDisk,
    dense: Sequence[Dense],
    ranges: Sequence[tuple[int, int]],
) -> Iterator[list[np.ndarray]]:
    """One range after the other, in this process."""
    sides = [_Side(one, plan_of(disk, one.shape[1])) for one in dense]
    for first, stop in ranges:
        rows = normalised.rows(first, stop)
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
        self.normalised = normalised_rows(disk.adjacency, disk.content_hash)

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
            parts = self._products(self.normalised, self.disk, before, ranges)
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
        with suppress(
            OSError
        ):  # a file system without locks: whoever comes last writes the same bytes
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _require_space(folder: Path, wanted: int) -> None:
    free = shutil.disk_usage(folder).free
    require(
        wanted < free,
        f"{folder}: propagated features take {wanted:,} bytes and {free:,} are free; free some disk or"
        f" name another folder with {SCRATCH_VARIABLE}.",
    )
