"""Replay: past tasks of continual learning as condensed graphs under a byte budget.

A network that learns one task after the other forgets the earlier ones. It is trained on a small memory
of all tasks instead, the newest included, so that no task has more examples than another (Liu, Qiu and
Huang, "CaT: Balanced Continual Graph Learning with Graph Condensation", ICDM 2023). Every task is
condensed by itself, once; real nodes of earlier tasks are not needed. Learning the memory of all tasks
together, with remembered nodes beside the real ones, forgot more: remembered nodes drift.

Class-wise cluster centers are the default. Bilevel condensation keeps what distinguishes the classes
of one task, which is not enough to distinguish them from classes of other tasks.

Bytes, not nodes, are bounded. A real node of a bag of words has a few words and takes a few bytes; a
center, the mean of many nodes, has most of the words of its class in small amounts. Centers of sparse
features therefore keep their largest entries only, a few times as many as a real node has. More centers
fit, and networks trained on them validate better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import torch

from gcsr.auto.update import record, redundant, update
from gcsr.data.condensed import CondensedGraph, StoredDtype
from gcsr.data.features import LABEL_BYTES, filled, sparse_bytes
from gcsr.data.graph import Graph
from gcsr.data.interop import argument_graph
from gcsr.data.stored_graph import StoredGraph
from gcsr.data.views import CondensingView, View
from gcsr.methods.clusters import Clusters
from gcsr.methods.registry import build
from gcsr.methods.selection import SelectionCondenser
from gcsr.starts.sample import class_budget
from gcsr.utils.devices import pick_device
from gcsr.utils.errors import plain_number, require, require_integer, require_one_of
from gcsr.utils.formatting import counted

# Edges of a condensed graph are a dense matrix: more nodes than these are not kept.
MOST_NODES = 2**13
# Times that the number of nodes is corrected, the room that is left for rounding, and the share of the
# room that is enough.
CORRECTIONS, ROUNDING, ENOUGH = 4, 0.98, 0.95
# A center of sparse features keeps so many times the entries of a real node: of 2, 4, 9 and 18 times,
# 4 validated best on WordNet.
ENTRIES = 4
# What class shares and the diagonal of A' take in a file.
SHARE_BYTES, DIAGONAL_BYTES = 4, 8


class Replay:
    """A memory of the tasks seen so far, to train on.

    Tasks are graphs with the same features. Classes keep their numbers over all tasks. A task may have
    new classes (class-incremental learning) or be another part of the graph with known ones.

    Args:
        max_bytes: what the memory of all tasks may take in a file. A task gets the share of its
            classes among ``num_classes`` of its graph. If more classes come, earlier tasks shrink:
            of nodes of one class that are most alike, one is removed. At most 8,192 nodes are kept,
            as edges are a dense matrix: sparse real nodes may take fewer bytes.
        method: condenses the tasks: ``clusters``, or another one that ``gcsr methods`` lists;
            ``random`` and ``herding`` keep real nodes. ``clusters`` of sparse features keep the
            largest entries of their rows.
        dtype: what features and edges are stored in, ``float16`` or ``float32``.
        seed: the same seed on the same machine gives the same bytes.
        device: ``auto``, ``cpu`` or ``cuda``.
        settings: those of the method.
    """

    def __init__(
        self,
        max_bytes: int,
        *,
        method: str = "clusters",
        dtype: StoredDtype = "float16",
        seed: int = 0,
        device: str | torch.device = "auto",
        **settings: Any,
    ) -> None:
        max_bytes = plain_number(max_bytes)
        require_integer("max_bytes", max_bytes, 1)
        require_one_of("dtype", dtype, get_args(StoredDtype))
        require_integer("seed", plain_number(seed), 0)
        pick_device(device)
        for name in ("nodes", "ratio"):
            require(name not in settings, f"{name} is decided by max_bytes; leave it out.")
        self._method = build(method, {"nodes": 1, **settings})
        self.max_bytes, self.dtype, self.seed, self.device = max_bytes, dtype, seed, device
        self.parts: list[CondensedGraph] = []

    def __repr__(self) -> str:
        tasks, nodes = counted(len(self.parts), "task"), sum(part.num_nodes for part in self.parts)
        return (
            f"Replay({tasks} in {counted(nodes, 'node')} by {self._method.name}, at most"
            f" {counted(self.max_bytes, 'byte')})"
        )

    @property
    def graph(self) -> CondensedGraph:
        """The memory of all tasks so far as one graph, without edges between tasks."""
        require(bool(self.parts), "graph does not exist before observe(task).")
        return joined(self.parts)

    @property
    def nbytes(self) -> int:
        """Bytes of the memory in a file."""
        return self.graph.stored_bytes if self.parts else 0

    def observe(self, task: object) -> CondensedGraph:
        """Remember a task: a graph, or an object that :func:`gcsr.load` converts.

        Returns the memory of all tasks so far. The task is not needed afterwards.
        """
        task = argument_graph(task)
        task.require_single_label("task")
        for part in self.parts[:1]:
            require(
                part.x.shape[1] == task.num_features,
                f"task must have {part.x.shape[1]} features like the tasks before, got"
                f" {task.num_features}.",
            )
        classes = [_classes(part) for part in self.parts] + [task.y[task.train].unique().numel()]
        among = max(task.num_classes, sum(classes))
        rooms = [self.max_bytes * own // among for own in classes]
        most = [MOST_NODES * own // among for own in classes]
        parts = [
            shrunk(widened(part, task.num_classes), room, count)
            for part, room, count in zip(self.parts, rooms[:-1], most[:-1], strict=True)
        ]
        parts.append(self._condensed(task, rooms[-1], most[-1], classes[-1]))
        self.parts = parts  # not before: a task that is refused leaves the memory as it was
        return self._within(sum(rooms))

    def _within(self, room: int) -> CondensedGraph:
        """The memory in at most ``room`` bytes, with a node per class and task at least."""
        # Together they may take more than alone, if one of them is stored sparsely.
        classes = sum(map(_classes, self.parts))
        while self.nbytes > room and self.graph.num_nodes > classes:
            self.parts = [shrunk(part, int(ROUNDING * part.stored_bytes)) for part in self.parts]
        return self.graph

    def grow(self, task: object, *, iterations: int | None = None) -> CondensedGraph:
        """The newest task has grown: its part is updated as :func:`gcsr.update` does.

        Returns the memory of all tasks so far.
        """
        require(bool(self.parts), "grow must come after observe(task).")
        part = update(
            self.parts[-1], task, iterations=iterations, seed=self.seed, device=self.device
        )
        room = self.max_bytes - sum(one.stored_bytes for one in self.parts[:-1])
        if isinstance(self._method, Clusters | SelectionCondenser):
            # What sparse rows became is dense: they keep as many entries as they had, or as fit.
            each = math.ceil(filled(self.parts[-1].x) / part.num_nodes)
            classes = part.num_classes
            part = self._largest(part.x.shape[1], classes, room, part.num_nodes, each).of(part)
        self.parts[-1] = shrunk(part.stored_as(self.dtype), room)
        return self._within(self.max_bytes)

    def _condensed(self, task: Graph, room: int, most: int, classes: int) -> CondensedGraph:
        """The task in at most ``room`` bytes, and in almost as many where it has enough nodes."""
        real = isinstance(self._method, SelectionCondenser)
        visible = task.train.numel() if real or task.inductive else task.num_nodes
        most = max(classes, min(most, visible))
        form = self._form(task, room, most)
        require(
            room // form.bytes >= classes,
            f"max_bytes must be enough for one node of {form.bytes:,} bytes per class, got"
            f" {self.max_bytes:,}, of which a task with {classes} classes gets {room:,}.",
        )
        # One view for all corrections, which share its pseudo-labels.
        source: Graph | CondensingView = task
        if not isinstance(task, StoredGraph):
            source = View(task).condensing(leak_every_label=self._method.leaks_test_labels)
        nodes, fits, beyond = min(most, room // form.bytes), None, None
        for _ in range(CORRECTIONS):
            method = replace(self._method, nodes=nodes)
            made = method.condense(source, seed=self.seed, device=self.device)
            made = form.of(made).stored_as(self.dtype)
            size = made.stored_bytes
            if size > room:
                beyond = made
            elif fits is None or made.num_nodes > fits.num_nodes:
                fits = made
            # Rows may have more or fewer entries than expected, and real nodes have edges.
            corrected = max(classes, min(most, int(ROUNDING * nodes * room / size)))
            if corrected == nodes or ENOUGH * room <= size <= room:
                break
            nodes = corrected
        if beyond is not None and (fits is None or fits.stored_bytes < ENOUGH * room):
            fewer = shrunk(beyond, room)
            fits = fewer if fits is None or fewer.num_nodes > fits.num_nodes else fits
        assert fits is not None
        return fits

    def _form(self, task: Graph, room: int, most: int) -> _Form:
        """What is kept of a node, where ``most`` of them may take ``room`` bytes."""
        width, each = task.num_features, task.filled / task.num_nodes
        if isinstance(self._method, Clusters):
            least = math.ceil(ENTRIES * each)
            return self._largest(width, task.num_classes, room, most, least)
        item, shares = self._item, SHARE_BYTES * task.num_classes
        row = width * item
        if isinstance(self._method, SelectionCondenser):
            row = min(row, sparse_bytes(1, width, math.ceil(each), item))
        return _Form(width, False, row + shares + DIAGONAL_BYTES)

    @property
    def _item(self) -> int:
        """Bytes of a stored number."""
        return 2 if self.dtype == "float16" else 4

    def _largest(self, width: int, classes: int, room: int, nodes: int, least: int) -> _Form:
        """The ``least`` number of largest entries of a row, or more if ``nodes`` leave room for them.

        All entries where that saves nothing.
        """
        item, shares = self._item, SHARE_BYTES * classes
        entry = sparse_bytes(0, width, 1, item) - sparse_bytes(0, width, 0, item)
        spare = (room // nodes - LABEL_BYTES - DIAGONAL_BYTES) // entry - 1
        entries = max(least, spare, 1)
        sparse = sparse_bytes(1, width, entries, item)
        if sparse >= width * item:
            return _Form(width, False, width * item + shares + DIAGONAL_BYTES)
        # Class shares of many classes would take more than the features.
        hard = shares > sparse
        return _Form(entries, hard, sparse + (LABEL_BYTES if hard else shares) + DIAGONAL_BYTES)


@dataclass(frozen=True)
class _Form:
    """What is kept of condensed nodes: ``entries`` of each, ``hard`` labels or class shares.

    A node is expected to take so many ``bytes``.
    """

    entries: int
    hard: bool
    bytes: int

    def of(self, made: CondensedGraph) -> CondensedGraph:
        """The condensed graph in this form."""
        if self.entries >= made.x.shape[1]:
            return made
        largest = made.x.abs().topk(self.entries, dim=1).indices
        x = torch.zeros_like(made.x).scatter(1, largest, made.x.gather(1, largest))
        kept = {"entries": self.entries, "hard_labels": self.hard}
        y = made.classes if self.hard else made.y
        return replace(made, x=x, y=y, provenance={**made.provenance, "kept": kept})


def _classes(part: CondensedGraph) -> int:
    return int(part.classes[part.labeled].unique().numel())


def shrunk(part: CondensedGraph, room: int, most: int = MOST_NODES) -> CondensedGraph:
    """The same condensed graph with as many nodes as fit ``room`` bytes, at least one per class."""
    while (part.num_nodes > most or part.stored_bytes > room) and part.num_nodes > _classes(part):
        fewer = min(most, part.num_nodes - 1, int(part.num_nodes * room / part.stored_bytes))
        strata = part.classes.clamp_min(0)
        budget = class_budget(strata, part.num_classes, max(fewer, _classes(part)))
        kept = torch.ones(part.num_nodes, dtype=torch.bool)
        for label, count in enumerate(budget.tolist()):
            members = (strata == label).nonzero().flatten()
            kept[members[redundant(part.x[members], len(members) - count)]] = False
        x, y, edges = part.x[kept], part.y[kept], part.adjacency[kept][:, kept]
        part = replace(part, x=x, adjacency=edges, y=y)
    return part


def widened(part: CondensedGraph, num_classes: int) -> CondensedGraph:
    """The same condensed graph with shares of more classes, all zero."""
    classes = max(num_classes, part.num_classes)
    more = (0, classes - part.num_classes)
    y = part.y if part.y.ndim == 1 else torch.nn.functional.pad(part.y, more)
    return replace(part, y=y, num_classes=classes)


def joined(parts: Sequence[CondensedGraph]) -> CondensedGraph:
    """Condensed graphs as one, without edges between them."""
    parts = [widened(part, max(one.num_classes for one in parts)) for part in parts]
    hard = all(part.y.ndim == 1 for part in parts)
    leaks = any(part.leaks_test_labels for part in parts)
    history = {"leaks_test_labels": leaks, "replay": [record(part) for part in parts]}
    return replace(
        parts[-1],
        x=torch.cat([part.x for part in parts]),
        adjacency=torch.block_diag(*(part.adjacency for part in parts)),
        y=torch.cat([part.y if hard else part.targets for part in parts]),
        provenance={**parts[-1].provenance, **history},
    )
