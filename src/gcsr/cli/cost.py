"""``gcsr cost``."""

from __future__ import annotations

from typing import Annotated

import typer

import gcsr
from gcsr.cli import options
from gcsr.cli.data import load_graph, print_found
from gcsr.cli.output import print_json, print_leak, print_table, progress_bars
from gcsr.utils.formatting import byte_count, counted, printable


def cost(
    file: options.File,
    data: options.MadeFrom = None,
    model: options.Model = "gcn",
    runs: options.Runs = 5,
    epochs: options.Epochs = 600,
    sparsify: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="How FILE is sparsified where it is not yet: auto, threshold=0.05, top-k=8 or none.",
        ),
    ] = "auto",
    seed: options.Seed = 0,
    device: options.Device = "auto",
    loading: options.Loading = options.LOADING,
    any_graph: options.AnyGraph = False,
    as_json: options.Json = False,
) -> None:
    """Seconds, bytes and accuracy: FILE beside a random subset of its bytes and the whole graph.

    Seconds and memory of condensing are those recorded in FILE; everything else is measured now.
    """
    from gcsr.evaluation.sparsify import Sparsifier
    from gcsr.models.registry import testing_model
    from gcsr.utils.devices import pick_device

    testing_model(model)
    Sparsifier(rule=sparsify)
    target = pick_device(device)
    small = gcsr.CondensedGraph.load(file)
    with progress_bars() as progress:
        graph = load_graph(data, loading, progress, made=[small])
        sheet = gcsr.cost(
            small,
            graph,
            model=model,
            runs=runs,
            sparsify=sparsify,
            recipe=gcsr.TrainingRecipe(epochs=epochs),
            seed=seed,
            device=target,
            check_origin=not any_graph,
            progress=progress,
        )
    if as_json:
        print_json(sheet.to_dict())
        return
    if data is None:
        print_found(graph)
    _print_sheet(sheet)


def _print_sheet(sheet: gcsr.CostSheet) -> None:
    by = f" by {printable(sheet.method)}" if sheet.method else ""
    print(
        f"{sheet.dataset} condensed to {counted(sheet.condensed.nodes, 'node')}{by}; {sheet.model},"
        f" {counted(sheet.runs, 'run')} on {sheet.device} ({sheet.machine})"
    )
    spent = "the file does not say what it took"
    if sheet.condense_seconds is not None:
        memory = sheet.condense_memory_bytes
        peak = f", at most {byte_count(memory)} of memory" if memory is not None else ""
        spent = f"{sheet.condense_seconds:.1f} s{peak}, on {printable(sheet.condensed_on)}"
    print(f"condensing: {spent}")
    _print_bytes(sheet)
    _print_seconds(sheet)
    if sheet.break_even_alone is not None and sheet.break_even_alone != sheet.break_even:
        trainings = counted(sheet.break_even_alone, "training")
        print(f"Without validating after every epoch condensing has paid after {trainings}.")
    if sheet.runs > 1:
        print("±: 95 % interval over runs; --json has the std of all runs.")
    for note in sheet.notes:
        print(f"note: {printable(note)}")
    if sheet.leaks_test_labels:
        print_leak()
    print(f"decision: {sheet.decision}.")


def _print_bytes(sheet: gcsr.CostSheet) -> None:
    rule = sheet.sparsified_by
    sparse = "without zeros" if rule == "none" else f"sparsified ({rule})"
    rows = []
    for form in sheet.forms:
        how = "dense" if form.structure == "dense" else sparse
        here = " [this file]" if form.in_file else ""
        sizes = (form.features_bytes, form.adjacency_bytes, form.bytes)
        rows.append((f"{how}, {form.dtype}{here}", sizes, form.accuracy))
    original = sheet.original_bytes
    sizes = (sheet.original_features_bytes, sheet.original_adjacency_bytes, original)
    rows.append(("the whole graph", sizes, sheet.whole.accuracy))
    numbers = ("features", "adjacency", "all with labels", "of original", "test accuracy")
    print_table(
        ("stored", *numbers),
        [
            (name, *map(byte_count, sizes), f"{100 * sizes[-1] / original:.2f} %", str(accuracy))
            for name, sizes, accuracy in rows
        ],
        numbers,
        "bytes in a file",
    )


def _print_seconds(sheet: gcsr.CostSheet) -> None:
    trained = {
        "this file": sheet.condensed,
        "a random subset of its bytes": sheet.random,
        "the whole graph": sheet.whole,
        "the whole graph with pseudo-labels": sheet.whole_with_pseudo_labels,
    }
    rows = [
        (
            name,
            f"{row.nodes:,}",
            byte_count(row.bytes),
            f"{row.seconds:.3g}",
            f"{row.seconds_alone:.3g}",
            str(row.accuracy),
        )
        for name, row in trained.items()
        if row is not None
    ]
    if sheet.pseudo_labels is not None:
        test = f"{sheet.pseudo_labels['test']:.1f} %"
        rows.append(("the pseudo-labels themselves", "-", "-", "-", "-", test))
    numbers = ("nodes", "bytes", "seconds", "without validation", "test accuracy")
    print_table(("trained on", *numbers), rows, numbers, "seconds to train one network")
