"""Markdown tables from the rows under results/.

    python benchmarks/tables.py > docs/results.md

Nothing in the tables is typed by hand: every number is in a row, and every row has its command. Rows of
``gcsr reproduce`` go to results/reproduce/NAME.jsonl (a copy of its rows.jsonl) and win over others.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from automatic_table import (
    ablation_section,
    automatic_section,
    budget_section,
    fewer_steps,
    readme_table,
)
from cost_table import cost_section
from gcsr.benchmarking.cells import Cell
from gcsr.evaluation.intervals import compare
from gcsr.paper.experiments import EXPERIMENTS
from gcsr.paper.published import TABLE2
from newer_table import newer_section
from pays_table import pays_sections
from reproduced import Measured, rows_of_cells, rows_of_runs, section, summary
from rows import Row, accuracy_of, benchmark_rows, table, with_code, with_deviation, with_interval

# Rows that explain differences from the published table.
EVIDENCE = [
    "random/paper/cora:35:test-dropout=0.5",
    "herding/paper/cora:35:test-dropout=0.5",
    "kcenter/paper/cora:35:test-dropout=0.5",
    "coarsening/paper/cora:35:test-epochs=60:test-hidden_channels=64",
    "coarsening/paper/citeseer:60:test-epochs=200:test-hidden_channels=64",
    *(f"coarsening/paper/citeseer:{nodes}:reduction=0.4" for nodes in (30, 60, 120)),
    "coarsening/paper/citeseer:30:labels=majority",
    "coarsening/paper/citeseer:60:directions=20",
    "coarsening/paper/citeseer:120:directions=20",
    "dcg/paper/cora:35:iterate=last",
    "dcg/paper/cora:70:iterate=last",
    "dcg/paper/cora:140:iterate=last",
    "dcg/paper/citeseer:60:iterate=last",
    "dcg/paper/citeseer:120:iterate=last",
    "gcond-x/paper/cora:70:iterate=last",
    "gcond-x/paper/citeseer:60:iterate=last",
    "gcond/paper/cora:70:iterate=best-val",
    *(
        f"sfgc/paper/{size}:{change}"
        for size in ("cora:35", "citeseer:30")
        for change in (
            "iterate=last",
            "selection=random",
            "learn_student_lr=false",
            "iterate=last:selection=random",
        )
    ),
]


def load(folder: Path) -> list[Row]:
    rows: dict[str, Row] = {}
    for file in sorted(folder.glob("*.json")):
        for row in json.loads(file.read_text()):
            # Some cells are in several files. A row that names its code is the newer one.
            if "cell" in row and "source" not in (rows.get(row["cell"], {}).get("versions") or {}):
                rows[row["cell"]] = row
    newer = {row["cell"]: row for row in benchmark_rows(folder / "automatic.jsonl")}
    return list((_of_same_graphs(rows, newer) | newer).values())


def _of_same_graphs(rows: dict[str, Row], newer: dict[str, Row]) -> dict[str, Row]:
    """Rows without those of a graph that has other content than newer rows of the same name.

    Of such a graph a row that does not name its content is left out too.
    """
    now = {_graph(row): row["data"] for row in newer.values()}
    changed = {
        _graph(row)
        for row in rows.values()
        if row.get("data") and row["data"] != now.get(_graph(row), row["data"])
    }
    return {
        cell: row
        for cell, row in rows.items()
        if _graph(row) not in changed or row.get("data") == now[_graph(row)]
    }


def _graph(row: Row) -> str:
    """The graph of a cell ``method/preset/graph:nodes:settings/model``."""
    return ":".join(row["cell"].split("/")[2:3]).split(":")[0]


def find(rows: list[Row], cell: str) -> Row | None:
    return next((row for row in rows if row["cell"] == cell), None)


def published(row: Row | None) -> str:
    return f"{row['published']}" if row and row["published"] is not None else "-"


METHODS = [
    "random",
    "herding",
    "kcenter",
    "coarsening",
    "dcg",
    "gcond-x",
    "gcond",
    "sfgc",
    "sgdd",
    "mtt",
    "gcsr",
]
CELLS = [("cora", n) for n in (35, 70, 140)] + [("citeseer", n) for n in (30, 60, 120)]
# Shortened runs, where the authors' number of epochs was too long for the machine.
SHORTENED = [
    "",
    *(f":epochs={n}{rest}" for n in (100, 60, 40, 20) for rest in ("", ":iterate=best-val")),
]
# The other graphs, by what their cells are called.
GRAPHS = {
    "digits, 50": "digits:50",
    "PubMed, 30": "pubmed:30",
    "actor, 75": "actor.npz:75",
    "facebook-pagepage, 40, inductive": "facebook-pagepage.npz:40:inductive=true",
    "amazon-computers, 100": "amazon-computers:100",
}


# Their cells, and those of the whole graphs.
GRAPH_CELLS = tuple(f"{method}/default/" for method in ("whole", *METHODS))


def measured(row: Row | None) -> str:
    """Mean and deviation; how many graphs and runs where that is not 5 x 10."""
    if row is None:
        return "-"
    notes = [] if (row["graphs"], row["runs"]) == (5, 10) else [f"{row['graphs']} x {row['runs']}"]
    notes += [f"{part.removeprefix('epochs=')} epochs" for part in short_of(row)]
    return with_deviation(row) + (f" ({', '.join(notes)})" if notes else "")


def short_of(row: Row) -> list[str]:
    """By what a method's authors' settings were shortened."""
    name = row["cell"].split("/")
    return [part for part in ":".join(name[2:3]).split(":") if part.startswith("epochs=")]


def methods_table(rows: list[Row], measured_cells: Measured) -> list[str]:
    """Ours, and the published mean behind it."""
    heads = [f"{dataset.capitalize()} {nodes}" for dataset, nodes in CELLS]
    lines = []
    for method in METHODS:
        found = []
        for dataset, nodes in CELLS:
            cells = [f"{method}/paper/{dataset}:{nodes}{short}/gcn" for short in SHORTENED]
            row = measured_cells.row(Cell(method, dataset, nodes))
            row = row or next((row for cell in cells if (row := find(rows, cell))), None)
            known = TABLE2.get(method, {}).get((dataset, nodes))
            found.append(f"{measured(row)} [{known[0] if known else '-'}]")
        lines.append([method, *found])
    return with_code(table(["method", *heads], lines))


def evidence_table(rows: list[Row], cells: list[str]) -> list[str]:
    """Some cells as they are."""
    lines = []
    for cell in cells:
        row = find(rows, f"{cell}/gcn")
        method, _, name = cell.split("/")
        dataset, nodes, *_ = name.split(":")
        known = TABLE2.get(method, {}).get((dataset, int(nodes)))
        lines.append((f"`{cell}`", str(known[0]) if known else "-", measured(row)))
    return with_code(table(("cell", "published", "ours"), lines))


def graphs_table(rows: list[Row]) -> list[str]:
    """Every method with default settings; ``*``: not distinguishable from the highest mean."""
    whole = [find(rows, f"whole/default/{_without_size(cell)}/gcn") for cell in GRAPHS.values()]
    lines = [["whole", *map(with_interval, whole)]]
    columns = []
    for cell in GRAPHS.values():
        found = {name: find(rows, f"{name}/default/{cell}/gcn") for name in METHODS}
        known = [accuracy_of(row) for row in found.values() if row]
        highest = max(known, key=lambda one: one.mean) if known else None
        shown = {}
        for name, row in found.items():
            equal = row and highest and compare(accuracy_of(row), highest).sign == 0
            # A single network has no interval: nothing can be said.
            star = " *" if equal and accuracy_of(row).interval else ""
            shown[name] = with_interval(row) + star
        columns.append(shown)
    lines += [[name, *(column[name] for column in columns)] for name in METHODS]
    return with_code(table(["method", *GRAPHS], lines))


def _without_size(cell: str) -> str:
    dataset, _, *rest = cell.split(":")
    return ":".join([dataset, *rest])


def main_table(rows: list[Row]) -> list[str]:
    lines = []
    for dataset, nodes in CELLS:
        leaking = find(rows, f"gcsr/paper/{dataset}:{nodes}/gcn")
        honest = find(rows, f"gcsr/paper/{dataset}:{nodes}:prior=predicted/gcn")
        cell = f"{dataset.capitalize()}, {nodes} nodes"
        lines.append((cell, published(leaking), with_both(leaking), with_both(honest)))
    heads = ("cell", "published", "ours, paper's prior (leaks)", "ours, prior `predicted`")
    return with_code(table(heads, lines))


def with_both(row: Row | None) -> str:
    """Mean ± deviation over all runs, and the 95 % interval of the mean over graphs."""
    if row is None or "scores" not in row:
        return with_deviation(row)
    low, high = accuracy_of(row).interval or (row["mean"], row["mean"])
    return f"{with_deviation(row)} [{low:.1f}, {high:.1f}]"


def other_models_table(rows: list[Row]) -> list[str]:
    """Test models that the paper does not have."""
    names = ("sage", "cheby", "gat")
    lines = [(name, with_both(find(rows, f"gcsr/paper/cora:70/{name}"))) for name in names]
    return with_code(table(("test model", "ours"), lines))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--readme", action="store_true", help="the two tables of the README")
    arguments = parser.parse_args(argv)
    rows = load(arguments.results)
    leaderboard = benchmark_rows(arguments.results / "leaderboard.jsonl")
    if arguments.readme:
        print("\n".join([*readme_table(rows, leaderboard), "", *main_table(rows)]))
        return
    cells = Measured(
        [*rows_of_runs(arguments.results / "reproduce"), *rows_of_cells(rows)],
    )
    found = {name: cells.compared(one) for name, one in EXPERIMENTS.items()}
    found = {name: compared for name, compared in found.items() if compared}
    print(
        "# Results\n\n"
        "Test accuracy in percent at the epoch that validates best. Made from the rows under\n"
        "`results/` by `python benchmarks/tables.py`; every row holds its scores, settings, device\n"
        "and command, and below each table stands the code that measured it.\n\n"
        "**Spread.** In tables of the paper, `±` is the standard deviation over all runs of all\n"
        "condensed graphs, which papers report: 5 condensed graphs x 10 trainings, on an H200 unless\n"
        "a row says otherwise. Runs on one graph are not independent, so this is no error of the\n"
        "mean. Square brackets behind it are the 95 % interval of the mean: Student's t over the\n"
        "means of graphs. In the other tables `±` is half of this interval; of a single graph it is\n"
        "over its runs and says nothing about other condensed graphs. A result is called above or\n"
        "below another one only where the 95 % interval of the difference (Welch) excludes 0.\n\n"
        "**Not blind.** The defaults of GCSR were chosen on validation nodes of digits, Cora,\n"
        "Citeseer, PubMed, amazon-computers, actor and facebook-pagepage; those of the automatic mode\n"
        "on these, WordNet and a stand-in of ogbn-arxiv. Some of these choices were made after test\n"
        "accuracies of the same graphs had been seen. Every graph on this page but those of Debian's\n"
        "packages ([below](#graphs-on-which-nothing-was-chosen)) was used for such a choice\n"
        "([details](honest-evaluation.md#choices-that-were-not-blind)).\n\n"
        "† The paper's class prior counts every label, test labels included: not a fair score. Beside\n"
        "it, without the leak: the prior `predicted`, which counts training labels and the experts'\n"
        "predictions only.\n"
    )
    print("## How far the paper is reproduced\n", *summary(found), sep="\n")
    print(
        "\nNumbers without a published deviation are not counted. The paper's numbers have unknown\n"
        "errors, so this is an agreement in size and no test. The last column counts published means\n"
        "in the 95 % interval of ours (over graphs). Every table below lists what was measured, and\n"
        "what lies outside."
    )
    print("\n## GCSR on Cora and Citeseer, tested with GCN\n", *main_table(rows), sep="\n")
    print("\n## Every method, authors' settings, tested with GCN\n")
    print(
        "Ours ± standard deviation over all runs, and the paper's mean in brackets (GCond-X is\n"
        "not in its table). On an H200, 5 graphs x 10 runs unless a cell says otherwise. GCSR\n"
        "with the paper's prior, which leaks. A cell that names epochs was shortened (SGDD's\n"
        "authors run 2,000). At 140 and 120 nodes Random, Herding and K-Center keep every\n"
        "training node. Coarsening does not depend on the seed: one graph.\n"
    )
    print("\n".join(methods_table(rows, cells)))
    print(Path(__file__).with_name("differences.md").read_text().rstrip("\n"))
    evidence = [*evidence_table(rows, EVIDENCE), *newer_section(arguments.results)]
    print("\n### The rows these refer to\n", *evidence, sep="\n")
    for name, compared in found.items():
        print(f"\n## {name}: {EXPERIMENTS[name].title}\n")
        print("\n".join(section(EXPERIMENTS[name], compared)))
    print("\n## The automatic mode\n")
    print(
        "Ten nodes per class, no test label used: 3 condensed graphs x 5 trainings of a GCN,\n"
        "`±` is half of the 95 % interval over graphs (over runs where there is one graph, as\n"
        "of the whole graph). Rows of `gcsr benchmark` on an H200 unless another device is named\n"
        "(`benchmarks/automatic.toml`, `sizes.toml` and `transfer.toml`, `results/automatic.jsonl`).\n"
        "The column of one CPU core has rows of the [leaderboard](leaderboard.md).\n"
        f"{fill(fewer_steps(leaderboard, rows), 90)}\n"
        "Differences and what was chosen per condensed graph are of the first column. Bilevel\n"
        "condensation keeps its best validated iterate. `bilevel, first iterate`: this is its\n"
        "start, with the scores of the row `without bilevel` below. The stand-in and the inductive\n"
        "graph have no such row. Seconds and peak memory in the last column are of one graph, one\n"
        "graph after the other (`benchmarks/seconds.py`, `results/bench/automatic-h200.json`).\n"
        "60/20/20 is the split of `gcsr benchmark --data NAME:60-20-20`.\n"
    )
    timed = arguments.results / "bench" / "automatic-h200.json"
    print(
        *automatic_section(
            rows, json.loads(timed.read_text()) if timed.exists() else [], leaderboard
        ),
        sep="\n",
    )
    ablation = ablation_section(rows)
    if ablation:
        print("\n## Ablation of the automatic mode\n")
        print(
            "Mean test accuracy with one part switched off (`benchmarks/ablation.toml`, on an\n"
            "H200): 3 graphs x 5 trainings unless a cell says otherwise. ↓ and ↑: below or above\n"
            "the automatic mode, where the 95 % interval of the difference excludes 0; not said of\n"
            "a single graph. Cells with a mark are of other code and are compared with the last\n"
            "row all the same.\n"
        )
        print("\n".join(ablation))
    budgets = arguments.results / "bench" / "budget-cpu.json"
    if budgets.exists():
        print("\n## Budgets of the automatic mode\n")
        print(
            "Test accuracy, seconds and outer steps of one graph by `budget` on one CPU core\n"
            "(`benchmarks/budgets.py` measures such rows; `results/bench/budget-cpu.json`; 5\n"
            "trainings of a GCN; `±` is half of the 95 % interval over these runs). There are no\n"
            "outer steps where everything else leaves too little of the budget for them; a warning\n"
            "is shown where everything else alone takes more than the budget.\n"
        )
        print("\n".join(budget_section(json.loads(budgets.read_text()))))
    costs = cost_section(arguments.results / "cost")
    if costs:
        print("\n## What the automatic mode costs and saves\n")
        print(
            "`gcsr cost FILE --data DATA --json` of one graph each (`results/cost/`), random\n"
            "subsets of the same bytes, on one CPU thread or, where the name says so, on an H200;\n"
            "`±` is half of the 95 % interval over runs (of random subsets: over subsets). A file\n"
            "that was condensed with pseudo-labels is compared fairly with the same GCN trained with\n"
            "them on the whole graph, and with the pseudo-labels themselves. Break-even: after how\n"
            "many trainings by the test protocol, which validates on the real graph after every\n"
            "epoch, condensing has paid for itself.\n"
        )
        print("\n".join(costs))
    print(
        *pays_sections(arguments.results),
        "\n## Every method, default settings, other graphs\n",
        sep="\n",
    )
    default = [row for row in rows if row["cell"].startswith(GRAPH_CELLS)]
    cpu = sorted({row["cell"].split("/")[0] for row in default if row["device"] == "cpu"})
    on_cpu = f" (on a CPU: {', '.join(cpu)})" if cpu else ""
    print(
        "3 condensed graphs x 5 trainings of a GCN (Coarsening, the same for every seed: one of\n"
        f"each), on an H200{on_cpu}; `whole` is\n"
        "the whole graph. `±` is half of the 95 % interval over graphs (`whole`: over runs). `*`:\n"
        "the highest mean of a column, and those that are not distinguishable from it. GCSR's\n"
        "defaults were chosen on these graphs.\n"
    )
    print("\n".join(graphs_table(rows)))
    print("\n## Cora, 70 nodes, tested with models that are not in the paper (paper's prior)\n")
    print("\n".join(other_models_table(rows)))


if __name__ == "__main__":
    main()
