"""``gcsr demo``: the whole story on a graph that needs no download."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcsr.cli import options
from gcsr.cli.data import SUFFIX, load_graph, require_replaceable, require_writable, write_graphs
from gcsr.cli.output import (
    byte_count,
    console,
    prefixed,
    print_json,
    print_leak,
    progress_bars,
    table,
)
from gcsr.utils.formatting import accuracy, counted
from gcsr.utils.progress import Progress

if TYPE_CHECKING:
    from gcsr.data.condensed import CondensedGraph
    from gcsr.data.graph import Graph
    from gcsr.evaluation.evaluation import Evaluation

DATASET = "digits"
RANDOM_SUBSETS = 3
# The automatic mode with a small budget.
SETTINGS: dict[str, Any] = {"budget": 15.0}
EPOCHS = 600
# Products this small lose more to handing out work than they gain from many threads.
MOST_THREADS = 4


@dataclass(frozen=True)
class Row:
    """One line of the comparison; accuracies in percent, seconds of condensing one graph.

    Networks of a line are trained together, ``runs`` per graph: ``training_seconds`` is what they all
    took, ``network_seconds`` each one's share of it. Both are 0 for the pseudo-labels themselves.
    """

    trained_on: str
    mean: float
    std: float
    scores: list[float]
    nodes: int
    bytes: int
    condensing_seconds: float
    training_seconds: float
    network_seconds: float


def demo(
    out: Annotated[
        Path | None,
        typer.Option(help="The file to write; by default digits-NODES.safetensors, here."),
    ] = None,
    nodes: Annotated[int, typer.Option(min=1, help="Number of condensed nodes.")] = 50,
    runs: Annotated[int, typer.Option(min=1, help="Networks per graph.")] = 5,
    as_json: options.Json = False,
) -> None:
    """Condense the embedded digits graph and compare; takes about a minute, needs no download."""
    path = out if out is not None else Path(f"{DATASET}-{nodes}.safetensors")
    require_writable([path])
    require_replaceable([path])

    import torch  # noqa: PLC0415 - takes a second to import

    from gcsr.evaluation.origin import PSEUDO_LABELS_NOTE, used_pseudo_labels  # noqa: PLC0415

    torch.set_num_threads(min(MOST_THREADS, torch.get_num_threads()))
    with progress_bars() as progress:
        graph = load_graph(
            DATASET, root=None, features=None, undirected=False, inductive=None, progress=progress
        )
        small, rows = _compare(graph, nodes, runs, progress)
    write_graphs([small], [path])
    if as_json:
        compared = [asdict(row) for row in rows]
        print_json({"dataset": graph.name, "model": "gcn", "out": str(path), "rows": compared})
        return
    _tell(graph, rows, runs)
    if used_pseudo_labels(small):
        print(PSEUDO_LABELS_NOTE)
    if small.leaks_test_labels:
        print_leak()
    print(f"wrote {path}")
    print(f"look at it: {_report_command(path)}")


def _report_command(path: Path) -> str:
    page = path.with_name(f"{path.name.removesuffix(SUFFIX)}.html")
    # Whoever called the command by its path has to do so again.
    called = Path(sys.argv[0])
    program = str(called) if called.name == "gcsr" and not shutil.which("gcsr") else "gcsr"
    return shlex.join([program, "report", str(path), "--out", str(page)])


def _compare(
    graph: Graph, nodes: int, runs: int, progress: Progress
) -> tuple[CondensedGraph, list[Row]]:
    from gcsr.api import condense_many  # noqa: PLC0415 - torch takes a second to import
    from gcsr.evaluation.origin import used_pseudo_labels  # noqa: PLC0415
    from gcsr.evaluation.protocol import evaluate, evaluate_full  # noqa: PLC0415
    from gcsr.training.fit import TrainingRecipe  # noqa: PLC0415

    recipe = TrainingRecipe(epochs=EPOCHS)

    def scored(name: str, made: Sequence[CondensedGraph], report: Progress) -> Row:
        result = evaluate(made, graph, runs=runs, recipe=recipe, progress=report)
        cost = made[0].provenance["measured"]["seconds"]
        return Row(
            name,
            result.mean,
            result.std,
            result.scores,
            result.nodes,
            made[0].stored_bytes,
            cost,
            result.seconds,
            result.seconds / len(result.scores),
        )

    report = prefixed(progress, "condensing")
    made = condense_many(graph, nodes=nodes, seeds=[0], progress=report, **SETTINGS)
    budget = f", budget {SETTINGS['budget']:g} s" if "budget" in SETTINGS else ""
    rows = [scored(f"condensed, automatic mode{budget}", made, report)]
    report = prefixed(progress, "random")
    subsets = condense_many(graph, nodes=nodes, method="random", seeds=range(RANDOM_SUBSETS))
    rows.append(scored(f"random subset ({RANDOM_SUBSETS} of them)", subsets, report))
    report = prefixed(progress, "whole graph")
    whole = evaluate_full(graph, runs=runs, recipe=recipe, progress=report)
    rows.append(_whole("whole graph", whole, graph))
    # The fair references of what was condensed with pseudo-labels.
    if used_pseudo_labels(made[0]):
        name = "whole graph with pseudo-labels"
        report = prefixed(progress, name)
        helped = evaluate_full(graph, runs=runs, recipe=recipe, progress=report, pseudo_labels=True)
        rows.append(_whole(name, helped, graph))
        if helped.pseudo_labels is not None:
            test = helped.pseudo_labels["test"]
            alone = replace(helped, mean=test, std=0.0, scores=[test], seconds=0.0)
            rows.append(replace(_whole("pseudo-labels themselves", alone, graph), bytes=0))
    return made[0], rows


def _whole(name: str, result: Evaluation, graph: Graph) -> Row:
    return Row(
        name,
        result.mean,
        result.std,
        result.scores,
        result.nodes,
        graph.stored_bytes,
        0.0,
        result.seconds,
        result.seconds / len(result.scores),
    )


def _tell(graph: Graph, rows: list[Row], runs: int) -> None:
    numbers = ("test accuracy", "nodes", "bytes", "condensing", "training per network")
    title = f"GCN trained on ... and tested on {graph.name} ({counted(runs, 'run')} per graph)"
    shown = table("trained on", *numbers, numbers=numbers, title=title)
    for row in rows:
        shown.add_row(
            row.trained_on,
            accuracy(row.mean, row.std, len(row.scores)),
            f"{row.nodes:,}",
            byte_count(row.bytes) if row.bytes else "-",
            f"{row.condensing_seconds:.1f} s" if row.condensing_seconds else "-",
            f"{row.network_seconds:.2f} s" if row.network_seconds else "-",
        )
    console().print(shown)
