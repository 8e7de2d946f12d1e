"""``gcsr search``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import gcsr
from gcsr.cli import options
from gcsr.cli.data import load_graph, print_found, require_writable
from gcsr.cli.options import parse_dimensions
from gcsr.cli.output import print_json, print_leak, print_table, progress_bars
from gcsr.cli.report import write_page
from gcsr.utils.formatting import byte_count, counted


def search(
    file: options.File,
    data: options.MadeFrom = None,
    trials: Annotated[int, typer.Option(min=1, help="Number of configurations.")] = 40,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=...",
            help="Search model, hidden_channels, num_layers, dropout, lr or weight_decay"
            " (low..high, low..high:log or a,b,c) or fix it (a value); repeatable.",
        ),
    ] = None,
    sampler: Annotated[
        str, typer.Option(help="tpe (Optuna, extra tune), or random, which needs no Optuna.")
    ] = "tpe",
    finalists: Annotated[
        int, typer.Option(min=1, help="How many of the best are trained on the whole graph.")
    ] = 3,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Train the same configurations also on the whole graph and on random nodes in as"
            " many bytes: rank correlation, regret and seconds.",
        ),
    ] = False,
    runs: Annotated[int, typer.Option(min=1, help="Networks per configuration.")] = 2,
    epochs: options.Epochs = 200,
    out: Annotated[Path | None, typer.Option(help="Write a page with plots to this file.")] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    loading: options.Loading = options.LOADING,
    any_graph: options.AnyGraph = False,
    as_json: options.Json = False,
) -> None:
    """Search an architecture on FILE; the best few are trained on the whole graph.

    Configurations are trained on the condensed graph and scored on real validation nodes.
    """
    if out is not None:
        require_writable([out])

    from gcsr.tuning.architecture import SAMPLERS, Architectures
    from gcsr.tuning.space import import_optuna
    from gcsr.utils.devices import pick_device
    from gcsr.utils.errors import require_one_of

    require_one_of("sampler", sampler, SAMPLERS)
    if sampler == "tpe":
        import_optuna()
    changes = parse_dimensions(assignments or [])
    Architectures.of(None, changes)
    target = pick_device(device)
    small = gcsr.CondensedGraph.load(file)
    with progress_bars() as progress:
        graph = load_graph(data, loading, progress, made=[small])
        found = gcsr.search(
            small,
            graph,
            trials=trials,
            finalists=finalists,
            compare=compare,
            sampler=sampler,
            runs=runs,
            recipe=gcsr.TrainingRecipe(epochs=epochs, validate_every=min(10, epochs)),
            seed=seed,
            device=target,
            check_origin=not any_graph,
            progress=progress,
            **changes,
        )
    size = None if out is None else write_page(out, gcsr.report(found))
    if as_json:
        print_json(found.to_dict())
        return
    if data is None:
        print_found(graph)
    _print(found)
    if out is not None:
        print(f"wrote {out} ({byte_count(size)}); open it in a browser")


def _print(found: gcsr.SearchResult) -> None:
    from gcsr.reporting.searched import CLOCK, NAMES, clock_row

    small = found.small
    print(
        f"{found.dataset}: {counted(len(found.configurations), 'configuration')},"
        f" {counted(found.runs, 'network')} each, {counted(found.recipe['epochs'], 'epoch')},"
        f" on {found.device}"
    )
    rows = [(NAMES[name], *clock_row(one)) for name, one in found.rankings.items()]
    print_table(("searched on", *CLOCK), rows, CLOCK)
    chosen = ", ".join(
        f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in found.settings.items()
    )
    print(f"winner: {chosen}")
    test = "" if small.test is None else f", test {small.test:.1f} %"
    print(f"trained on the whole graph: validation {small.finalists[small.winner]:.1f} %{test}")
    print(f"{found.verdict}.")
    if found.leaks_test_labels:
        print_leak()
