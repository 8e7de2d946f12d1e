"""``gcsr convert``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from gcsr.cli import options
from gcsr.cli.data import load_graph
from gcsr.cli.output import byte_count, print_json, progress_bars
from gcsr.utils.errors import require, require_one_of
from gcsr.utils.progress import Progress
from gcsr.utils.safe_io import expanded

if TYPE_CHECKING:
    from gcsr.data.folder import Manifest
    from gcsr.data.graph import FeatureScaling

LISTS = ("--node-features", "--node-labels", "--train", "--val", "--test")


def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A dataset's name, a graph file (.npz), an OGB archive (.zip) or its folder, or a"
            " list of edges (.csv, .parquet, .npy: source, target and maybe weight).",
        ),
    ],
    out: Annotated[
        Path | None, typer.Argument(metavar="[OUT]", help="The folder to write.")
    ] = None,
    node_features: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For a list of edges: features, .npy.")
    ] = None,
    node_labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Classes, -1 where unknown; .npy or a line per node."),
    ] = None,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Training node ids; .npy or a line each.")
    ] = None,
    val: Annotated[Path | None, typer.Option(metavar="FILE", help="Validation node ids.")] = None,
    test: Annotated[Path | None, typer.Option(metavar="FILE", help="Test node ids.")] = None,
    name: Annotated[str | None, typer.Option(help="Shown in results.")] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Read every byte of the folder and hold it against its hashes."
        ),
    ] = False,
    root: options.Root = None,
    features: options.Features = None,
    undirected: options.Undirected = False,
    inductive: options.Inductive = None,
    as_json: options.Json = False,
) -> None:
    """Write a graph as a folder of plain arrays, which is worked on in blocks where it is large.

    With --verify and without OUT, SOURCE is a folder that is there already.
    """
    require(out is not None or verify, "OUT: the folder to write is needed, or --verify.")
    lists = dict(zip(LISTS, (node_features, node_labels, train, val, test), strict=True))
    if out is None:
        given = [option for option, value in lists.items() if value is not None]
        require(
            not given, f"{', '.join(given)}: nothing is converted where only --verify is asked."
        )

    from gcsr.data.folder import Manifest  # noqa: PLC0415
    from gcsr.data.folder import verify as verified  # noqa: PLC0415 - imports torch

    folder = Path(source) if out is None else out
    with progress_bars() as progress:
        if out is not None:
            _write(source, out, lists, name, root, features, undirected, inductive, progress)
        if verify:
            progress("verifying", 0, 1)
            verified(folder)
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


def _write(
    source: str,
    out: Path,
    lists: dict[str, Path | None],
    name: str | None,
    root: Path | None,
    features: str | None,
    undirected: bool,
    inductive: bool | None,
    progress: Progress,
) -> None:
    from gcsr.data.folder import write_folder  # noqa: PLC0415
    from gcsr.data.graph import FEATURE_SCALINGS  # noqa: PLC0415
    from gcsr.datasets.convert import EDGE_SUFFIXES, convert_tables, from_lists, from_ogb  # noqa: PLC0415
    from gcsr.datasets.registry import names  # noqa: PLC0415

    if features is not None:
        require_one_of("features", features, FEATURE_SCALINGS)
    path = expanded(source)
    is_list = source not in names() and path.suffix in EDGE_SUFFIXES
    if not is_list:
        given = [option for option, value in lists.items() if value is not None]
        require(not given, f"{', '.join(given)}: is for a list of edges, which {source} is not.")
    is_archive = path.suffix == ".zip" or (path / "raw").is_dir()
    if not is_list and (source in names() or not is_archive):
        graph = load_graph(
            source,
            root=root,
            features=features,
            undirected=undirected,
            inductive=inductive,
            progress=progress,
        )
        write_folder(graph.renamed(name) if name else graph, out)
        return
    with ExitStack() as stack:
        if is_list:
            missing = [option for option, value in lists.items() if value is None]
            require(not missing, f"{', '.join(missing)}: a list of edges needs it.")
            files = {
                option.removeprefix("--").removeprefix("node-"): cast("Path", value)
                for option, value in lists.items()
            }
            tables = from_lists(path, **files)
        else:
            tables = from_ogb(path, stack)
        convert_tables(
            tables,
            out,
            name=name or path.stem,
            undirected=undirected,
            inductive=bool(inductive),
            scaling=cast("FeatureScaling", features or "keep"),
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
