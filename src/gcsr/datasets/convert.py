"""From a dataset, a graph file, an OGB archive or a list of edges to a graph folder."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gcsr.data.array_file import WALK_BYTES, ArrayFile, ArrayWriter
from gcsr.data.edge_blocks import EdgeBlocks
from gcsr.data.folder import new_folder, seal, write_list
from gcsr.data.graph import SPLITS, FeatureScaling, Scale, row_scale, standard_scale
from gcsr.data.stored_graph import open_folder
from gcsr.datasets.edge_lists import Edges, edges_of, edges_of_text, list_of, matrix_of, readable
from gcsr.datasets.ogb_csv import OgbFiles
from gcsr.utils.errors import InputError, require
from gcsr.utils.progress import Progress, silent

EDGE_SUFFIXES = (".csv", ".parquet", ".npy")


@dataclass(frozen=True, eq=False)
class Tables:
    """A graph as tables: blocks of edges and of feature rows; labels and node ids by split."""

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
    require(nodes > 0, "y must have at least one label, got none.")
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
        # Check the folder before it gets its name.
        open_folder(folder, memory=2**20)
    return out


def from_lists(
    edges: Path, *, features: Path, labels: Path, train: Path, val: Path, test: Path
) -> Tables:
    """Tables in files: edges as csv, parquet or npy, features as npy, the rest as csv or npy."""
    require(
        edges.suffix in EDGE_SUFFIXES,
        f"{edges}: edges must be a {', '.join(EDGE_SUFFIXES)} file.",
    )
    for path in (edges, features, labels, train, val, test):
        require(path.is_file(), f"{path}: no such file.")
    matrix = matrix_of(features)
    step = max(1, WALK_BYTES // max(1, matrix.itemsize * matrix.shape[1]))
    blocks = edges_of(edges)
    first = next(blocks, None)
    return Tables(
        edges=() if first is None else chain([first], blocks),
        features=(np.array(matrix[i : i + step]) for i in range(0, matrix.shape[0], step)),
        labels=list_of(labels, "labels"),
        split={
            name: list_of(path, name) for name, path in zip(SPLITS, (train, val, test), strict=True)
        },
        weighted=first is not None and first[2] is not None,
    )


def from_ogb(path: Path, stack: ExitStack) -> Tables:
    """OGB's gzipped tables of a graph for node classification, in their folder or zip archive."""
    files = OgbFiles(path, stack)

    def column(name: str) -> np.ndarray:
        with readable(path), files.open(name)[0] as packed, gzip.open(packed, "rb") as stream:
            return _numbers(f"{path}: {name}", stream, np.int64).reshape(-1)

    parts = {"train": "train", "val": "valid", "test": "test"}
    return Tables(
        edges=_unpacked_edges(files),
        features=_unpacked_rows(files),
        labels=column("raw/node-label.csv.gz"),
        split={split: column(files.split(part)) for split, part in parts.items()},
    )


def _unpacked_edges(files: OgbFiles) -> Iterator[Edges]:
    name = "raw/edge.csv.gz"
    with readable(files.path), files.open(name)[0] as packed, gzip.open(packed, "rb") as stream:
        yield from edges_of_text(f"{files.path}: {name}", stream)


def _unpacked_rows(files: OgbFiles) -> Iterator[np.ndarray]:
    name = "raw/node-feat.csv.gz"
    with readable(files.path), files.open(name)[0] as packed, gzip.open(packed, "rb") as stream:
        text = io.TextIOWrapper(io.BufferedReader(stream), encoding="ascii")
        while lines := text.readlines(WALK_BYTES):
            yield _numbers(f"{files.path}: {name}", lines, np.float32)


def _numbers(name: str, source: Any, kind: type) -> np.ndarray:
    try:
        return np.loadtxt(source, dtype=kind, delimiter=",", comments=None, ndmin=2)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{name}: not a readable table of numbers ({error}).") from None


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
