"""Methods by name: ours, and those of packages that declare the entry point ``gcsr.methods``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import entry_points
from typing import Any

from gcsr.condense.condenser import Condenser
from gcsr.condense.fields import require_setting
from gcsr.condense.methods import (
    DCG,
    GCSR,
    MTT,
    SFGC,
    SGDD,
    Coarsening,
    GCond,
    GCondX,
    Herding,
    KCenter,
    Random,
)
from gcsr.errors import require, require_one_of

BUILT_IN: tuple[type[Condenser], ...] = (
    Random,
    Herding,
    KCenter,
    Coarsening,
    DCG,
    GCondX,
    GCond,
    SFGC,
    SGDD,
    MTT,
    GCSR,
)
# The letters of the paper, for those who think in them.
ALIASES = {
    "N": "student_steps",
    "M": "expert_steps",
    "K": "iterations",
    "hops": "k",
    "eta1": "student_rate",
    "eta2": "feature_rate",
}


def methods() -> dict[str, type[Condenser]]:
    """Every method that can be asked for by name."""
    found = {method.name: method for method in BUILT_IN}
    for entry in entry_points(group="gcsr.methods"):
        if entry.name not in found:
            found[entry.name] = entry.load()
    return found


def method(name: str) -> type[Condenser]:
    """The method of that name."""
    known = methods()
    require_one_of("method", name, known)
    return known[name]


def setting_name(given: str) -> str:
    """The field that a user means: the paper's letters and dashes are accepted."""
    return ALIASES.get(given, given.replace("-", "_"))


def build(name: str, settings: Mapping[str, Any]) -> Condenser:
    """A condenser of the named method; an unknown setting is explained, not swallowed."""
    chosen = method(name)
    known = {f.name for f in fields(chosen)}
    named = {}
    for given, value in settings.items():
        key = setting_name(given)
        require_setting(name, key, known, given=given)
        require(key not in named, f"{given}: given twice.")
        named[key] = value
    return chosen(**named)
