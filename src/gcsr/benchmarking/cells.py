"""What is measured: a method on a graph at a size, and the network that is tested (a cell)."""

from __future__ import annotations

import hashlib
import inspect
import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from gcsr.benchmarking.own_code import code_hash
from gcsr.methods.base import Condenser
from gcsr.methods.presets import preset_settings
from gcsr.methods.registry import build, method, setting_kinds, setting_name, value_of
from gcsr.training.fit import TrainingRecipe, paper_recipe
from gcsr.utils.errors import Count, InputError, check_fields
from gcsr.utils.formatting import command_line, text_of
from gcsr.utils.renamed import RECORDED_MODELS, recorded_settings
from gcsr.version import __version__

# Cells that condense nothing.
WHOLE_GRAPH, PSEUDO_LABELS, STATISTICS = "whole", "pseudo-labels", "statistics"
# Upper limits of settings in a quick run.
QUICK_CAPS = {
    "iterations": 5,
    "experts": 1,
    "expert_epochs": 25,
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
# Lower limits in a quick run: with less, experts learn nothing in so few epochs, and their
# predictions are the predicted prior.
QUICK_FLOORS = {"expert_lr": 0.05}
QUICK_EPOCHS = 10


@dataclass(frozen=True)
class Protocol:
    """How often a cell is repeated; ``quick`` also limits every setting that costs time.

    ``epochs`` of the test networks are by default those of the paper.
    """

    graphs: Count = 5
    runs: Count = 10
    quick: bool = False
    epochs: Count | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def suffix(self) -> str:
        """What names of files end with: quick runs have their own."""
        return "-quick" if self.quick else ""

    def recipe(self, dataset: str) -> TrainingRecipe:
        """How test networks are trained."""
        epochs = QUICK_EPOCHS if self.quick else self.epochs
        return replace(paper_recipe(dataset), **({"epochs": epochs} if epochs else {}))


@dataclass(frozen=True)
class Cell:
    """One measurement: a method on a dataset, and the network that is tested.

    ``settings`` are added to those of the ``preset``; with ``trials`` others are tuned by
    validation accuracy. The methods ``whole``, ``pseudo-labels`` and ``statistics`` condense
    nothing. With an ``analysis`` (:mod:`gcsr.benchmarking.analyses`) graphs are analyzed instead of
    tested. Entries of A' below ``cut`` are zero when it is tested. ``label`` is the name in tables.
    """

    method: str
    dataset: str
    nodes: int | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    test: str = "gcn"
    analysis: str = ""
    cut: float = 0.0
    preset: str = "paper"
    trials: int = 0
    label: str = field(default="", compare=False)

    @property
    def condenses(self) -> bool:
        """Whether the cell needs condensed graphs."""
        return self.method not in (WHOLE_GRAPH, PSEUDO_LABELS, STATISTICS)

    @property
    def own(self) -> bool:
        """Whether the method is ``module:Class``, whose code is not of this library."""
        return ":" in self.method

    @property
    def benchmarked(self) -> bool:
        """Whether this is a cell of ``gcsr benchmark``, which has a label."""
        return bool(self.label) or self.preset != "paper" or self.method == PSEUDO_LABELS

    @property
    def place(self) -> str:
        """What it is, for people."""
        nodes = "all" if self.nodes is None else self.nodes
        tested = f", {self.test}" if self.test else ""
        return f"{self.label or self.method} on {self.dataset}, {nodes} nodes{tested}"

    @property
    def condensation(self) -> Cell:
        """The same for all cells that can share condensed graphs."""
        return replace(self, test="", analysis="", cut=0.0)

    def base(self) -> dict[str, Any]:
        """The settings of the preset."""
        if self.preset == "default":
            return {}
        presets = method(self.method).presets
        if self.preset in presets:
            return presets[self.preset]
        model = dict(self.settings).get("model", "sgc")
        dataset = self.dataset.partition(":")[0]
        return preset_settings(self.preset, self.method, dataset, self.nodes or 0, model=model)[0]

    def condenser(self, protocol: Protocol) -> Condenser:
        """The method with all its settings, checked."""
        full = build(self.method, {**self.base(), "nodes": self.nodes, **dict(self.settings)})
        if not protocol.quick:
            return full
        known = {field.name for field in fields(full)}
        short: dict[str, Any] = {
            name: min(getattr(full, name), cap) for name, cap in QUICK_CAPS.items() if name in known
        }
        short |= {
            name: max(getattr(full, name), floor)
            for name, floor in QUICK_FLOORS.items()
            if name in known
        }
        if "iterate" in known:
            short["iterate"] = "last"
        return replace(full, **short)

    def recipe(self, protocol: Protocol) -> TrainingRecipe:
        """How test networks are trained; only the paper's own tables go by the name of a dataset."""
        return protocol.recipe(self.dataset if self.preset == "paper" else "")

    def identity(self, protocol: Protocol) -> dict[str, Any]:
        """Everything that decides the outcome, except the data and the device."""
        found: dict[str, Any] = {
            "method": self.method,
            "dataset": self.dataset,
            "quick": protocol.quick,
        }
        if self.preset == "paper":  # elsewhere the revision of a method says whether results change
            found["gcsr"] = __version__
        if self.method == STATISTICS:
            return found | {"statistic": dict(self.settings)["statistic"]}
        found["graphs"] = protocol.graphs if self.condenses else 1
        if self.analysis:
            found["analysis"] = self.analysis
        else:
            found |= {
                "test": self.test,
                "recipe": asdict(self.recipe(protocol)),
                "runs": protocol.runs,
                **({"cut": self.cut} if self.cut else {}),
            }
        if self.condenses:
            made_by = self.condenser(protocol)
            found |= {
                "nodes": self.nodes,
                "settings": made_by.settings,
                "revisions": made_by.revisions,
                **({"tuned": self.trials} if self.trials else {}),
                **({"code": _code(self.method)} if self.own else {}),
            }
        return found

    def recorded(self, protocol: Protocol) -> dict[str, Any]:
        """The identity under the names that rows were recorded with: keys stay the same."""
        found = self.identity(protocol)
        if "test" in found:
            found["test"] = RECORDED_MODELS.get(self.test, self.test)
            found["recipe"] = {
                "rate" if name == "lr" else name: value for name, value in found["recipe"].items()
            }
        if "analysis" in found:
            found["look"] = found.pop("analysis")
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
        shared = (
            *("method", "dataset", "quick", "gcsr", "nodes", "settings", "revisions", "graphs"),
            *(["tuned"] if self.trials else []),
            *(["code"] if "code" in found else []),
        )
        return _digest({name: found.get(name) for name in shared})

    def command(self, protocol: Protocol) -> str:
        """The command line that gives the same numbers."""
        if self.benchmarked:
            return self._benchmark_command(protocol)
        if self.method == STATISTICS:
            return f"gcsr reproduce table1 --dataset {self.dataset}"
        if self.analysis and self.method == WHOLE_GRAPH:
            return f"gcsr reproduce {self.analysis} --dataset {self.dataset}"
        test: dict[str, Any] = {"data": self.dataset, "model": self.test, "runs": protocol.runs}
        test["epochs"] = self.recipe(protocol).epochs
        if self.method == WHOLE_GRAPH:
            return command_line("gcsr", "evaluate", full=True, **test)
        base, given = self.base(), dict(self.settings)
        if protocol.quick:
            # What a quick run limits differs from the preset, or from the method's own default.
            full = self.condenser(Protocol(protocol.graphs, protocol.runs)).settings
            chosen = self.condenser(protocol).settings
            given |= {key: value for key, value in chosen.items() if value != full[key]}
        name = f"{self.dataset}-{self.nodes or 0}"
        several = "" if protocol.graphs == 1 else "-*"
        then = f"gcsr evaluate {name}{several}.safetensors {command_line(**test)}"
        if self.cut:
            then = f"gcsr reproduce table4 --dataset {self.dataset}  # cuts A' below {self.cut:g}"
        if self.analysis:
            first = f"{name}{several.replace('*', '0')}.safetensors"
            then = command_line("gcsr", "analyze", first, data=self.dataset, figures=name)
        condense = command_line(
            *("gcsr", "condense", self.dataset),
            nodes=self.nodes or 0,
            method=self.method,
            preset="paper",
            set={key: value for key, value in given.items() if base.get(key) != value},
            graphs=protocol.graphs,
            out=f"{name}.safetensors",
        )
        return f"{condense} && {then}"

    def _benchmark_command(self, protocol: Protocol) -> str:
        """``gcsr benchmark``, or the same in Python where options cannot say it."""
        given: dict[str, Any] = {"data": self.dataset, "model": self.test}
        if self.condenses:
            given |= {"method": self.method, "nodes": self.nodes}
            given |= {} if self.preset == "default" else {"preset": self.preset}
            given |= {"tune": self.trials} if self.trials else {}
        repeated: dict[str, Any] = {"seeds": protocol.graphs, "runs": protocol.runs}
        repeated |= {"epochs": protocol.epochs} if protocol.epochs else {}
        settings = dict(self.settings)
        if "," not in self.dataset and all(self._is_option(*one) for one in self.settings):
            return command_line("gcsr", "benchmark", **given, set=settings, **repeated)
        plural = {"model": "models", "method": "methods"}
        keywords = {plural.get(name, name): value for name, value in (given | repeated).items()}
        keywords |= {"settings": {self.method: settings}} if settings else {}
        arguments = ", ".join(f"{name}={value!r}" for name, value in keywords.items())
        return command_line("python", "-c", f"import gcsr; gcsr.benchmark({arguments})")

    def _is_option(self, key: str, value: Any) -> bool:
        """Whether ``--set`` reads the same value from its text."""
        kind, text = setting_kinds(method(self.method))[setting_name(key)], text_of(value).strip()
        try:
            read = value_of(key, text, kind)
        except InputError:
            return False
        return bool(read == value and isinstance(read, str) == isinstance(value, str))


def _code(name: str) -> str:
    """A hash of the code of ``module:Class``: its author may change it without a new revision."""
    found = code_hash(name, installed=True)
    if found is None:  # such as a class of a script
        found = hashlib.sha256(Path(inspect.getfile(method(name))).read_bytes()).hexdigest()[:16]
    return found


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
