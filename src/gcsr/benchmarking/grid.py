"""A benchmark: methods x graphs x sizes x test models as cells, from keywords or a TOML file."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from gcsr.benchmarking.cells import PSEUDO_LABELS, WHOLE_GRAPH, Cell, Protocol
from gcsr.benchmarking.measurement import Data, Limits
from gcsr.benchmarking.own_code import forget_code
from gcsr.benchmarking.results import Results, benchmark_row
from gcsr.benchmarking.runner import measure
from gcsr.benchmarking.store import Store, failed_row, prepare_folder, prepare_writable
from gcsr.data.graph import Graph
from gcsr.data.objects import described
from gcsr.distributed.pool import Cluster
from gcsr.evaluation.trial import require_tested
from gcsr.methods.presets import PRESETS
from gcsr.methods.registry import BUILT_IN, method, method_names, setting_name
from gcsr.models.registry import testing_model
from gcsr.starts.sample import TooFewNodesError, class_budget
from gcsr.tuning.space import read_toml
from gcsr.utils.errors import (
    Count,
    InputError,
    Whole,
    check_fields,
    plain_number,
    require,
    require_integer,
    require_keyword,
    require_known,
    require_one_of,
)
from gcsr.utils.formatting import counted
from gcsr.utils.progress import ProgressOption, shows_progress
from gcsr.utils.safe_io import is_number

# What an entry of ``methods`` may have besides the settings of its method.
ENTRY = ("method", "name", "preset", "tune")
SIZES = ("nodes", "per_class", "ratio")
# What a field with several values may have.
ACCEPTED = {
    "methods": "names or tables with a method",
    "nodes": "integers >= 1",
    "per_class": "integers >= 1",
    "ratio": "numbers > 0 and <= 1",
    "models": "names of test models",
    "more_models": "names of test models",
}


@dataclass(frozen=True)
class Grid:
    """What a benchmark measures.

    Args:
        data: dataset names or paths, with variants after a colon: ``cora:60-20-20`` (another split of
            the labeled nodes), ``cora:inductive``, ``cora:standardize``.
        methods: names, ``module:Class``, or mappings with ``method`` and optionally ``name``,
            ``preset``, ``tune`` and settings; ``all`` are all other registered ones. Without methods
            only the references are measured: networks trained on the whole graph.
        nodes, per_class, ratio: sizes, as nodes, nodes per class or a share; exactly one is given.
        models: test models at every size.
        more_models: test models at the first size only.
        seeds: condensed graphs per cell.
        runs: networks per condensed graph.
        epochs: epochs of a test network; by default 600.
        preset: of the methods whose entry names none.
        tune: trials per method and size, over the same number for all methods; 0 tunes nothing.
        settings: by method, for methods given by name.
    """

    data: Sequence[str]
    methods: Sequence[str | Mapping[str, Any]] = ()
    nodes: Sequence[int] = ()
    per_class: Sequence[int] = ()
    ratio: Sequence[float] = ()
    models: Sequence[str] = ("gcn",)
    more_models: Sequence[str] = ()
    seeds: Count = 3
    runs: Count = 5
    epochs: Count | None = None
    preset: str = "default"
    tune: Whole = 0
    settings: Mapping[str, Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        names: Any = (self.data,) if isinstance(self.data, str | os.PathLike) else self.data
        places = isinstance(names, Sequence) and all(
            isinstance(one, str | os.PathLike) for one in names
        )
        require(
            places,
            f"data must be names of datasets or paths of graphs, got {described(self.data)};"
            " gcsr.load(...).to_npz(path) makes a file of other data.",
        )
        object.__setattr__(self, "data", tuple(map(os.fspath, names)))
        empty = ", got []" if self.methods == [] else ""
        for name in ("methods", *SIZES, "models", "more_models"):
            object.__setattr__(self, name, _as_tuple(name, getattr(self, name)))
        check_fields(self)
        require(bool(self.data), "data must have at least one graph, got [].")
        require(bool(self.models), "models must have at least one test model, got [].")
        given = [name for name in SIZES if getattr(self, name)]
        require(
            bool(self.methods) or not given,
            f"methods must be given with {' and '.join(given)}: what condenses to that size{empty}.",
        )
        require(
            len(given) == bool(self.methods),
            "exactly one of nodes, per_class and ratio must be given with methods, got"
            f" {', '.join(given) or 'none'}.",
        )
        for name in ("nodes", "per_class"):
            for size in getattr(self, name):
                require_integer(name, size, 1)
        for share in self.ratio:
            fine = is_number(share) and 0 < share <= 1
            require(fine, f"ratio must be a number > 0 and <= 1, got {share!r}.")
        for model in (*self.models, *self.more_models):
            testing_model(model, 1)
        for entry in self.methods:
            table = _is_table(entry) and "method" in entry
            place = (
                f"; give '{entry.__module__}:{entry.__name__}'" if isinstance(entry, type) else ""
            )
            require(
                isinstance(entry, str) or table,
                f"methods must be {ACCEPTED['methods']}, got {entry!r}{place}.",
            )
        settings = {} if self.settings is None else self.settings
        require(
            isinstance(settings, Mapping), f"settings must be tables by method, got {settings!r}."
        )
        for name, own in settings.items():
            method(name)
            require(_is_table(own), f"settings must have a table for {name}, got {own!r}.")
        entries = list(self.entries())  # checks settings and numbers
        presets = [name for cell in entries for name in method(cell.method).presets]
        require_one_of("preset", self.preset, dict.fromkeys([*PRESETS, *presets]))

    @classmethod
    def read(cls, path: Path, **changes: Any) -> Self:
        """From a TOML file; ``changes`` replace what it says. Errors of its own fields name it."""
        content = read_toml(path)
        known = [f.name for f in fields(cls)]
        for name in content:
            require_known(name, "a field of a grid", sorted(known), given=f"{path}: {name}")
        require(
            "data" in content or "data" in changes,
            f"{path}: data must be given: names of datasets or paths of graphs.",
        )
        if any(changes.get(name) for name in SIZES):
            content = {key: value for key, value in content.items() if key not in SIZES}
        with of_file(path, changes):
            return cls(**{**content, **changes})

    @property
    def protocol(self) -> Protocol:
        """How often a cell is repeated."""
        return Protocol(self.seeds, self.runs, epochs=self.epochs)

    def entries(self) -> Iterator[Cell]:
        """A cell for each method, without a graph and a size; settings are checked."""
        listed = [{"method": one} if isinstance(one, str) else one for one in self.methods]
        rest = [name for name in method_names() if {"method": name} not in listed]
        entries: list[Mapping[str, Any]] = []
        for one in listed:
            entries += [{"method": name} for name in rest] if one == {"method": "all"} else [one]
        known: dict[str, Cell] = {}
        for entry in entries:
            name, preset = entry["method"], entry.get("preset", self.preset)
            chosen, trials = method(name), entry.get("tune", self.tune)
            own = {key: value for key, value in entry.items() if key not in ENTRY}
            settings = {**(self.settings or {}).get(name, {}), **own}
            label = entry.get("name", chosen.name)
            named = isinstance(label, str) and bool(label.strip())
            require(named, f"name must be a text that is not empty, got {label!r}.")
            require(label not in known, f"methods must have different names, got {label!r} twice.")
            require_one_of("preset", preset, dict.fromkeys([*PRESETS, *chosen.presets]))
            require_integer("tune", trials, 0)
            cell = Cell(
                name,
                "",
                1,
                _plain_settings(settings),
                preset=preset,
                trials=trials,
                label=label,
            )
            for other, before in known.items():
                same = f"{label!r} with the method and the settings of {other!r}"
                require(before != cell, f"methods must differ, got {same}.")
            known[label] = cell
            if cell.preset == "default":
                cell.condenser(self.protocol)
            yield cell

    def cells(self, data: Data) -> list[Cell]:
        """What is measured: references, then every method at the first size, then at the others."""
        graphs = {name: data.graph(name) for name in self.data}
        for name, graph in graphs.items():
            if not isinstance(graph, Graph):
                raise InputError(graph if name in graph else f"{name}: {graph}")
            require_tested(graph)
        found = []
        for name in self.data:
            for model in (*self.models, *self.more_models):
                whole = Cell(
                    WHOLE_GRAPH, name, None, test=model, preset="default", label="whole graph"
                )
                found.append(whole)
                if few_labels(graphs[name]):
                    label = "whole graph, pseudo-labels"
                    found.append(replace(whole, method=PSEUDO_LABELS, label=label))
        places = len(self.nodes or self.per_class or self.ratio)
        for place in range(places):
            models = self.models if place else (*self.models, *self.more_models)
            for entry in self.entries():
                for name in self.data:
                    cell = self._sized(replace(entry, dataset=name), graphs[name], place)
                    found += [replace(cell, test=one) for one in models]
        return list(dict.fromkeys(found))  # what is named twice is measured once

    def _sized(self, cell: Cell, graph: Any, place: int) -> Cell:
        """A cell with its size; one that is known to fail is refused before anything is measured."""
        visible = int(graph.train.numel() if graph.inductive else graph.num_nodes)
        if self.nodes:
            nodes = int(self.nodes[place])
        elif self.per_class:
            nodes = self.per_class[place] * int(graph.num_classes)
        else:
            nodes = max(1, round(self.ratio[place] * visible))
        cell = replace(cell, nodes=nodes)
        try:
            cell.condenser(self.protocol).size(visible)
            if cell.method in BUILT_IN and not graph.multi_label:  # own methods may need fewer
                class_budget(graph.y[graph.train], graph.num_classes, nodes)
        except InputError as error:
            why = str(error)
            if self.ratio and isinstance(error, TooFewNodesError):
                why = str(error.of_ratio(self.ratio[place], visible))
            where = f"{cell.label} on {cell.dataset} with {counted(nodes, 'node')}"
            raise InputError(f"{why.rstrip('.')} ({where}).") from None
        return cell


@contextmanager
def of_file(path: Path | None, changes: Mapping[str, Any]) -> Iterator[None]:
    """An error about a field of ``path`` names the file; what is in ``changes`` is not of it."""
    try:
        yield
    except InputError as error:
        sentence = str(error)
        word = re.split(r"\W", sentence.removeprefix("exactly one of "), maxsplit=1)[0]
        name = {"model": "models", "method": "methods"}.get(word, word)
        given = {*changes, *(SIZES if any(changes.get(size) for size in SIZES) else ())}
        # Settings may have the names of fields.
        tables = changes.get("settings")
        every = tables.values() if isinstance(tables, Mapping) else ()
        settings = {one for own in every if _is_table(own) for one in own}
        known = (*(f.name for f in fields(Grid)), *ENTRY)
        if path is None or name in given or word in settings or name not in known:
            raise
        raise InputError(f"{path}: {sentence.replace(word, name, 1)}") from None


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _as_tuple(name: str, given: Any) -> tuple[Any, ...]:
    """The values of a field; one alone needs no list."""
    given = plain_number(given)
    if isinstance(given, str | int | float | Mapping):
        return (given,)
    try:
        return tuple(map(plain_number, given))
    except TypeError:
        raise InputError(f"{name} must be {ACCEPTED[name]}, got {given!r}.") from None


def _plain_settings(settings: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Settings of one method as a cell has them."""
    for name in settings:
        require(
            setting_name(name) not in ("nodes", "ratio"),
            f"{name} cannot be given for one method; give nodes, per_class or ratio for all.",
        )
    return tuple((name, _plain(name, value)) for name, value in sorted(settings.items()))


