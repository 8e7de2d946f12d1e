"""Measurements (cells), the published numbers they are compared with (lines), and experiments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from gcsr.methods.base import Condenser
from gcsr.methods.presets import paper_settings
from gcsr.methods.registry import build
from gcsr.training.fit import TrainingRecipe, paper_recipe
from gcsr.utils.errors import require, whole_number
from gcsr.utils.renamed import generator_name, recorded_settings
from gcsr.version import __version__

# Cells that condense nothing.
WHOLE_GRAPH, STATISTICS = "whole", "statistics"
# Upper limits of settings in a quick run.
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
    """How often a cell is repeated; ``quick`` also limits every setting that costs time."""

    graphs: int = 5
    runs: int = 10
    quick: bool = False

    def __post_init__(self) -> None:
        whole_number(self, "graphs", "runs", least=1)

    def recipe(self, dataset: str) -> TrainingRecipe:
        """How test networks are trained."""
        recipe = paper_recipe(dataset)
        return replace(recipe, epochs=QUICK_EPOCHS) if self.quick else recipe


@dataclass(frozen=True)
class Cell:
    """One measurement: a method on a dataset, and the network that is tested.

    ``settings`` are added to the authors' (``preset="paper"``). The methods ``whole`` and
    ``statistics`` condense nothing. With an ``analysis`` (:mod:`gcsr.paper.analyses`) graphs are
    analyzed instead of tested. Entries of A' below ``cut`` are zero when it is tested.
    """

    method: str
    dataset: str
    nodes: int | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    test: str = "gcn"
    analysis: str = ""
    cut: float = 0.0

    @property
    def condenses(self) -> bool:
        """Whether the cell needs condensed graphs."""
        return self.method not in (WHOLE_GRAPH, STATISTICS)

    @property
    def condensation(self) -> Cell:
        """The same for all cells that can share condensed graphs."""
        return replace(self, test="", analysis="", cut=0.0)

    def preset(self) -> dict[str, Any]:
        """The authors' settings."""
        model = dict(self.settings).get("model", "sgc")
        return paper_settings(self.method, self.dataset, self.nodes or 0, model=model)[0]

    def condenser(self, protocol: Protocol) -> Condenser:
        """The method with all its settings, checked."""
        full = build(self.method, {**self.preset(), "nodes": self.nodes, **dict(self.settings)})
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
        """Everything that decides the outcome, except the data and the device."""
        found: dict[str, Any] = {
            "method": self.method,
            "dataset": self.dataset,
            "quick": protocol.quick,
            "gcsr": __version__,
        }
        if self.method == STATISTICS:
            return found | {"statistic": dict(self.settings)["statistic"]}
        found["graphs"] = protocol.graphs if self.condenses else 1
        if self.analysis:
            found["look"] = self.analysis
        else:
            found |= {
                "test": self.test,
                "recipe": asdict(protocol.recipe(self.dataset)),
                "runs": protocol.runs,
                **({"cut": self.cut} if self.cut else {}),
            }
        if self.condenses:
            made_by = self.condenser(protocol)
            found |= {
                "nodes": self.nodes,
                "settings": made_by.settings,
                "revisions": made_by.revisions,
            }
        return found

    def recorded(self, protocol: Protocol) -> dict[str, Any]:
        """The identity under the names that rows were recorded with: keys stay the same."""
        found = self.identity(protocol)
        if "test" in found:
            found["test"] = generator_name(self.test)
            found["recipe"] = {
                "rate" if name == "lr" else name: value for name, value in found["recipe"].items()
            }
        if "settings" in found:
            found["settings"] = recorded_settings(found["settings"], self.method)
        return found

    def settings_key(self, protocol: Protocol) -> str:
        """A hash of the settings and the code version, whatever the data."""
        return _digest(self.recorded(protocol))

    def key(self, protocol: Protocol, data: str) -> str:
        """A name for the outcome on data of that content."""
        return _digest([self.settings_key(protocol), data])

    def claim(self, protocol: Protocol) -> str:
        """The same for all cells that share condensed graphs: one process measures them."""
        found = self.recorded(protocol)
        shared = ("method", "dataset", "quick", "gcsr", "nodes", "settings", "revisions", "graphs")
        return _digest({name: found.get(name) for name in shared})

    def command(self, protocol: Protocol) -> str:
        """The command line that gives the same numbers."""
        if self.method == STATISTICS:
            return f"gcsr reproduce table1 --dataset {self.dataset}"
        if self.analysis and self.method == WHOLE_GRAPH:
            return f"gcsr reproduce {self.analysis} --dataset {self.dataset}"
        epochs = protocol.recipe(self.dataset).epochs
        test = f"--data {self.dataset} --model {self.test} --runs {protocol.runs} --epochs {epochs}"
        if self.method == WHOLE_GRAPH:
            return f"gcsr evaluate --full {test}"
        base, given = self.preset(), dict(self.settings)
        if protocol.quick:
            # What a quick run limits differs from the preset, or from the method's own default.
            full = self.condenser(Protocol(protocol.graphs, protocol.runs)).settings
            chosen = self.condenser(protocol).settings
            given |= {key: value for key, value in chosen.items() if value != full[key]}
        sets = "".join(
            f" --set {key}={value}" for key, value in given.items() if base.get(key) != value
        )
        name = f"{self.dataset}-{self.nodes or 0}"
        files = f"{name}.safetensors" if protocol.graphs == 1 else f"{name}-*.safetensors"
        then = f"gcsr evaluate {files} {test}"
        if self.cut:
            then = f"gcsr reproduce table4 --dataset {self.dataset}  # cuts A' below {self.cut:g}"
        if self.analysis:
            first = files.replace("*", "0")
            then = f"gcsr analyze {first} --data {self.dataset} --figures {name}"
        return (
            f"gcsr condense {self.dataset} --nodes {self.nodes or 0} --method {self.method}"
            f" --preset paper{sets} --graphs {protocol.graphs} --out {name}.safetensors && {then}"
        )


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


def cell(
    method: str,
    dataset: str,
    nodes: int | None,
    *,
    test: str = "gcn",
    analysis: str = "",
    cut: float = 0.0,
    **settings: Any,
) -> Cell:
    """A cell with its settings as keywords; one with an analysis tests no network."""
    test = "" if analysis else test
    return Cell(method, dataset, nodes, tuple(settings.items()), test, analysis, cut)


@dataclass(frozen=True)
class Line:
    """One number of the paper and what it is compared with: the mean over ``cells``.

    ``without_leak`` are the same cells with the prior ``predicted``, where the paper's own counts
    test labels. A line without cells gives the reason in ``missing``. ``x`` and ``series`` place it
    in a figure. ``value`` names one of the numbers of an analysis.
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
    """A table or a figure of the paper.

    Experiments with an ``axis`` are drawn as curves, those with an ``analysis`` as pictures of
    graphs, others as points.
    """

    name: str
    title: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    axis: Axis | None = None
    drawn: bool = True
    analysis: str = ""

    @property
    def datasets(self) -> tuple[str, ...]:
        """Datasets in the order of the table."""
        return tuple(dict.fromkeys(line.dataset for line in self.lines))

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every measurement once."""
        found = (cell for line in self.lines for cell in (*line.cells, *line.without_leak))
        return tuple(dict.fromkeys(found))

    def require_part(self, field: str, name: str, parts: Iterable[str]) -> None:
        """Refuse a dataset or method that this experiment does not contain."""
        parts = list(parts)
        require(
            name in parts,
            f"{field} must be one of {', '.join(parts)} in {self.name}, got {name!r}.",
        )
