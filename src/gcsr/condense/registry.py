"""Methods by name: ours, and those of packages that declare the entry point ``gcsr.methods``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any

from gcsr.condense.condenser import Condenser
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
from gcsr.errors import InputError, require, require_one_of

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


def known_setting(chosen: type[Condenser], given: str) -> str:
    """The field of the method that a user means; any other is explained."""
    known = {f.name for f in fields(chosen)}
    key = setting_name(given)
    if key not in known:
        near = get_close_matches(key, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(
            f"{given}: not a setting of {chosen.name}; accepted: {', '.join(sorted(known))}"
            f"{hint or '.'}"
        )
    return key


def build(name: str, settings: Mapping[str, Any]) -> Condenser:
    """A condenser of the named method; an unknown setting is explained, not swallowed."""
    chosen = method(name)
    named: dict[str, Any] = {}
    for given, value in settings.items():
        key = known_setting(chosen, given)
        require(key not in named, f"{given}: given twice.")
        named[key] = value
    return chosen(**named)
