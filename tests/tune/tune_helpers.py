"""What the tests of tuning share: a graph and settings with which a trial takes a blink."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from gcsr import TrainingRecipe
from gcsr.condense import methods
from gcsr.tune import Tuning, tune
from helpers import planted_graph

GRAPH = planted_graph(per_class=36, val_per_class=20, noise=9)
# Enough epochs to tell good graphs from bad ones, on a graph this small.
QUICK = TrainingRecipe(epochs=30, validate_every=10)
TINY: dict[str, Any] = {
    "iterations": 6,
    "experts": 2,
    "hidden": 8,
    "student_steps": 2,
    "max_start": 4,
    "expert_epochs": 8,
    "epochs": 4,
    "outer": 2,
    "inner": 2,
    "embedding_epochs": 4,
    "score_every": 2,
    "budget": 0,
}
# From harmless to ruinous, so that some trials are worth pruning.
SEARCHED = {"feature_rate": "0.03..30:log", "alpha": "0.1,1,10"}


def tiny(method: str) -> dict[str, Any]:
    """Small values for the settings that a method has."""
    known = {field.name for field in fields(methods()[method])}
    return {name: value for name, value in TINY.items() if name in known}


def search(graph: Any = GRAPH, **changes: Any) -> Tuning:
    given = {"nodes": 9, "trials": 4, "device": "cpu", **tiny("gcsr"), **SEARCHED, **changes}
    return tune(graph, **given)


def story(found: Tuning) -> list[Any]:
    """The trials without what is measured with a clock."""
    return [(t.number, t.state, t.settings, t.score, t.curve, t.note) for t in found.trials]
