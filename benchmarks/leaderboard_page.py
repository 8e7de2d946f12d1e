"""Prints docs/leaderboard.md from the rows of the leaderboard.

    python benchmarks/leaderboard_page.py > docs/leaderboard.md

The rows come from ``gcsr benchmark benchmarks/leaderboard.toml --out results/leaderboard.jsonl``.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from gcsr.benchmarking.results import Results
from gcsr.benchmarking.store import Row, Store

ROWS = Path(__file__).parents[1] / "results" / "leaderboard.jsonl"
HEAD = """# Leaderboard

All methods of this library on the same graphs, with the same protocol. Made by

```text
gcsr benchmark benchmarks/leaderboard.toml --root DATA --out results/leaderboard.jsonl
python benchmarks/leaderboard_page.py > docs/leaderboard.md
```

Rows with scores, seeds, seconds, bytes, memory, settings and hashes are in
[results/leaderboard.jsonl](../results/leaderboard.jsonl). To add a method or a graph, run the
first command with `--method module:Class` or `--data FILE`, and the second one.

Not all of the grid is measured: the rows are of one CPU core, of one size and of GCN alone, and a
`-` is a cell without a row. Ranks are over the graphs on which every method has a row.

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
    """The page."""
    results = Results.of(rows)
    cases = results.cases()
    protocols = Counter(
        (row["graphs"], row["runs"]) for row in rows if row.get("nodes") and "runs" in row
    )
    graphs, runs = protocols.most_common(1)[0][0]
    text = HEAD.format(
        protocol=f"{graphs} condensed graphs x {runs} networks, {results.model} unless noted",
        sizes="10 nodes per class",
    )
    condensing = sum(row.get("condense_seconds") or 0 for row in _once(rows))
    testing = sum(row.get("evaluate_seconds") or 0 for row in rows)
    machines = ", ".join(sorted({str(row.get("machine")) for row in rows}))
    counts = f"{len(rows):,} rows: {len(results.methods)} methods, {len(results.datasets)} graphs"
    seconds = f"{condensing:,.0f} s of condensing, {testing:,.0f} s of testing"
    text += f"\n{counts}, {len(cases)} cases. {seconds}, on {machines}.\n"
    return f"{text}\n{results.markdown()}"


def _once(rows: list[Row]) -> list[Row]:
    """Of rows that share condensed graphs one."""
    found = {(row.get("label"), row.get("dataset"), row.get("nodes")): row for row in rows}
    return list(found.values())


if __name__ == "__main__":
    print(page(list(Store(ROWS))), end="")
