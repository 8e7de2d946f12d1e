"""Results with their analysis and accuracies, and values of their provenance as texts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from gcsr.analysis.analysis import Analysis
from gcsr.analysis.privacy import Privacy
from gcsr.analysis.statistics import GraphStatistics, LabeledGraph, statistics_of
from gcsr.api import condense_many, default_method
from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.views import View
from gcsr.datasets.registry import DATASETS
from gcsr.evaluation.cost import PSEUDO, RANDOM, SMALL, WHOLE
from gcsr.evaluation.networks import Evaluation
from gcsr.evaluation.origin import labeler_of, used_pseudo_labels
from gcsr.evaluation.protocol import evaluate, evaluate_full
from gcsr.methods.registry import build, methods
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.formatting import command_line, counted
from gcsr.utils.progress import Progress, prefixed, silent
from gcsr.utils.safe_io import is_number, part

LABELS = "labels"


@dataclass(frozen=True, eq=False)
class Score:
    """Accuracy of networks trained on a condensed graph, on random subsets or on the whole graph.

    No network is trained for the kind ``LABELS``: its one score is that of the pseudo-labels.
    """

    name: str
    kind: str
    evaluation: Evaluation
    nbytes: int

    @property
    def seconds_each(self) -> float:
        """Seconds per trained network, validation on the real graph included."""
        return self.evaluation.seconds / len(self.evaluation.scores)

    @property
    def validation(self) -> float:
        """Mean validation accuracy: what is best is decided by it, never by test accuracy."""
        return fmean(self.evaluation.validation)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"name": self.name, "kind": self.kind, "bytes": self.nbytes} | (
            self.evaluation.to_dict()
        )

    @property
    def plus_minus(self) -> str:
        """Half of the 95 % interval; empty for a single score."""
        half = self.evaluation.accuracy.plus_minus
        return "" if half is None else f"± {half:.1f}"

    @property
    def detail(self) -> str:
        """Nodes, graphs and networks."""
        if self.kind == LABELS:
            return "most likely class of each test node"
        return f"{counted(self.evaluation.nodes, 'node')} · {self.size}"

    @property
    def size(self) -> str:
        """How many networks on how many graphs."""
        one = self.evaluation
        graphs = f"{counted(one.graphs, 'graph')} x " if one.graphs > 1 else ""
        return f"{graphs}{counted(one.runs, 'run')}"


@dataclass(frozen=True, eq=False)
class Result:
    """A condensed graph, and where there is a real graph, how it compares.

    ``absent`` says why there is no real graph; ``untested`` why there are no accuracies.
    """

    name: str
    small: CondensedGraph
    analysis: Analysis | None = None
    scores: tuple[Score, ...] = ()
    absent: str = ""
    untested: str = ""
    privacy: Privacy | None = None

    @cached_property
    def condensed(self) -> GraphStatistics:
        """Statistics of the condensed graph."""
        if self.analysis is not None:
            return self.analysis.condensed
        return statistics_of(LabeledGraph.of_condensed(self.small), 0.01)

    @property
    def dataset(self) -> str:
        """The name of the graph that was condensed."""
        return text(part(self.small.provenance, "dataset"), "name", "an unnamed graph")

    @property
    def original_bytes(self) -> float | None:
        """Bytes of the graph that was condensed: measured now, or as the file says."""
        whole = self.score(WHOLE)
        return self.small.original_bytes if whole is None else whole.nbytes

    def score(self, kind: str) -> Score | None:
        """The first score of a kind."""
        return next((one for one in self.scores if one.kind == kind), None)


def train_and_test(
    results: Sequence[tuple[str, CondensedGraph]],
    graph: Graph,
    *,
    subsets: int,
    check_origin: bool,
    progress: Progress,
    **training: Any,
) -> list[Score]:
    """Accuracy of every result, of random subsets of each size, and of the whole graph.

    Where a result was condensed with pseudo-labels, those are compared with as well. ``training`` is
    ``model``, ``runs``, ``recipe``, ``seed`` and ``device``.
    """

    def on(graphs: Sequence[CondensedGraph], name: str, **changed: Any) -> Evaluation:
        named = prefixed(progress, name)
        options = {**training, "check_origin": check_origin, "progress": named, **changed}
        return evaluate(graphs, graph, **options)

    def on_whole(name: str, **options: Any) -> Evaluation:
        return evaluate_full(graph, progress=prefixed(progress, name), **training, **options)

    # The first network of a process includes the time of imports; it is not measured.
    on([results[0][1]], "", progress=silent, runs=1, recipe=TrainingRecipe(epochs=3))
    scores = [Score(name, SMALL, on([small], name), small.stored_bytes) for name, small in results]
    visible = int(graph.train.numel()) if graph.inductive else graph.num_nodes
    for nodes in sorted({min(small.num_nodes, visible) for _, small in results}):
        drawn = condense_many(
            graph, nodes=nodes, method="random", seeds=range(subsets), device=training["device"]
        )
        name = f"random subset, {counted(nodes, 'node')}"
        scores.append(Score(name, RANDOM, on(drawn, name), drawn[0].stored_bytes))
    name, size = "whole graph", View(graph).stored_parts.total
    scores.append(Score(name, WHOLE, on_whole(name), size))
    # Every visible node of an inductive graph has a label.
    helped = [small for _, small in results if used_pseudo_labels(small)]
    if helped and not graph.inductive:
        name = "whole graph with pseudo-labels"
        found = on_whole(name, pseudo_labels=labeler_of(helped[0]))
        scores.append(Score(name, PSEUDO, found, size))
        labels = found.pseudo_labels or {}
        test, validation = labels["test"], labels["validation"]
        alone = replace(
            found, mean=test, std=0.0, scores=[test], validation=[validation], runs=1, seconds=0.0
        )
        scores.append(Score("pseudo-labels themselves", LABELS, alone, 0))
    return scores


# -- numbers and names as texts ----------------------------------------------------------------------

NOTHING = "–"


def percent(share: float | None, digits: int = 1) -> str:
    """A share between 0 and 1."""
    return decimal(None if share is None else 100 * share, digits, unit=" %")


def decimal(value: float | None, digits: int = 3, *, unit: str = "") -> str:
    """A number with a fixed number of decimals."""
    missing = value is None or not math.isfinite(value)
    return NOTHING if missing else f"{value:.{digits}f}{unit}"


def seconds(value: float | None) -> str:
    """A duration."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value >= 600:
        return f"{value / 60:.0f} min"
    return f"{value:.0f} s" if value >= 100 else f"{value:.2g} s" if value < 1 else f"{value:.1f} s"


