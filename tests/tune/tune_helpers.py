"""What the tests of tuning share: a graph and settings with which a trial takes a blink."""

from __future__ import annotations

from typing import Any

from gcsr import TrainingRecipe
from gcsr.tuning.search import Tuning, tune
from helpers import planted_graph, tiny

GRAPH = planted_graph(per_class=36, val_per_class=20, noise=9)
# Enough epochs to tell good graphs from bad ones, on a graph this small.
QUICK = TrainingRecipe(epochs=30, validate_every=10)
# From harmless to ruinous, so that some trials are worth pruning.
SEARCHED = {"feature_lr": "0.03..30:log", "alpha": "0.1,1,10"}


def search(graph: Any = GRAPH, **changes: Any) -> Tuning:
    given = {"nodes": 9, "trials": 4, "device": "cpu", **tiny("gcsr"), **SEARCHED, **changes}
    return tune(graph, **given)


def story(found: Tuning) -> list[Any]:
    """The trials without what is measured with a clock."""
    return [(t.number, t.state, t.settings, t.score, t.curve, t.note) for t in found.trials]
