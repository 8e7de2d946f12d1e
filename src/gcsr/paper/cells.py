"""The commands that measure one cell by hand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from gcsr.data.graph import Graph
from gcsr.data.views import View
from gcsr.methods.base import Condenser
from gcsr.methods.presets import paper_settings
from gcsr.methods.registry import build
from gcsr.training.fit import TrainingRecipe, paper_recipe
from gcsr.utils.errors import require
from gcsr.utils.renamed import generator_name, recorded_settings
from gcsr.version import __version__

# -- The numbers of Table 1 --------------------------------------------------------------------------


# Decimals of each as published.
DIGITS = {"nodes": 0, "edges": 0, "classes": 0, "features": 0, "sparsity": 2, "homophily": 2}


def graph_statistics(graph: Graph) -> dict[str, float]:
    """Table 1 for one graph.

    ``edges`` are undirected ones; ``sparsity`` is the percentage of entries of A that are not zero;
    ``homophily`` the share of edges between nodes of the same class, among the edges that may be seen
    while condensing and whose two classes are known.
    """
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges / 2,
        "classes": graph.num_classes,
        "features": graph.num_features,
        "sparsity": 100 * graph.num_edges / graph.num_nodes**2,
        "homophily": _edge_homophily(graph),
    }


def _edge_homophily(graph: Graph) -> float:
    view = View(graph).condensing(leak_every_label=True)
    if view.every_label is None:  # asked for above: statistics train nothing
        return float("nan")
    labels = view.every_label.numpy()
    coo = view.visible.adjacency.tocoo()
    ends = labels[coo.row], labels[coo.col]
    known = (ends[0] >= 0) & (ends[1] >= 0)
    if not known.any():
        return float("nan")
    return float(np.mean((ends[0] == ends[1])[known]))


# -- What is measured (cells), where it is shown beside a published number (lines), and how long -----


# Cells that condense nothing.
WHOLE_GRAPH, STATISTICS = "whole", "statistics"
# A smoke run goes no further than this, whatever the settings.
QUICK_CAPS = {
    "iterations": 5,
    "experts": 1,
    "expert_epochs": 8,
    "max_start": 3,
    "expert_steps": 2,
    "student_steps": 2,
    "epochs": 2,
    "outer": 2,
    "inner": 1,
    "samples": 50,
    "embedding_epochs": 5,
    "hidden_channels": 16,
}
QUICK_EPOCHS = 10


@dataclass(frozen=True)
class Protocol:
    """How often a cell is repeated; ``quick`` also cuts every setting that costs time."""

    graphs: int = 5
    runs: int = 10
    quick: bool = False

    def __post_init__(self) -> None:
        for name in ("graphs", "runs"):
            value = getattr(self, name)
            fine = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            require(fine, f"{name}: {value!r} is not accepted; a whole number >= 1 is.")

    def recipe(self, dataset: str) -> TrainingRecipe:
        """How test networks are trained."""
        recipe = paper_recipe(dataset)
        return replace(recipe, epochs=QUICK_EPOCHS) if self.quick else recipe


@dataclass(frozen=True)
class Cell:
    """One measurement: a method on a dataset, and the network that is tested.

    ``settings`` are added to the authors' (``preset="paper"``). The methods ``whole`` and
    ``statistics`` condense nothing. With a ``look`` (:mod:`gcsr.paper.work`) graphs are looked at
    instead of tested. Entries of A' below ``cut`` are zero when it is tested.
    """

    method: str
    dataset: str
    nodes: int | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    test: str = "gcn"
    look: str = ""
    cut: float = 0.0

    @property
    def condenses(self) -> bool:
        """Whether there is a condensed graph behind this cell."""
        return self.method not in (WHOLE_GRAPH, STATISTICS)

    @property
    def condensation(self) -> Cell:
        """The same for all cells that can share condensed graphs."""
        return replace(self, test="", look="", cut=0.0)

    def condenser(self, protocol: Protocol) -> Condenser:
        """The method with all its settings, checked."""
        given = dict(self.settings)
        base, _ = paper_settings(
            self.method, self.dataset, self.nodes or 0, model=given.get("model", "sgc")
        )
        full = build(self.method, {**base, "nodes": self.nodes, **given})
        if not protocol.quick:
            return full
        known = {field.name for field in fields(full)}
        short: dict[str, Any] = {
            name: min(getattr(full, name), cap) for name, cap in QUICK_CAPS.items() if name in known
        }
        if "iterate" in known:
            short["iterate"] = "last"
        return replace(full, **short)

    def identity(self, protocol: Protocol) -> dict[str, Any]:
        """Everything that decides the outcome but for the data themselves and the device."""
        told: dict[str, Any] = {
            "method": self.method,
            "dataset": self.dataset,
            "quick": protocol.quick,
            "gcsr": __version__,
        }
        if self.method == STATISTICS:
            return told | {"statistic": dict(self.settings)["statistic"]}
        told["graphs"] = protocol.graphs if self.condenses else 1
        if self.look:
            told["look"] = self.look
        else:
            told |= {
                "test": self.test,
                "recipe": asdict(protocol.recipe(self.dataset)),
                "runs": protocol.runs,
                **({"cut": self.cut} if self.cut else {}),
            }
        if self.condenses:
            told |= {"nodes": self.nodes, "settings": self.condenser(protocol).settings}
        return told

    def recorded(self, protocol: Protocol) -> dict[str, Any]:
        """The identity under the names that rows were recorded with: keys stay the same."""
        told = self.identity(protocol)
        if "test" in told:
            told["test"] = generator_name(self.test)
            told["recipe"] = {
                "rate" if name == "lr" else name: value for name, value in told["recipe"].items()
            }
        if "settings" in told:
            told["settings"] = recorded_settings(told["settings"], self.method)
        return told

    def settings_key(self, protocol: Protocol) -> str:
        """The same settings and code version give the same one, whatever the data."""
        return _digest(self.recorded(protocol))

    def key(self, protocol: Protocol, data: str) -> str:
        """A name for the outcome on data of that content."""
        return _digest([self.settings_key(protocol), data])

    def claim(self, protocol: Protocol) -> str:
        """The same for all cells that one process should measure: those that share graphs."""
        told = self.recorded(protocol)
        shared = ("method", "dataset", "quick", "gcsr", "nodes", "settings", "graphs")
        return _digest({name: told.get(name) for name in shared})


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


def cell(
    method: str,
    dataset: str,
    nodes: int | None,
    *,
    test: str = "gcn",
    cut: float = 0.0,
    **more: Any,
) -> Cell:
    """A cell with its settings as keywords."""
    return Cell(method, dataset, nodes, tuple(more.items()), test, cut=cut)


def looking(look: str, method: str, dataset: str, nodes: int | None, **more: Any) -> Cell:
    """A cell whose graphs are looked at."""
    return Cell(method, dataset, nodes, tuple(more.items()), "", look)


@dataclass(frozen=True)
class Line:
    """One number of the paper and what it is compared with: the mean over ``cells``.

    ``without_leak`` are the same cells with the prior ``predicted``, where the paper's own counts
    test labels. A line without cells says in ``missing`` why it has none. ``x`` and ``series`` place
    it in a figure. ``value`` names one of the numbers of cells that look.
    """

    dataset: str
    nodes: int | None
    label: str
    published: float | None = None
    published_std: float | None = None
    cells: tuple[Cell, ...] = ()
    without_leak: tuple[Cell, ...] = ()
    missing: str = ""
    digits: int = 1
    x: float | None = None
    series: str = ""
    value: str = ""


@dataclass(frozen=True)
class Axis:
    """The horizontal axis of a curve; ``even`` spaces its values evenly, as a table does."""

    label: str
    even: bool = True


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of the paper: data for the one runner.

    Experiments with an ``axis`` are drawn as curves, those with a ``look`` as pictures of graphs,
    others as points.
    """

    name: str
    title: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    axis: Axis | None = None
    drawn: bool = True
    look: str = ""

    @property
    def datasets(self) -> tuple[str, ...]:
        """Datasets in the order of the table."""
        return tuple(dict.fromkeys(line.dataset for line in self.lines))

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every measurement once."""
        return distinct(cell for line in self.lines for cell in (*line.cells, *line.without_leak))

    def require_part(self, field: str, name: str, parts: Iterable[str]) -> None:
        """Refuse a dataset or method that has no part in this; it may well be known elsewhere."""
        parts = list(parts)
        require(
            name in parts,
            f"{field}: {name!r} is not part of {self.name}; accepted: {', '.join(parts)}.",
        )


def distinct(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The same cells without repetitions."""
    return tuple(dict.fromkeys(cells))


