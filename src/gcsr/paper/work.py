"""What is done for the cells that share condensed graphs: condense, test or look, write the row."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from gcsr.paper.rows import Row
from gcsr.paper.statistics import graph_statistics
from gcsr.paper.store import Store
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


@dataclass(eq=False)
class Taken:
    """A group of cells that this process may measure: what is known of it, and what is missing."""

    known: list[tuple[Cell, Outcome]]
    missing: list[Cell] = field(default_factory=list)
    graph: Graph | None = None
    claim: ExitStack = field(default_factory=ExitStack)


class Work:
    """Measures groups of cells that differ in what is done with their condensed graphs alone."""

    def __init__(self, plan: Plan, store: Store, progress: Progress) -> None:
        self._protocol, self._data, self._device = plan.protocol, plan.data, plan.device
        self._store, self._shelf = store, plan.shelf
        self._measuring = Measuring(plan.protocol, plan.device, progress, plan.bounds)

    def outcomes(self, group: Sequence[Cell]) -> Iterator[tuple[Cell, Outcome]] | None:
        """Those that are not known are measured; ``None`` while another process is at it."""
        taken = self.take(group)
        return None if taken is None else self._measured(taken)

    def take(self, group: Sequence[Cell]) -> Taken | None:
        """Claim what is missing of a group; ``None`` while another process is at it.

        Whoever takes it closes the claim.
        """
        graph = self._data.graph(group[0].dataset)
        if isinstance(graph, str):
            return Taken(self._absent(group, graph))
        if not self._missing(group, graph):
            return Taken(self._known(group, graph))
        claim = ExitStack()
        if not claim.enter_context(self._store.claim(group[0].claim(self._protocol))):
            return None
        self._store.refresh()
        return Taken(self._known(group, graph), self._missing(group, graph), graph, claim)

    def kept(self, taken: Taken) -> list[CondensedGraph] | None:
        """The condensed graphs of a group, where an earlier run has kept them."""
        # P is in no file.
        if self._shelf is None or taken.graph is None or watches(taken.missing):
            return None
        if not taken.missing[0].condenses:
            return None
        seeds = range(self._protocol.graphs)
        return self._shelf.load(self._shelf_name(taken.missing, taken.graph), seeds)

    def keep(self, taken: Taken, small: Sequence[CondensedGraph]) -> None:
        """Keep condensed graphs for other runs, if they are to be kept."""
        if self._shelf is not None and taken.graph is not None and small:
            seeds = range(self._protocol.graphs)
            self._shelf.save(self._shelf_name(taken.missing, taken.graph), seeds, small)

    def _shelf_name(self, group: Sequence[Cell], graph: Graph) -> str:
        data, where = graph.content_hash[:12], self._device.type
        return f"{group[0].claim(self._protocol)}-{data}-{where}"

    def _measured(self, taken: Taken) -> Iterator[tuple[Cell, Outcome]]:
        with taken.claim:
            yield from taken.known
            if taken.graph is None or not taken.missing:
                return

            def keep(small: Sequence[CondensedGraph]) -> None:
                self.keep(taken, small)

            kept = self.kept(taken)
            measured = self._measuring.outcomes(taken.missing, taken.graph, kept, keep)
            for cell, outcome in measured:
                if outcome.row is not None:
                    self._store.append(outcome.row)
                yield cell, outcome

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


def watches(group: Sequence[Cell]) -> bool:
    """Whether a cell of the group draws the P that condensing leaves behind."""
    return any(cell.look == "adjacency" for cell in group)


class Measuring:
    """Condenses, tests and looks; knows nothing of files."""

    def __init__(
        self,
        protocol: Protocol,
        device: torch.device,
        progress: Progress,
        bounds: Mapping[str, int],
    ) -> None:
        self._protocol, self._device, self._progress = protocol, device, progress
        self._bounds = bounds

    def outcomes(
        self,
        missing: Sequence[Cell],
        graph: Graph,
        kept: Sequence[CondensedGraph] | None,
        keep: Callable[[Sequence[CondensedGraph]], None],
    ) -> Iterator[tuple[Cell, Outcome]]:
        """Every cell of a group, on graphs that were kept or are made, and then given to ``keep``."""
        small: Sequence[CondensedGraph] = kept or ()
        regularisers: Mapping[int, Tensor] = {}
        try:
            if kept is None:
                small, regularisers = self._condense(missing, graph)
                keep(small)
        except CELL_FAILS as error:
            yield from failed(missing, _said(error))
            return
        for cell in missing:
            try:
                row = self._measure(cell, graph, small, regularisers)
            except CELL_FAILS as error:
                yield from failed([cell], _said(error))
                continue
            yield cell, Outcome("done", row)

    def _condense(
        self, group: Sequence[Cell], graph: Graph
    ) -> tuple[Sequence[CondensedGraph], Mapping[int, Tensor]]:
        """The graphs of a group and, where one of its cells draws it, the P of every seed."""
        if not group[0].condenses:
            return [], {}
        condenser = group[0].condenser(self._protocol)
        known = {f.name for f in fields(condenser)}
        condenser = replace(condenser, **{k: v for k, v in self._bounds.items() if k in known})
        if watches(group):
            condenser = WatchedGCSR.watching(condenser)
        small = condenser.condense_many(
            graph,
            seeds=range(self._protocol.graphs),
            device=self._device,
            progress=self._progress,
            context={"preset": "paper"},
        )
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
