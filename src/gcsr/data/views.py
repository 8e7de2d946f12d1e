"""What may be seen when: only this module distinguishes transductive from inductive graphs.

=============  ==========================  =============================  ==========================
setting        condensing                  validating                     testing
=============  ==========================  =============================  ==========================
transductive   whole graph, training       whole graph, validation        whole graph, test labels
               labels                      labels
inductive      graph induced by the        graph induced by the           graph induced by the test
               training nodes              validation nodes               nodes
=============  ==========================  =============================  ==========================

Condensing gets a :class:`CondensingView`, which contains no test labels. The one exception, the
paper's prior over *all* labels, needs an explicit option and is marked as a leak.

Of a very large graph a random part is read where it is as informative as all of it. These rules
depend on counts alone, so results do not depend on whether a graph is in memory, and they leave nothing
out of a graph of moderate size.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakKeyDictionary, ref

import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.data.edges import read_only
from gcsr.data.features import (
    SparseRows,
    StoredParts,
    filled,
    is_sparse,
    real_bytes,
)
from gcsr.data.graph import Graph
from gcsr.data.objects import described
from gcsr.data.stored_graph import OnDisk, StoredGraph
from gcsr.data.stored_matrix import StoredRows, edges_among
from gcsr.utils.checkpoint import CheckpointLog
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import require
from gcsr.utils.progress import Watch

# Starts and pseudo-labels read so many rows, or rows of so many numbers.
ALWAYS_ROWS, MOST_NUMBERS = 2**17, 2**26
# Networks on the real graph learn from all training nodes up to the first number, else from the second.
ALWAYS_TRAINED, MOST_TRAINED = 2**17, 2**15
# The same for the validation nodes that decide while condensing.
ALWAYS_VALIDATED, MOST_VALIDATED = 50_000, 2**15


# Feature rows that are indexed by node.
RowsByNumber: TypeAlias = Tensor | SparseRows | StoredRows


def rows_by_number(x: Tensor, device: torch.device) -> Tensor | SparseRows:
    """Features whose rows can be indexed, which then are on ``device``."""
    return SparseRows(x, device) if is_sparse(x) else x.to(device)


@dataclass(frozen=True, eq=False)
class VisibleGraph:
    """The graph that is condensed: ``labels`` are -1 everywhere but on the training nodes.

    They are classes ``(n,)`` or, of a multi-label graph, rows of 0 and 1 ``(n, C)``.

    Where it stays on ``disk``, ``x`` has a shape and no numbers. A condensation ratio refers to
    ``num_nodes``. Where a graph ``is_large``, a random part of its nodes, at most ``most_rows``, stands
    for all. Condensed nodes are divided by ``train_strata``: ``train_labels``, or one stratum of a
    multi-label graph.
    """

    x: Tensor
    adjacency: sp.csr_array
    labels: Tensor
    train: Tensor
    num_classes: int
    disk: OnDisk | None = None
    num_nodes: int = field(init=False)
    most_rows: int = field(init=False)
    is_large: bool = field(init=False)
    multi_label: bool = field(init=False)
    train_labels: Tensor = field(init=False)
    train_strata: Tensor = field(init=False)

    def __post_init__(self) -> None:
        nodes, width = (int(size) for size in self.x.shape)
        most, labels = most_rows(max(width, self.num_classes)), self.labels[self.train]
        several = self.labels.ndim == 2
        strata = torch.zeros_like(self.train) if several else labels
        known: dict[str, Any] = {"num_nodes": nodes, "most_rows": most, "is_large": nodes > most}
        known |= {"multi_label": several, "train_labels": labels, "train_strata": strata}
        for name, value in known.items():
            object.__setattr__(self, name, value)

    @property
    def features(self) -> RowsByNumber:
        """Rows of ``x`` by number, in memory or on disk."""
        if self.disk is not None:
            return StoredRows(self.disk.features)
        return rows_by_number(self.x, self.x.device)

    @property
    def filled(self) -> int:
        """Entries of the features that are not zero."""
        return filled(self.x) if self.disk is None else self.disk.filled

    def among(self, nodes: Tensor) -> sp.csr_array:
        """The edges among some nodes."""
        return edges_among(self.adjacency, nodes)


@dataclass(frozen=True, eq=False)
class Target:
    """What a trained model is scored on: predict ``labels`` of ``nodes`` on this graph."""

    x: Tensor
    adjacency: sp.csr_array
    nodes: Tensor
    labels: Tensor
    disk: OnDisk | None = None


@dataclass(frozen=True, eq=False)
class Source:
    """Where a view comes from, for the provenance of results.

    ``nbytes`` are those of the whole graph in a file, ``visible_bytes`` those of what is condensed.
    """

    name: str
    content_hash: str
    features: str
    inductive: bool
    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    nbytes: int
    visible_bytes: int


@dataclass(frozen=True, eq=False)
class CondensingView:
    """The input of condensing, selecting and tuning.

    ``every_label`` is ``None`` unless the caller of :meth:`View.condensing` asked for the leak.
    ``watch`` is called with the scores of iterates on ``validation``; ``checkpoint`` records the
    progress of a run. ``notes`` are those of the graph.
    """

    visible: VisibleGraph
    validation: Target
    source: Source
    every_label: Tensor | None = None
    watch: Watch | None = None
    checkpoint: CheckpointLog | None = None
    notes: tuple[str, ...] = ()

    def versions(self) -> list[tuple[object, int]]:
        """Every tensor and every array of edges, with how often it was changed in place.

        Arrays of edges are read-only, so their content stays as it is.
        """
        found: list[tuple[object, int]] = []
        for part in (self.visible, self.validation):
            tensors = [one for one in vars(part).values() if isinstance(one, Tensor)]
            found += [(one, 0 if one.is_inference() else one._version) for one in tensors]
            edges = part.adjacency
            if isinstance(edges, sp.csr_array):  # not on disk
                found += [(array, 0) for array in (edges.data, edges.indices, edges.indptr)]
        return found

    def is_unchanged(self, before: Sequence[tuple[object, int]]) -> bool:
        """Whether the tensors and edges are those of an earlier :meth:`versions`, and unchanged.

        Changes of a tensor through NumPy (``x.numpy()``) are not noticed.
        """
        known = [(id(part), changes) for part, changes in before]
        return known == [(id(part), changes) for part, changes in self.versions()]


def sampled(nodes: Tensor, most: int, purpose: str, *, above: int | None = None) -> Tensor:
    """A random ``most`` of the nodes, in their order, where there are more (than ``above``)."""
    if nodes.numel() <= (most if above is None else above):
        return nodes
    order = torch.randperm(nodes.numel(), generator=make_generator(0, purpose))
    return nodes[order[:most].sort().values]


def most_rows(width: int) -> int:
    """How many rows of so many columns are read at most."""
    return max(ALWAYS_ROWS, MOST_NUMBERS // max(1, width))


def known_nodes(visible: VisibleGraph, nodes: Tensor) -> Tensor:
    """The nodes among these that starts and outer losses are computed on."""
    return sampled(nodes, visible.most_rows, "known nodes")


def trained_places(visible: VisibleGraph) -> Tensor:
    """Where in ``visible.train`` the nodes are that networks on the real graph learn from."""
    everyone = torch.arange(visible.train.numel())
    return sampled(everyone, MOST_TRAINED, "trained nodes", above=ALWAYS_TRAINED)


def validation_part(validation: Target) -> Target:
    """The validation nodes that decide while condensing."""
    everyone = torch.arange(validation.nodes.numel())
    places = sampled(everyone, MOST_VALIDATED, "validated nodes", above=ALWAYS_VALIDATED)
    if places is everyone:
        return validation
    return replace(validation, nodes=validation.nodes[places], labels=validation.labels[places])


def parts_read(view: CondensingView, known: Tensor | None = None) -> dict[str, Any]:
    """For the provenance: how many of which nodes were read, where that is not all of them."""
    visible, checked = view.visible, view.validation.nodes.numel()
    counts = {
        "training": (trained_places(visible).numel(), visible.train.numel()),
        "validation": (validation_part(view.validation).nodes.numel(), checked),
    }
    if known is not None and visible.is_large:
        counts["known"] = (known.numel(), visible.num_nodes)
    found = {name: {"read": read, "of": of} for name, (read, of) in counts.items() if read < of}
    return {"sampled": found} if found else {}


class View:
    """A graph seen in its setting (``graph.inductive``)."""

    def __init__(self, graph: Graph) -> None:
        require(
            isinstance(graph, Graph),
            f"graph must be a gcsr.Graph, got {described(graph)}; gcsr.load makes one.",
        )
        graph.require_unchanged()
        self._graph = graph
        self._disk = graph.disk if isinstance(graph, StoredGraph) else None

    def condensing(self, *, leak_every_label: bool = False) -> CondensingView:
        """What may be seen while condensing.

        ``leak_every_label=True`` also returns validation and test labels of the visible nodes,
        which the paper's class correlation counts on transductive graphs; results must say so.
        """
        graph = self._graph
        nodes = graph.train if graph.inductive else torch.arange(graph.num_nodes)
        hidden = torch.ones_like(graph.y, dtype=torch.bool)
        hidden[graph.train] = False
        labels = graph.y.masked_fill(hidden, -1)
        seen = self.training()
        visible = VisibleGraph(
            seen.x, seen.adjacency, labels[nodes], seen.nodes, graph.num_classes, seen.disk
        )
        every_label = graph.y[nodes] if leak_every_label else None
        validation = self._target(graph.val)
        return CondensingView(visible, validation, self.source, every_label, notes=graph.notes)

    def training(self) -> Target:
        """The real training set, for models trained on the whole graph."""
        return self._target(self._graph.train)

    def validation(self) -> Target:
        """What model selection is scored on."""
        return self._target(self._graph.val)

    def test(self) -> Target:
        """The only way to the test labels; evaluation calls it, condensing cannot."""
        require(
            self._graph.test.numel() > 0,
            f"test must have at least one labeled node to test on, but {self._graph.name} has none;"
            " give test when the graph is made (PyG: test_mask, which RandomNodeSplit()(data) makes).",
        )
        return self._target(self._graph.test)

    @property
    def source(self) -> Source:
        """Name, hash and size of the graph behind this view."""
        graph = self._graph
        return Source(
            name=graph.name,
            content_hash=graph.content_hash,
            features=graph.feature_scaling,
            inductive=graph.inductive,
            num_nodes=graph.num_nodes,
            num_edges=graph.num_edges,
            num_features=graph.num_features,
            num_classes=graph.num_classes,
            nbytes=graph.stored_bytes,
            visible_bytes=self.stored_parts.total,
        )

    @property
    def stored_parts(self) -> StoredParts:
        """Bytes in a file of the graph that may be seen while condensing."""
        if not self._graph.inductive:
            return self._graph.stored_parts
        seen = self.training()
        return real_bytes(seen.x, seen.adjacency, label_bytes=self._graph.label_bytes)

    def _target(self, nodes: Tensor) -> Target:
        graph, disk = self._graph, self._disk
        labels = graph.y[nodes]
        if graph.inductive:
            own = torch.arange(nodes.numel())
            edges = read_only(edges_among(graph.adjacency, nodes))
            return Target(graph.feature_rows(nodes), edges, own, labels)
        return Target(graph.x, graph.adjacency, nodes, labels, disk)


T = TypeVar("T")


class ViewCache(Generic[T]):
    """Values by graph, validation nodes and key; gone when the graph is no longer referenced."""

    def __init__(self) -> None:
        self._values: WeakKeyDictionary[object, dict[Hashable, T]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, graph: object, validation: object, key: Hashable, compute: Callable[[], T]) -> T:
        """The value of ``key``, computed if it is not known; two threads may compute the same one."""
        with self._lock:
            known = self._values.setdefault(graph, {})
        full = (ref(validation), key)
        if full not in known:
            known[full] = compute()
        return known[full]