def _plain(name: str, given: Any) -> Any:
    """Lists as tuples, and scalars of NumPy or torch as those of Python."""
    value = plain_number(given)
    if isinstance(value, list | tuple):
        return tuple(_plain(name, one) for one in value)
    require(
        value is None or isinstance(value, bool | int | float | str),
        f"{name} must be a number, a text, true or false, or a list of these, got {given!r}.",
    )
    return value


def few_labels(graph: Any) -> bool:
    """Whether pseudo-labels are a reference: under half of the nodes that may be seen are labeled."""
    return (
        not graph.inductive and not graph.multi_label and graph.train.numel() < graph.num_nodes / 2
    )


@shows_progress
def benchmark(
    grid: Grid | str | Path | None = None,
    *,
    out: str | Path = "benchmark.jsonl",
    root: str | Path | None = None,
    device: str = "auto",
    jobs: int = 1,
    cluster: str | Cluster | None = None,
    time_limit: float | None = None,
    cell_limit: float | None = None,
    retry: bool = False,
    keep_graphs: str | Path | None = None,
    download: bool = True,
    progress: ProgressOption = None,
    **changes: Any,
) -> Results:
    """Measure methods on graphs, sizes and test models, and compare them.

    Rows are appended to ``out`` as they come. The same call continues where an earlier one was
    stopped; several processes may work on one file.

    Args:
        grid: what to measure: a :class:`Grid`, the path of a TOML file, or nothing, with the fields
            of :class:`Grid` as keywords.
        out: the JSON Lines file of rows.
        root: folder of the datasets; paths in ``data`` may be relative to it.
        device: ``auto``, ``cpu`` or ``cuda``.
        jobs: processes that measure at the same time; on CUDA each takes its share of the memory.
        cluster: ``local`` or the ``HOST:PORT`` of a Ray cluster's head.
        time_limit: no cell begins after that many seconds.
        cell_limit: seconds after which a cell is given up; its row has the reason.
        retry: measure cells again that failed before.
        keep_graphs: a folder for the condensed graphs.
        download: whether missing datasets are downloaded.
        progress: as in :func:`gcsr.condense`.
        changes: fields of :class:`Grid`; they replace those of ``grid``.

    Returns:
        The rows of the benchmark, as tables, ranks and pages.
    """
    known = [f.name for f in fields(Grid)]
    for name in changes:
        require_keyword(name, benchmark, known, "a field of the grid")
    require(
        grid is None or isinstance(grid, Grid | str | os.PathLike),
        f"grid must be a Grid or the path of a TOML file, got {grid!r}.",
    )
    for name, place in (("out", out), ("root", root), ("keep_graphs", keep_graphs)):
        fine = isinstance(place, str | os.PathLike) or (place is None and name != "out")
        require(fine, f"{name} must be a path, got {place!r}.")
    require(
        grid is not None or "data" in changes,
        "data must be given to gcsr.benchmark: names of datasets or paths of graphs.",
    )
    if isinstance(grid, Grid):
        grid = replace(grid, **changes)
    else:
        grid = Grid(**changes) if grid is None else Grid.read(Path(grid), **changes)
    for name, seconds in (("time_limit", time_limit), ("cell_limit", cell_limit)):
        fine = seconds in (None, math.inf) or (is_number(seconds) and seconds > 0)
        require(fine, f"{name} must be a number > 0, got {seconds!r}.")
    forget_code()  # the files may have changed since
    path = Path(out)
    require(path.suffix == ".jsonl", f"out must end in .jsonl, got {str(path)!r}.")
    prepare_folder("out", path.parent)
    data = Data(None if root is None else Path(root), download)
    store, cells = Store(path), grid.cells(data)
    if keep_graphs is not None:
        prepare_writable("keep_graphs", Path(keep_graphs))
    limits = Limits(time_limit or math.inf, cell_limit or math.inf, keep_failures=True, retry=retry)
    outcomes = measure(
        cells,
        store,
        stage="cells",
        protocol=grid.protocol,
        data=data,
        device=device,
        jobs=jobs,
        keep_graphs=None if keep_graphs is None else Path(keep_graphs),
        limits=limits,
        progress=progress,
        cluster=cluster,
    )
    unstored = [f"{cell.place}: {one.reason}" for cell, one in outcomes.items() if one.row is None]
    asked = [
        one.row | {"label": cell.label} for cell, one in outcomes.items() if one.row is not None
    ]
    missing = len(cells) - len(outcomes)
    keys = {row["key"] for row in asked}
    others = sum(benchmark_row(row) and row["key"] not in keys for row in store)
    shown = (
        f"{counted(others, 'row')} of other cells in {out}; `gcsr benchmark --out {out}` shows all"
    )
    return Results.of(asked, missing, unstored, [shown] if others else [])


