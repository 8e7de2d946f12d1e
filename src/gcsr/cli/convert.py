"""``gcsr convert``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gcsr.cli import options
from gcsr.cli.data import load_graph
from gcsr.cli.output import print_json, progress_bars
from gcsr.utils.errors import require
from gcsr.utils.formatting import byte_count
from gcsr.utils.safe_io import expanded

if TYPE_CHECKING:
    from gcsr.datasets.convert import Tables

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
    files = (node_features, node_labels, train, val, test)
    lists = {option: file for option, file in zip(LISTS, files, strict=True) if file is not None}
    given = ", ".join(lists)
    require(out is not None or not given, f"{given} cannot be used with --verify alone.")

    from gcsr.data.arrays import scaling_name
    from gcsr.data.folder import Manifest, write_folder
    from gcsr.data.folder import verify as verify_folder
    from gcsr.datasets.convert import convert_tables

    folder = Path(source) if out is None else out
    with progress_bars() as progress:
        tables = None if out is None else _tables(source, lists)
        if out is not None and tables is not None:
            convert_tables(
                tables,
                out,
                name=name or expanded(source).stem,
                undirected=loading.undirected,
                inductive=bool(loading.inductive),
                scaling=scaling_name(loading.features or "keep"),
                progress=progress,
            )
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
        kept = ("name", "nodes", "edges", "weighted", "inductive", "scaling", "content_hash")
        print_json(
            {
                "folder": str(folder),
                **{key: getattr(manifest, key) for key in kept},
                "features": manifest.feature_count,
                "classes": manifest.num_classes,
                "bytes": size,
                "verified": verify,
            }
        )
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


def _tables(source: str, lists: dict[str, Path]) -> Tables | None:
    """The tables of a list of edges or an OGB archive, which are converted in blocks."""
    from gcsr.datasets.convert import EDGE_SUFFIXES, from_lists, from_ogb
    from gcsr.datasets.registry import names

    path = expanded(source)
    is_file = source not in names()
    if is_file and path.suffix in EDGE_SUFFIXES:
        missing = [option for option in LISTS if option not in lists]
        verb = "is" if len(missing) == 1 else "are"
        require(not missing, f"{', '.join(missing)} {verb} needed with a list of edges.")
        files = {
            option.removeprefix("--").removeprefix("node-"): file for option, file in lists.items()
        }
        return from_lists(path, **files)
    given = ", ".join(lists)
    require(not given, f"{given} can only be used with a list of edges, got {source}.")
    if is_file and (path.suffix == ".zip" or (path / "raw").is_dir()):
        return from_ogb(path)
    return None
