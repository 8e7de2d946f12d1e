"""Numbers and names as texts, values of a provenance, and the command that makes a result again."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gcsr.api import default_method
from gcsr.data.condensed import CondensedGraph
from gcsr.datasets.registry import DATASETS
from gcsr.methods.registry import build, methods
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


def ticks(low: float, high: float, most: int = 5) -> Sequence[float]:
    """Round numbers between ``low`` and ``high``."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    raw = span / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * times for times in (1, 2, 2.5, 5, 10) if unit * times >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


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
    name = text(source, "name", "DATA")
    data = name if name in DATASETS or name.endswith(".npz") else f"{name}.npz"
    ratio = settings.get("ratio")
    size = ["--nodes", str(small.num_nodes)] if ratio is None else ["--ratio", str(ratio)]
    words = ["gcsr", "condense", data, *size]
    method = text(made, "method")
    automatic = method == default_method("default")
    words += [] if automatic else ["--method", method]
    usual = build(method, {"nodes": 1}).settings if method in methods() else {}
    for key, value in sorted(settings.items()):
        if key in ("nodes", "ratio") or (key in usual and usual[key] == value):
            continue
        typed = str(value).lower() if value is None or isinstance(value, bool) else str(value)
        if automatic and key == "budget":
            words += ["--budget", typed.removesuffix(".0")]
        else:
            words += ["--set", f"{key}={typed}"]
    words += _loading(source)
    seed = made.get("seed", 0)
    words += ["--seed", str(seed)] if seed != 0 else []
    if made.get("device") in ("cpu", "cuda"):
        words += ["--device", str(made["device"])]
    rule = text(stored, "asked", "")
    words += ["--sparsify", rule] if rule else []
    words += ["--dtype", "float16"] if stored.get("dtype") == "float16" else []
    return shlex.join([*words, "--out", Path(out).name])


def _loading(source: dict[str, Any]) -> Iterator[str]:
    """Options with which the data were loaded, where they are not the default."""
    known = DATASETS.get(text(source, "name"))
    scaling, inductive = source.get("features"), source.get("inductive")
    if scaling == "standardise":  # files of versions before 0.2
        scaling = "standardize"
    if isinstance(scaling, str) and scaling != (known.scaling if known else "keep"):
        yield from ("--features", scaling)
    if isinstance(inductive, bool) and inductive != (known.inductive if known else False):
        yield "--inductive" if inductive else "--transductive"
