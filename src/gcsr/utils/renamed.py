"""Names that were changed: old ones are accepted with a warning for one release.

Files and rows that were written before hold the old names; they stay readable.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

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
# Letters of the paper that differ from another name by case alone.
LETTERS = {"K": "iterations"}
# What `initial` was in the methods that had it.
INITIAL = {"sfgc": "selection", "gcond": "label_order", "sgdd": "label_order"}
# Values, by the setting's new name.
VALUES: dict[tuple[str, Any], Any] = {
    ("structure_loss", "stabilised"): "stabilized",
    ("grouping", "halves"): "bisection",
}


# Models, new: the name that random generators and recorded rows know.
MODELS = {
    "sage-paper": "sage",
    "sage-paper-linear": "sage-linear",
    "sage": "sage-textbook",
    "cheby-paper": "cheby",
    "cheby": "cheby-textbook",
}


def plain_number(value: Any) -> Any:
    """A scalar of NumPy or torch as one of Python, as in files; anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () else value


class AcceptsOldNames(type):
    """A class whose keywords may be given by the names that they had before (``old_names``)."""

    old_names: dict[str, str]

    def __call__(cls, *args: Any, **given: Any) -> Any:
        """Make an instance."""
        for old in cls.old_names.keys() & given.keys():
            new = cls.old_names[old]
            warnings.warn(f"{old} is called {new} now.", DeprecationWarning, stacklevel=2)
            given[new] = given.pop(old)
        numbers = {name: plain_number(value) for name, value in given.items()}
        return super().__call__(*map(plain_number, args), **numbers)


def accepts_old_keywords(function: Callable[P, T]) -> Callable[P, T]:
    """A function that takes ``hidden`` and ``any_graph``, as before version 0.2, and NumPy scalars."""

    @wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> T:
        if "hidden" in given:
            warnings.warn("hidden is called hidden_channels now.", DeprecationWarning, stacklevel=2)
            given["hidden_channels"] = given.pop("hidden")
        if "any_graph" in given:
            warnings.warn(
                "any_graph=True is check_origin=False now.", DeprecationWarning, stacklevel=2
            )
            given["check_origin"] = not given.pop("any_graph")
        given.update({name: plain_number(value) for name, value in given.items()})
        return function(*args, **given)

    return call


def generator_name(model: str) -> str:
    """The name under which a model's initial weights are drawn: the same numbers as ever."""
    return MODELS.get(model, model)


def new_name(name: str, owner: str, known: Container[str]) -> str:
    """The name that a setting of a method has now; an old one is warned about."""
    new = INITIAL.get(owner, name) if name == "initial" else (SETTINGS | LETTERS).get(name, name)
    if name in known or new == name or new not in known:
        return name
    warnings.warn(f"{name} is called {new} now.", DeprecationWarning, stacklevel=4)
    return new


def new_settings(given: Mapping[str, Any], owner: str, known: Container[str]) -> dict[str, Any]:
    """Settings by their names of today."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        key = new_name(name, owner, known)
        found[key] = plain_number(value)
        if isinstance(value, str):
            found[key] = VALUES.get((key, value), value)
    return found


def recorded_settings(settings: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Settings under the names that rows were recorded with, so that their keys stay the same."""
    old = {new: name for name, new in SETTINGS.items()}
    if owner in INITIAL:
        old[INITIAL[owner]] = "initial"
    values = {(name, new): before for (name, before), new in VALUES.items()}
    values |= {("model", new): before for new, before in MODELS.items()}
    return {
        old.get(name, name): values.get((name, value), value) if isinstance(value, str) else value
        for name, value in settings.items()
    }
