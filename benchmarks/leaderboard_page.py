"""Prints docs/leaderboard.md from the rows of the leaderboard, and writes its page of charts.

    python benchmarks/leaderboard_page.py --charts docs/leaderboard-charts.html > docs/leaderboard.md

The rows come from ``gcsr benchmark benchmarks/leaderboard.toml --out results/leaderboard.jsonl``. Rows
of the automatic mode in results/automatic.jsonl have how many outer steps it takes on a GPU.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill

from automatic_table import fewer_steps
from gcsr.benchmarking.measurement import variant_of
from gcsr.benchmarking.results import (
    OUTDATED,
    Case,
    Results,
    accuracy_of,
    markdown_table,
    short_name,
)
from gcsr.benchmarking.store import Row, Store, failed_row
from gcsr.reporting.benchmark import benchmark_page
from gcsr.utils.formatting import counted

RESULTS = Path(__file__).parents[1] / "results"
HEAD = """# Leaderboard

All methods of this library on the same graphs, with the same protocol. Made by

```text
gcsr benchmark benchmarks/leaderboard.toml --root DATA --out results/leaderboard.jsonl
python benchmarks/leaderboard_page.py --charts docs/leaderboard-charts.html > docs/leaderboard.md
```

Rows with scores, seeds, seconds, bytes, memory, settings, machines and hashes are in
[results/leaderboard.jsonl](../results/leaderboard.jsonl). To add a method or a graph, run the
first command with `--method module:Class` or `--data FILE`, and the second one.
[leaderboard-charts.html](leaderboard-charts.html) is the same as one HTML page, with accuracy against
size, seconds and bytes. `gcsr benchmark --out results/leaderboard.jsonl` writes CSV and LaTeX too."""
RULES = """- Selection by validation only. Test labels are not available while condensing, selecting or
  tuning. They are read once, for the epoch that validates best.
{protocol}
- Costs are counted from the raw graph. Seconds are those of condensing one graph, with experts,
  pseudo-labels and the choice of an iterate. Bytes are those of the stored condensed graph.
- Leaks are marked. A result that used test labels has a †, and is neither ranked nor compared.
- The number after a graph is the number of condensed nodes. `60-20-20` is a random split of the
  labeled nodes in percent; without it the split has few labels, but for actor and wordnet.
  `inductive`: validation and test nodes are hidden while condensing.
- ± is half of the 95 % interval of the mean over condensed graphs; of a reference, over networks.
  **Bold** is the best method of a column, and those whose difference from it has a 95 % interval
  that contains 0. No interval is corrected for the number of comparisons.
