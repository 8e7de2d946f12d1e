"""Message passing on disk, divided among the workers of a cluster: the same files.

Workers read the graph's folder, which they must see under the same path, and hand rows of the result
over through the object store; this process writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gcsr.blocks.hops import Dense, Products, Propagated, products_here
from gcsr.blocks.normalised import NormalisedRows
from gcsr.cluster import Cluster, Shared
from gcsr.graph.stored import OnDisk
from gcsr.progress import Progress, silent

# Units that are under way at a time, for each CPU: what they return waits in the store.
UNITS_PER_CPU = 2


def propagated_by(cluster: Cluster, disk: OnDisk, progress: Progress = silent) -> Propagated:
    """Message passing by a cluster, each of whose workers takes its share of the memory."""
    share = replace(disk, memory=disk.memory // max(1, cluster.cpus))
    return Propagated(share, progress, products_on(cluster))


def products_on(cluster: Cluster) -> Products:
    """One unit per range of rows, some of them at a time."""

    def products(
        normalised: NormalisedRows,
        disk: OnDisk,
        dense: Sequence[Dense],
        ranges: Sequence[tuple[int, int]],
    ) -> Iterator[list[np.ndarray]]:
        shared = cluster.put((disk, normalised.scale, tuple(dense)))
        together = UNITS_PER_CPU * max(1, cluster.cpus)
        for first in range(0, len(ranges), together):
            group = ranges[first : first + together]
            units = [cluster.give(_products_of, shared, one) for one in group]
            yield from cluster.results(units)

    return products


def _products_of(shared: Shared, rows: tuple[int, int], progress: Progress) -> list[np.ndarray]:
    """The unit."""
    disk, scale, dense = shared.get()
    normalised = NormalisedRows(disk.adjacency, scale)
    return next(products_here(normalised, disk, dense, [rows]))
