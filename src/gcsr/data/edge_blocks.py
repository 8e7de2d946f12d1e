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
from gcsr.data.edges import TOLERANCE, require_node_ids, require_undirected, require_weights
from gcsr.utils.errors import require

# At least so many files of edges, and so many bits' worth of nodes in each.
BUCKETS, NODES_PER_BUCKET = 64, 16


class EdgeBlocks:
    """Takes edges in any order and writes ``indptr.npy``, ``indices.npy`` and ``weights.npy``."""

    def __init__(self, folder: Path, nodes: int, *, weighted: bool = False) -> None:
        require(0 < nodes < 2**31, f"nodes must be 1..{2**31 - 1}, got {nodes}.")
        self._folder, self._nodes, self._weighted = folder, nodes, weighted
        self._shift = np.int64(max(1, (nodes - 1).bit_length()))
        self._rows = -(-nodes // max(BUCKETS, nodes >> NODES_PER_BUCKET))
        self._kind = np.dtype([("key", "<i8"), ("weight", "<f8")]) if weighted else np.dtype("<i8")

    def add(
        self, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None = None
    ) -> None:
        """Add edges; loops and edges of weight zero are dropped."""
        require_node_ids(self._nodes, sources, targets)
        keep = sources != targets
        if weights is not None:
            require_weights(weights)
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
        directed = 0
        with (
            ArrayWriter(self._folder / "indptr.npy", "<i8") as pointers,
            ArrayWriter(self._folder / "indices.npy", "<i4") as columns,
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
            if not undirected:
                require_undirected(directed, entries)
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
        pairs = np.unique(records) >> np.int64(1)
        distinct = np.unique(pairs)
        # A pair that came in both directions is there twice.
        return distinct, None, 2 * distinct.size - pairs.size

    def _summed(
        self, records: np.ndarray, *, undirected: bool
    ) -> tuple[np.ndarray, np.ndarray, int]:
        records = records[np.argsort(records["key"], kind="stable")]
        keys, places = np.unique(records["key"], return_index=True)
        sums = np.add.reduceat(records["weight"], places) if keys.size else np.empty(0)
        pairs = keys >> np.int64(1)
        distinct = np.unique(pairs)
        both = np.zeros((2, distinct.size))
        both[keys & 1, np.searchsorted(distinct, pairs)] = sums
        there, back = both
        largest = np.maximum(there, back)
        require_weights(largest)
        lonely = int((there - back > TOLERANCE * largest).sum())
        if not undirected:
            distinct, largest = distinct[there > 0], there[there > 0]
        return distinct, largest.astype(np.float32), lonely