# -- values of a provenance, which may be of any type ------------------------------------------------


def number(made: Mapping[str, Any], name: str) -> float | None:
    """A finite number."""
    found: Any = made.get(name)
    return float(found) if is_number(found) else None


def text(made: Mapping[str, Any], name: str, otherwise: str = "?") -> str:
    """A text that is not empty."""
    found = made.get(name)
    return found if isinstance(found, str) and found else otherwise


def curve(made: Mapping[str, Any], name: str) -> list[tuple[float, float]]:
    """A recorded curve as points: ``{every, values}`` or ``{iterations, values}``."""
    kept = part(made, name)
    values, places = kept.get("values"), kept.get("iterations")
    if not isinstance(values, list):
        return []
    if places is None:
        every = number(kept, "every") or 1.0
        places = [every * i for i in range(len(values))]
    if not isinstance(places, list) or len(places) != len(values):
        return []
    points = zip(places, values, strict=True)
    return [(float(x), float(y)) for x, y in points if is_number(x) and is_number(y)]


def written(value: Any, digits: int | None = None) -> str:
    """A value as JSON, texts as they are, and real numbers to so many digits."""
    if value is None:
        return "none"
    if digits is not None and isinstance(value, float):
        value = float(f"{value:.{digits}g}")
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def pairs(values: Mapping[str, Any], digits: int) -> str:
    """Names and values in one line."""
    return ", ".join(f"{key}={written(value, digits)}" for key, value in values.items())


def command(small: CondensedGraph, out: str) -> str:
    """The command line that makes a graph again: settings that are not the default, and the device."""
    made = small.provenance
    source, settings, stored = (part(made, name) for name in ("dataset", "settings", "stored"))
    name, method = text(source, "name", "DATA"), text(made, "method")
    known, ratio = DATASETS.get(name), settings.get("ratio")
    automatic = method == default_method("default")
    usual = build(method, {"nodes": 1}).settings if method in methods() else {}
    given = {
        key: value
        for key, value in sorted(settings.items())
        if key not in ("nodes", "ratio") and not (key in usual and usual[key] == value)
    }
    # Options with which the data were loaded, where they are not the default.
    scaling, inductive = source.get("features"), source.get("inductive")
    scaling = "standardize" if scaling == "standardise" else scaling  # before version 0.2
    scaled = isinstance(scaling, str) and scaling != (known.scaling if known else "keep")
    hidden = isinstance(inductive, bool) and inductive != (known.inductive if known else False)
    return command_line(
        *("gcsr", "condense", name if known or name.endswith(".npz") else f"{name}.npz"),
        nodes=small.num_nodes if ratio is None else None,
        ratio=ratio,
        method=None if automatic else method,
        budget=given.pop("budget", None) if automatic else None,
        set=given,
        features=scaling if scaled else None,
        inductive=hidden and inductive,
        transductive=hidden and not inductive,
        seed=made.get("seed") or None,
        device=made["device"] if made.get("device") in ("cpu", "cuda") else None,
        sparsify=text(stored, "asked", "") or None,
        dtype="float16" if stored.get("dtype") == "float16" else None,
        out=Path(out).name,
    )
