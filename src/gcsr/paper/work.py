"""What is done for the cells that share condensed graphs: condense, test or look, write the row."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from gcsr.condensed import CondensedGraph
from gcsr.errors import InputError
from gcsr.evaluate import Evaluation, evaluate, evaluate_full
from gcsr.graph import Graph
from gcsr.paper.cells import STATISTICS, WHOLE_GRAPH, Cell, Protocol
from gcsr.paper.commands import command
from gcsr.paper.data import Data
from gcsr.paper.graphs import Shelf
from gcsr.paper.looks import WatchedGCSR, condensed_graphs, whole_graph
from gcsr.paper.statistics import graph_statistics
from gcsr.paper.store import Row, Store
from gcsr.progress import Progress

State = Literal["done", "absent", "failed", "not run"]
# What costs one cell and not the run; faults of this library are not caught.
CELL_FAILS = (InputError, MemoryError, torch.OutOfMemoryError)


@dataclass(frozen=True)
class Outcome:
    """What became of a cell: its row, or the reason why there is none."""

    state: State
    row: Row | None = None
    reason: str = ""


@dataclass(frozen=True)
class Plan:
    """How cells are measured; the same in every process of a run."""

    rows: Path
    protocol: Protocol
    data: Data
    device: torch.device
    shelf: Shelf | None = None
    # What bounds memory and disk (``expert_memory``, ``expert_disk``): no part of any result.
    bounds: Mapping[str, int] = field(default_factory=dict)


def recalled(cell: Cell, store: Store, protocol: Protocol) -> Outcome:
    """What is known of one cell without its data."""
    row = store.latest(cell.settings_key(protocol))
    return Outcome("not run") if row is None else Outcome("done", row)


def failed(cells: Iterable[Cell], reason: str) -> list[tuple[Cell, Outcome]]:
    """The same failure of several cells."""
    return [(cell, Outcome("failed", reason=reason)) for cell in cells]


class Work:
    """Measures groups of cells that differ in what is done with their condensed graphs alone."""

    def __init__(self, plan: Plan, store: Store, progress: Progress) -> None:
        self._protocol, self._data, self._device = plan.protocol, plan.data, plan.device
        self._store, self._progress, self._shelf = store, progress, plan.shelf
        self._bounds = plan.bounds

    def outcomes(self, group: Sequence[Cell]) -> Iterator[tuple[Cell, Outcome]] | None:
        """Those that are not known are measured; ``None`` while another process is at it."""
        graph = self._data.graph(group[0].dataset)
        if isinstance(graph, str):
            return iter(self._absent(group, graph))
        if not self._missing(group, graph):
            return iter(self._known(group, graph))
        return self._claimed(group, graph)

    def _claimed(
        self, group: Sequence[Cell], graph: Graph
    ) -> Iterator[tuple[Cell, Outcome]] | None:
        claim = ExitStack()
        if not claim.enter_context(self._store.claim(group[0].claim(self._protocol))):
            return None

        def measured() -> Iterator[tuple[Cell, Outcome]]:
            with claim:
                self._store.refresh()
                missing = self._missing(group, graph)
                yield from self._known(group, graph)
                yield from self._measured(missing, graph)

        return measured()

    def _absent(self, group: Sequence[Cell], reason: str) -> list[tuple[Cell, Outcome]]:
        """Rows from when the data were there are shown."""
        found = [(cell, recalled(cell, self._store, self._protocol)) for cell in group]
        absent = Outcome("absent", reason=reason)
        return [(cell, known if known.row else absent) for cell, known in found]

    def _row(self, cell: Cell, graph: Graph) -> Row | None:
        return self._store.get(cell.key(self._protocol, graph.content_hash))

    def _known(self, group: Sequence[Cell], graph: Graph) -> list[tuple[Cell, Outcome]]:
        rows = [(cell, self._row(cell, graph)) for cell in group]
        return [(cell, Outcome("done", row)) for cell, row in rows if row is not None]

    def _missing(self, group: Sequence[Cell], graph: Graph) -> list[Cell]:
        return [cell for cell in group if self._row(cell, graph) is None]

    def _measured(self, missing: Sequence[Cell], graph: Graph) -> Iterator[tuple[Cell, Outcome]]:
        if not missing:
            return
        try:
            small, regularisers = self._condense(missing, graph)
        except CELL_FAILS as error:
            yield from failed(missing, _said(error))
            return
        for cell in missing:
            try:
                row = self._measure(cell, graph, small, regularisers)
            except CELL_FAILS as error:
                yield from failed([cell], _said(error))
                continue
            self._store.append(row)
            yield cell, Outcome("done", row)

    def _condense(
        self, group: Sequence[Cell], graph: Graph
    ) -> tuple[list[CondensedGraph], Mapping[int, Tensor]]:
        """The graphs of a group and, where one of its cells draws it, the P of every seed."""
        if not group[0].condenses:
            return [], {}
        first, seeds = group[0], range(self._protocol.graphs)
        condenser = first.condenser(self._protocol)
        known = {f.name for f in fields(condenser)}
        condenser = replace(condenser, **{k: v for k, v in self._bounds.items() if k in known})
        watched = any(cell.look == "adjacency" for cell in group)
        if watched:
            condenser = WatchedGCSR.watching(condenser)
        data, where = graph.content_hash[:12], self._device.type
        name = f"{first.claim(self._protocol)}-{data}-{where}"
        # P is in no file.
        kept = self._shelf.load(name, seeds) if self._shelf and not watched else None
        if kept is not None:
            return kept, {}
        small = condenser.condense_many(
            graph,
            seeds=seeds,
            device=self._device,
            progress=self._progress,
            context={"preset": "paper"},
        )
        if self._shelf:
            self._shelf.save(name, seeds, small)
        return small, getattr(condenser, "regularisers", {})

    def _measure(
        self,
        cell: Cell,
        graph: Graph,
        small: Sequence[CondensedGraph],
        regularisers: Mapping[int, Tensor],
    ) -> Row:
        protocol = self._protocol
        row: Row = {
            "key": cell.key(protocol, graph.content_hash),
            "cell": cell.settings_key(protocol),
            **cell.identity(protocol),
            "data": graph.content_hash,
            "device": self._device.type,
            "command": command(cell, protocol),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        if small:
            first = small[0].provenance
            row |= {"versions": first["versions"], "notes": first["notes"]}
            row["condense_seconds"] = sum(g.provenance["measured"]["seconds"] for g in small)
        if cell.method == STATISTICS:
            value = graph_statistics(graph)[row["statistic"]]
            return row | {"mean": value, "std": None, "leaks_test_labels": False}
        if cell.look:
            leaks = any(one.leaks_test_labels for one in small)
            if cell.method == WHOLE_GRAPH:
                seen = whole_graph(graph)
            else:
                quick = protocol.quick
                seen = condensed_graphs(cell.look, small, graph, regularisers, quick=quick)
            return row | seen | {"leaks_test_labels": leaks}
        outcome = self._tested(cell, graph, small)
        return row | {
            "mean": outcome.mean,
            "std": outcome.std,
            "scores": outcome.scores,
            "validation": outcome.validation,
            "leaks_test_labels": outcome.leaks_test_labels,
            "evaluate_seconds": outcome.seconds,
        }

    def _tested(self, cell: Cell, graph: Graph, small: Sequence[CondensedGraph]) -> Evaluation:
        options: dict[str, Any] = {
            "model": cell.test,
            "runs": self._protocol.runs,
            "recipe": self._protocol.recipe(cell.dataset),
            "device": self._device,
            "progress": self._progress,
        }
        if cell.method == WHOLE_GRAPH:
            return evaluate_full(graph, **options)
        return evaluate([_without_faint(one, cell.cut) for one in small], graph, **options)


def _without_faint(small: CondensedGraph, cut: float) -> CondensedGraph:
    """The same graph without the entries of A' below ``cut``."""
    if not cut:
        return small
    kept = torch.where(small.adjacency < cut, 0, small.adjacency)
    return replace(small, adjacency=kept)


def _said(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
