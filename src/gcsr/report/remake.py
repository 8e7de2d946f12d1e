"""The command that makes a result again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gcsr.api import default_method
from gcsr.condense.registry import build, methods
from gcsr.condensed import CondensedGraph
from gcsr.datasets.registry import DATASETS
from gcsr.report.said import part, text


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
