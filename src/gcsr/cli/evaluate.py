"""``gcsr evaluate``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer

import gcsr
from gcsr.cli import options
from gcsr.cli.data import load_graph, print_found
from gcsr.cli.output import print_json, print_leak, print_table, progress_bars
from gcsr.utils.errors import require
from gcsr.utils.formatting import counted, printable

METRICS = {
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
    "calibration_error": "calibration error",
}


def evaluate(
    files: Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...")] = None,
    data: options.MadeFrom = None,
    full: bool = False,
    pseudo_labels: bool = False,
    networks: options.NetworkOptions = options.TEN_RUNS,
    dropout: float = 0.0,
    cluster: options.Cluster = None,
    memory: options.Memory = None,
    loading: options.Loading = options.LOADING,
    any_graph: options.AnyGraph = False,
    metrics: bool = False,
    as_json: options.Json = False,
) -> None:
    """Train networks on condensed graphs and test them on the real one.

    Features are scaled, and nodes hidden, as they were when FILE was made, unless options say
    otherwise.

    Args:
        files: Condensed graphs. Those that differ in their seeds alone are pooled.
        full: Train on the whole graph instead of on FILE.
        pseudo_labels: With --full: train with pseudo-labels of the unlabeled nodes too.
        dropout: Share of hidden units that are dropped while training, 0 to below 1; the paper drops
            half of them on Reddit and none elsewhere.
        metrics: Also macro-F1, balanced accuracy, AUC and calibration error on the test nodes.
    """
    if full:
        require(not files, "--full trains on the whole graph; give no FILE with it.")
        require(data is not None, "--data is needed with --full: a dataset's name or a graph file.")
    else:
        require(not pseudo_labels, "--pseudo-labels is for the whole graph; give --full with it.")
        require(bool(files), "FILE is needed: at least one condensed graph, or --full.")
        places = [path.resolve() for path in files or []]
        twice = next((path for path in places if places.count(path) > 1), None)
        # A graph that counts twice would make the interval too narrow.
        require(twice is None, f"FILE must be different files, got {twice} twice.")

    from gcsr.evaluation.origin import require_origin, same_settings
    from gcsr.utils.parallel import part_of

    given = networks.arguments(cluster) | {"cluster": cluster, "metrics": metrics}
    given["recipe"] = replace(given["recipe"], dropout=dropout)
    small = [gcsr.CondensedGraph.load(path) for path in files or []]
    groups = same_settings(small)
    with progress_bars(networks.runs * max(1, len(small))) as progress:
        graph = load_graph(data, loading, progress, memory=memory, made=small)
        if full:
            given |= {"pseudo_labels": pseudo_labels, "progress": progress}
            results = [gcsr.evaluate_full(graph, **given)]
        else:
            require_origin(small, graph, not any_graph)
            results, done = [], 0
            for group in groups:
                pooled = [small[place] for place in group]
                part = part_of(progress, done, len(small), len(group))
                given |= {"check_origin": not any_graph, "progress": part}
                results.append(gcsr.evaluate(pooled, graph, **given))
                done += len(group)
    rows = [
        {
            "method": small[group[0]].provenance.get("method"),
            "files": [str((files or [])[place]) for place in group],
            **result.to_dict(),
        }
        for group, result in zip(groups, results, strict=not full)
    ]
    if as_json:
        print_json(rows if len(rows) > 1 else results[0].to_dict())
        return
    print_found(data, graph.name)
    if len(rows) > 1:
        _print_rows(rows, results)
    else:
        _print_result(results[0])
    one = results[0]
    trained = "condensed graphs" if len(rows) > 1 else "condensed graph"
    trained = trained if one.trained_on == "condensed" else "whole graph"
    seconds = sum(result.seconds for result in results)
    time = f"{counted(one.recipe['epochs'], 'epoch')}, seed {one.seed}: {seconds:.1f} s"
    print(f"trained on the {trained} for {time}")
    if any(result.leaks_test_labels for result in results):
        print_leak()


def _metrics(result: gcsr.Evaluation) -> dict[str, str]:
    found = (result.metrics or {}).items()
    return {METRICS[name]: f"{mean(values):.1f} %" for name, values in found}


def _print_result(result: gcsr.Evaluation) -> None:
    print(result)
    if shown := _metrics(result):
        print(", ".join(f"{name} {value}" for name, value in shown.items()))
    if result.pseudo_labels is not None:
        test = result.pseudo_labels["test"]
        print(f"{test:.1f} % on {result.dataset} (the pseudo-labels themselves)")


def _print_rows(rows: list[dict[str, Any]], results: list[gcsr.Evaluation]) -> None:
    """One row for every group of files with the same settings."""
    metrics = tuple(_metrics(results[0]))
    numbers = ("nodes", "graphs", "test accuracy", *metrics)
    texts = [
        (
            printable(row["method"]) + (" (leaks)" if result.leaks_test_labels else ""),
            str(result.nodes),
            str(result.graphs),
            str(result.accuracy),
            *(_metrics(result)[name] for name in metrics),
            printable(", ".join(Path(file).name for file in row["files"])),
        )
        for row, result in zip(rows, results, strict=True)
    ]
    one = results[0]
    title = (
        f"{one.model} trained on ... and tested on {one.dataset}, {counted(one.runs, 'run')} each"
    )
    print_table(("condensed by", *numbers, "files"), texts, numbers, title)
