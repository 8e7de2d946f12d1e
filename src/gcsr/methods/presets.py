"""The settings that authors published, by method, dataset and size (``presets.toml``)."""

from __future__ import annotations

import math
import tomllib
from functools import reduce
from importlib.resources import files
from typing import Any

from gcsr.utils.errors import require, require_one_of
from gcsr.utils.formatting import UNNAMED

_TABLES = tomllib.loads((files("gcsr.methods") / "presets.toml").read_text(encoding="utf-8"))
# Condensed nodes of the low, middle and high ratio.
SIZES: dict[str, list[int]] = _TABLES["sizes"]
# "paper": as the GCSR paper ran a method; "official": as the method's own authors did, where that is
# something else.
PRESETS = ("default", "paper", "official")


def paper_settings(
    method: str, dataset: str, nodes: int, *, model: str | None = None
) -> tuple[dict[str, Any], str]:
    """The settings of the preset ``paper``; see :func:`preset_settings`."""
    return preset_settings("paper", method, dataset, nodes, model=model)


def preset_settings(
    preset: str, method: str, dataset: str, nodes: int, *, model: str | None = None
) -> tuple[dict[str, Any], str]:
    """The authors' settings of the published size that is nearest in ratio, and a name for them.

    ``model`` is the condensing model that was asked for, if any.
    """
    require_one_of("preset", preset, [name for name in PRESETS if name in _TABLES])
    known = _TABLES[preset]
    other = "; preset 'paper' has the published settings of other methods"
    require(
        method in known,
        f"method must be one of {', '.join(sorted(known))} for preset {preset!r}, got {method!r}"
        f"{other if preset != 'paper' else ''}.",
    )
    if not known[method]:
        return {}, preset
    published = [name for name in SIZES if name in known[method]] or [*SIZES]
    given = "a graph without a name" if dataset == UNNAMED else repr(dataset)
    require(
        dataset in published,
        f"dataset must be one of {', '.join(published)} for preset {preset!r}, got {given}; leave out"
        " the preset for other graphs.",
    )
    size = min(SIZES[dataset], key=lambda size: abs(math.log(size / nodes)))
    found = _settings(known[method], dataset, str(size), model)
    if model is not None and "model" in found:
        found["model"] = model
    return found, f"{preset} ({dataset}, {size} nodes)"


def _settings(table: dict[str, Any], dataset: str, size: str, model: str | None) -> dict[str, Any]:
    """What a table and those that it is made from have for a dataset, a size and a model."""
    found: dict[str, Any] = {}
    for name in table.get("from", ()):
        parent = reduce(dict.__getitem__, name.split("."), _TABLES)
        found |= _settings(parent, dataset, size, model)
    found |= table.get("settings", {})
    own = table.get(dataset, {})
    found |= {key: value for key, value in own.items() if not isinstance(value, dict)}
    found |= own.get(size, {})
    found |= own.get("models", {}).get(size, {}).get(model, {})
    return found