- A failure (error, or over the limit of seconds) is a row, and ranks last.
- References are networks trained on the whole graph, with the training labels alone and, where
  less than half of the nodes have a label, with pseudo-labels. A condensed graph made with
  pseudo-labels is comparable with the second."""
# What rows do not contain of the machines.
SHARED = """Several processes shared the GPU, so these seconds contain waiting for other processes.
Seconds of the two kinds of machine are not comparable. A method that failed by the limit of seconds may
be within it on a GPU of its own."""
SECONDS = "Seconds are of rows on a CPU; `-` is a method with rows on the GPU."


def page(rows: list[Row], automatic: list[Row]) -> str:
    """The page: the size of most rows with ranks and wins, then the other sizes."""
    sizes: dict[int, list[Row]] = {}
    references = [row for row in rows if not row.get("nodes")]
    # A failed row has no number of classes.
    classes = {row["dataset"]: row["classes"] for row in rows if "classes" in row}
    for row in rows:
        if row.get("nodes"):
            sizes.setdefault(row["nodes"] // classes[row["dataset"]], []).append(row)
    most, *others = sorted(sizes, key=lambda size: -len(sizes[size]))
    results, every = Results.of([*sizes[most], *references]), Results.of(rows)
    measured = [
        f"- {counted(len(rows), 'row')}: {counted(len(every.methods), 'method')} on"
        f" {counted(len(every.datasets), 'graph')}, tested with {_and(_models(rows))}. Variants"
        " (another split, inductive) count as graphs; without them there are"
        f" {len(_bases(every.datasets))}."
        " A `-` is a cell that is not measured.",
        _measured(results, most, len(every.methods)),
        *(_measured(Results.of(sizes[size]), size, len(every.methods)) for size in sorted(others)),
        *_outdated(every),
        *_machines(rows),
        _automatic_machines(every, automatic),
    ]
    parts = [HEAD, "## What is measured", "\n".join(map(_item, measured))]
    parts += ["## Rules", RULES.format(protocol=_item(_protocol(sizes[most], every)))]
    tested = {f"Tested with {model}" for model in _models(rows)}
    for heading, sentence, lines in results.tables(("**", "**")):
        if heading == "Average ranks":
            sentences = [
                sentence
                for size in (most, *sorted(others))
                for sentence in _first(Results.of(sizes[size]), size)
            ]
            # The same with rows of one kind of machine, so that neither is chosen by its scores.
            here = {(row["dataset"], row["test"]) for row in sizes[most] if row["label"] == "auto"}
            other = [
                row
                for row in automatic
                if row["label"] == "auto"
                and row["device"] == "cuda"
                and row["test"] == results.model
                and row["nodes"] == most * row["classes"]
                and (row["dataset"], row["test"]) in here
            ]
            on_gpu = _first_of(Results.of([*sizes[most], *other]), most, results.model)
            sentences.insert(
                1,
                f"{on_gpu} This line has the GPU rows of the automatic mode"
                " wherever there are some, the line above those listed under What is measured.",
            )
            parts += ["## The automatic mode", "\n".join(map(_item, sentences))]
            parts += _wide_ranks(sizes[most], references)
            parts += ["## Average ranks of all methods", *_ranks(results)]
        elif heading == "Wins":
            parts += ["## Wins", sentence, _table(lines)]
        else:
            model = heading.removeprefix("Tested with ") if heading in tested else results.model
            title = f"## {most} nodes per class, tested with {model}: test accuracy (%)"
            parts += [title, *([sentence] if sentence else []), _table(lines)]
    for size in sorted(others):
        other = Results.of([*sizes[size], *references])
        parts += [f"## {size} nodes per class, tested with {other.model}: test accuracy (%)"]
        parts += [_table(other.matrix(other.cases(), ("**", "**")))]
    for heading, sentences in every.remarks():
        if heading == OUTDATED:
            continue  # it is said above
        parts += [f"## {heading}", "\n".join(_item(f"- {one}") for one in sentences)]
    return "\n\n".join(parts) + "\n"


def _measured(results: Results, size: int, methods: int) -> str:
    """How many of the methods have a row on every graph of a size, and which have fewer rows."""
    cases = results.cases()
    graphs = {
        label: sum(results.row(label, case) is not None for case in cases)
        for label in results.methods
    }
    short = {label: count for label, count in graphs.items() if count < len(cases)}
    whole = len(graphs) - len(short)
    where = counted(len(cases), "graph")
    if len(cases) <= 3:
        where += f" ({_and(short_name(case[0]) for case in cases)})"
    missing = ", ".join(f"{label} on {count}" for label, count in short.items())
    rest = f". On fewer: {missing}" if short else ""
    return f"- {size} nodes per class: {where}. {whole} of {methods} methods on all of them{rest}."


def _outdated(results: Results) -> list[str]:
    """Which rows were measured before the results of their method changed."""
    found = [f"{count} of {label}" for label, count in results.outdated.items()]
    if not found:
        return []
    return [
        f"- {counted(sum(results.outdated.values()), 'row')} were measured with an earlier revision of"
        f" the method: {_and(found)}. The first command measures them again."
    ]


def _machines(rows: list[Row]) -> list[str]:
    """How many rows are of which machine, and what that means for seconds."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        kind = "CPU" if row["device"] == "cpu" else "GPU"
        found.setdefault(f"{kind} ({row['machine']})", []).append(row)
    lines = []
    for machine, own in found.items():
        seconds = sum(row.get("condense_seconds") or 0 for row in _once(own))
        testing = sum(row.get("evaluate_seconds") or 0 for row in own)
        spent = f"{seconds:,.0f} s of condensing, {testing:,.0f} s of testing"
        lines.append(f"- {machine}: {counted(len(own), 'row')}, {spent}.")
    if len(found) > 1:
        lines[-1] += f" {SHARED}"
    return lines


def _automatic_machines(results: Results, automatic: list[Row]) -> str:
    """On which machine the automatic mode was measured, and that it matters."""
    found: dict[str, list[str]] = {"cpu": [], "cuda": []}
    for case in results.cases():
        if row := results.row("auto", case):
            found[row["device"]].append(_name(case))
    there = f"; the others ({_and(found['cuda'])}) from the GPU" if found["cuda"] else ""
    fewer = fewer_steps(list(results.rows), automatic)
    others = {row["device"] for row in results.rows if row["test"] != results.model}
    if others == {"cuda"}:
        fewer += " Its rows with other test models are of graphs from the GPU."
    return (
        "- The automatic mode plans its outer steps by the expected speed of the device. Of its"
        f" {counted(len(found['cpu']) + len(found['cuda']), 'row')} here {len(found['cpu'])} are from"
        f" the CPU{there}. {fewer} [The results](results.md#the-automatic-mode) have its rows from an"
        " H200. No other method plans by the device; rounding differs between machines."
    )


