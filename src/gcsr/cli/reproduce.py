"""``gcsr reproduce``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gcsr.cli import options
from gcsr.cli.options import checked_device
from gcsr.cli.output import (
    ROOT_OPTION,
    console,
    in_options,
    print_json,
    print_table,
    progress_bars,
    remember_written,
)
from gcsr.utils.errors import InputError, require, require_one_of

if TYPE_CHECKING:
    from gcsr.benchmarking.cells import Protocol
    from gcsr.paper.experiments import Experiment
    from gcsr.paper.tables import Compared

CELLS_FAILED = 1


def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]")] = None,
    listed: Annotated[bool, typer.Option("--list")] = False,
    dataset: list[str] | None = None,
    method: list[str] | None = None,
    quick: bool = False,
    graphs: options.CountOrNone = None,
    runs: options.CountOrNone = None,
    out: Path = Path("reproduced"),
    jobs: options.Count = 1,
    keep_graphs: bool = False,
    bounds: options.ExpertBounds = options.EXPERT_BOUNDS,
    download: options.Download = True,
    device: options.Device = "auto",
    cluster: options.Cluster = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """Run a table or figure of the paper and set our numbers beside the published ones.

    Finished cells are kept: a run that was interrupted continues where it was. Several runs may share
    a folder: each cell is measured by one of them.

    Args:
        name: A table or figure; see --list.
        listed: List what can be reproduced, and compute nothing.
        dataset: Only this dataset; repeatable.
        method: Only cells of this method; repeatable.
        quick: A smoke run: one graph, one run, few iterations. Its outputs are marked.
        graphs: Condensed graphs per cell; by default 5, with --quick 1.
        runs: Networks per condensed graph; by default 10, with --quick 1.
        out: Folder of tables, figures and finished cells.
        jobs: Processes that measure cells at the same time.
        keep_graphs: Keep condensed graphs in OUT/graphs; other tables with this option take them.
    """
    from gcsr.benchmarking.cells import Protocol
    from gcsr.benchmarking.store import Store, prepare_folder
    from gcsr.paper.experiments import EXPERIMENTS, experiment
    from gcsr.paper.experiments import reproduce as run
    from gcsr.paper.figures import graphs_folder, rows_file, write_outputs
    from gcsr.paper.tables import compare, tally

    if listed:
        require(name is None, f"NAME cannot be given with --list, got {name!r}.")
        _list(list(EXPERIMENTS.values()), as_json)
        return
    require(name is not None, f"NAME must be one of {', '.join(EXPERIMENTS)}, or give --list.")
    chosen = experiment(name or "")
    default = (1, 1) if quick else (5, 10)
    protocol = Protocol(graphs or default[0], runs or default[1], quick)
    datasets = dataset or []
    for one in datasets:
        require_one_of("dataset", one, chosen.datasets)
    for one in method or ():
        require_one_of("method", one, sorted({cell.method for cell in chosen.cells}))
    checked_device(device, cluster)
    expert_bounds = bounds.settings
    new_folders = [folder for folder in (out, *out.parents) if not folder.exists()]
    prepare_folder("out", out)
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
                bounds=expert_bounds,
                progress=progress,
                cluster=cluster,
            )
    finally:
        if len(store) > before:
            remember_written([store.path])
    compared = compare(chosen, outcomes, datasets)
    states = {number.state: number.reason for one in compared for number in one.numbers}
    nothing = "absent" in states and not states.keys() & {"done", "failed"}
    if nothing:
        with suppress(OSError):  # where another process has begun to write
            for folder in new_folders:
                folder.rmdir()
        raise InputError(states["absent"])
    shown = compare(chosen, outcomes, datasets, known_too=True)
    with store.outputs():
        files = write_outputs(out, chosen, shown, protocol)
    remember_written(files)
    if as_json:
        tallies = {"ours": tally(compared), "without_leak": tally(compared, fair=True)}
        counts = {kind: {"within": one.within, **vars(one)} for kind, one in tallies.items()}
        print_json(
            {
                "experiment": chosen.name,
                "title": chosen.title,
                "quick": quick,
                "graphs": protocol.graphs,
                "runs": protocol.runs,
                "within_one_std": None if quick else counts,
                "lines": [one.to_dict() for one in compared],
                "notes": chosen.notes,
                "files": [str(path) for path in (store.path, *files)],
            }
        )
    else:
        _print_compared(chosen, compared, protocol, files)
    if "failed" in states:
        raise typer.Exit(CELLS_FAILED)


def _list(experiments: Sequence[Experiment], as_json: bool) -> None:
    rows = [(e.name, e.title, len(e.cells), e.datasets) for e in experiments]
    names = ("name", "title", "cells", "datasets")
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    print_table(names, [(*row, ", ".join(datasets)) for *row, datasets in rows], ("cells",))


def _print_compared(
    experiment: Experiment,
    compared: Sequence[Compared],
    protocol: Protocol,
    files: Sequence[Path],
) -> None:
    from gcsr.paper.tables import NUMERIC, SPREAD, reasons, text_table, title, verdict, warning

    headings, rows = text_table(compared)
    print_table(headings, rows, NUMERIC, title(experiment, protocol))
    counted, outside = verdict(compared, protocol)
    listed = [f"  outside: {one}" for one in outside]
    for sentence in (
        warning(protocol),
        SPREAD,
        *experiment.notes,
        *counted,
        *listed,
        *reasons(compared),
    ):
        if sentence:
            console().print(in_options(sentence, ROOT_OPTION), soft_wrap=True)
    for path in files:
        print(f"wrote {path}")
