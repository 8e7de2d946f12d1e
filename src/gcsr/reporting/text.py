"""The command that makes a result again."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gcsr.api import default_method
from gcsr.data.condensed import CondensedGraph
from gcsr.datasets.registry import DATASETS
from gcsr.methods.registry import build, methods
from gcsr.utils.safe_io import is_number

# -- Numbers and names as people read them, and what a file of unknown origin says of itself ---------


NOTHING = "–"


def percent(share: float | None, digits: int = 1) -> str:
    """A share between 0 and 1."""
    return NOTHING if missing(share) else f"{100 * share:.{digits}f} %"  # type: ignore[operator]


def decimal(value: float | None, digits: int = 3) -> str:
    """A number with a fixed number of decimals."""
    return NOTHING if missing(value) else f"{value:.{digits}f}"


def missing(value: float | None) -> bool:
    """Whether there is no number."""
    return value is None or not math.isfinite(value)


def byte_count(count: float | None) -> str:
    """Bytes in decimal units."""
    if count is None or missing(count):
        return NOTHING
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def seconds(value: float | None) -> str:
    """A duration."""
    if value is None or missing(value):
        return NOTHING
    if value >= 600:
        return f"{value / 60:.0f} min"
    return f"{value:.0f} s" if value >= 100 else f"{value:.2g} s" if value < 1 else f"{value:.1f} s"


def class_name(number: int) -> str:
    """What a class is called."""
    return f"class {number}" if number >= 0 else "no label"


# -- provenance, which may hold anything -------------------------------------------------------------


def part(made: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object inside the provenance; empty where there is none."""
    found = made.get(name)
    return found if isinstance(found, dict) else {}


def number(made: Mapping[str, Any], name: str) -> float | None:
    """A finite number inside the provenance."""
    found: Any = made.get(name)
    return float(found) if is_number(found) else None


def text(made: Mapping[str, Any], name: str, otherwise: str = "?") -> str:
    """A name inside the provenance."""
    found = made.get(name)
    return found if isinstance(found, str) and found else otherwise


def maker(made: Mapping[str, Any]) -> str:
    """The method; for the automatic mode, which one it chose."""
    name = text(made, "method")
    chosen = part(part(made, "automatic"), "chosen")
    return f"{name}, which chose {text(chosen, 'method')}" if chosen else name


def notes(made: Mapping[str, Any]) -> list[str]:
    """What the method had to say."""
    found = made.get("notes")
    return [str(note) for note in found] if isinstance(found, list) else []


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
    return [(float(x), float(y)) for x, y in zip(places, values, strict=True) if _both(x, y)]


def _both(*pair: object) -> bool:
    return all(map(is_number, pair))


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


def command(small: CondensedGraph, out: str) -> str:
    """What to type for the same graph: what is not the default, and the device."""
    made = small.provenance
    source, settings = part(made, "dataset"), part(made, "settings")
    words = ["gcsr", "condense", _data(source)]
    ratio = settings.get("ratio")
    words += ["--nodes", str(small.num_nodes)] if ratio is None else ["--ratio", str(ratio)]
    method = text(made, "method")
    automatic = method == default_method("default")
    words += [] if automatic else ["--method", method]
    for key, value in _chosen(method, settings):
        own = automatic and key == "budget"  # has an option of its own
        words += ["--budget", _short(value)] if own else ["--set", f"{key}={_written(value)}"]
    words += list(_loading(source))
    seed = made.get("seed", 0)
    words += ["--seed", str(seed)] if seed != 0 else []
    if made.get("device") in ("cpu", "cuda"):
        words += ["--device", str(made["device"])]
    words += list(_storing(part(made, "stored")))
    return shlex.join([*words, "--out", Path(out).name])


def _storing(stored: dict[str, Any]) -> Iterator[str]:
    """What was left out of the file, and its precision."""
    rule = text(stored, "asked", "")
    if rule:
        yield from ("--sparsify", rule)
    if stored.get("dtype") == "float16":
        yield from ("--dtype", "float16")


def _data(source: dict[str, Any]) -> str:
    name = text(source, "name", "DATA")
    return name if name in DATASETS or name.endswith(".npz") else f"{name}.npz"


def _chosen(method: str, settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    usual = build(method, {"nodes": 1}).settings if method in methods() else {}
    for key, value in sorted(settings.items()):
        if key not in ("nodes", "ratio") and (key not in usual or usual[key] != value):
            yield key, value


def _written(value: Any) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _short(value: Any) -> str:
    """Seconds as people type them: 15, not 15.0."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else _written(value)


def _loading(source: dict[str, Any]) -> Iterator[str]:
    """How the data were loaded, where that is not the usual way."""
    known = DATASETS.get(text(source, "name"))
    scaling, hidden = source.get("features"), source.get("inductive")
    if isinstance(scaling, str) and scaling != (known.scaling if known else "keep"):
        yield from ("--features", scaling)
    if isinstance(hidden, bool) and hidden != (known.inductive if known else False):
        yield "--inductive" if hidden else "--transductive"


def stem(name: str) -> str:
    """A name that can be part of an address inside the page."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "part"
