"""Arrays as text that a browser reads back: little-endian, base64."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np


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


def grey(matrix: np.ndarray, low: float, high: float) -> dict[str, Any]:
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