def _protocol(rows: list[Row], results: Results) -> str:
    protocols = Counter((row["graphs"], row["runs"]) for row in rows if "runs" in row)
    graphs, runs = protocols.most_common(1)[0][0]
    own = "; the exceptions are listed below" if results.changed else ""
    models = _models(results.rows)
    tested = models[0] if len(models) == 1 else f"{results.model} unless noted"
    return (
        f"- Equal protocol. {graphs} condensed graphs x {runs} networks ({tested}). A test network is"
        " trained on the condensed graph alone. Every method runs with its default settings on every"
        f" graph{own}."
    )


def _first(results: Results, size: int) -> list[str]:
    """By test model: where the automatic mode has the highest mean, is close to it or below it."""
    return [_first_of(results, size, model) for model in _models(results.rows)]


def _first_of(results: Results, size: int, model: str) -> str:
    first, close, below = 0, [], []
    cases = [case for case in results.cases(model) if results.row("auto", case)]
    for case in cases:
        means = {
            label: one.mean
            for label in results.fair
            if (one := accuracy_of(results.row(label, case))) is not None
        }
        best = max(means, key=means.__getitem__)
        ours = means.get("auto")
        if best == "auto":
            first += 1
            continue
        scores = "failed" if ours is None else f"{ours:.1f}"
        text = f"{_name(case)} ({best} {means[best]:.1f}, auto {scores})"
        (close if "auto" in results.best(case) else below).append(text)
    head = f"- {size} nodes per class, {model}:"
    if not cases:
        return f"{head} not measured."
    rows = [sum(results.row(label, case) is not None for label in results.fair) for case in cases]
    methods = f"{min(rows)}" if min(rows) == max(rows) else f"{min(rows)} to {max(rows)}"
    parts = [
        f"{head} the highest mean in {first} of {counted(len(cases), 'case')} with rows of {methods}"
        " methods."
    ]
    if close:
        parts.append(f"Not distinguishable from the highest in {len(close)}: {_and(close)}.")
    if below:
        parts.append(f"Below the highest in {len(below)}: {_and(below)}.")
    return " ".join(parts)


def _wide_ranks(rows: list[Row], references: list[Row]) -> list[str]:
    """Ranks of the methods that have a row on every graph."""
    graphs: dict[str, set[str]] = {}
    for row in rows:
        graphs.setdefault(row["label"], set()).add(row["dataset"])
    widest = max(map(len, graphs.values()))
    wide = {label for label, found in graphs.items() if len(found) == widest}
    results = Results.of([*(row for row in rows if row["label"] in wide), *references])
    return [f"## Average ranks of the methods with a row on all {widest} graphs", *_ranks(results)]


def _ranks(results: Results) -> list[str]:
    """A table of ranks, with seconds where most methods have rows of one CPU alone."""
    head, *lines = results.rank_table()
    place = head.index("seconds")
    cases = results.common_cases()
    for line in lines:
        rows = [results.row(line[0], case) for case in cases]
        if any(row is not None and row["device"] != "cpu" for row in rows):
            line[place] = "-"
    if sum(line[place] != "-" for line in lines) > len(lines) / 2:
        return [f"{results.rank_sentence} {SECONDS}", _table([head, *lines])]
    return [results.rank_sentence, _table([[*x[:place], *x[place + 1 :]] for x in [head, *lines]])]


def _table(lines: list[list[str]]) -> str:
    return markdown_table(lines, range(1, len(lines[0])))


def _item(text: str) -> str:
    return fill(" ".join(text.split()), 100, subsequent_indent="  ", break_on_hyphens=False)


def _name(case: Case) -> str:
    return f"{short_name(case[0])} {case[1]}"


def _bases(datasets: Iterable[str]) -> set[str]:
    return {variant_of(name)[0] for name in datasets}


def _models(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row["test"] for row in rows))


def _and(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _once(rows: list[Row]) -> list[Row]:
    """Of rows that share condensed graphs one."""
    found = {(row.get("label"), row.get("dataset"), row.get("nodes")): row for row in rows}
    return list(found.values())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--charts", type=Path, help="where to write the page of charts")
    arguments = parser.parse_args()
    leaderboard = list(Store(RESULTS / "leaderboard.jsonl"))
    # References of graphs on which nothing was condensed stand beside nothing.
    condensed = {row["dataset"] for row in leaderboard if row.get("nodes")}
    leaderboard = [row for row in leaderboard if row["dataset"] in condensed]
    if arguments.charts:
        charts = benchmark_page(Results.of(leaderboard), "Leaderboard").render()
        arguments.charts.write_text(charts, encoding="utf-8")
    automatic = [row for row in Store(RESULTS / "automatic.jsonl") if not failed_row(row)]
    print(page(leaderboard, automatic), end="")
