"""``gcsr update``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import gcsr
from gcsr.cli import options
from gcsr.cli.data import load_graph, output_paths, replaced, write_graphs
from gcsr.cli.output import print_json, print_leak, progress_bars
from gcsr.utils.formatting import counted, printable


def update(
    file: options.File,
    data: Annotated[
        str,
        typer.Option(
            "--data",
            metavar="DATA",
            help="The graph as it is now: a dataset's name, a graph file or folder.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The file to write; it may be FILE.")],
    nodes: Annotated[
        int | None,
        typer.Option(min=1, help="Number of condensed nodes; by default as many as FILE has."),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(min=0, help="Outer steps; by default an eighth of those of condensing anew."),
    ] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    loading: options.Loading = options.LOADING,
    as_json: options.Json = False,
) -> None:
    """Bring a condensed graph up to date with a graph that has grown, instead of condensing anew.

    Nodes, edges, labels or classes may have been added; features and earlier classes are the same.
    """
    paths = output_paths(out)

    from gcsr.utils.devices import pick_device

    target = pick_device(device)
    small = gcsr.CondensedGraph.load(file)
    with progress_bars() as progress:
        graph = load_graph(data, loading, progress, made=[small])
        made = gcsr.update(
            small,
            graph,
            nodes=nodes,
            iterations=iterations,
            seed=seed,
            device=target,
            progress=progress,
        )
    lost = None if out.resolve() == file.resolve() else replaced(out, made)
    write_graphs([made], paths)
    found = made.provenance["update"]
    seconds, notes = made.provenance["measured"]["seconds"], made.provenance["notes"]
    if as_json:
        print_json(
            {
                "out": str(out),
                "dataset": graph.name,
                "nodes": made.num_nodes,
                **found,
                "updates": len(made.provenance["history"]),
                "seconds": seconds,
                "notes": notes,
                "replaced": lost,
                "leaks_test_labels": made.leaks_test_labels,
            }
        )
        return
    scores = ", ".join(f"{name} {100 * one:.1f} %" for name, one in found["validation"].items())
    print(
        f"{printable(graph.name)}: {counted(found['kept'], 'node')} kept, {sum(found['added'])} added,"
        f" {counted(found['iterations'], 'outer step')}, {seconds:.1f} s; validation: {scores}"
    )
    for note in notes:
        print(f"note: {printable(note)}")
    if made.leaks_test_labels:
        print_leak()
    if lost:
        print(lost)
    print(f"wrote {out}")
