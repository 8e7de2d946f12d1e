"""``gcsr demo``: condense, evaluate and compare on a graph that needs no download."""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gcsr
from gcsr.cli import options
from gcsr.cli.data import SUFFIX, load_graph, output_paths, write_graphs
from gcsr.cli.output import print_json, print_leak, print_table, progress_bars
from gcsr.utils.formatting import byte_count, command_line, counted
from gcsr.utils.progress import prefixed

if TYPE_CHECKING:
    from gcsr.reporting.results import Score

DATASET = "digits"
RANDOM_SUBSETS = 3
# The automatic mode with a small budget.
SETTINGS: dict[str, Any] = {"budget": 15.0}
EPOCHS = 600
# More threads are slower for matrices this small.
MOST_THREADS = 4


def demo(
    out: Path | None = None,
    nodes: options.Count = 50,
    runs: options.Runs = 5,
    as_json: options.Json = False,
) -> None:
    """Condense the embedded digits graph and compare; takes a minute or two, needs no download.

    Args:
        out: The file to write; by default digits-NODES.safetensors, here.
        nodes: Number of condensed nodes.
    """
    (path,) = output_paths(out if out is not None else Path(f"{DATASET}-{nodes}{SUFFIX}"))

    import torch

    from gcsr.evaluation.origin import PSEUDO_LABELS_NOTE, used_pseudo_labels
    from gcsr.reporting.results import train_and_test

    torch.set_num_threads(min(MOST_THREADS, torch.get_num_threads()))
    # Of a reference core: the seconds of condensing beside it are those of this machine.
    budget = f" ({SETTINGS['budget']:g} s of a reference core)" if "budget" in SETTINGS else ""
    with progress_bars() as progress:
        graph = load_graph(DATASET, options.LOADING, progress)
        condensing = prefixed(progress, "condensing")
        small = gcsr.condense(graph, nodes=nodes, progress=condensing, **SETTINGS)
        scores = train_and_test(
            [(f"condensed, automatic mode{budget}", small)],
            graph,
            subsets=RANDOM_SUBSETS,
            check_origin=True,
            progress=progress,
            model="gcn",
            runs=runs,
            recipe=gcsr.TrainingRecipe(epochs=EPOCHS),
            seed=0,
            device="auto",
        )
    write_graphs([small], [path])
    rows = [_row(score, small.provenance["measured"]["seconds"]) for score in scores]
    if as_json:
        print_json({"dataset": graph.name, "model": "gcn", "out": str(path), "rows": rows})
        return
    numbers = ("test accuracy", "nodes", "bytes", "condensing", "training per network")
    texts = [
        (
            row["trained_on"],
            score.evaluation.accuracy,
            f"{row['nodes']:,}",
            byte_count(row["bytes"]) if row["bytes"] else "-",
            f"{row['condensing_seconds']:.1f} s" if row["condensing_seconds"] else "-",
            f"{row['network_seconds']:.2f} s" if row["network_seconds"] else "-",
        )
        for row, score in zip(rows, scores, strict=True)
    ]
    title = f"GCN trained on ... and tested on {graph.name} ({counted(runs, 'run')} per graph)"
    print_table(("trained on", *numbers), texts, numbers, title)
    if runs > 1:
        print("±: 95 % interval over runs of one graph; of random subsets, over subsets.")
    if used_pseudo_labels(small):
        print(PSEUDO_LABELS_NOTE)
    if small.leaks_test_labels:
        print_leak()
    print(f"wrote {path}")
    page = path.with_name(f"{path.name.removesuffix(SUFFIX)}.html")
    # A program that was called by its path is not on PATH.
    called = Path(sys.argv[0])
    program = str(called) if called.name == "gcsr" and not shutil.which("gcsr") else "gcsr"
    print(f"make a page of it: {command_line(program, 'report', path, out=page)}")


def _row(score: Score, condensing_seconds: float) -> dict[str, Any]:
    """Accuracies in percent; seconds are 0 where nothing is condensed or trained."""
    one = score.evaluation
    name = f"random subset ({RANDOM_SUBSETS} of them)" if score.kind == "random" else score.name
    return {
        "trained_on": name,
        **asdict(one.accuracy),
        "nodes": one.nodes,
        "bytes": score.nbytes,
        "condensing_seconds": condensing_seconds if score.kind == "condensed" else 0.0,
        "training_seconds": one.seconds,
        "network_seconds": score.seconds_each,
    }
