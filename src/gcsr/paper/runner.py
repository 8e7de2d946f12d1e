"""The one runner: cells that are not on disk yet are measured, one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from gcsr.condensed import CondensedGraph
from gcsr.datasets import load
from gcsr.devices import pick_device
from gcsr.errors import InputError, require_one_of
from gcsr.evaluate import Evaluation, evaluate, evaluate_full
from gcsr.graph import Graph
from gcsr.paper.cells import STATISTICS, WHOLE_GRAPH, Cell, Experiment, Protocol
from gcsr.paper.commands import command
from gcsr.paper.statistics import graph_statistics
from gcsr.paper.store import Row, Store
from gcsr.progress import Progress, silent

State = Literal["done", "absent", "failed", "not run"]
# What costs one cell and not the run; faults of this library are not caught.
CELL_FAILS = (InputError, MemoryError, torch.OutOfMemoryError)


@dataclass(frozen=True)
class Outcome:
    """What became of a cell: its row, or the reason why there is none."""

    state: State
    row: Row | None = None
    reason: str = ""


def reproduce(
    experiment: Experiment,
    store: Store,
    *,
    protocol: Protocol,
    datasets: Sequence[str] = (),
    root: Path | None = None,
    device: str = "auto",
    progress: Progress = silent,
) -> dict[Cell, Outcome]:
    """Measure the cells of an experiment (of some datasets only) that ``store`` does not hold.

    Every finished cell is in the store before the next begins. A dataset that cannot be had, or a
    cell that cannot be computed, is told in the outcome; the rest runs.
    """
    for name in datasets:
        require_one_of("dataset", name, experiment.datasets)
    work = _Work(store, protocol, root, pick_device(device), progress)
    wanted = [c for c in experiment.cells if not datasets or c.dataset in datasets]
    stage, total = f"cells of {experiment.name}", len(wanted)
    outcomes: dict[Cell, Outcome] = {}
    progress(stage, 0, total)
    for group in _groups(wanted):
        for cell, outcome in work.outcomes(group):
            outcomes[cell] = outcome
            progress(stage, len(outcomes), total)
    return recall(experiment, store, protocol) | outcomes


def recall(experiment: Experiment, store: Store, protocol: Protocol) -> dict[Cell, Outcome]:
    """What is known of every cell without computing anything."""
    return {cell: recalled(cell, store, protocol) for cell in experiment.cells}


def recalled(cell: Cell, store: Store, protocol: Protocol) -> Outcome:
    """What is known of one cell."""
    row = store.get(cell.key(protocol))
    return Outcome("not run") if row is None else Outcome("done", row)


def _groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells that share condensed graphs together, datasets one after the other."""
    by_dataset: dict[str, dict[Cell, list[Cell]]] = {}
    for cell in cells:
        same = by_dataset.setdefault(cell.dataset, {})
        same.setdefault(cell.condensation, []).append(cell)
    return [group for same in by_dataset.values() for group in same.values()]


def _failed(error: BaseException) -> Outcome:
    return Outcome("failed", reason=" ".join(str(error).split()) or type(error).__name__)


class _Work:
    """What all cells of a run share; at most one dataset is in memory."""

    def __init__(
        self,
        store: Store,
        protocol: Protocol,
        root: Path | None,
        device: torch.device,
        progress: Progress,
    ) -> None:
        self._store, self._protocol, self._root = store, protocol, root
        self._device, self._progress = device, progress
        self._loaded: tuple[str, Graph | str] | None = None

    def outcomes(self, group: Sequence[Cell]) -> Iterable[tuple[Cell, Outcome]]:
        """Cells that differ in their test model alone: those that are not known are measured."""
        known = {cell: recalled(cell, self._store, self._protocol) for cell in group}
        missing = [cell for cell, outcome in known.items() if outcome.state != "done"]
        yield from ((cell, known[cell]) for cell in group if cell not in missing)
        if not missing:
            return
        graph = self._graph(group[0].dataset)
        if isinstance(graph, str):
            yield from ((cell, Outcome("absent", reason=graph)) for cell in missing)
            return
        try:
            small = self._condense(missing[0], graph)
        except CELL_FAILS as error:
            yield from ((cell, _failed(error)) for cell in missing)
            return
        for cell in missing:
            try:
                row = self._measure(cell, graph, small)
            except CELL_FAILS as error:
                yield cell, _failed(error)
                continue
            self._store.append(row)
            yield cell, Outcome("done", row)

    def _graph(self, dataset: str) -> Graph | str:
        """The dataset, or the sentence that says why it is absent."""
        if self._loaded is None or self._loaded[0] != dataset:
            self._loaded = None  # the previous one goes before the next one comes
            try:
                self._loaded = dataset, load(dataset, self._root)
            except InputError as error:
                self._loaded = dataset, str(error)
        return self._loaded[1]

    def _condense(self, cell: Cell, graph: Graph) -> list[CondensedGraph]:
        if not cell.condenses:
            return []
        return cell.condenser(self._protocol).condense_many(
            graph,
            seeds=range(self._protocol.graphs),
            device=self._device,
            progress=self._progress,
            context={"preset": "paper"},
        )

    def _measure(self, cell: Cell, graph: Graph, small: Sequence[CondensedGraph]) -> Row:
        protocol = self._protocol
        row: dict[str, Any] = {
            "key": cell.key(protocol),
            **cell.identity(protocol),
            "data": graph.content_hash,
            "device": self._device.type,
            "command": command(cell, protocol),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        if cell.method == STATISTICS:
            value = graph_statistics(graph)[row["statistic"]]
            return row | {"mean": value, "std": None, "leaks_test_labels": False}
        options: dict[str, Any] = {
            "model": cell.test,
            "runs": protocol.runs,
            "recipe": protocol.recipe(cell.dataset),
            "device": self._device,
            "progress": self._progress,
        }
        outcome: Evaluation
        if cell.method == WHOLE_GRAPH:
            outcome = evaluate_full(graph, **options)
        else:
            outcome = evaluate(small, graph, **options)
            first = small[0].provenance
            row |= {"versions": first["versions"], "notes": first["notes"]}
            row["condense_seconds"] = sum(g.provenance["measured"]["seconds"] for g in small)
        return row | {
            "mean": outcome.mean,
            "std": outcome.std,
            "scores": outcome.scores,
            "validation": outcome.validation,
            "leaks_test_labels": outcome.leaks_test_labels,
            "evaluate_seconds": outcome.seconds,
        }
