"""Cells that share condensed graphs are measured together: condense, test or analyze, write rows."""

from __future__ import annotations

import math
import re
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gcsr.benchmarking.analyses import WatchedGCSR, condensed_graphs, graph_statistics, whole_graph
from gcsr.benchmarking.cells import PSEUDO_LABELS, STATISTICS, WHOLE_GRAPH, Cell, Protocol
from gcsr.benchmarking.own_code import is_own
from gcsr.benchmarking.store import Row, Store, failed_row, prepare_folder
from gcsr.data.arrays import FEATURE_SCALINGS
from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.views import View
from gcsr.datasets.loading import load
from gcsr.datasets.registry import DATASETS, catalogue
from gcsr.evaluation.origin import used_pseudo_labels
from gcsr.evaluation.protocol import evaluate, evaluate_full
from gcsr.methods.base import code_versions
from gcsr.methods.registry import build
from gcsr.utils.devices import machine_name
from gcsr.utils.errors import InputError, InputWarning, require
from gcsr.utils.progress import Progress, silent
from gcsr.utils.safe_io import part

State = Literal["done", "absent", "failed", "not run"]
# Errors that cost one cell and not the run; faults of this library are not caught.
CELL_FAILS = (InputError, MemoryError, torch.OutOfMemoryError)
# What a method may raise: sys.exit() in it ends its cell, not the run.
RAISED = (Exception, SystemExit)
# Bytes of features above which no further graph is kept in memory.
KEPT_BYTES = 2**30
_VARIANT = re.compile(r"(.+):(inductive|transductive|keep|rows|standardize|\d+-\d+-\d+)")


@dataclass(frozen=True)
class Limits:
    """No cell begins after ``seconds`` of a run, none takes more than ``cell`` seconds.

    With ``keep_failures`` the reason of a failure is a row, which ``retry`` measures again.
    """

    seconds: float = math.inf
    cell: float = math.inf
    keep_failures: bool = False
    retry: bool = False

    def within(self, progress: Progress) -> Progress:
        """The same callback, which raises an exception once a cell takes too long."""
        if math.isinf(self.cell):
            return progress
        end = time.monotonic() + self.cell

        def report(stage: str, done: int, total: int) -> None:
            if time.monotonic() > end:
                raise OverLimitError(f"over the limit of {self.cell:g} seconds ({stage}).")
            progress(stage, done, total)

        return report


class OverLimitError(Exception):
    """A cell took more seconds than it may take."""


@dataclass
class Data:
    """Graphs by name or path, with variants (:func:`variant_of`); files may also lie under ``root``.

    Missing datasets are downloaded if ``download``. Graphs stay in memory up to ``KEPT_BYTES``.
    """

    root: Path | None = None
    download: bool = True
    absent: dict[str, str] = field(default_factory=dict)
    _loaded: dict[str, Graph] = field(default_factory=dict)

    def graph(self, name: str) -> Graph | str:
        """The graph, or the reason why it is absent."""
        if name in self.absent:
            return self.absent[name]
        if name not in self._loaded:
            while sum(one.nbytes for one in self._loaded.values()) > KEPT_BYTES:
                del self._loaded[next(iter(self._loaded))]  # free memory first
            try:
                self._loaded[name] = self._load(name)
            except InputError as error:
                self.absent[name] = str(error)
                return str(error)
        return self._loaded[name]

    def _load(self, name: str) -> Graph:
        base, shares, options = variant_of(name)
        if base not in DATASETS:
            places = [Path(base), *(self.root / base for _ in [0] if self.root)]
            base = str(next((place for place in places if place.exists()), base))
            before, _, word = base.rpartition(":")
            of = variant_of(before)[0]
            folders = [Path(), *([self.root] if self.root else [])]
            known = of in DATASETS or bool(of and any((one / of).exists() for one in folders))
            require(
                Path(base).exists() or not known,
                "the variant must be shares such as 60-20-20, inductive, transductive,"
                f" {', '.join(FEATURE_SCALINGS[:-1])} or {FEATURE_SCALINGS[-1]}, got {word!r}.",
            )
        elif not (self.download or available(base, self.root)):
            raise InputError(
                f"{base}: its files are not in the data folder, and downloads are turned off."
            )
        graph = load(base, self.root, **options)
        return graph if shares is None else resplit(graph, shares, name)

    def forget(self, name: str) -> None:
        """Load a graph again when it is needed: a method of the user may have changed it."""
        self._loaded.pop(name, None)

    def fetched(self, names: Iterable[str]) -> Data:
        """The same for other processes, after every download that may be needed."""
        for name in names:
            base = variant_of(name)[0]
            if base in DATASETS and not available(base, self.root):
                self.graph(name)
        return Data(self.root, download=False, absent=dict(self.absent))


