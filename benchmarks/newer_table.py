"""The table of methods that the GCSR paper does not compare, beside published figures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rows import Row, benchmark_rows, table, with_code, with_deviation

METHODS = (
    "cgc-x", "cgc", "gecc", "krr", "dm", "gcdm-x", "gcdm", "doscond", "simgc", "geom", "gdem", "bonsai",
)  # fmt: skip
# Where each figure stands: PreGC's comparison (CGC), GCondenser's appendix (DM, GCDM), GECC's
# comparison (GECC, SimGC, GEOM on Citeseer), GC-SNTK's transfer to a GCN (KRR).
PUBLISHED = {
    ("cgc", "cora", 35): 79.0,
    ("cgc", "cora", 70): 81.8,
    ("cgc", "citeseer", 30): 70.5,
    ("cgc", "citeseer", 60): 70.6,
    ("dm", "cora", 35): 80.2,
    ("gcdm", "cora", 35): 79.4,
    ("gcdm-x", "cora", 35): 78.9,
    ("gecc", "citeseer", 30): 73.25,
    ("simgc", "citeseer", 30): 66.4,
    ("geom", "citeseer", 30): 73.03,
    ("krr", "cora", 70): 78.0,
}
# How features are scaled, and what the table says of it.
SCALINGS = {"": "", "keep": " raw", "standardize": " standardized"}
CELLS = [("cora", nodes) for nodes in (35, 70, 140)] + [
    ("citeseer", nodes) for nodes in (30, 60, 120)
]


def newer_section(results: Path) -> list[str]:
    """Ours with default settings, with the authors' settings, and what is published."""
    default = _by_cell(benchmark_rows(results / "leaderboard.jsonl"), "default")
    authors = _by_cell(benchmark_rows(results / "newer.jsonl"), "paper")
    lines = []
    for method in METHODS:
        for kind, rows in (("default", default), ("authors'", authors)):
            found = [rows.get((method, *cell)) for cell in CELLS]
            if not any(found):
                continue
            shown = [
                f"{_measured(row)}{_published(method, cell) if kind == 'default' or row else ''}"
                for row, cell in zip(found, CELLS, strict=True)
            ]
            lines.append([method, kind, *shown])
    if not lines:
        return []
    heads = [f"{dataset.capitalize()} {nodes}" for dataset, nodes in CELLS]
    return with_code(table(["method", "settings", *heads], lines))


def _by_cell(rows: Iterable[Row], preset: str) -> dict[tuple[str, str, int], Row]:
    """Rows of a GCN on Cora and Citeseer, in whatever scaling of features; of several the last."""
    return {
        (row["method"], row["dataset"].partition(":")[0], row["nodes"]): row
        for row in rows
        if row["preset"] == preset
        and row["test"] == "gcn"
        and row.get("nodes")
        and row["dataset"].partition(":")[0] in ("cora", "citeseer")
        and row["dataset"].partition(":")[2] in SCALINGS
    }


def _measured(row: Row | None) -> str:
    if row is None:
        return "-"
    runs = "" if (row["graphs"], row["runs"]) == (3, 5) else f" ({row['graphs']} x {row['runs']})"
    return f"{with_deviation(row)}{SCALINGS[row['dataset'].partition(':')[2]]}{runs}"


def _published(method: str, cell: tuple[str, int]) -> str:
    known = PUBLISHED.get((method, *cell))
    return "" if known is None else f" [{known:g}]"
