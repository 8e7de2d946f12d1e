"""An adjacency on disk from edges that come in blocks: never more than a part of them in memory.

The rules are those of :mod:`gcsr.data.edges`. Every edge is put, once in each direction, into the
bucket of its row; buckets are then sorted, cleaned and written one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from gcsr.data.array_file import ArrayWriter
from gcsr.utils.errors import InputError, require

# At least so many files of edges, and so many bits' worth of nodes in each.
BUCKETS, NODES_PER_BUCKET = 64, 16
# Differences in the last bits of sums of float32 are no direction.
TOLERANCE = 1e-6


class EdgeBlocks:
    """Takes edges in any order and writes ``indptr.npy``, ``indices.npy`` and ``weights.npy``."""

    def __init__(self, folder: Path, nodes: int, *, weighted: bool = False) -> None:
        require(0 < nodes < 2**31, f"nodes: {nodes} is not accepted; 1 to {2**31 - 1} are.")
        self._folder, self._nodes, self._weighted = folder, nodes, weighted
        self._shift = np.int64(max(1, (nodes - 1).bit_length()))
        self._rows = -(-nodes // max(BUCKETS, nodes >> NODES_PER_BUCKET))
        self._kind = np.dtype([("key", "<i8"), ("weight", "<f8")]) if weighted else np.dtype("<i8")

    def add(
        self, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None = None
    ) -> None:
        """Some edges; loops and edges of weight zero are no edges."""
        for ids in (sources, targets):
            require(ids.dtype.kind in "iu", f"edges: node ids must be integers, not {ids.dtype}.")
            if ids.size:
                low, high = int(ids.min()), int(ids.max())
                require(
                    low >= 0 and high < self._nodes,
                    f"edges: node id {low if low < 0 else high} is outside 0..{self._nodes - 1}.",
                )
        keep = sources != targets
        if weights is not None:
            fine = bool(np.isfinite(weights).all()) and bool((weights >= 0).all())
            require(fine, "edge weights: must be finite numbers >= 0.")
            keep &= weights != 0
        there, back = sources[keep].astype(np.int64), targets[keep].astype(np.int64)
        # The lowest bit tells an edge from its reverse.
        keys = np.concatenate(
            [
                ((there << self._shift) | back) << np.int64(1),
                (((back << self._shift) | there) << np.int64(1)) | np.int64(1),
            ]
        )
        records = keys
        if self._weighted:
            given = np.ones(there.size) if weights is None else weights[keep]
            records = np.empty(keys.size, self._kind)
            records["key"], records["weight"] = keys, np.concatenate([given, given])
        self._sort_into_buckets(keys, records)

    def finish(self, *, undirected: bool) -> int:
        """Write the arrays; returns how many entries there are."""
        index = "<i4"
        directed = 0
        with (
            ArrayWriter(self._folder / "indptr.npy", "<i8") as pointers,
            ArrayWriter(self._folder / "indices.npy", index) as columns,
            ArrayWriter(self._folder / "weights.npy", "<f4") as values,
        ):
            pointers.append(np.zeros(1, np.int64))
            heavy = False
            for bucket, (first, stop) in enumerate(self._spans()):
                pairs, weights, lonely = self._cleaned(bucket, undirected=undirected)
                directed += lonely
                counts = np.bincount((pairs >> self._shift) - first, minlength=stop - first)
                pointers.append(columns.rows + np.cumsum(counts))
                columns.append(pairs & ((np.int64(1) << self._shift) - 1))
                if weights is not None:
                    heavy = heavy or bool((weights != 1).any())
                    values.append(weights)
            entries = columns.rows
            if directed and not undirected:
                raise InputError(
                    f"edges: the graph is directed ({directed} of {entries} entries differ from their"
                    " reverse) and an undirected one is needed; pass undirected=True (command line:"
                    " --undirected) to add the reverse edges."
                )
            for writer in (pointers, columns, values):
                writer.finish()
        if not heavy:
            # Where every weight is one there are no weights.
            (self._folder / "weights.npy").unlink()
        return entries

    def _spans(self) -> Iterator[tuple[int, int]]:
        for first in range(0, self._nodes, self._rows):
            yield first, min(self._nodes, first + self._rows)

    def _bucket(self, number: int) -> Path:
        return self._folder / f"edges-{number}.bucket"

    def _sort_into_buckets(self, keys: np.ndarray, records: np.ndarray) -> None:
        if self._weighted:
            records = records[np.argsort(keys, kind="stable")]
            keys = records["key"]
        else:
            records = keys = np.sort(keys)
        firsts = [np.int64(first) << (self._shift + np.int64(1)) for first, _ in self._spans()]
        cuts = [*np.searchsorted(keys, firsts), keys.size]
        for number, (start, stop) in enumerate(pairwise(cuts)):
            if stop > start:
                with self._bucket(number).open("ab") as stream:
                    stream.write(np.ascontiguousarray(records[start:stop]).data)

    def _cleaned(
        self, bucket: int, *, undirected: bool
    ) -> tuple[np.ndarray, np.ndarray | None, int]:
        """Distinct pairs of a bucket in order, their weights, and how many have no equal reverse."""
        path = self._bucket(bucket)
        records = np.empty(0, self._kind)
        if path.is_file():
            records = np.fromfile(path, self._kind)
            path.unlink()
        if self._weighted:
            return self._summed(records, undirected=undirected)
        keys = _distinct(np.sort(records))
        pairs = keys >> np.int64(1)
        first = np.ones(pairs.size, bool)
        first[1:] = pairs[1:] != pairs[:-1]
        distinct = pairs[first]
        # A pair that came in both directions is there twice.
        return distinct, None, 2 * distinct.size - pairs.size

    def _summed(
        self, records: np.ndarray, *, undirected: bool
    ) -> tuple[np.ndarray, np.ndarray, int]:
        records = records[np.argsort(records["key"], kind="stable")]
        keys = _distinct(records["key"])
        places = np.searchsorted(records["key"], keys)
        sums = np.add.reduceat(records["weight"], places) if keys.size else np.empty(0)
        pairs = keys >> np.int64(1)
        distinct = _distinct(pairs)
        both = np.zeros((2, distinct.size))
        both[keys & 1, np.searchsorted(distinct, pairs)] = sums
        there, back = both
        largest = np.maximum(there, back)
        require(
            bool((largest <= np.finfo(np.float32).max).all()),
            "edge weights: a weight, or the sum of a repeated edge, is beyond float32 (3.4e38).",
        )
        lonely = int((there - back > TOLERANCE * largest).sum())
        if not undirected:
            distinct, largest = distinct[there > 0], there[there > 0]
        return distinct, largest.astype(np.float32), lonely


def _distinct(ordered: np.ndarray) -> np.ndarray:
    kept = np.ones(ordered.size, bool)
    kept[1:] = ordered[1:] != ordered[:-1]
    return ordered[kept]
