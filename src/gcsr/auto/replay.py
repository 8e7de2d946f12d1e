"""Replay: past tasks of continual learning as condensed graphs under a byte budget.

A network that learns one task after the other forgets the earlier ones. It is trained on a small memory
of all tasks instead, the newest included, so that no task has more examples than another (Liu, Qiu and
Huang, "CaT: Balanced Continual Graph Learning with Graph Condensation", ICDM 2023). Every task is
condensed by itself, once; real nodes of earlier tasks are not needed. Learning the memory of all tasks
together, with remembered nodes beside the real ones, forgot more: remembered nodes drift.

Class-wise cluster centers are the default. Bilevel condensation keeps what tells the classes of one
task apart, which is not enough to tell them from classes of other tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from gcsr.auto.update import record, redundant, update
from gcsr.data.condensed import CondensedGraph, StoredDtype
from gcsr.data.graph import Graph
from gcsr.data.interop import graph_of
from gcsr.methods.registry import build
from gcsr.methods.selection import SelectionCondenser
from gcsr.starts.sample import class_budget
from gcsr.utils.errors import require

# Edges of a condensed graph are a dense matrix: more nodes than these are not kept.
MOST_NODES = 2**13
# Times that the number of real nodes is corrected, and the room that is left for rounding.
CORRECTIONS, ROUNDING = 4, 0.98
# What class shares and the diagonal of A' take in a file.
SHARE_BYTES, DIAGONAL_BYTES = 4, 8


class Replay:
    """A memory of the tasks seen so far, to train on.

    Tasks are graphs with the same features. Classes keep their numbers over all tasks. A task may have
    new classes (class-incremental learning) or be another part of the graph with known ones.

    Args:
        max_bytes: what the memory of all tasks may take in a file. A task gets the share of its
            classes among ``num_classes`` of its graph. If more classes come, earlier tasks shrink:
            of nodes of one class that are most alike, one is removed.
        method: condenses the tasks: ``clusters``, or another one that ``gcsr methods`` lists;
            ``random`` and ``herding`` keep real nodes.
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
        require(
            isinstance(max_bytes, int) and max_bytes > 0,
            f"max_bytes must be an integer > 0, got {max_bytes!r}.",
        )
        self._method = build(method, {"nodes": 1, **settings})
        self.max_bytes, self.dtype, self.seed, self.device = max_bytes, dtype, seed, device
        self.parts: list[CondensedGraph] = []

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
        task = graph_of(task)
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
        self.parts = [
            shrunk(widened(part, task.num_classes), room, count)
            for part, room, count in zip(self.parts, rooms[:-1], most[:-1], strict=True)
        ]
        self.parts.append(self._condensed(task, rooms[-1], most[-1], classes[-1]))
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
        # What real nodes became may take more bytes than they did.
        others = sum(one.stored_bytes for one in self.parts[:-1])
        self.parts[-1] = shrunk(part.stored_as(self.dtype), self.max_bytes - others)
        return self._within(self.max_bytes)

    def _condensed(self, task: Graph, room: int, most: int, classes: int) -> CondensedGraph:
        """The task in at most ``room`` bytes."""
        each = task.num_features * (2 if self.dtype == "float16" else 4)
        each += SHARE_BYTES * task.num_classes + DIAGONAL_BYTES
        real = isinstance(self._method, SelectionCondenser)
        most = max(classes, min(most, task.train.numel()) if real else most)
        nodes, found = min(most, room // each), None
        require(
            nodes >= classes,
            f"max_bytes must be enough for one node of {each:,} bytes per class, got"
            f" {self.max_bytes:,}, of which a task with {classes} classes gets {room:,}.",
        )
        for _ in range(CORRECTIONS):
            method = replace(self._method, nodes=nodes)
            made = method.condense(task, seed=self.seed, device=self.device).stored_as(self.dtype)
            size = made.stored_bytes
            if size <= room and (found is None or made.num_nodes > found.num_nodes):
                found = made
            # Real nodes may be sparse or have edges: more or fewer of them fit.
            corrected = max(classes, min(most, int(ROUNDING * nodes * room / size)))
            if corrected == nodes or (size <= room and not real):
                break
            nodes = corrected
        return shrunk(made, room) if found is None else found


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
