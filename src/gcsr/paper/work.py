"""What is done for the cells that share condensed graphs: condense, test or look, write the row."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gcsr.analysis.analysis import Analysis, analyze
from gcsr.analysis.statistics import LabeledGraph, ccns
from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.views import View
from gcsr.datasets.loading import load
from gcsr.datasets.registry import catalogue
from gcsr.engines.structure import State as StructureState
from gcsr.engines.structure import Structure
from gcsr.evaluation.evaluation import Evaluation
from gcsr.evaluation.protocol import evaluate, evaluate_full
from gcsr.methods.base import Condenser
from gcsr.methods.gcsr import GCSR
from gcsr.paper.cells import STATISTICS, WHOLE_GRAPH, Cell, Protocol, command, graph_statistics
from gcsr.paper.store import Row, Store
from gcsr.utils.errors import InputError
from gcsr.utils.progress import Progress

# -- The datasets of a run: read when they are needed, at most one in memory -------------------------


NOT_ASKED_FOR = "{name}: not in the data folder, and a download was not asked for (--download)."


@dataclass
class Data:
    """Datasets under ``root``; what is not there is downloaded if ``download``, else absent."""

    root: Path | None = None
    download: bool = True
    absent: dict[str, str] = field(default_factory=dict)
    _loaded: tuple[str, Graph] | None = None

    def graph(self, name: str) -> Graph | str:
        """The dataset, or the sentence that says why it is absent."""
        if name in self.absent:
            return self.absent[name]
        if self._loaded is None or self._loaded[0] != name:
            self._loaded = None  # the previous one goes before the next one comes
            try:
                if not (self.download or available(name, self.root)):
                    raise InputError(NOT_ASKED_FOR.format(name=name))
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


# -- Condensed graphs kept on disk, so that cells of other tables need not condense them again -------


@dataclass(frozen=True)
class GraphCache:
    """Graphs by what they were made of; whoever uses a name holds its claim."""

    folder: Path

    def load(self, name: str, seeds: Sequence[int]) -> list[CondensedGraph] | None:
        """The graphs of these seeds; ``None`` unless every one is there and can be read."""
        try:
            found = [CondensedGraph.load(path) for path in self._paths(name, seeds)]
        except InputError:
            return None
        return found if all(map(_tells_its_cost, found)) else None

    def save(self, name: str, seeds: Sequence[int], graphs: Sequence[CondensedGraph]) -> None:
        """Keep the graphs of these seeds."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be made ({error.strerror}).") from None
        for path, graph in zip(self._paths(name, seeds), graphs, strict=True):
            for unfinished in self.folder.glob(f".{path.name}.*"):  # of a process that was killed
                unfinished.unlink(missing_ok=True)
            graph.save(path)

    def _paths(self, name: str, seeds: Sequence[int]) -> list[Path]:
        return [self.folder / f"{name}-{seed}.safetensors" for seed in seeds]


def _tells_its_cost(graph: CondensedGraph) -> bool:
    """Whether the file says what a row says of its graphs; ours do."""
    made = graph.provenance
    measured = made.get("measured")
    seconds = measured.get("seconds") if isinstance(measured, dict) else None
    return (
        isinstance(made.get("versions"), dict)
        and isinstance(made.get("notes"), list)
        and isinstance(seconds, float)
    )


# -- Cells that look at condensed graphs instead of testing them: numbers, and what a figure needs ---


CORRELATION, WITHIN = "correlation with the original", "mean over single classes"
SILHOUETTE, THREE = "silhouette", "silhouette of three classes"
GRAM, PRIOR, ADJACENCY = "X'X'ᵀ", "P", "A'"
AS_FIRST = ", no label as class 0"
# Real nodes in a map, and in that of a smoke run.
MAPPED, FEW = 1000, 60

Values = dict[str, list[float | None]]


@dataclass(frozen=True, kw_only=True)
class WatchedGCSR(GCSR):
    """GCSR that also hands out the regularizers P as its last iteration left them."""

    regularizers: dict[int, Tensor] = field(
        default_factory=dict, compare=False, metadata={"resource": True}
    )

    @classmethod
    def watching(cls, condenser: Condenser) -> WatchedGCSR:
        """The same settings."""
        return cls(**{f.name: getattr(condenser, f.name) for f in fields(condenser)})

    def _structure(self, *args: Any, **options: Any) -> tuple[Structure, StructureState]:
        structure, state = super()._structure(*args, **options)
        seeds: Sequence[int] = options["seeds"] if "seeds" in options else args[-1]
        # The engine updates the state in place: these stay what P is.
        self.regularizers.update(zip(seeds, state[0], strict=True))
        return structure, state


def whole_graph(graph: Graph) -> dict[str, Any]:
    """CCNS of the real graph, as far as condensing sees it; every label counts.

    Nodes without a label are nobody's neighbors; beside that, the same with them as class 0.
    """
    view = View(graph).condensing(leak_every_label=True)
    if view.every_label is None:  # asked for above: nothing is trained here
        raise RuntimeError("the view holds no labels")
    labels = view.every_label.numpy()

    def similarity(of: np.ndarray) -> np.ndarray:
        return ccns(LabeledGraph.of_classes(view.visible.adjacency, of, graph.num_classes))

    found = similarity(labels)
    values = _entries(found) | _entries(similarity(np.maximum(labels, 0)), AS_FIRST)
    return {"values": values, "drawn": {"ccns": _matrix(found)}}


