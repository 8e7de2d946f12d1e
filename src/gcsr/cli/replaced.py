"""What a file held that a new graph takes the place of: nobody should lose one unawares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcsr.cli.output import printable
from gcsr.errors import InputError
from gcsr.wording import counted

if TYPE_CHECKING:
    from gcsr.condensed import CondensedGraph

MOST_NAMED = 4


def replaced(path: Path, by: CondensedGraph) -> str | None:
    """A sentence if there is a file of something else; the same graph made again is no loss."""
    from gcsr.condensed import CondensedGraph  # noqa: PLC0415 - torch takes a second to import

    if not path.is_file():
        return None
    try:
        old = CondensedGraph.load(path)
    except InputError:
        return f"replaced {path}, which could not be read as a condensed graph"
    before, now = _identity(old.provenance), _identity(by.provenance)
    # Of another method, its settings say nothing more.
    compared = before | now if before["method"] == now["method"] else _identity({})
    other = [name for name in sorted(compared) if before.get(name) != now.get(name)]
    if not other:
        return None
    named = ", ".join(other[:MOST_NAMED]) + ", ..." * (len(other) > MOST_NAMED)
    made = old.provenance.get("method")
    maker = f" by {made}" if isinstance(made, str) else ""
    held = f"{counted(old.num_nodes, 'node')}{maker}"
    return printable(f"replaced {path}, which held {held} (differs in: {named})")


def _identity(made: dict[str, Any]) -> dict[str, str]:
    """What makes a graph, by name; a file by another program may lack any of it."""
    source, stored, settings = (_part(made, name) for name in ("dataset", "stored", "settings"))
    told = {
        **settings,
        "method": made.get("method"),
        "nodes": made.get("nodes"),
        "seed": made.get("seed"),
        "data": [source.get("content_hash"), source.get("inductive")],
        "sparsify": stored.get("asked", "none"),
        "stored dtype": stored.get("dtype"),
    }
    # As a file tells it: tuples are lists there.
    return {name: json.dumps(value, sort_keys=True, default=str) for name, value in told.items()}


def _part(made: dict[str, Any], name: str) -> dict[str, Any]:
    part = made.get(name)
    return part if isinstance(part, dict) else {}
