"""Numbers and names as texts, values of a provenance, and the command that makes a result again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gcsr.api import default_method
from gcsr.data.condensed import CondensedGraph
from gcsr.datasets.registry import DATASETS
from gcsr.methods.registry import build, methods
from gcsr.utils.formatting import command_line
from gcsr.utils.safe_io import is_number, part

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
