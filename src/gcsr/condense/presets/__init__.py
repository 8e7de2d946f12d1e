"""The settings that authors published, by method, dataset and size."""

from __future__ import annotations

from typing import Any

from gcsr.condense.presets.cells import Cell, Table
from gcsr.condense.presets.gradient import GRADIENT
from gcsr.condense.presets.selection import SELECTION
from gcsr.condense.presets.sfgc import OFFICIAL
from gcsr.condense.presets.trajectory import TRAJECTORY
from gcsr.errors import require

# "paper": as the GCSR paper ran a method; "official": as the method's own authors did, where that is
# something else.
PRESETS = ("default", "paper", "official")
# Methods that need nothing but a size.
_PLAIN = ("random",)
_TABLES: dict[str, Table] = {**SELECTION, **GRADIENT, **TRAJECTORY}


def paper_settings(
    method: str, dataset: str, nodes: int, *, model: str | None = None
) -> tuple[dict[str, Any], str]:
    """The authors' settings of the nearest published size, and a name for that cell.

    ``model`` is the condensing model if somebody asked for one in particular.
    """
    if method in _PLAIN:
        return {}, "paper"
    accepted = ", ".join(sorted([*_TABLES, *_PLAIN]))
    require(
        method in _TABLES,
        f"preset: 'paper' has no settings for method {method!r}; accepted: {accepted}.",
    )
    cell = Cell.nearest(dataset, nodes)
    return _TABLES[method](cell, model), f"paper ({cell})"


def preset_settings(
    preset: str, method: str, dataset: str, nodes: int, *, model: str | None = None
) -> tuple[dict[str, Any], str]:
    """The settings of a preset other than ``default``, and a name for its cell."""
    if preset == "paper":
        return paper_settings(method, dataset, nodes, model=model)
    require(
        method in OFFICIAL,
        f"preset: {preset!r} has no settings for method {method!r}, accepted: {', '.join(OFFICIAL)};"
        " for other methods 'paper' holds what their authors published.",
    )
    cell = Cell.nearest(dataset, nodes, preset=preset)
    return OFFICIAL[method](cell, model), f"{preset} ({cell})"
