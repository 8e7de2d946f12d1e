"""The measured parts of docs/scale.md, from the rows of `python -m benchmarks scale --json`.

    cd results/bench
    python -m benchmarks scale --json > scale-auto.json
    python -m benchmarks scale --in-memory --nodes 1000000 --json > scale-memory.json
    python -m benchmarks scale --in-memory --nodes 1000000 --device cuda --json > scale-h200.json
    GCSR_DEVICE_MEMORY=24GB python -m benchmarks scale --nodes 10000000 --device cuda --json \
        > scale-h200-24gb.json
    python -m benchmarks scale --method gcsr --json > scale.json
    python ../../benchmarks/sparse_features.py --out sparse-features-cpu.json CELL...
    python ../../benchmarks/scale_page.py

writes them between the marks of the page. The calculation for larger graphs is in papers100m.py.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent))

from gcsr.utils.formatting import byte_count, counted  # noqa: E402
from papers100m import calculation  # noqa: E402 - beside this file
from rows import code_of, with_code  # noqa: E402 - beside this file

ROWS = ROOT / "results" / "bench"
FILES = {
    "default": "scale-auto.json",
    "memory": "scale-memory.json",
    "cuda": "scale-h200.json",
    "limited": "scale-h200-24gb.json",
    "gcsr": "scale.json",
    "sparse": "sparse-features-cpu.json",
}
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
    conditions = f"Wall clock (processor seconds), peak memory. {_conditions(rows[0])}"
    return [*lines, "", f"{conditions} {with_code([code_of(rows[0])])[-1]}"]


def _conditions(row: Row) -> str:
    """What was the same for all sizes, in sentences."""
    graph, *rest = row["fixed"].split("; ")
    if not rest:
        return f"{graph[0].upper()}{graph[1:]}."
    blocks, threads, result = rest
    size = byte_count(int(re.sub(r"\D", "", blocks)))
    threads = counted(int(threads.split()[0]), "thread")
    nodes, method = re.findall(r"condensed to (\S+) by (\w+)", result)[0]
    method = {"auto": "the automatic mode", "gcsr": "GCSR"}.get(method, method)
    networks, scores = re.findall(r"(\d+) GCNs tested: (.*)", result)[0]
    return (
        f"{graph[0].upper()}{graph[1:]}. Blocks of at most {size}, {threads}. Condensed to {nodes}"
        f" nodes by {method}; test accuracy of {networks} GCNs: {scores}."
    )


def beside(
    disk: list[Row] | None,
    memory: list[Row] | None,
    cuda: list[Row] | None,
    limited: list[Row] | None = None,
) -> list[str]:
    """The same sizes on disk, in memory and on a GPU; ``limited``: on disk, with 24 GB of a GPU."""
    lines = ["| | nodes | condensing | evaluating | accuracy |", "|---|---|---|---|---|"]
    found = {"disk": disk, "memory": memory, "GPU": cuda, "disk and 24 GB of a GPU": limited}
    for where, rows in found.items():
        for i, size in enumerate(rows[0]["sizes"] if rows else ()):
            by = {row["what"]: row["seconds"][i] for row in rows or ()}
            made = sum(by[name] for name in by.keys() - {"generate", "evaluate", "total"})
            accuracy = (rows or [{}])[0]["accuracies"][i]
            lines.append(
                f"| {where}{code_of(rows[0])} | {size:,} | {made:.1f} s | {by['evaluate']:.1f} s"
                f" | {accuracy:.1f} % |"
            )
    return with_code(lines) if len(lines) > 2 else [NOT_YET]


def sparse_features(rows: list[Row]) -> list[str]:
    """Sparse and dense features of the same graph, one below the other."""
    head = "| graph:nodes:features | processor seconds | peak memory | validation | X' and Y' |"
    lines = [head, "|---|---|---|---|---|"]
    for row in rows:
        found = f"{row['cpu_seconds']:.1f} | {row['peak_bytes'] / 2**30:.2f} GiB"
        score = 100 * row["validation"][-1]["final"]
        code = code_of(row | {"method": "auto"})
        lines.append(f"| {row['cell']}{code} | {found} | {score:.1f} % | `{row['graph'][:8]}` |")
    return with_code(lines)


def sections(rows: dict[str, list[Row] | None]) -> dict[str, list[str]]:
    default = rows["default"]
    return {
        "measured": [NOT_YET] if default is None else table(default),
        "beside": beside(default, rows["memory"], rows["cuda"], rows["limited"]),
        "gcsr": [NOT_YET] if rows["gcsr"] is None else table(rows["gcsr"]),
        "sparse": [NOT_YET] if rows["sparse"] is None else sparse_features(rows["sparse"]),
        "papers100m": [NOT_YET] if default is None else calculation(default),
    }


def filled(page: str, rows: dict[str, list[Row] | None]) -> str:
    """The page with everything between its marks made anew."""
    for name, lines in sections(rows).items():
        pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        page, count = pattern.subn(lambda m: f"{m[1]}{chr(10).join(lines)}\n{m[2]}", page)  # noqa: B023
        if count != 1:
            raise SystemExit(f"{PAGE}: has {count} places for {name}")
    return page


def measured() -> dict[str, list[Row] | None]:
    """All rows that there are."""
    paths = {name: ROWS / file for name, file in FILES.items()}
    return {
        name: json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        for name, path in paths.items()
    }


def main() -> None:
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), measured()), encoding="utf-8")


if __name__ == "__main__":
    main()
