"""The measured parts of docs/scale.md, from the rows of `python -m benchmarks scale --json`.

    python -m benchmarks scale --json > results/bench/scale.json
    python benchmarks/scale_page.py

writes them between the marks of the page. The calculation for ogbn-papers100M is in papers100m.py.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent))

from papers100m import calculation  # noqa: E402 - beside this file

ROWS = ROOT / "results" / "bench" / "scale.json"
PAGE = ROOT / "docs" / "scale.md"
NOT_YET = "*Not measured yet: `python -m benchmarks scale` makes the rows.*"
Row = dict[str, Any]


def table(rows: list[Row]) -> list[str]:
    sizes = rows[0]["sizes"]
    head = " | ".join(f"{size:,} nodes" for size in sizes)
    lines = [
        f"| stage | {head} | exponent |",
        "|---|" + "---|" * (len(sizes) + 1),
    ]
    for row in rows:
        cells = [
            f"{seconds:.1f} s ({cpu:.1f}), {peak / 2**30:.2f} GiB"
            for seconds, cpu, peak in zip(
                row["seconds"], row["cpu_seconds"], row["peak_bytes"], strict=True
            )
        ]
        slope = "-" if row["exponent"] is None else f"{row['exponent']:.2f}"
        lines.append(f"| {row['what']} | {' | '.join(cells)} | {slope} |")
    fixed = rows[0]["fixed"]
    told = f"Wall clock (processor seconds), peak memory. {fixed[0].upper()}{fixed[1:]}."
    return [*lines, "", told]


def sections(rows: list[Row] | None) -> dict[str, list[str]]:
    if rows is None:
        return {"measured": [NOT_YET], "papers100m": [NOT_YET]}
    return {"measured": table(rows), "papers100m": calculation(rows)}


def filled(page: str, rows: list[Row] | None) -> str:
    """The page with everything between its marks made anew."""
    for name, lines in sections(rows).items():
        pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        page, count = pattern.subn(lambda m: f"{m[1]}{chr(10).join(lines)}\n{m[2]}", page)  # noqa: B023
        if count != 1:
            raise SystemExit(f"{PAGE}: has {count} places for {name}")
    return page


def main() -> None:
    rows = json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.is_file() else None
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main()
