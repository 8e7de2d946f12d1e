"""Cells that share condensed graphs are measured together: condense, test or analyze, write rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.datasets.loading import load
from gcsr.datasets.registry import catalogue
from gcsr.evaluation.protocol import evaluate, evaluate_full
from gcsr.methods.base import code_versions
from gcsr.paper.analyses import WatchedGCSR, condensed_graphs, graph_statistics, whole_graph
from gcsr.paper.cells import STATISTICS, WHOLE_GRAPH, Cell, Protocol
from gcsr.paper.store import Row, Store
from gcsr.utils.devices import machine_name
from gcsr.utils.errors import InputError, InputWarning
from gcsr.utils.progress import Progress

State = Literal["done", "absent", "failed", "not run"]
# Errors that cost one cell and not the run; faults of this library are not caught.
CELL_FAILS = (InputError, MemoryError, torch.OutOfMemoryError)


@dataclass
class Data:
    """Datasets under ``root``, at most one in memory; missing ones are downloaded if ``download``."""

    root: Path | None = None
    download: bool = True
    absent: dict[str, str] = field(default_factory=dict)
    _loaded: tuple[str, Graph] | None = None

    def graph(self, name: str) -> Graph | str:
        """The dataset, or the reason why it is absent."""
        if name in self.absent:
            return self.absent[name]
        if self._loaded is None or self._loaded[0] != name:
            self._loaded = None  # free the memory of the previous one first
            try:
                if not (self.download or available(name, self.root)):
                    raise InputError(
                        f"{name}: not in the data folder, and a download was not asked for"
                        " (--download)."
                    )
                self._loaded = name, load(name, self.root)
            except InputError as error:
                self.absent[name] = str(error)
                return str(error)
        return self._loaded[1]

    def fetched(self, names: Iterable[str]) -> Data:
        """The same for other processes, after every download that may be needed."""
        for name in names:
            if not available(name, self.root):
                self.graph(name)
        return Data(self.root, download=False, absent=dict(self.absent))


def available(name: str, root: Path | None) -> bool:
    """Whether a dataset can be read without a download."""
    return any(info.available for info in catalogue(root) if info.name == name)


@dataclass(frozen=True)
class GraphCache:
    """Condensed graphs on disk, so that cells of other tables need not condense them again."""

    folder: Path

    def load(self, name: str, seeds: Sequence[int]) -> list[CondensedGraph] | None:
        """The graphs of these seeds; ``None`` unless every one is there and can be read."""
        try:
            found = [CondensedGraph.load(path) for path in self._paths(name, seeds)]
        except InputError:
            return None
        return found if all(_has_cost(one.provenance) for one in found) else None

    def save(self, name: str, seeds: Sequence[int], graphs: Sequence[CondensedGraph]) -> None:
        """Keep the graphs of these seeds."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be made ({error.strerror}).") from None
        for path, graph in zip(self._paths(name, seeds), graphs, strict=True):
            for unfinished in self.folder.glob(f".{path.name}.*"):  # of a process that was killed
                unfinished.unlink(missing_ok=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InputWarning)  # whatever the sizes are
                graph.save(path)

    def _paths(self, name: str, seeds: Sequence[int]) -> list[Path]:
        return [self.folder / f"{name}-{seed}.safetensors" for seed in seeds]


def _has_cost(provenance: Mapping[str, Any]) -> bool:
    """Whether a file has what a row contains of its graphs."""
    measured = provenance.get("measured")
    return (
        isinstance(provenance.get("versions"), dict)
        and isinstance(provenance.get("notes"), list)
        and isinstance(measured, dict)
        and isinstance(measured.get("seconds"), float)
    )


@dataclass(frozen=True)
class Outcome:
    """The row of a cell, or the reason why there is none."""

    state: State
    row: Row | None = None
    reason: str = ""


Outcomes = Iterator[tuple[Cell, Outcome]]


def recalled(cell: Cell, store: Store, protocol: Protocol) -> Outcome:
    """What is known of one cell without its data."""
    row = store.latest(cell.settings_key(protocol))
    return Outcome("not run") if row is None else Outcome("done", row)


