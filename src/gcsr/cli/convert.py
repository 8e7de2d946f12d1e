"""``gcsr convert``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from gcsr.cli import options
from gcsr.cli.data import load_graph
from gcsr.cli.output import print_json, progress_bars
from gcsr.utils.errors import require
from gcsr.utils.formatting import byte_count
from gcsr.utils.progress import Progress
from gcsr.utils.safe_io import expanded

if TYPE_CHECKING:
    from gcsr.data.folder import Manifest

LISTS = ("--node-features", "--node-labels", "--train", "--val", "--test")


def convert(
    source: Annotated[str, typer.Argument(metavar="SOURCE")],
    out: Annotated[Path | None, typer.Argument(metavar="[OUT]")] = None,
    node_features: options.InputFile = None,
    node_labels: options.InputFile = None,
    train: options.InputFile = None,
    val: options.InputFile = None,
    test: options.InputFile = None,
    name: str | None = None,
    verify: bool = False,
    loading: options.Loading = options.LOADING,
    as_json: options.Json = False,
) -> None:
    """Write a graph as a folder of plain arrays; a large one is worked on in blocks.

    With --verify and without OUT, SOURCE is a folder that is there already.

    Args:
        source: A dataset's name, a graph file (.npz), an OGB archive (.zip) or its folder, or a list
            of edges (.csv, .parquet, .npy: source, target and maybe weight).
        out: The folder to write.
        node_features: For a list of edges: features, .npy.
        node_labels: Classes, -1 where unknown; .npy or a line per node.
        train: Training node ids; .npy or a line each.
        val: Validation node ids.
        test: Test node ids.
        name: Shown in results.
        verify: Read every byte of the folder and compare it with its hashes.
    """
    require(out is not None or verify, "OUT is needed: the folder to write, or give --verify.")
    lists = dict(zip(LISTS, (node_features, node_labels, train, val, test), strict=True))
    given = ", ".join(option for option, value in lists.items() if value is not None)
    require(out is not None or not given, f"{given} cannot be used with --verify alone.")

    from gcsr.data.folder import Manifest, write_folder
    from gcsr.data.folder import verify as verify_folder

    folder = Path(source) if out is None else out
    with progress_bars() as progress:
        if out is not None and _is_table(source, given):
            _convert(source, out, lists, name, loading, progress)
        elif out is not None:
            graph = load_graph(source, loading, progress)
            write_folder(graph.renamed(name) if name else graph, out)
        if verify:
            progress("verifying", 0, 1)
            verify_folder(folder)
            progress("verifying", 1, 1)
    manifest = Manifest.read(folder)
    size = sum(path.stat().st_size for path in folder.glob("*.npy"))
    if as_json:
        print_json(_summary(folder, manifest, size, verify))
        return
    print(
        f"{manifest.name}: {manifest.nodes:,} nodes, {manifest.edges:,} edges,"
        f" {manifest.feature_count} features, {manifest.num_classes} classes, {byte_count(size)}"
    )
    print(f"content hash {manifest.content_hash}")
    if verify:
        print(f"every array of {folder} has its hash")
    if out is not None:
        print(f"wrote {folder}")


def _is_table(source: str, given: str) -> bool:
    """Whether SOURCE is a list of edges or an OGB archive, which are converted in blocks."""
    from gcsr.datasets.convert import EDGE_SUFFIXES
    from gcsr.datasets.registry import names

    path = expanded(source)
    is_list = source not in names() and path.suffix in EDGE_SUFFIXES
    require(is_list or not given, f"{given} can only be used with a list of edges, got {source}.")
    is_archive = path.suffix == ".zip" or (path / "raw").is_dir()
    return is_list or (is_archive and source not in names())


def _convert(
    source: str,
    out: Path,
    lists: dict[str, Path | None],
    name: str | None,
    loading: options.Loading,
    progress: Progress,
) -> None:
    from gcsr.data.graph import scaling_name
    from gcsr.datasets.convert import EDGE_SUFFIXES, convert_tables, from_lists, from_ogb

    path = expanded(source)
    scaling = scaling_name(loading.features or "keep")
    if path.suffix in EDGE_SUFFIXES:
        missing = ", ".join(option for option, value in lists.items() if value is None)
        require(not missing, f"{missing} is needed with a list of edges.")
        files = {
            option.removeprefix("--").removeprefix("node-"): cast("Path", value)
            for option, value in lists.items()
        }
        tables = from_lists(path, **files)
    else:
        tables = from_ogb(path)
    convert_tables(
        tables,
        out,
        name=name or path.stem,
        undirected=loading.undirected,
        inductive=bool(loading.inductive),
        scaling=scaling,
        progress=progress,
    )


def _summary(folder: Path, manifest: Manifest, size: int, verified: bool) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "name": manifest.name,
        "nodes": manifest.nodes,
        "edges": manifest.edges,
        "features": manifest.feature_count,
        "classes": manifest.num_classes,
        "weighted": manifest.weighted,
        "inductive": manifest.inductive,
        "scaling": manifest.scaling,
        "bytes": size,
        "content_hash": manifest.content_hash,
        "verified": verified,
    }
