"""What a row shows: mean and interval, or mean and deviation, and the code that measured it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from gcsr.evaluation.intervals import Accuracy
from gcsr.methods.registry import BUILT_IN, method
from gcsr.version import __version__

Row = dict[str, Any]
BEFORE = "measured before rows carried a hash of their source"
_MARK = re.compile("\0([^\0]*)\0")


def accuracy_of(row: Row) -> Accuracy:
    """The scores of a row."""
    return Accuracy.of(row["scores"], row["graphs"])


def with_interval(row: Row | None) -> str:
    """Mean ± half of the 95 % interval; the code is marked by :func:`with_code`."""
    if row is None:
        return "-"
    return f"{str(accuracy_of(row)).removesuffix(' %')}{code_of(row)}"


def with_deviation(row: Row | None) -> str:
    """Mean ± standard deviation over all runs."""
    return "-" if row is None else f"{row['mean']:.1f} ± {row['std']:.1f}{code_of(row)}"


def code_of(row: Row) -> str:
    """A placeholder that names the code of a row."""
    return f"\0{code_name(row)}\0"


def code_name(row: Row) -> str:
    """Version and source; and whether a method's results have changed since."""
    versions = row.get("versions") or {}
    if "source" not in versions:
        return BEFORE
    found = f"version {versions['gcsr']}, source {versions['source'][:7]}"
    revisions = row.get("revisions") or (row.get("made_by") or {}).get("revisions") or {}
    changed = [
        name
        for name, revision in revisions.items()
        if name in BUILT_IN and method(name).revision != revision
    ]
    if changed:
        return f"{found}, an earlier revision of {', '.join(changed)}"
    return found if versions["gcsr"] == __version__ else f"{found}, an earlier version"


def with_code(lines: list[str]) -> list[str]:
    """Lines whose placeholders are resolved: the most frequent code below, others marked beside."""
    text = "\n".join(lines)
    names = [name for name, _ in Counter(_MARK.findall(text)).most_common()]
    if not names:
        return lines
    marks = {
        name: f" {'¹²³⁴⁵⁶⁷⁸⁹'[place - 1]}" if place else "" for place, name in enumerate(names)
    }
    text = _MARK.sub(lambda found: marks[found[1]], text)
    notes = [f"Code: {names[0]}.", *(f"{marks[name].strip()} {name}." for name in names[1:])]
    return [*text.split("\n"), "", " ".join(notes)]
