"""Numbers and names as people read them, and what a file of unknown origin says of itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gcsr.untrusted import is_number

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
