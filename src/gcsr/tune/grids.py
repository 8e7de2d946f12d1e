"""The spaces that have a name: ``paper`` and ``wide``.

``paper`` is the grid that the GCSR paper searched (its section on hyper-parameters: N, M, the rate of
X', alpha and beta from .1 to 1000, tau from .9 to 1; gamma and the student's rate fixed), of which MTT
and SFGC have the part that they know. For the baselines it spans what their authors searched or
released. Rates and weights are in the units of the base settings: relative, unless a preset or
``units=absolute`` says otherwise.

``wide`` also searches what the paper fixed. A method that has neither is searched by the kind of its
settings (:func:`by_kind`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from gcsr.condense import Condenser
from gcsr.condense.registry import method as method_of
from gcsr.errors import InputError, require
from gcsr.tune.space import SIZES, Dimension, Range, Space

Grid = dict[str, str]

_STEPS: Grid = {"student_steps": "5,20,50,100", "expert_steps": "1,2"}
_TRAJECTORY: Grid = {**_STEPS, "feature_rate": "1e-5,1e-4,1e-3,1e-2", "student_rate": "0.01"}
_EMBEDDING: Grid = {"weight_decay": "0,5e-4,5e-3"}
_MATCHES: Grid = {"feature_rate": "1e-4,1e-3,1e-2,1e-1", "outer": "10,20", "inner": "1,3,15"}
_GENERATOR: Grid = {**_MATCHES, "structure_rate": "1e-4,1e-3,1e-2,1e-1", "threshold": "0.01,0.05"}
PAPER: dict[str, Grid] = {
    "random": {},
    "herding": _EMBEDDING,
    "kcenter": _EMBEDDING,
    "coarsening": {"projection": "sum,mean", "labels": "pure,majority", "weights": "false,true"},
    "dcg": {"feature_rate": "1e-4,1e-3,1e-2,1e-1", "epochs": "100,200,400", "model": "sgc,sgc2"},
    "gcond-x": {**_MATCHES, "distance": "cosine,squared"},
    "gcond": _GENERATOR,
    "sgdd": {
        **_GENERATOR,
        "structure_weight": "1e-12,1e-11,1e-10,1e-9",
        "smoothness": "0.1,0.5",
    },
    "sfgc": _TRAJECTORY,
    "mtt": _TRAJECTORY,
    "gcsr": {
        **_TRAJECTORY,
        "alpha": "0.1..1000:log",
        "beta": "0.1..1000:log",
        "tau": "0.9..1",
        "gamma": "0.5",
    },
}
_WIDE_TRAJECTORY: Grid = {
    "k": "0..4",
    "student_steps": "2..50:log",
    "student_rate": "0.01..2:log",
    "expert_steps": "1..20:log",
    "max_start": "10..80",
    "feature_rate": "1e-5..1e-2:log",
    "expert_rate": "1e-3..1e-1:log",
}
_WIDE_MATCHES: Grid = {
    "k": "0..4",
    "feature_rate": "1e-4..1e-1:log",
    "model_rate": "1e-3..1e-1:log",
    "outer": "5..30:log",
    "inner": "1..20:log",
    "distance": "cosine,squared",
}
_WIDE_GENERATOR: Grid = {
    **_WIDE_MATCHES,
    "structure_rate": "1e-4..1e-1:log",
    "threshold": "0..0.5",
    "smoothness": "0..1",
}
WIDE: dict[str, Grid] = {
    "random": {},
    "herding": {"weight_decay": "1e-5..1e-2:log", "epochs": "50..800:log", "hidden": "64,128,256"},
    "kcenter": {"weight_decay": "1e-5..1e-2:log", "epochs": "50..800:log", "hidden": "64,128,256"},
    "coarsening": {**PAPER["coarsening"], "directions": "4..40:log", "reduction": "0.3..0.99"},
    "dcg": {**_WIDE_MATCHES, "model": "sgc,sgc2,sgc-relu"},
    "gcond-x": {**_WIDE_MATCHES, "model": "sgc,sgc2,sgc-relu"},
    "gcond": _WIDE_GENERATOR,
    "sgdd": {**_WIDE_GENERATOR, "structure_weight": "1e-12..1e-4:log"},
    "sfgc": {**_WIDE_TRAJECTORY, "gntk_ridge": "1e-3..10:log"},
    "mtt": _WIDE_TRAJECTORY,
    "gcsr": {
        **_WIDE_TRAJECTORY,
        "alpha": "0.01..1000:log",
        "beta": "0.01..1000:log",
        "tau": "0.9..1",
        "gamma": "0..1",
        "prior": "train,predicted",
    },
}
NAMED = {"paper": PAPER, "wide": WIDE}


def named_space(method: str, name: str) -> Space:
    """The space of that name, or the TOML file of that name."""
    if name in NAMED:
        grid = NAMED[name].get(method)
        return by_kind(method) if grid is None else Space.of(method, grid)
    path = Path(name)
    require(
        path.suffix == ".toml" or path.exists(),
        f"space: {name!r} is not known; accepted: {', '.join(NAMED)} or a TOML file.",
    )
    return Space.read(method, path)


def by_kind(method: str) -> Space:
    """Positive numbers around their defaults: real ones within a decade, whole ones within a factor 2.

    Names, truth values, zeros, and what bounds memory or seeds experts stay as they are.
    """
    chosen = method_of(method)
    found = {f.name: _around(chosen, f) for f in fields(chosen) if _searchable(f)}
    return Space({name: dimension for name, dimension in found.items() if dimension is not None})


def _searchable(field: Field[Any]) -> bool:
    if field.name in SIZES or field.metadata.get("resource") or field.name.endswith("seed"):
        return False
    number = isinstance(field.default, int | float) and not isinstance(field.default, bool)
    return field.default is not MISSING and number and field.default > 0


def _around(method: type[Condenser], field: Field[Any]) -> Dimension | None:
    default: Any = field.default
    low, high = max(1, default // 2), 2 * default
    if isinstance(default, float):
        low, high = (float(f"{end:.6g}") for end in (default / 10, default * 10))
        if not _accepts(method, field.name, high):
            high = 1.0 if default < 1 and _accepts(method, field.name, 1.0) else default
    if low >= high or not all(_accepts(method, field.name, end) for end in (low, high)):
        return None
    return Range(low, high, log=True, whole=isinstance(default, int))


def _accepts(method: Callable[..., Condenser], name: str, value: float) -> bool:
    try:
        method(**{"nodes": 1, name: value})
    except InputError:
        return False
    return True