def command(cell: Cell, protocol: Protocol) -> str:
    """What to type for the same numbers."""
    if cell.method == STATISTICS:
        return f"gcsr reproduce table1 --dataset {cell.dataset}"
    if cell.look and cell.method == WHOLE_GRAPH:
        return f"gcsr reproduce {cell.look} --dataset {cell.dataset}"
    recipe = protocol.recipe(cell.dataset)
    test = (
        f"--data {cell.dataset} --model {cell.test} --runs {protocol.runs} --epochs {recipe.epochs}"
    )
    if cell.method == WHOLE_GRAPH:
        return f"gcsr evaluate --full {test}"
    nodes = cell.nodes or 0
    model = dict(cell.settings).get("model", "sgc")
    base, _ = paper_settings(cell.method, cell.dataset, nodes, model=model)
    chosen = cell.condenser(protocol).settings
    given = dict(cell.settings)
    if protocol.quick:
        # What a smoke run cuts short differs from the preset, or from the method's own default.
        full = cell.condenser(Protocol(protocol.graphs, protocol.runs)).settings
        given |= {key: value for key, value in chosen.items() if value != full[key]}
    sets = "".join(
        f" --set {key}={value}" for key, value in given.items() if base.get(key) != value
    )
    name = f"{cell.dataset}-{nodes}"
    graphs = f"--graphs {protocol.graphs} --out {name}.safetensors"
    files = f"{name}.safetensors" if protocol.graphs == 1 else f"{name}-*.safetensors"
    then = f"gcsr evaluate {files} {test}"
    if cell.cut:
        then = f"gcsr reproduce table4 --dataset {cell.dataset}  # cuts A' below {cell.cut:g}"
    if cell.look:
        first = files.replace("*", "0")
        then = f"gcsr analyze {first} --data {cell.dataset} --figures {name}"
    return (
        f"gcsr condense {cell.dataset} --nodes {nodes} --method {cell.method} --preset paper{sets}"
        f" {graphs} && {then}"
    )
