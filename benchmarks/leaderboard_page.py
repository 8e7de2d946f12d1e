"""Prints docs/leaderboard.md from the rows of the leaderboard.

    python benchmarks/leaderboard_page.py > docs/leaderboard.md

The rows come from ``gcsr benchmark benchmarks/leaderboard.toml --out results/leaderboard.jsonl``.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from gcsr.benchmarking.results import Results, markdown_table
from gcsr.benchmarking.store import Row, Store

ROWS = Path(__file__).parents[1] / "results" / "leaderboard.jsonl"
# Graphs that a method must have rows on for a rank over more than the common graphs.
WIDE = 6
HEAD = """# Leaderboard

All methods of this library on the same graphs, with the same protocol. Made by

```text
gcsr benchmark benchmarks/leaderboard.toml --root DATA --out results/leaderboard.jsonl
python benchmarks/leaderboard_page.py > docs/leaderboard.md
```

Rows with scores, seeds, seconds, bytes, memory, settings and hashes are in
[results/leaderboard.jsonl](../results/leaderboard.jsonl). To add a method or a graph, run the
first command with `--method module:Class` or `--data FILE`, and the second one.

Not all of the grid is measured: the rows are of a CPU and of GCN alone, the smaller and the larger
size are measured on Cora and Citeseer alone, and a `-` is a cell without a row.

## Rules

- Selection by validation only. Test labels are not available while condensing, selecting or
  tuning. They are read once, for the epoch that validates best.
- Equal protocol. {protocol}. A test network is trained on the condensed graph alone. Every method
  runs with its default settings on every graph; the exceptions are listed below.
- Costs are counted from the raw graph. Seconds are those of condensing one graph, with experts,
  pseudo-labels and the choice of an iterate. Bytes are those of the stored condensed graph.
- Leaks are marked. A result that used test labels has a †, and is neither ranked nor compared.
- Sizes are {sizes}. The number after a graph is the number of condensed nodes. `60-20-20` is a
  random split of the labeled nodes in percent; without it the split has few labels, but for actor
  and wordnet. `inductive`: validation and test nodes are hidden while condensing.
- ± is half of the 95 % interval of the mean over condensed graphs. **Bold** is the best method of
  a column, and those whose difference from it has a 95 % interval that contains 0.
- A failure (error, or over the limit of seconds) is a row, and ranks last.
- References are networks trained on the whole graph, with the training labels alone and, where
  labels are few, with pseudo-labels. A condensed graph made with pseudo-labels is comparable with
  the second.
"""


def page(rows: list[Row]) -> str:
    """The page: the size of most rows with ranks and wins, then the other sizes."""
    sizes: dict[int, list[Row]] = {}
    references = [row for row in rows if not row.get("nodes")]
    # A failed row has no number of classes.
    classes = {row["dataset"]: row["classes"] for row in rows if "classes" in row}
    for row in rows:
        if row.get("nodes"):
            sizes.setdefault(row["nodes"] // classes[row["dataset"]], []).append(row)
    most, *others = sorted(sizes, key=lambda size: -len(sizes[size]))
    results = Results.of([*sizes[most], *references])
    protocols = Counter((row["graphs"], row["runs"]) for row in sizes[most] if "runs" in row)
    graphs, runs = protocols.most_common(1)[0][0]
    text = HEAD.format(
        protocol=f"{graphs} condensed graphs x {runs} networks, {results.model} unless noted",
        sizes=", ".join(f"{size}" for size in sorted(sizes)) + " nodes per class",
    )
    condensing = sum(row.get("condense_seconds") or 0 for row in _once(rows))
    testing = sum(row.get("evaluate_seconds") or 0 for row in rows)
    machines = ", ".join(sorted({str(row.get("machine")) for row in rows}))
    counts = f"{len(rows):,} rows: {len(results.methods)} methods, {len(results.datasets)} graphs"
    seconds = f"{condensing:,.0f} s of condensing, {testing:,.0f} s of testing"
    parts = [f"{text}\n{counts}. {seconds}, on {machines}."]
    title = f"## {most} nodes per class: test accuracy (%)"
    for heading, sentence, lines in results.tables(("**", "**")):
        if heading == "Average ranks":
            parts += _not_first(results)
            parts += _wide_ranks(sizes[most], references)
            parts += ["## Average ranks of all methods"]
        elif heading == "Wins":
            parts += ["## Wins"]
        else:
            parts += [title]
        parts += [*([sentence] if sentence else []), _table(lines)]
    for size in sorted(others):
        other = Results.of([*sizes[size], *references])
        parts += [f"## {size} nodes per class: test accuracy (%)"]
        parts += [_table(other.matrix(other.cases(), ("**", "**")))]
    for heading, sentences in Results.of(rows).remarks():
        parts += [f"## {heading}", "\n".join(f"- {one}" for one in sentences)]
    return "\n\n".join(parts) + "\n"


def _table(lines: list[list[str]]) -> str:
    return markdown_table(lines, range(1, len(lines[0])))


def _not_first(results: Results) -> list[str]:
    """Where the automatic mode is not among the best."""
    cases = [case for case in results.cases() if results.row("auto", case)]
    behind = [f"{case[0]} ({case[1]})" for case in cases if "auto" not in results.best(case)]
    where = f" below the best method on {', '.join(behind)}" if behind else " nowhere below it"
    first = len(cases) - len(behind)
    sentence = f"The automatic mode is best, or not distinguishable from the best, in {first} of"
    return ["## The automatic mode", f"{sentence} {len(cases)} cases, and{where}."]


def _wide_ranks(rows: list[Row], references: list[Row]) -> list[str]:
    """Ranks of the methods with a row on more graphs than the others."""
    graphs: dict[str, set[str]] = {}
    for row in rows:
        graphs.setdefault(row["label"], set()).add(row["dataset"])
    wide = {label for label, found in graphs.items() if len(found) >= WIDE}
    results = Results.of([*(row for row in rows if row["label"] in wide), *references])
    title = f"## Average ranks of methods measured on {WIDE} graphs or more"
    return [title, results.rank_sentence, _table(results.rank_table())]


def _once(rows: list[Row]) -> list[Row]:
    """Of rows that share condensed graphs one."""
    found = {(row.get("label"), row.get("dataset"), row.get("nodes")): row for row in rows}
    return list(found.values())


if __name__ == "__main__":
    print(page(list(Store(ROWS))), end="")
