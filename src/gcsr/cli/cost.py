"""``gcsr cost``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gcsr.cli import options
from gcsr.cli.data import found_data, load_graph, print_found
from gcsr.cli.output import (
    byte_count,
    console,
    print_json,
    print_leak,
    printable,
    progress_bars,
    table,
)
from gcsr.utils.formatting import counted

if TYPE_CHECKING:
    from gcsr.evaluation.cost import CostSheet


def cost(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A condensed graph.")],
    data: options.MadeFrom = None,
    model: Annotated[str, typer.Option(help="The network to train and test.")] = "gcn",
    runs: Annotated[int, typer.Option(min=1, help="Networks per graph, for accuracy.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs per network.")] = 600,
    sparsify: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="How FILE is sparsified where it is not yet: auto, threshold=0.05, top-k=8 or none.",
        ),
    ] = "auto",
    seed: options.Seed = 0,
    device: options.Device = "auto",
    root: options.Root = None,
    features: options.Features = None,
    undirected: options.Undirected = False,
    inductive: options.Inductive = None,
    any_graph: options.AnyGraph = False,
    as_json: options.Json = False,
) -> None:
    """Seconds, bytes and accuracy: FILE beside a random subset of its bytes and the whole graph.

    Condensing's own seconds and memory are those that FILE tells; everything else is measured now.
    """
    from gcsr.data.condensed import CondensedGraph  # noqa: PLC0415
    from gcsr.evaluation.cost import cost as measure  # noqa: PLC0415
    from gcsr.evaluation.sparsify import Sparsifier  # noqa: PLC0415 - torch takes a second to import
    from gcsr.models.registry import testing_model  # noqa: PLC0415
    from gcsr.training.fit import TrainingRecipe  # noqa: PLC0415
    from gcsr.utils.devices import pick_device  # noqa: PLC0415

    testing_model(model)
    Sparsifier(rule=sparsify)
    target = pick_device(device)
    small = CondensedGraph.load(file)
    used = found_data([small], root) if data is None else data
    with progress_bars() as progress:
        graph = load_graph(
            used,
            root=root,
            features=features,
            undirected=undirected,
            inductive=inductive,
            made=[small],
            progress=progress,
        )
        sheet = measure(
            small,
            graph,
            model=model,
            runs=runs,
            sparsify=sparsify,
            recipe=TrainingRecipe(epochs=epochs),
            seed=seed,
            device=target,
            check_origin=not any_graph,
            progress=progress,
        )
    if as_json:
        print_json(sheet.to_dict())
        return
    if data is None:
        print_found(used)
    _tell(sheet)


def _tell(sheet: CostSheet) -> None:
    made = f" by {printable(sheet.method)}" if sheet.method else ""
    print(
        f"{sheet.dataset} condensed to {counted(sheet.condensed.nodes, 'node')}{made}; {sheet.model},"
        f" {counted(sheet.runs, 'run')} on {sheet.device} ({sheet.machine})"
    )
    print(f"condensing: {_condensing(sheet)}")
    _tell_bytes(sheet)
    _tell_seconds(sheet)
    print(f"{sheet.verdict}.")
    if sheet.break_even_alone is not None and sheet.break_even_alone != sheet.break_even:
        trainings = counted(sheet.break_even_alone, "training")
        print(f"Without validating after every epoch: after {trainings}.")
    for note in sheet.notes:
        print(f"note: {printable(note)}")
    if sheet.leaks_test_labels:
        print_leak()


def _condensing(sheet: CostSheet) -> str:
    if sheet.condense_seconds is None:
        return "the file does not say what it took"
    memory = sheet.condense_memory_bytes
    peak = f", at most {byte_count(memory)} of memory" if memory is not None else ""
    return f"{sheet.condense_seconds:.1f} s{peak}, on {printable(sheet.condensed_on)}"


def _tell_bytes(sheet: CostSheet) -> None:
    numbers = ("features", "adjacency", "all with labels", "of original", "test accuracy")
    shown = table("stored", *numbers, numbers=numbers, title="bytes in a file")
    rule = sheet.sparsified_by

    def share(count: int) -> str:
        return f"{100 * count / sheet.original_bytes:.2f} %"

    for form in sheet.forms:
        sparse = "without zeros" if rule == "none" else f"sparsified ({rule})"
        how = "dense" if form.structure == "dense" else sparse
        here = " [this file]" if form.in_file else ""
        shown.add_row(
            f"{how}, {form.dtype}{here}",
            byte_count(form.features_bytes),
            byte_count(form.adjacency_bytes),
            byte_count(form.bytes),
            share(form.bytes),
            str(form.accuracy),
        )
    shown.add_row(
        "the whole graph",
        byte_count(sheet.original_features_bytes),
        byte_count(sheet.original_adjacency_bytes),
        byte_count(sheet.original_bytes),
        share(sheet.original_bytes),
        str(sheet.whole.accuracy),
    )
    console().print(shown)


def _tell_seconds(sheet: CostSheet) -> None:
    numbers = ("nodes", "bytes", "seconds", "without validation", "test accuracy")
    shown = table("trained on", *numbers, numbers=numbers, title="seconds to train one network")
    rows = [
        ("this file", sheet.condensed),
        ("a random subset of its bytes", sheet.random),
        ("the whole graph", sheet.whole),
    ]
    if sheet.whole_with_pseudo_labels is not None:
        rows.append(("the whole graph with pseudo-labels", sheet.whole_with_pseudo_labels))
    for what, row in rows:
        shown.add_row(
            what,
            f"{row.nodes:,}",
            byte_count(row.bytes),
            f"{row.seconds:.3g}",
            f"{row.seconds_alone:.3g}",
            str(row.accuracy),
        )
    if sheet.pseudo_labels is not None:
        itself = f"{sheet.pseudo_labels['test']:.1f} %"
        shown.add_row("the pseudo-labels themselves", "-", "-", "-", "-", itself)
    console().print(shown)