def failed(cells: Iterable[Cell], why: str) -> list[tuple[Cell, Outcome]]:
    """The same failure of several cells."""
    return [(cell, Outcome("failed", reason=why)) for cell in cells]


@dataclass(frozen=True)
class Measurement:
    """Condenses, tests and analyzes; reads and writes no files.

    ``bounds`` limit memory and disk (``expert_memory``, ``expert_disk``); no result depends on them.
    """

    protocol: Protocol
    device: torch.device
    bounds: Mapping[str, int] = field(default_factory=dict)

    def outcomes(
        self,
        cells: Sequence[Cell],
        graph: Graph,
        kept: Sequence[CondensedGraph] | None,
        keep: Callable[[Sequence[CondensedGraph]], None],
        progress: Progress,
    ) -> Outcomes:
        """Every cell of a group, on graphs that were ``kept`` or are made and passed to ``keep``."""
        small: Sequence[CondensedGraph] = kept or ()
        regularizers: Mapping[int, Tensor] = {}
        try:
            if kept is None and cells[0].condenses:
                small, regularizers = self._condense(cells, graph, progress)
                keep(small)
        except CELL_FAILS as error:
            yield from failed(cells, _sentence(error))
            return
        for cell in cells:
            try:
                row = self._measure(cell, graph, small, regularizers, progress)
            except CELL_FAILS as error:
                yield from failed([cell], _sentence(error))
            else:
                yield cell, Outcome("done", row)

    def _condense(
        self, group: Sequence[Cell], graph: Graph, progress: Progress
    ) -> tuple[Sequence[CondensedGraph], Mapping[int, Tensor]]:
        """The graphs of a group and, where one of its cells draws it, the P of every seed."""
        condenser = group[0].condenser(self.protocol)
        known = {f.name for f in fields(condenser)}
        condenser = replace(condenser, **{k: v for k, v in self.bounds.items() if k in known})
        if draws_regularizer(group):
            condenser = WatchedGCSR.watching(condenser)
        small = condenser.condense_many(
            graph,
            seeds=range(self.protocol.graphs),
            device=self.device,
            progress=progress,
            context={"preset": "paper"},
        )
        return small, getattr(condenser, "regularizers", {})

    def _measure(
        self,
        cell: Cell,
        graph: Graph,
        small: Sequence[CondensedGraph],
        regularizers: Mapping[int, Tensor],
        progress: Progress,
    ) -> Row:
        protocol = self.protocol
        row: Row = {
            "key": cell.key(protocol, graph.content_hash),
            "cell": cell.settings_key(protocol),
            **cell.identity(protocol),
            "data": graph.content_hash,
            "device": self.device.type,
            "machine": machine_name(self.device),
            "versions": code_versions(),
            "command": cell.command(protocol),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        if small:
            first = small[0].provenance
            row["notes"] = first["notes"]
            row["condense_seconds"] = sum(g.provenance["measured"]["seconds"] for g in small)
        if cell.method == STATISTICS:
            value = graph_statistics(graph)[row["statistic"]]
            return row | {"mean": value, "std": None, "leaks_test_labels": False}
        if cell.analysis:
            found = (
                whole_graph(graph)
                if cell.method == WHOLE_GRAPH
                else condensed_graphs(
                    cell.analysis, small, graph, regularizers, quick=protocol.quick
                )
            )
            return row | found | {"leaks_test_labels": any(one.leaks_test_labels for one in small)}
        options: dict[str, Any] = {
            "model": cell.test,
            "runs": protocol.runs,
            "recipe": protocol.recipe(cell.dataset),
            "device": self.device,
            "progress": progress,
        }
        if cell.method == WHOLE_GRAPH:
            outcome = evaluate_full(graph, **options)
        else:
            outcome = evaluate([_without_faint(one, cell.cut) for one in small], graph, **options)
        return row | {
            "mean": outcome.mean,
            "std": outcome.std,
            "scores": outcome.scores,
            "validation": outcome.validation,
            "leaks_test_labels": outcome.leaks_test_labels,
            "evaluate_seconds": outcome.seconds,
        }


def draws_regularizer(group: Sequence[Cell]) -> bool:
    """Whether a cell of the group draws the P that condensing leaves behind."""
    return any(cell.analysis == "adjacency" for cell in group)


def _without_faint(small: CondensedGraph, cut: float) -> CondensedGraph:
    """The same graph without the entries of A' below ``cut``."""
    if not cut:
        return small
    return replace(small, adjacency=torch.where(small.adjacency < cut, 0, small.adjacency))


def _sentence(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@dataclass(frozen=True)
class Plan:
    """How and with which files cells are measured; the same in every process of a run."""

    rows: Path
    data: Data
    measurement: Measurement
    cache: GraphCache | None = None


@dataclass(eq=False)
class Taken:
    """A group of cells that this process may measure; the ``claim`` must be closed."""

    known: list[tuple[Cell, Outcome]]
    missing: list[Cell] = field(default_factory=list)
    graph: Graph | None = None
    claim: ExitStack = field(default_factory=ExitStack)


class Work:
    """Measures groups of cells that share condensed graphs, and stores their rows."""

    def __init__(self, plan: Plan, store: Store, progress: Progress) -> None:
        self.plan, self._store, self._progress = plan, store, progress
        self._protocol = plan.measurement.protocol

    def outcomes(self, group: Sequence[Cell]) -> Outcomes | None:
        """Known outcomes and new measurements; ``None`` while another process has the group."""
        taken = self.take(group)
        return None if taken is None else self._measured(taken)

    def take(self, group: Sequence[Cell]) -> Taken | None:
        """Claim what is missing of a group; ``None`` while another process has it."""
        graph = self.plan.data.graph(group[0].dataset)
        if isinstance(graph, str):  # rows from when the data were there are shown
            absent = Outcome("absent", reason=graph)
            found = [(cell, recalled(cell, self._store, self._protocol)) for cell in group]
            return Taken([(cell, known if known.row else absent) for cell, known in found])
        known, missing = self._known(group, graph)
        if not missing:
            return Taken(known)
        claim = ExitStack()
        if not claim.enter_context(self._store.claim(group[0].claim(self._protocol))):
            return None
        self._store.refresh()
        return Taken(*self._known(group, graph), graph, claim)

    def kept(self, taken: Taken) -> list[CondensedGraph] | None:
        """The condensed graphs of a group from the cache; no file holds P."""
        if self.plan.cache is None or taken.graph is None or draws_regularizer(taken.missing):
            return None
        if not taken.missing[0].condenses:
            return None
        name, seeds = self._cache_name(taken.missing, taken.graph), range(self._protocol.graphs)
        return self.plan.cache.load(name, seeds)

    def keep(self, taken: Taken, small: Sequence[CondensedGraph]) -> None:
        """Put condensed graphs into the cache, if there is one."""
        if self.plan.cache is not None and taken.graph is not None and small:
            name = self._cache_name(taken.missing, taken.graph)
            self.plan.cache.save(name, range(self._protocol.graphs), small)

    def _cache_name(self, group: Sequence[Cell], graph: Graph) -> str:
        device = self.plan.measurement.device.type
        return f"{group[0].claim(self._protocol)}-{graph.content_hash[:12]}-{device}"

    def _measured(self, taken: Taken) -> Outcomes:
        with taken.claim:
            yield from taken.known
            if taken.graph is None or not taken.missing:
                return

            def keep(small: Sequence[CondensedGraph]) -> None:
                self.keep(taken, small)

            for cell, outcome in self.plan.measurement.outcomes(
                taken.missing, taken.graph, self.kept(taken), keep, self._progress
            ):
                if outcome.row is not None:
                    self._store.append(outcome.row)
                yield cell, outcome

    def _known(
        self, group: Sequence[Cell], graph: Graph
    ) -> tuple[list[tuple[Cell, Outcome]], list[Cell]]:
        """Finished cells with their rows, and the others."""
        rows = {
            cell: self._store.get(cell.key(self._protocol, graph.content_hash)) for cell in group
        }
        known = [(cell, Outcome("done", row)) for cell, row in rows.items() if row is not None]
        return known, [cell for cell, row in rows.items() if row is None]
