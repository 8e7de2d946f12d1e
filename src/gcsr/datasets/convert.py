"""From a dataset, a graph file, an OGB archive or a list of edges to a graph folder."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

from gcsr.data.array_file import WALK_BYTES, ArrayFile, ArrayWriter
from gcsr.data.edge_blocks import EdgeBlocks
from gcsr.data.folder import SPLITS, new_folder, seal, write_list
from gcsr.data.graph import FeatureScaling, Scale, row_scale, standard_scale
from gcsr.data.stored_graph import open_folder
from gcsr.datasets.edge_lists import Edges, edges_of, edges_of_text, list_of, matrix_of, readable
from gcsr.utils.errors import InputError, require
from gcsr.utils.progress import Progress, silent

EDGE_SUFFIXES = (".csv", ".parquet", ".npy")


@dataclass(frozen=True, eq=False)
class Tables:
    """A graph as it lies in tables, none of which need fit into memory but labels and split.

    Attributes:
        edges: sources, targets and maybe weights, some at a time.
        features: rows of node features, some at a time, in the order of the nodes.
        labels: one class per node, -1 where unknown.
        split: node ids of ``train``, ``val`` and ``test``.
        weighted: whether edges come with weights.
    """

    edges: Iterable[Edges]
    features: Iterable[np.ndarray]
    labels: np.ndarray
    split: dict[str, np.ndarray]
    weighted: bool = False


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
    require(nodes > 0, "labels: there are none.")
    with new_folder(out) as folder:
        _write_features(folder, tables.features, nodes, progress)
        if scaling != "keep":
            _scale(folder, scaling, tables.split["train"])
        blocks = EdgeBlocks(folder, nodes, weighted=tables.weighted)
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
        seal(folder, name=name, num_classes=classes, inductive=inductive, scaling=scaling)
        # What a folder refuses when it is opened, it must not become.
        open_folder(folder, memory=2**20)
    return out


def from_lists(
    edges: Path, *, features: Path, labels: Path, train: Path, val: Path, test: Path
) -> Tables:
    """Tables in files: edges as csv, parquet or npy, features as npy, the rest as csv or npy."""
    require(
        edges.suffix in EDGE_SUFFIXES,
        f"{edges}: edges are read from {', '.join(EDGE_SUFFIXES)} files.",
    )
    for path in (edges, features, labels, train, val, test):
        require(path.is_file(), f"{path}: no such file.")
    matrix = matrix_of(features)
    step = max(1, WALK_BYTES // max(1, matrix.itemsize * matrix.shape[1]))
    blocks = edges_of(edges)
    first = next(blocks, None)
    return Tables(
        edges=() if first is None else _with(first, blocks),
        features=(np.array(matrix[i : i + step]) for i in range(0, matrix.shape[0], step)),
        labels=list_of(labels, "labels"),
        split={
            "train": list_of(train, "train"),
            "val": list_of(val, "val"),
            "test": list_of(test, "test"),
        },
        weighted=first is not None and first[2] is not None,
    )


def from_ogb(path: Path, stack: ExitStack) -> Tables:
    """OGB's gzipped tables of a graph for node classification, in their folder or zip archive."""
    opened = _Archive(path, stack)

    def column(name: str) -> np.ndarray:
        with readable(path), gzip.open(opened(name), "rb") as stream:
            return _numbers(f"{path}: {name}", stream, np.int64).reshape(-1)

    return Tables(
        edges=_unpacked_edges(path, opened),
        features=_unpacked_rows(path, opened),
        labels=column("raw/node-label.csv.gz"),
        split={
            "train": column(opened.split("train")),
            "val": column(opened.split("valid")),
            "test": column(opened.split("test")),
        },
    )


class _Archive:
    """Opens a table of OGB by its name below the graph's folder."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._path = path
        self._zip: zipfile.ZipFile | None = None
        if path.is_dir():
            found = [file.relative_to(path).as_posix() for file in path.glob("*/**/*.csv.gz")]
            self._names = {name: name for name in found}
            return
        try:
            self._zip = stack.enter_context(zipfile.ZipFile(path))
        except (OSError, zipfile.BadZipFile) as error:
            raise InputError(f"{path}: not a readable zip archive ({error}).") from None
        # Everything lies in one folder, which has the graph's name.
        inner = [name.split("/", 1) for name in self._zip.namelist() if name.endswith(".csv.gz")]
        self._names = {parts[-1]: "/".join(parts) for parts in inner if len(parts) == 2}

    def __call__(self, name: str) -> IO[bytes]:
        require(name in self._names, f"{self._path}: {name} is missing.")
        if self._zip is not None:
            return self._zip.open(self._names[name])
        return (self._path / self._names[name]).open("rb")

    def split(self, part: str) -> str:
        """The table of a part, whatever the split is called."""
        found = sorted(name for name in self._names if name.startswith("split/"))
        found = [name for name in found if name.endswith(f"/{part}.csv.gz")]
        require(
            len(found) == 1, f"{self._path}: has {len(found)} splits with {part}; one is needed."
        )
        return found[0]


def _unpacked_edges(path: Path, opened: _Archive) -> Iterator[Edges]:
    with readable(path), opened("raw/edge.csv.gz") as packed, gzip.open(packed, "rb") as stream:
        yield from edges_of_text(f"{path}: raw/edge.csv.gz", stream)


def _unpacked_rows(path: Path, opened: _Archive) -> Iterator[np.ndarray]:
    with (
        readable(path),
        opened("raw/node-feat.csv.gz") as packed,
        gzip.open(packed, "rb") as stream,
    ):
        text = io.TextIOWrapper(io.BufferedReader(stream), encoding="ascii")
        while lines := text.readlines(WALK_BYTES):
            yield _numbers(f"{path}: raw/node-feat.csv.gz", lines, np.float32)


def _numbers(name: str, source: Any, kind: type) -> np.ndarray:
    try:
        return np.loadtxt(source, dtype=kind, delimiter=",", comments=None, ndmin=2)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{name}: not a readable table of numbers ({error}).") from None


def _with(first: Edges, rest: Iterator[Edges]) -> Iterator[Edges]:
    yield first
    yield from rest


def _write_features(
    folder: Path, blocks: Iterable[np.ndarray], nodes: int, progress: Progress
) -> None:
    width = None
    writer = None
    with ExitStack() as stack:
        for block in blocks:
            if writer is None:
                width = int(block.shape[1])
                require(width > 0, "x: features are empty.")
                file = ArrayWriter(folder / "features.npy", "<f4", width)
                writer = stack.enter_context(file)
            require(block.shape[1] == width, "x: the rows must be numbers and of equal length.")
            writer.append(block)
            progress("writing features", writer.rows, nodes)
        found = 0 if writer is None else writer.rows
        require(
            writer is not None and found == nodes,
            f"y: {nodes} labels do not match {found} feature rows.",
        )
        if writer is not None:
            writer.finish()


def _scale(folder: Path, scaling: FeatureScaling, train: np.ndarray) -> None:
    """Scale the features of a folder in place."""
    file = ArrayFile.open(folder / "features.npy")
    inside = train.size > 0 and int(train.min()) >= 0 and int(train.max()) < file.rows
    require(inside, f"split: train must name nodes 0..{file.rows - 1}.")
    scale: Scale = row_scale
    if scaling == "standardize":
        # In the order of a graph's training nodes, so that sums have the same last bit.
        scale = standard_scale(torch.from_numpy(file.take(np.unique(train))))
    with ArrayWriter(file.path, "<f4", file.shape[1]) as writer:
        for block in file.blocks():
            writer.append(scale(torch.from_numpy(block)).numpy())
        writer.finish()
