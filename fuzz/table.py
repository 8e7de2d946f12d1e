"""The table of docs/fuzzing.md, made of the rows of the last long run."""

from __future__ import annotations

import json
from pathlib import Path

_ROOT = Path(__file__).parents[1]
PAGE = _ROOT / "docs" / "fuzzing.md"
ROWS = Path("results/fuzz.json")
BEGIN, END = "<!-- rows of results/fuzz.json -->", "<!-- end of rows -->"


def table(rows_file: Path = ROWS) -> str:
    """Markdown of the rows."""
    rows = json.loads((_ROOT / rows_file).read_text(encoding="utf-8"))
    lines = [
        "| target | reads | executions | seconds | edges | slowest, s | most memory, MB | findings |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
        *(
            f"| `{row['target']}` | {row['reads']} | {row['executions']:,} | {row['seconds']} |"
            f" {row['edges']:,} | {row['slowest_seconds']:.2f} | {row['largest_bytes'] / 1e6:.0f} |"
            f" {row['findings']} |"
            for row in rows
        ),
    ]
    total = sum(row["executions"] for row in rows)
    return "\n".join([*lines, "", f"{total:,} executions in all."])


def with_table(page: str, rows_file: Path = ROWS) -> str:
    """The page with its table made anew."""
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    return f"{head}{BEGIN}\n\n{table(rows_file)}\n\n{END}{tail}"
