"""How many bytes a real graph takes in a file that is as sparing as that of a condensed one."""

from __future__ import annotations

from dataclasses import dataclass

_POINTER, _LABEL = 4, 8


@dataclass(frozen=True)
class StoredParts:
    """Bytes of a graph in a file."""

    features: int
    adjacency: int
    labels: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.features + self.adjacency + self.labels


def stored_parts(
    shape: tuple[int, int], filled: int, entries: int, *, weighted: bool, itemsize: int = 4
) -> StoredParts:
    """Bytes of nodes with features of a ``shape``, ``filled`` of which are not zero, and of edges.

    Features densely or as compressed sparse rows, whichever is smaller; edges as compressed sparse
    rows, their weights only where one differs from 1; numbers of ``itemsize`` bytes; labels as in a
    condensed graph.
    """
    nodes, width = shape
    sparse = filled * (itemsize + _index(width)) + (nodes + 1) * _POINTER
    per_edge = _index(nodes) + (itemsize if weighted else 0)
    return StoredParts(
        features=min(nodes * width * itemsize, sparse),
        adjacency=entries * per_edge + (nodes + 1) * _POINTER,
        labels=nodes * _LABEL,
    )


def _index(largest: int) -> int:
    return 2 if largest <= 2**15 else 4
