"""From a dataset, a graph file, an OGB archive or a list of edges to a graph folder."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TextIO

import numpy as np
import torch

from gcsr.data.array_file import WALK_BYTES, ArrayFile, ArrayWriter
from gcsr.data.arrays import SPLITS, FeatureScaling
from gcsr.data.edges import EdgeBlocks
from gcsr.data.features import row_scale
from gcsr.data.folder import new_folder, seal, write_list
from gcsr.data.graph import Scale, standard_scale
from gcsr.data.npz import load_array
from gcsr.data.stored_graph import open_folder
from gcsr.datasets.readers import OGB_PARTS, OgbFiles
from gcsr.utils.errors import InputError, require
from gcsr.utils.progress import Progress, silent
from gcsr.utils.safe_io import parsing

EDGE_SUFFIXES = (".csv", ".parquet", ".npy")
LINES_AT_ONCE = 2**20
COLUMNS = "2 columns (source, target) or 3 (source, target, weight)"
# Sources, targets and, where there is a third column, weights.
EdgeColumns = tuple[np.ndarray, np.ndarray, np.ndarray | None]


@dataclass(frozen=True, eq=False)
class Tables:
    """A graph as tables: blocks of edges and of feature rows; labels and node ids by split."""

    edges: Iterable[EdgeColumns]
    features: Iterable[np.ndarray]
    labels: np.ndarray
    split: dict[str, np.ndarray]


def convert_tables(
    tables: Tables,
    out: Path,
    *,
    name: str,
    undirected: bool = False,
    inductive: bool = False,
    scaling: FeatureScaling = "keep",
    progress: Progress = silent,
) -> Path:
    """Write tables as a graph folder, edges by the rules of :mod:`gcsr.data.edges`."""
    nodes = int(tables.labels.size)
    require(nodes > 0, "y must have at least one label, got none.")
    with new_folder(out) as folder:
        _write_features(folder, tables.features, nodes, progress)
        if scaling != "keep":
            _scale(folder, scaling, tables.split["train"])
        blocks = EdgeBlocks(folder, nodes)
        for done, edges in enumerate(tables.edges, 1):
            blocks.add(*edges)
            progress("reading edges", done, 0)
        progress("sorting edges", 0, 1)
        blocks.finish(undirected=undirected)
        progress("sorting edges", 1, 1)
        write_list(folder, "labels", tables.labels)
        for split in SPLITS:
            write_list(folder, split, np.sort(tables.split[split]))
        classes = int(tables.labels.max()) + 1
        width = ArrayFile.open(folder / "features.npy").shape[1]
        seal(
            folder,
            name=name,
            width=width,
            num_classes=classes,
            inductive=inductive,
            scaling=scaling,
        )
        # Check the folder before it gets its name.
        open_folder(folder, memory=2**20)
    return out


def from_lists(
    edges: Path, *, features: Path, labels: Path, train: Path, val: Path, test: Path
) -> Tables:
    """Tables in files: edges as csv, parquet or npy, features as npy, the rest as csv or npy."""
    require(
        edges.suffix in EDGE_SUFFIXES, f"{edges}: edges must be a {', '.join(EDGE_SUFFIXES)} file."
    )
    for path in (edges, features, labels, train, val, test):
        require(path.is_file(), f"{path}: no such file.")
    require(features.suffix == ".npy", f"{features}: node features must be a .npy file.")
    matrix = load_array(features)
    require(
        matrix.ndim == 2 and matrix.dtype.kind in "fiu",
        f"{features}: must be a matrix of numbers, got {matrix.dtype} of shape {matrix.shape}.",
    )
    step = max(1, WALK_BYTES // max(1, matrix.itemsize * matrix.shape[1]))
    return Tables(
        edges=edges_of(edges),
        features=(np.array(matrix[i : i + step]) for i in range(0, matrix.shape[0], step)),
        labels=list_of(labels, "labels"),
        split={
            name: list_of(path, name) for name, path in zip(SPLITS, (train, val, test), strict=True)
        },
    )


def from_ogb(path: Path) -> Tables:
    """OGB's gzipped tables of a graph for node classification, in their folder or zip archive."""
    files = OgbFiles(path)

    def column(name: str) -> np.ndarray:
        return files.table(name, np.int64, bounded=False).reshape(-1)

    def edges() -> Iterator[EdgeColumns]:
        with _unpacked(files, "raw/edge.csv.gz") as (place, text):
            yield from edges_of_text(place, text)

    def features() -> Iterator[np.ndarray]:
        with _unpacked(files, "raw/node-feat.csv.gz") as (place, text):
            while lines := text.readlines(WALK_BYTES):
                with parsing(f"{place}: not a readable table of numbers"):
                    block = np.loadtxt(
                        lines, dtype=np.float32, delimiter=",", comments=None, ndmin=2
                    )
                yield block

    return Tables(
        edges=edges(),
        features=features(),
        labels=column("raw/node-label.csv.gz"),
        split={
            split: column(files.split(part)) for split, part in zip(SPLITS, OGB_PARTS, strict=True)
        },
    )


