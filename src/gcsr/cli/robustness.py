"""``gcsr robustness``."""

from __future__ import annotations

from typing import Annotated

import typer

import gcsr
from gcsr.cli import options
from gcsr.cli.data import load_graph
from gcsr.cli.options import parse_settings
from gcsr.cli.output import print_json, print_table, progress_bars
from gcsr.utils.formatting import counted


def robustness(
    data: options.Data,
    nodes: options.Nodes = None,
    ratio: options.Ratio = None,
    method: Annotated[str, typer.Option(help="See `gcsr methods`.")] = "auto",
    noise: Annotated[
        list[str] | None,
        typer.Option(help="symmetric, pair, features or edges; repeatable. [default: all]"),
    ] = None,
    level: Annotated[
        list[float] | None,
        typer.Option(help="A share that is perturbed; repeatable. [default: 0.1, 0.3, 0.5]"),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the method; repeatable."),
    ] = None,
    model: options.Model = "gcn",
    graphs: Annotated[
        int, typer.Option(min=1, help="Draws of the noise, each with its own condensed graph.")
    ] = 3,
    runs: options.Runs = 3,
    epochs: options.Epochs = 600,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    loading: options.Loading = options.LOADING,
    as_json: options.Json = False,
) -> None:
    """Condense from noisy labels, features and edges, beside the whole graph with the same noise.

    Validation and test labels are never perturbed; networks are tested on the clean graph.
    """
    from gcsr.evaluation.robustness import LEVELS, NOISES
    from gcsr.models.registry import testing_model
    from gcsr.utils.devices import pick_device

    testing_model(model)
    target = pick_device(device)
    settings = parse_settings(method, assignments or [])
    with progress_bars() as progress:
        graph = load_graph(data, loading, progress)
        found = gcsr.robustness(
            graph,
            nodes=nodes,
            ratio=ratio,
            method=method,
            noises=noise or tuple(NOISES),
            levels=level or LEVELS,
            model=model,
            graphs=graphs,
            runs=runs,
            recipe=gcsr.TrainingRecipe(epochs=epochs),
            seed=seed,
            device=target,
            progress=progress,
            **settings,
        )
    if as_json:
        print_json(found.to_dict())
        return
    columns = ("noise", "level", f"{counted(found.nodes, 'node')} by {method}", "whole graph")
    rows = [
        (row.noise, f"{row.level:g}", str(row.condensed), str(row.whole), str(row.difference))
        for row in found.rows
    ]
    title = f"{found.dataset}: test accuracy of {found.model}, {counted(found.graphs, 'draw')}"
    print_table((*columns, "difference"), rows, (*columns[1:], "difference"), title)
    for name in dict.fromkeys(row.noise for row in found.rows if row.noise != "none"):
        print(f"{name}: {NOISES[name]}")
    print("Validation and test labels are clean, and so is the graph that networks are tested on.")