def _entries(matrix: np.ndarray, suffix: str = "") -> Values:
    pairs = ((i, j) for i in range(len(matrix)) for j in range(i, len(matrix)))
    return {f"s({i}, {j}){suffix}": [_plain(matrix[i, j])] for i, j in pairs}


def condensed_graphs(
    look: str,
    small: Sequence[CondensedGraph],
    graph: Graph,
    regularizers: Mapping[int, Tensor],
    *,
    quick: bool,
) -> dict[str, Any]:
    """One value per condensed graph and number; what is drawn is of the first."""
    return _LOOKS[look](small, graph, regularizers, FEW if quick else MAPPED)


def _ccns(
    small: Sequence[CondensedGraph], graph: Graph, regularizers: Mapping[int, Tensor], nodes: int
) -> dict[str, Any]:
    found = [analyze(one, graph, tsne_nodes=0) for one in small]
    values: Values = {
        CORRELATION: [one.ccns_distance.off_diagonal_correlation for one in found],
        WITHIN: [_plain(np.nanmean(one.condensed.ccns.diagonal())) for one in found],
    }
    return {"values": values, "drawn": {"ccns": _matrix(found[0].condensed.ccns)}}


def _adjacency(
    small: Sequence[CondensedGraph], graph: Graph, regularizers: Mapping[int, Tensor], nodes: int
) -> dict[str, Any]:
    """X'X'ᵀ, P and A': the share of their weight, diagonal aside, between nodes of a class."""
    found = [_components(one, graph, regularizers) for one in small]
    values: Values = {
        name: [_share_within(matrices[name], classes) for matrices, classes in found]
        for name in found[0][0]
    }
    matrices, classes = found[0]
    drawn = {name: _matrix(matrix) for name, matrix in matrices.items()}
    return {"values": values, "drawn": {"matrices": drawn, "classes": classes.tolist()}}


def _components(
    small: CondensedGraph, graph: Graph, regularizers: Mapping[int, Tensor]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    ordered = analyze(small, graph, tsne_nodes=0).matrices
    prior = regularizers[small.provenance["seed"]].detach().cpu().double().numpy()
    matrices = {
        GRAM: ordered.gram,
        PRIOR: prior[np.ix_(ordered.order, ordered.order)],
        ADJACENCY: ordered.adjacency,
    }
    return matrices, ordered.classes


def _share_within(matrix: np.ndarray, classes: np.ndarray) -> float | None:
    weight = np.abs(matrix)
    np.fill_diagonal(weight, 0)
    total = weight.sum()
    same = classes[:, None] == classes[None, :]
    return _plain(100 * weight[same].sum() / total) if total else None


def _tsne(
    small: Sequence[CondensedGraph], graph: Graph, regularizers: Mapping[int, Tensor], nodes: int
) -> dict[str, Any]:
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with scikit-learn

    with threadpool_limits(1):  # sums in one order, whatever the number of threads
        first = analyze(small[0], graph, tsne_nodes=nodes)
    found: list[Analysis] = [first, *(analyze(one, graph, tsne_nodes=0) for one in small[1:])]
    values: Values = {
        SILHOUETTE: [one.silhouette for one in found],
        THREE: [one.silhouette_three for one in found],
    }
    places = first.map
    if places is None:
        raise RuntimeError("a map was asked for")
    drawn = {
        "real": _matrix(places.real),
        "real_classes": places.real_classes.tolist(),
        "condensed": _matrix(places.condensed),
        "condensed_classes": places.condensed_classes.tolist(),
    }
    return {"values": values, "drawn": drawn}


_LOOKS: dict[str, Callable[..., dict[str, Any]]] = {
    "ccns": _ccns,
    "adjacency": _adjacency,
    "tsne": _tsne,
}
LOOKS = tuple(_LOOKS)


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _matrix(values: np.ndarray) -> list[list[float | None]]:
    """Four digits: enough to draw, and a fifth of the bytes."""
    return [
        [float(f"{value:.4g}") if np.isfinite(value) else None for value in row] for row in values
    ]


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
    shelf: GraphCache | None = None
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
        regularizers: Mapping[int, Tensor] = {}
        try:
            if kept is None:
                small, regularizers = self._condense(missing, graph)
                keep(small)
        except CELL_FAILS as error:
            yield from failed(missing, _said(error))
            return
        for cell in missing:
            try:
                row = self._measure(cell, graph, small, regularizers)
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
        return small, getattr(condenser, "regularizers", {})

    def _measure(
        self,
        cell: Cell,
        graph: Graph,
        small: Sequence[CondensedGraph],
        regularizers: Mapping[int, Tensor],
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
                seen = condensed_graphs(cell.look, small, graph, regularizers, quick=quick)
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