@contextmanager
def _unpacked(files: OgbFiles, name: str) -> Iterator[tuple[str, TextIO]]:
    """The name of a table for messages, and its text."""
    with parsing(f"{files.path}: cannot be read"), files.unpacked(name) as (text, _):
        yield f"{files.path}: {name}", text


def _write_features(
    folder: Path, blocks: Iterable[np.ndarray], nodes: int, progress: Progress
) -> None:
    blocks = iter(blocks)
    first = next(blocks, np.empty((0, 1), np.float32))
    width = int(first.shape[1])
    require(width > 0, "x must have at least one column, got none.")
    with ArrayWriter(folder / "features.npy", "<f4", width) as writer:
        for block in chain([first], blocks):
            require(
                block.shape[1] == width,
                f"x must have rows of equal length, got {width} and {block.shape[1]} columns.",
            )
            writer.append(block)
            progress("writing features", writer.rows, nodes)
        require(
            writer.rows == nodes,
            f"y must have one class per row of x ({writer.rows}), got {nodes} labels.",
        )
        writer.finish()


def _scale(folder: Path, scaling: FeatureScaling, train: np.ndarray) -> None:
    """Scale the features of a folder in place."""
    file = ArrayFile.open(folder / "features.npy")
    inside = train.size > 0 and int(train.min()) >= 0 and int(train.max()) < file.rows
    require(inside, f"train must be node ids 0..{file.rows - 1}.")
    scale: Scale = row_scale
    if scaling == "standardize":
        # In the order of a graph's training nodes, so that sums have the same last bit.
        scale = standard_scale(torch.from_numpy(file.take(np.unique(train))))
    with ArrayWriter(file.path, "<f4", file.shape[1]) as writer:
        for block in file.blocks():
            writer.append(scale(torch.from_numpy(block)).numpy())
        writer.finish()


# -- Tables of edges, features, labels and node ids ----------------------------------------------------


def edges_of(path: Path) -> Iterator[EdgeColumns]:
    """Edges of a ``.csv``, ``.parquet`` or ``.npy`` file, some at a time.

    Two columns are sources and targets, a third one weights; a csv file may have a line of names.
    """
    if path.suffix == ".npy":
        yield from _from_npy(path)
    elif path.suffix == ".parquet":
        yield from _from_parquet(path)
    else:
        with parsing(f"{path}: cannot be read"), path.open(encoding="ascii") as text:
            yield from edges_of_text(str(path), text)


def edges_of_text(name: str, text: TextIO) -> Iterator[EdgeColumns]:
    """Edges of a table of comma-separated numbers."""
    first = text.readline()
    columns = first.count(",") + 1
    require(columns in (2, 3), f"{name}: must have {COLUMNS}, got {columns}.")
    kind = [("source", "<i8"), ("target", "<i8"), ("weight", "<f8")][:columns]
    lines = [first] if all(map(_is_number, first.split(","))) else []
    while True:
        lines += text.readlines(LINES_AT_ONCE * 8)
        if not any(line.strip() for line in lines):
            return
        with parsing(f"{name}: not a table of edges"):
            block = np.loadtxt(lines, dtype=kind, delimiter=",", comments=None, ndmin=1)
        yield block["source"], block["target"], block["weight"] if columns == 3 else None
        lines = []


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def list_of(path: Path, what: str) -> np.ndarray:
    """Integers, one per line or as a ``.npy`` array: labels or node ids."""
    with parsing(f"{path}: cannot be read"), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # numpy only warns about an empty table
        if path.suffix == ".npy":
            values = np.array(load_array(path))
        else:
            values = np.loadtxt(path, dtype=np.int64, delimiter=",", comments=None, ndmin=1)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    require(
        values.ndim == 1 and values.dtype.kind in "iu",
        f"{path}: {what} must be a list of integers, got {values.dtype} of shape {values.shape}.",
    )
    return np.asarray(values.astype(np.int64))


def _from_npy(path: Path) -> Iterator[EdgeColumns]:
    pairs = load_array(path)
    require(
        pairs.ndim == 2 and 2 in pairs.shape and pairs.dtype.kind in "iu",
        f"{path}: must be two rows of node ids, got {pairs.dtype} of shape {pairs.shape}.",
    )
    pairs = pairs if pairs.shape[0] == 2 else pairs.T
    for start in range(0, pairs.shape[1], LINES_AT_ONCE):
        sources, targets = (np.array(part[start : start + LINES_AT_ONCE]) for part in pairs)
        yield sources, targets, None


def _from_parquet(path: Path) -> Iterator[EdgeColumns]:
    try:
        from pyarrow import parquet  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError(
            f"{path}: reading parquet needs pyarrow (pip install 'gcsr[parquet]'); csv does not."
        ) from None
    with parsing(f"{path}: cannot be read"):
        file = parquet.ParquetFile(path)
        width = len(file.schema_arrow.names)
        require(width in (2, 3), f"{path}: must have {COLUMNS}, got {width}.")
        for batch in file.iter_batches(batch_size=LINES_AT_ONCE):
            columns = [batch.column(i).to_numpy(zero_copy_only=False) for i in range(width)]
            yield columns[0], columns[1], columns[2].astype(np.float64) if width == 3 else None
