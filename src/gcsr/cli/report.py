"""``gcsr report``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcsr.cli import options
from gcsr.cli.data import SUFFIX, load_graph, recorded, require_writable
from gcsr.cli.output import (
    byte_count,
    print_json,
    print_leak,
    printable,
    progress_bars,
    remember_written,
    uninterrupted,
)
from gcsr.utils.errors import InputError, require

if TYPE_CHECKING:
    from gcsr.data.condensed import CondensedGraph
    from gcsr.data.graph import Graph
    from gcsr.utils.progress import Progress

EPOCHS = 600


def report(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT_OR_DIR...",
            help="A condensed graph, a folder of them, or a folder made by `gcsr reproduce`.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The page to write.")],
    compare: Annotated[
        bool, typer.Option("--compare", help="Several results of one dataset side by side.")
    ] = False,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="A dataset's name or a graph file; by default what RESULT was made from, if it is"
            " a known dataset that is here.",
        ),
    ] = None,
    evaluate: Annotated[
        bool,
        typer.Option(
            "--evaluate/--no-evaluate",
            help="Train networks on RESULT, on random nodes and on the whole graph.",
        ),
    ] = True,
    model: Annotated[str, typer.Option(help="The network to train and test.")] = "gcn",
    runs: Annotated[int, typer.Option(min=1, help="Networks per graph.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs per network.")] = EPOCHS,
    tsne_nodes: Annotated[
        int,
        typer.Option(min=0, max=20_000, help="At most so many real nodes in the map; 0: no map."),
    ] = 2000,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    root: options.Root = None,
    features: options.Features = None,
    undirected: options.Undirected = False,
    inductive: options.Inductive = None,
    any_graph: options.AnyGraph = False,
    as_json: options.Json = False,
) -> None:
    """Write one self-contained HTML page about a result, several of them, or a reproduced folder.

    The page opens from disk, loads nothing and sends nothing.
    """
    require_writable([out])
    for path in results:
        require(path.exists(), f"{path}: no such file or folder.")

    from gcsr.reporting.report import (  # noqa: PLC0415
        condensed_files,
        folder_report,
        is_reproduced,
    )

    if len(results) == 1 and is_reproduced(results[0]):
        require(not compare, f"compare: {results[0]} is a reproduced folder, which is one result.")
        _write(out, folder_report(results[0]), [results[0]], as_json, leaks=False)
        return
    files = condensed_files(results, SUFFIX)
    require(
        len(files) > 1 or not compare, "compare: at least two results are needed, and there is one."
    )
    page, absent, leaks = _page(
        files,
        several=compare or len(files) > 1,
        data=data,
        loading={
            "root": root,
            "features": features,
            "undirected": undirected,
            "inductive": inductive,
        },
        epochs=epochs,
        options={
            "evaluate": evaluate,
            "model": model,
            "runs": runs,
            "tsne_nodes": tsne_nodes,
            "seed": seed,
            "device": device,
            "check_origin": not any_graph,
        },
    )
    _write(out, page, files, as_json, leaks=leaks)
    if absent and not as_json:
        print(printable(f"note: without the real graph: {absent}"))


def _page(
    files: Sequence[Path],
    *,
    several: bool,
    data: str | None,
    loading: dict[str, Any],
    epochs: int,
    options: dict[str, Any],
) -> tuple[str, str, bool]:
    from gcsr.data.condensed import CondensedGraph  # noqa: PLC0415 - torch takes a second to import
    from gcsr.models.registry import testing_model  # noqa: PLC0415
    from gcsr.reporting.pages import require_one_dataset  # noqa: PLC0415
    from gcsr.reporting.report import report as page_of  # noqa: PLC0415
    from gcsr.reporting.report import result_names  # noqa: PLC0415
    from gcsr.training.fit import TrainingRecipe  # noqa: PLC0415
    from gcsr.utils.devices import pick_device  # noqa: PLC0415

    testing_model(options["model"])
    options["device"] = pick_device(options["device"])
    small = [CondensedGraph.load(path) for path in files]
    names = result_names(files)
    require_one_dataset(list(zip(names, small, strict=True)))
    with progress_bars() as progress:
        graph, absent = _real_graph(small, data, loading, options["check_origin"], progress)
        recipe = None
        if graph is not None and epochs != EPOCHS:
            recipe = TrainingRecipe(epochs=epochs)
        page = page_of(
            small if several else small[0],
            graph,
            names=names,
            recipe=recipe,
            progress=progress,
            **{**options, **({"absent": absent} if absent else {})},
        )
    return page, absent, any(one.leaks_test_labels for one in small)


def _real_graph(
    small: Sequence[CondensedGraph],
    data: str | None,
    loading: dict[str, Any],
    check_origin: bool,
    progress: Progress,
) -> tuple[Graph | None, str]:
    """The graph that was asked for, or the one that the results name; else why there is none."""
    from gcsr.evaluation.origin import require_origin  # noqa: PLC0415 - imports torch
    from gcsr.reporting.report import known_dataset  # noqa: PLC0415

    asked = dict(loading)
    for field, kind in (("features", str), ("inductive", bool)):
        if asked[field] is None:
            asked[field] = recorded(small, field, kind)
    if data is not None:
        return load_graph(data, progress=progress, **asked), ""
    name, why = known_dataset(small[0], loading["root"])
    if name is None:
        return None, why
    try:
        graph = load_graph(name, progress=progress, **asked)
        require_origin(small, graph, check_origin)
    except InputError as error:
        return None, f"{name} could not be used: {error}"
    return graph, ""


def _write(out: Path, page: str, sources: Sequence[Path], as_json: bool, *, leaks: bool) -> None:
    from gcsr.utils.files import write_atomically  # noqa: PLC0415 - not needed before

    blob = page.encode(errors="replace")  # names of files and texts in them may be no Unicode
    with uninterrupted():
        write_atomically(out, blob)
        remember_written([out])
    if as_json:
        told = {"out": str(out), "bytes": len(blob), "results": [str(path) for path in sources]}
        print_json(told | {"leaks_test_labels": leaks})
        return
    if leaks:
        print_leak()
    print(f"wrote {out} ({byte_count(len(blob))}); open it in a browser")