def estimate(grid: Grid, store: Store, data: Data) -> list[tuple[Cell, float | None]]:
    """Seconds of every cell that is not measured yet, where they are known.

    They are those of the same method on the same graph at the nearest size that was measured or, if
    there is none, the estimate of the method itself, an order of magnitude.
    """
    measured: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for row in store:
        if "condense_seconds" in row and not failed_row(row):
            place = measured.setdefault((str(row.get("label")), str(row.get("dataset"))), [])
            place.append((row.get("nodes") or 0, row["condense_seconds"]))
    found: list[tuple[Cell, float | None]] = []
    begun: set[Cell] = set()
    for cell in grid.cells(data):
        graph = data.graph(cell.dataset)
        if isinstance(graph, str) or store.get(cell.key(grid.protocol, graph.content_hash)):
            continue
        if not cell.condenses or cell.condensation in begun:
            found.append((cell, 0.0))  # training networks takes seconds
            continue
        begun.add(cell.condensation)
        near = measured.get((cell.label, cell.dataset))
        if near:
            found.append((cell, min(near, key=lambda one: abs(one[0] - (cell.nodes or 0)))[1]))
            continue
        try:
            found.append((cell, cell.condenser(grid.protocol).estimate(graph).seconds * grid.seeds))
        except InputError:
            found.append((cell, None))
    return found
