"""Arrays as text that a browser reads back: little-endian, base64."""

from __future__ import annotations

import base64
import html as escaping
from typing import Any

import numpy as np

# -- HTML as values: text is escaped unless it is HTML already ---------------------------------------


class Html(str):
    """Text that is HTML; anything else is escaped before it becomes part of a page."""

    __slots__ = ()


Child = str | int | None
Attribute = str | int | float | bool | None
VOID = ("input", "meta")
DRAWN = ("line", "polyline")


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """An element. ``class_`` is class, ``data_id`` is data-id; ``None`` and ``False`` are left out."""
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{name}{said}>")
    if name in DRAWN:
        return Html(f"<{name}{said}/>")
    return Html(f"<{name}{said}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Html:
    """Children one after the other; text among them is escaped."""
    return Html("".join(escaped(child) for child in children if child is not None))


def escaped(child: str | int) -> Html:
    """HTML as it is, everything else as text."""
    return child if isinstance(child, Html) else Html(escaping.escape(printable(child)))


def printable(value: object) -> str:
    """Text of a file that may come from anywhere, without control characters."""
    return "".join(
        c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}"
        for c in str(value)
    )


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escaping.escape(printable(value))}"'


def packed(values: np.ndarray, kind: str) -> str:
    """Bytes of an array; ``kind`` is ``u1``, ``u2``, ``u4``, ``i2`` or ``f4``."""
    return base64.b64encode(np.ascontiguousarray(values, f"<{kind}").tobytes()).decode()


def places(points: np.ndarray) -> str:
    """Points in the square from -1 to 1, in steps of 1/32767; x and y in turn."""
    return packed(np.round(np.clip(points, -1, 1) * 32767), "i2")


def fitted(points: np.ndarray) -> np.ndarray:
    """The same points moved and scaled into the square from -1 to 1, their shape kept."""
    low, high = points.min(0), points.max(0)
    half = float((high - low).max()) / 2 or 1.0
    return np.asarray((points - (low + high) / 2) / half)


def gray(matrix: np.ndarray, low: float, high: float) -> dict[str, Any]:
    """A matrix in 256 steps between ``low`` and ``high``; what lies beyond takes the end."""
    span = high - low or 1.0
    steps = np.round(255 * np.clip((matrix - low) / span, 0, 1))
    return {"size": int(matrix.shape[0]), "low": low, "high": high, "data": packed(steps, "u1")}


def shrunk(matrix: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most ``most`` rows and columns, each the mean of several; and the row where each begins."""
    n = matrix.shape[0]
    starts = np.linspace(0, n, min(n, most), endpoint=False).astype(int)
    if n <= most:
        return matrix, starts
    counts = np.diff(np.append(starts, n))
    sums = np.add.reduceat(np.add.reduceat(matrix, starts, 0), starts, 1)
    return sums / np.outer(counts, counts), starts