def variant_of(name: str) -> tuple[str, tuple[int, ...] | None, dict[str, Any]]:
    """The parts of a name such as ``cora:60-20-20:inductive``.

    A graph or its path, the percentages of labeled nodes that train, validate and test, and options of
    :func:`gcsr.load`: ``inductive``, ``transductive``, or the scaling of features.
    """
    base, options, shares = name, dict[str, Any](), None
    while match := _VARIANT.fullmatch(base):
        base, word = match.groups()
        if word in FEATURE_SCALINGS:
            options["features"] = word
        elif word[0].isdigit():
            shares = tuple(map(int, word.split("-")))
            require(
                sum(shares) == 100 and min(shares) > 0,
                f"data must have three shares > 0 of 100 in all, such as 60-20-20, got {name!r}.",
            )
        else:
            options["inductive"] = word == "inductive"
    return base, shares, options


def resplit(graph: Graph, shares: Sequence[int], name: str) -> Graph:
    """Another split: shares in percent of the labeled nodes, permuted with seed 0."""
    labels = graph.y if graph.y.ndim == 1 else graph.y[:, 0]
    labeled = np.flatnonzero(labels.numpy() >= 0)
    order = labeled[np.random.default_rng(0).permutation(labeled.size)]
    ends = [shares[0] * order.size // 100, (shares[0] + shares[1]) * order.size // 100]
    train, val, test = (torch.from_numpy(np.sort(part)) for part in np.split(order, ends))
    return replace(graph, train=train, val=val, test=test, name=name)


def available(name: str, root: Path | None) -> bool:
    """Whether a dataset can be read without a download."""
    return any(info.available for info in catalogue(root) if info.name == name)


def load_graphs(paths: Sequence[Path]) -> list[CondensedGraph] | None:
    """Kept condensed graphs; ``None`` unless every one is there and can be read."""
    try:
        found = [CondensedGraph.load(path) for path in paths]
    except InputError:
        return None
    # A row contains these of its graphs.
    complete = all(
        isinstance(made.get("versions"), dict)
        and isinstance(made.get("notes"), list)
        and isinstance(part(made, "measured").get("seconds"), float)
        for made in (one.provenance for one in found)
    )
    return found if found and complete else None


def save_graphs(paths: Sequence[Path], graphs: Sequence[CondensedGraph]) -> None:
    """Keep condensed graphs, so that cells of other tables need not condense them again."""
    for path, graph in zip(paths, graphs, strict=True):
        prepare_folder("keep_graphs", path.parent)
        for unfinished in path.parent.glob(f".{path.name}.*"):  # of a process that was killed
            with suppress(OSError):  # writing the file says what is wrong
                unfinished.unlink()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # whatever the sizes are
            graph.save(path)


@dataclass(frozen=True)
class Outcome:
    """The row of a cell, or the reason why there is none."""

    state: State
    row: Row | None = None
    reason: str = ""

    @classmethod
    def of(cls, row: Row | None) -> Outcome:
        """What a row says; without one the cell was not run."""
        if row is None:
            return cls("not run")
        return cls("failed", row, row.get("reason", "")) if failed_row(row) else cls("done", row)


Outcomes = Iterator[tuple[Cell, Outcome]]


def recalled(cell: Cell, store: Store, protocol: Protocol) -> Outcome:
    """What is known of one cell without its data."""
    return Outcome.of(store.latest(cell.settings_key(protocol)))


def failed(cells: Iterable[Cell], why: str) -> list[tuple[Cell, Outcome]]:
    """The same failure of several cells."""
    return [(cell, Outcome("failed", reason=why)) for cell in cells]


@dataclass(frozen=True)
class Measurement:
    """Condenses, tests and analyzes; reads and writes no files.

    ``bounds`` limit memory and disk (``expert_memory``, ``expert_disk``); no result depends on them.
    ``jobs`` processes measure at the same time, which rows say: their seconds contain waiting.
    """

    protocol: Protocol
    device: torch.device
    bounds: Mapping[str, int] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    jobs: int = 1

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
        new = kept is None and cells[0].condenses
        warm_up(self.device)
        began = time.monotonic()
        try:
            if new:
                small, regularizers = self._condense(cells, graph, self.limits.within(progress))
            if (took := time.monotonic() - began) > self.limits.cell:  # it reported no progress
                limit = f"over the limit of {self.limits.cell:g} seconds"
                raise OverLimitError(f"{limit} (took {took:.3g}).")
        except RAISED as error:
            yield from self.failed(cells, graph, error)
            return
        unkept: Exception | None = None
        if new:
            try:
                keep(small)  # before testing: a process that is killed then does not lose them
            except Exception as error:
                unkept = error
        for cell in cells:
            try:
                report = self.limits.within(progress)
                row = self._measure(cell, graph, small, regularizers, report)
            except RAISED as error:
                yield from self.failed([cell], graph, error)
            else:
                yield cell, Outcome("done", row)
        if unkept is not None:  # after the rows, which are no failures
            raise unkept

    def failed(self, cells: Sequence[Cell], graph: Graph, error: BaseException) -> Outcomes:
        """What an error costs: these cells, unless it is a fault of this library or of the device."""
        keep = self.limits.keep_failures and "CUDA error" not in str(error)
        if not (keep or isinstance(error, CELL_FAILS)):
            raise error
        why = " ".join(str(error).split())
        if isinstance(error, torch.OutOfMemoryError):
            # PyTorch goes on to list every process of the device.
            why = why.partition(" GPU ")[0]
        if not isinstance(error, InputError | OverLimitError):
            why = f"{type(error).__name__}: {why}".removesuffix(": ") + own_line(error)
        for cell in cells:
            row = self._row(cell, graph) | {"state": "failed", "reason": why} if keep else None
            yield cell, Outcome("failed", row, why)

    def _condense(
        self, group: Sequence[Cell], graph: Graph, progress: Progress
    ) -> tuple[Sequence[CondensedGraph], Mapping[int, Tensor]]:
        """The graphs of a group and, where one of its cells draws it, the P of every seed."""
        cell, context = group[0], dict[str, Any](preset=group[0].preset)
        condenser = cell.condenser(self.protocol)
        if cell.trials:
            from gcsr.tuning.search import tune  # noqa: PLC0415 - needs Optuna

            began = time.perf_counter()
            best = tune(
                graph,
                nodes=cell.nodes,
                method=cell.method,
                preset=cell.preset,
                trials=cell.trials,
                device=self.device,
                progress=progress,
                **dict(cell.settings),
            )
            chosen = {**cell.base(), "nodes": cell.nodes, **dict(cell.settings), **best.settings}
            condenser = build(cell.method, chosen)
            context["tuning"] = {"seconds": time.perf_counter() - began, "score": best.score}
        known = {f.name for f in fields(condenser)}
        condenser = replace(condenser, **{k: v for k, v in self.bounds.items() if k in known})
        if draws_regularizer(group):
            condenser = WatchedGCSR.watching(condenser)
        small = condenser.condense_many(
            graph,
            seeds=range(self.protocol.graphs),
            device=self.device,
            progress=progress,
            context=context,
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
        protocol, row = self.protocol, self._row(cell, graph)
        if small:
            first = small[0].provenance
            row["notes"] = first["notes"]
            row["condense_seconds"] = sum(g.provenance["measured"]["seconds"] for g in small)
        if cell.benchmarked:
            row |= self._costs(cell, graph, small)
        if cell.method == STATISTICS:
            value = graph_statistics(graph)[row["statistic"]]
            return row | {"mean": value, "std": None, "leaks_test_labels": False}
        if cell.analysis:
            row["leaks_test_labels"] = any(one.leaks_test_labels for one in small)
            if cell.method == WHOLE_GRAPH:
                return row | whole_graph(graph)
            quick = protocol.quick
            return row | condensed_graphs(cell.analysis, small, graph, regularizers, quick=quick)
        options: dict[str, Any] = {
            "model": cell.test,
            "runs": protocol.runs,
            "recipe": cell.recipe(protocol),
            "device": self.device,
            "progress": progress,
        }
        if not cell.condenses:
            outcome = evaluate_full(graph, pseudo_labels=cell.method == PSEUDO_LABELS, **options)
            if outcome.pseudo_labels is not None:
                row["pseudo_labels"] = outcome.pseudo_labels
        else:
            if cell.cut:
                small = [
                    replace(one, adjacency=torch.where(one.adjacency < cell.cut, 0, one.adjacency))
                    for one in small
                ]
            outcome = evaluate(small, graph, **options)
        names = ("mean", "std", "scores", "validation", "leaks_test_labels")
        found = {name: getattr(outcome, name) for name in names}
        return row | found | {"evaluate_seconds": outcome.seconds}

    def _row(self, cell: Cell, graph: Graph) -> Row:
        """What was asked for, with hashes of it, the data and the code."""
        row: Row = {
            "key": cell.key(self.protocol, graph.content_hash),
            "cell": cell.settings_key(self.protocol),
            **cell.identity(self.protocol),
            "data": graph.content_hash,
            "device": self.device.type,
            "machine": machine_name(self.device),
            "versions": code_versions(),
            "command": cell.command(self.protocol),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **({"jobs": self.jobs} if self.jobs > 1 else {}),
        }
        if cell.benchmarked:
            row["label"], row["preset"] = cell.label or cell.method, cell.preset
            row["given"] = dict(cell.settings)
        return row

    def _costs(self, cell: Cell, graph: Graph, small: Sequence[CondensedGraph]) -> Row:
        """Bytes, memory and seconds per stage of a graph, and what it was measured on."""
        labeled = graph.train.numel() / max(1, graph.num_nodes)
        row: Row = {"labeled_share": labeled, "classes": graph.num_classes}
        if not small:
            return row | {"bytes": View(graph).stored_parts.total}
        first = small[0].provenance
        row |= {
            "bytes": small[0].stored_bytes,
            "condensed_nodes": small[0].num_nodes,
            "peak_memory_bytes": first["measured"]["peak_memory_bytes"],
            "measured": first["measured"],
            "pseudo_labeled": used_pseudo_labels(small[0]),
        }
        if cell.trials:
            row |= {name: first[name] for name in ("tuning", "settings")}
        if "automatic" in first:
            row["chosen"] = [one.provenance["automatic"]["chosen"] for one in small]
        return row


@cache
def warm_up(device: torch.device) -> None:
    """The first step of an optimizer imports a large part of torch: no method is charged for it."""
    weight = torch.zeros(1, device=device, requires_grad=True)
    weight.sum().backward()
    torch.optim.Adam([weight]).step()


def own_line(error: BaseException) -> str:
    """Where in the user's own code an error was raised: file, line and function."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if is_own(str(frame.f_globals.get("__name__")), file):
            found = f" ({Path(file).name}:{line}, {frame.f_code.co_name})"
    return found


def draws_regularizer(group: Sequence[Cell]) -> bool:
    """Whether a cell of the group draws the P that condensing leaves behind."""
    return any(cell.analysis == "adjacency" for cell in group)


@dataclass(eq=False)
class ClaimedCells:
    """A group of cells that this process may measure; the ``lock`` must be closed.

    Without a ``graph`` no cell is missing, or none can be measured.
    """

    known: list[tuple[Cell, Outcome]]
    missing: list[Cell] = field(default_factory=list)
    graph: Graph | None = None
    lock: ExitStack = field(default_factory=ExitStack)


@dataclass(frozen=True, eq=False)
class CellRunner:
    """Measures groups of cells that share condensed graphs, and stores their rows.

    Condensed graphs are kept in the folder ``keep_graphs``.
    """

    store: Store
    data: Data
    measurement: Measurement
    keep_graphs: Path | None = None
    progress: Progress = silent

    def claim(self, group: Sequence[Cell]) -> ClaimedCells | None:
        """Claim what is missing of a group; ``None`` while another process has it."""
        protocol = self.measurement.protocol
        graph = self.data.graph(group[0].dataset)
        if isinstance(graph, str):  # rows from when the data were there are shown
            absent = Outcome("absent", reason=graph)
            found = [(cell, recalled(cell, self.store, protocol)) for cell in group]
            return ClaimedCells([(cell, known if known.row else absent) for cell, known in found])
        claimed = self._known(group, graph)
        if not claimed.missing:
            return claimed
        lock = ExitStack()
        if not lock.enter_context(self.store.claim(group[0].claim(protocol))):
            return None
        self.store.refresh()
        claimed = self._known(group, graph)
        claimed.lock = lock
        return claimed

    def measured(self, claimed: ClaimedCells) -> Outcomes:
        """Known outcomes and new measurements; closes the claim."""
        with claimed.lock:
            yield from claimed.known
            if claimed.graph is None:
                return
            for cell, outcome in self.measurement.outcomes(
                claimed.missing,
                claimed.graph,
                self.kept(claimed),
                partial(self.keep, claimed),
                self.progress,
            ):
                if outcome.state == "failed" and cell.own:
                    self.data.forget(cell.dataset)
                yield cell, self.stored(outcome)

    def kept(self, claimed: ClaimedCells) -> list[CondensedGraph] | None:
        """The condensed graphs of a group from their folder; no file holds P."""
        return None if draws_regularizer(claimed.missing) else load_graphs(self._files(claimed))

    def keep(self, claimed: ClaimedCells, small: Sequence[CondensedGraph]) -> None:
        """Put condensed graphs that were made into their folder, if there is one."""
        if small and self.keep_graphs is not None:
            save_graphs(self._files(claimed), small)

    def _files(self, claimed: ClaimedCells) -> list[Path]:
        first = claimed.missing[0]
        if self.keep_graphs is None or claimed.graph is None or not first.condenses:
            return []
        protocol, device = self.measurement.protocol, self.measurement.device.type
        name = f"{first.claim(protocol)}-{claimed.graph.content_hash[:12]}-{device}"
        return [self.keep_graphs / f"{name}-{seed}.safetensors" for seed in range(protocol.graphs)]

    def given_up(self, cells: Sequence[Cell]) -> Outcomes:
        """Failures of cells whose process took too long and was ended."""
        why = OverLimitError(f"over the limit of {self.measurement.limits.cell:g} seconds.")
        graph = self.data.graph(cells[0].dataset)
        if isinstance(graph, Graph):
            for cell, outcome in self.measurement.failed(cells, graph, why):
                yield cell, self.stored(outcome)

    def stored(self, outcome: Outcome) -> Outcome:
        """The same outcome, its row appended to the store."""
        if outcome.row is not None:
            self.store.append(outcome.row)
        return outcome

    def _known(self, group: Sequence[Cell], graph: Graph) -> ClaimedCells:
        """Finished cells with their rows, and the others."""
        known, missing = [], []
        for cell in group:
            row = self.store.get(cell.key(self.measurement.protocol, graph.content_hash))
            if row is None or (self.measurement.limits.retry and failed_row(row)):
                missing.append(cell)
            else:
                known.append((cell, Outcome.of(row)))
        return ClaimedCells(known, missing, graph if missing else None)
