"""Names that were changed before version 0.3, which rows and random generators still use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Settings of methods, old: new.
SETTINGS = {
    "k": "num_hops",
    "hidden": "hidden_channels",
    "generator_hidden": "generator_hidden_channels",
    "feature_rate": "feature_lr",
    "student_rate": "student_lr",
    "expert_rate": "expert_lr",
    "model_rate": "model_lr",
    "structure_rate": "structure_lr",
    "learn_rate": "learn_student_lr",
    "regulariser": "regularizer",
    "expert_optimiser": "expert_optimizer",
    "neighbours": "neighbors",
    "initialise": "init",
    "teacher": "pseudo_labels",
    "without": "disable",
    "pins": "fixed",
}
# What `initial` was in the methods that had it.
INITIAL = {"sfgc": "selection", "gcond": "label_order", "sgdd": "label_order"}
# Values, by the setting's new name.
VALUES: dict[tuple[str, Any], Any] = {
    ("structure_loss", "stabilised"): "stabilized",
    ("grouping", "halves"): "bisection",
}
# Models, new: the name that random generators and recorded rows know.
RECORDED_MODELS = {
    "sage-paper": "sage",
    "sage-paper-linear": "sage-linear",
    "sage": "sage-textbook",
    "cheby-paper": "cheby",
    "cheby": "cheby-textbook",
}


def new_name(name: str, owner: str) -> str:
    """The name that a setting of a method has now."""
    if name == "initial":
        return INITIAL.get(owner, name)
    return {**SETTINGS, "K": "iterations"}.get(name, name)


def recorded_settings(settings: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Settings under the names that rows were recorded with, so that their keys stay the same."""
    old = {new: name for name, new in SETTINGS.items()}
    if owner in INITIAL:
        old[INITIAL[owner]] = "initial"
    values = {(name, new): before for (name, before), new in VALUES.items()}
    values |= {("model", new): before for new, before in RECORDED_MODELS.items()}
    return {
        old.get(name, name): values.get((name, value), value) if isinstance(value, str) else value
        for name, value in settings.items()
    }
