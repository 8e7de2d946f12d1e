"""What else was tried in trajectory matching, by validation accuracy alone.

Rows (results/matching/validated.json) hold three graphs each: GCSR with default settings for 1,000
iterations from sampled rows, and gently (``feature_rate=1e-4``) from the centres of consistent
teachers. Networks that scored them had chosen nothing. Of what was tried, the sliding window and the
mean of late iterates are not in the library.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from automatic_table import GRAPHS

Row = dict[str, Any]
ITERATES = {
    "gcsr": "best",
    "gcsr, last iterate": "last",
    "gcsr, mean of late iterates": "late",
}
VARIANTS = (
    "window=expanding",
    "class_means=1",
    "window=expanding, class_means=1",
    "sliding window",
    "prior=train",
)
STARTS = {"sample": "from sampled rows", "clusters": "from centres"}


def matching_section(file: Path) -> list[str]:
    """A table per start; nothing without rows."""
    if not file.exists():
        return []
    rows: list[Row] = json.loads(file.read_text())
    known = {(row["graph"], row["start"], row["variant"]): row for row in rows}
    lines: list[str] = []
    for start, said in STARTS.items():
        lines += [
            f"| GCSR {said} | " + " | ".join(GRAPHS) + " |",
            "|---" * (len(GRAPHS) + 1) + "|",
        ]
        kinds = [("gcsr", name, key) for name, key in ITERATES.items()]
        for variant, name, key in [*kinds, *((one, one, "best") for one in VARIANTS)]:
            found = [known.get((graph, start, variant)) for graph in GRAPHS]
            lines.append(f"| {name} | " + " | ".join(_mean(row, key) for row in found) + " |")
        lines.append("")
    return lines[:-1]


def _mean(row: Row | None, key: str) -> str:
    return "-" if row is None else f"{statistics.mean(row[key]):.1f}"
