"""``gcsr reproduce``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcsr.cli import options
from gcsr.cli.options import expert_bounds
from gcsr.cli.output import console, print_json, progress_bars, remember_written, table
from gcsr.utils.errors import require

if TYPE_CHECKING:
    from gcsr.paper.cells import Experiment, Protocol
    from gcsr.paper.tables import Compared

CELLS_FAILED = 1


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A table or figure; see --list.")
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List what can be reproduced, and compute nothing.")
    ] = False,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only this dataset; repeatable.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only cells of this method; repeatable.")
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="A smoke run: one graph, one run, few iterations. Everything it makes says so.",
        ),
    ] = False,
    graphs: Annotated[
        int | None,
        typer.Option(min=1, help="Condensed graphs per cell; by default 5, with --quick 1."),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(min=1, help="Networks per condensed graph; by default 10, with --quick 1."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of tables, figures and finished cells.")] = Path(
        "reproduced"
    ),
    jobs: Annotated[
        int, typer.Option(min=1, help="Processes that measure cells at the same time.")
    ] = 1,
    keep_graphs: Annotated[
        bool,
        typer.Option(
            "--keep-graphs",
            help="Keep condensed graphs in OUT/graphs; other tables with this option take them.",
        ),
    ] = False,
    expert_memory: options.ExpertMemory = None,
    expert_disk: options.ExpertDisk = None,
    download: Annotated[
        bool | None,
        typer.Option(
            "--download/--no-download",
            help="Whether missing datasets are fetched; by default yes, with --quick no.",
        ),
    ] = None,
    device: options.Device = "auto",
    cluster: options.Cluster = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """Run a table or figure of the paper and set our numbers beside the published ones.

    Finished cells are kept: a run that was interrupted continues where it was. Several runs may share
    a folder: each cell is measured by one of them.
    """
    from gcsr.paper.cells import Protocol  # noqa: PLC0415 - imports torch
    from gcsr.paper.experiments import EXPERIMENTS, experiment  # noqa: PLC0415 - imports torch
    from gcsr.paper.figures import graphs_folder, prepare_folder, rows_file, write_outputs  # noqa: PLC0415
    from gcsr.paper.runner import reproduce as run  # noqa: PLC0415
    from gcsr.paper.store import Store  # noqa: PLC0415 - imports torch
    from gcsr.paper.tables import compare  # noqa: PLC0415

    if listed:
        require(name is None, f"NAME: {name!r} is not accepted with --list, which names them all.")
        _list(list(EXPERIMENTS.values()), as_json)
        return
    require(name is not None, f"NAME: is needed; accepted: {', '.join(EXPERIMENTS)}, or --list.")
    chosen = experiment(name or "")
    default = (1, 1) if quick else (5, 10)
    protocol = Protocol(graphs or default[0], runs or default[1], quick)
    datasets = dataset or []
    _check(chosen, datasets, device, cluster)
    bounds = expert_bounds(expert_memory, expert_disk)
    prepare_folder(out)
    store = Store(rows_file(out, protocol))
    before = len(store)
    try:
        with progress_bars() as progress:
            outcomes = run(
                chosen,
                store,
                protocol=protocol,
                datasets=datasets,
                methods=method or [],
                root=root,
                download=download,
                device=device,
                jobs=jobs,
                keep_graphs=graphs_folder(out, protocol) if keep_graphs else None,
                bounds=bounds,
                progress=progress,
                cluster=cluster,
            )
    finally:
        if len(store) > before:
            remember_written([store.path])
    shown = compare(chosen, outcomes, datasets, known_too=True)
    with store.outputs():
        files = write_outputs(out, chosen, shown, protocol)
    remember_written(files)
    compared = compare(chosen, outcomes, datasets)
    if as_json:
        print_json(
            {
                "experiment": chosen.name,
                "title": chosen.title,
                "quick": quick,
                "graphs": protocol.graphs,
                "runs": protocol.runs,
                "within_one_std": None if quick else _counts(compared),
                "lines": [one.to_dict() for one in compared],
                "notes": chosen.notes,
                "files": [str(path) for path in (store.path, *files)],
            }
        )
    else:
        _tell(chosen, compared, protocol, files)
    if any(number.state == "failed" for one in compared for number in one.numbers):
        raise typer.Exit(CELLS_FAILED)


def _counts(compared: Sequence[Compared]) -> dict[str, Any]:
    from gcsr.paper.tables import tally  # noqa: PLC0415 - torch takes a second to import

    found = {"ours": tally(compared), "without_leak": tally(compared, fair=True)}
    return {
        name: {
            "within": one.within,
            "counted": one.counted,
            "outside": [str(each) for each in one.outside],
        }
        for name, one in found.items()
    }


def _check(
    experiment: Experiment, datasets: Sequence[str], device: str, cluster: str | None
) -> None:
    """What is wrong is said before anything is made or read."""
    from gcsr.distributed.start import check_cluster  # noqa: PLC0415
    from gcsr.utils.devices import pick_device  # noqa: PLC0415 - torch takes a second to import

    for dataset in datasets:
        experiment.require_part("dataset", dataset, experiment.datasets)
    if cluster is None:
        pick_device(device)
    else:
        check_cluster(cluster)


def _list(experiments: Sequence[Experiment], as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "name": one.name,
                    "title": one.title,
                    "datasets": one.datasets,
                    "cells": len(one.cells),
                }
                for one in experiments
            ]
        )
        return
    shown = table("name", "title", "cells", "datasets", numbers=("cells",))
    for one in experiments:
        shown.add_row(one.name, one.title, str(len(one.cells)), ", ".join(one.datasets))
    console().print(shown)


def _tell(
    experiment: Experiment,
    compared: Sequence[Compared],
    protocol: Protocol,
    files: Sequence[Path],
) -> None:
    from gcsr.paper.tables import (  # noqa: PLC0415
        NUMERIC,
        reasons,
        text_table,
        title,
        verdict,
        warning,
    )

    headings, rows = text_table(compared)
    shown = table(*headings, numbers=NUMERIC, title=title(experiment, protocol))
    for row in rows:
        shown.add_row(*row)
    console().print(shown)
    counted, outside = verdict(compared, protocol)
    listed = [f"  outside: {one}" for one in outside]
    for sentence in (
        warning(protocol),
        *experiment.notes,
        *counted,
        *listed,
        *reasons(compared),
    ):
        if sentence:
            console().print(sentence, soft_wrap=True)
    for path in files:
        print(f"wrote {path}")
