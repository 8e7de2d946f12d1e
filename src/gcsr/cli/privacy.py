"""``gcsr privacy``."""

from __future__ import annotations

from typing import Annotated

import typer

import gcsr
from gcsr.cli import options
from gcsr.cli.data import load_graph, print_found
from gcsr.cli.output import print_json, print_table, progress_bars
from gcsr.utils.formatting import counted, printable


def privacy(
    file: options.File,
    data: options.MadeFrom = None,
    model: options.Model = "gcn",
    runs: Annotated[int, typer.Option(min=1, help="Networks that are attacked, per graph.")] = 3,
    shadows: Annotated[
        int, typer.Option(min=4, help="Shadow networks of the likelihood-ratio attack.")
    ] = 16,
    epochs: options.Epochs = 600,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    loading: options.Loading = options.LOADING,
    any_graph: options.AnyGraph = False,
    as_json: options.Json = False,
) -> None:
    """What FILE gives away: membership inference, and rows that are near real ones.

    Networks trained on the whole graph, on FILE and on a random subset of its bytes are attacked.
    """
    from gcsr.analysis.privacy import COLUMNS
    from gcsr.models.registry import testing_model
    from gcsr.utils.devices import pick_device

    testing_model(model)
    target = pick_device(device)
    small = gcsr.CondensedGraph.load(file)
    with progress_bars() as progress:
        graph = load_graph(data, loading, progress, made=[small])
        found = gcsr.privacy(
            small,
            graph,
            model=model,
            runs=runs,
            shadows=shadows,
            recipe=gcsr.TrainingRecipe(epochs=epochs),
            seed=seed,
            device=target,
            check_origin=not any_graph,
            progress=progress,
        )
    if as_json:
        print_json(found.to_dict())
        return
    if data is None:
        print_found(graph)
    by = f" by {printable(found.method)}" if found.method else ""
    print(f"{found.dataset} condensed to {counted(found.nodes, 'node')}{by}")
    title = f"who was a training node? {found.attacked:,} of them among as many test nodes"
    print_table((f"{found.model} trained on", *COLUMNS), found.rows, COLUMNS, title)
    print(
        "AUC: 50 is guessing. Caught: training nodes recognized while 1 % of test nodes are mistaken."
    )
    for sentence in (*found.sentences, found.distances):
        print(f"{sentence}.")
    print(found.statement)
