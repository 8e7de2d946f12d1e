"""The settings that authors published, by method, dataset and size."""

from __future__ import annotations

from typing import Any

from gcsr.condense.presets.cells import Cell, Table
from gcsr.condense.presets.gradient import GRADIENT
from gcsr.condense.presets.trajectory import TRAJECTORY
from gcsr.errors import require

PRESETS = ("default", "paper")
# Methods that need nothing but a size.
_PLAIN = ("random",)
_TABLES: dict[str, Table] = {**GRADIENT, **TRAJECTORY}


def paper_settings(
    method: str, dataset: str, nodes: int, *, model: str = "sgc"
) -> tuple[dict[str, Any], str]:
    """The authors' settings of the nearest published size, and a name for that cell."""
    if method in _PLAIN:
        return {}, "paper"
    accepted = ", ".join(sorted([*_TABLES, *_PLAIN]))
    require(
        method in _TABLES,
        f"preset: 'paper' has no settings for method {method!r}; accepted: {accepted}.",
    )
    cell = Cell.nearest(dataset, nodes)
    return _TABLES[method](cell, model), f"paper ({cell})"
