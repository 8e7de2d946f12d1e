"""Methods by name: ours, and those of packages that declare the entry point ``gcsr.methods``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib.metadata import entry_points
from typing import Any, get_type_hints

from gcsr.condense.condenser import Condenser
from gcsr.condense.fields import require_setting
from gcsr.condense.methods import (
    DCG,
    GCSR,
    MTT,
    SFGC,
    SGDD,
    Automatic,
    Bilevel,
    Clusters,
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
    Clusters,
    Bilevel,
    Automatic,
)
# Settings of the automatic mode itself, beside those that it hands on.
OF_AUTO = {f.name for f in fields(Automatic)} - {"nodes", "ratio", "pins"}
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
    # Looking for other packages takes a moment, and nobody replaces a method of ours.
    known = {method.name: method for method in BUILT_IN}
    if name not in known:
        known = methods()
        require_one_of("method", name, known)
    return known[name]


# Settings that are gone, with the method that they were of last.
REMOVED: dict[str, tuple[str, ...]] = {
    "window": ("gcsr", "mtt", "sfgc"),
    "class_means": ("gcsr", "mtt", "sfgc", "auto"),
    "draw": ("gcsr", "mtt", "sfgc", "clusters", "auto"),
    "tempered": ("auto",),
    "grouping": ("auto",),
    "soft_labels": ("auto",),
}


def setting_name(given: str) -> str:
    """The field that a user means: the paper's letters and dashes are accepted."""
    return ALIASES.get(given, given.replace("-", "_"))


@cache
def setting_kinds(chosen: type[Condenser]) -> dict[str, Any]:
    """The type of every setting of a method, those that it hands on to others included."""
    kinds: dict[str, Any] = {}
    for one in (*chosen.hands_on_to, chosen):
        hints = get_type_hints(one)
        kinds |= {f.name: hints[f.name] for f in fields(one) if f.name != "pins"}
    return kinds


def known_setting(chosen: type[Condenser], given: str) -> str:
    """The setting of the method that a user means; any other is explained."""
    key = setting_name(given)
    kinds = setting_kinds(chosen)
    require(
        key in kinds or (chosen.name, key) != ("auto", "teacher"),
        f"{given}: is called pseudo_labels in the automatic mode; accepted: auto, none, consistent,"
        " gcn, appnp.",
    )
    require(
        key in kinds or chosen.name not in REMOVED.get(key, ()),
        f"{given}: was a setting of {chosen.name} until version 0.1 and is gone, because it made"
        " results no better; leave it out.",
    )
    require(
        key in kinds or key not in OF_AUTO,
        f"{given}: belongs to the automatic mode, not to {chosen.name}; leave the method out"
        " (command line: --method) or say auto.",
    )
    require_setting(chosen.name, key, kinds, given=given)
    return key


def build(name: str, settings: Mapping[str, Any]) -> Condenser:
    """A condenser of the named method; an unknown setting is explained, not swallowed."""
    chosen = method(name)
    own = {f.name for f in fields(chosen)}
    named: dict[str, Any] = {}
    pins: dict[str, Any] = {}
    for given, value in settings.items():
        key = known_setting(chosen, given)
        require(key not in named and key not in pins, f"{given}: given twice.")
        (named if key in own else pins)[key] = value
    if pins:
        named["pins"] = tuple(sorted(pins.items()))
    return chosen(**named)
