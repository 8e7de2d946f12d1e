"""ogbn-arxiv as OGB publishes it: gzipped tables, in a folder or still in their zip archive."""

from __future__ import annotations

import gzip
import io
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from gcsr.datasets.raw import RawGraph
from gcsr.errors import InputError, require

ARXIV_FILES = (
    "raw/edge.csv.gz",
    "raw/node-feat.csv.gz",
    "raw/node-label.csv.gz",
    "raw/num-node-list.csv.gz",
    "raw/num-edge-list.csv.gz",
    "split/time/train.csv.gz",
    "split/time/valid.csv.gz",
    "split/time/test.csv.gz",
)
ARXIV_ARCHIVE = "arxiv.zip"
_INSIDE_ARCHIVE = "arxiv/"

OpenFile = Callable[[str], IO[bytes]]


def read_arxiv_folder(folder: Path) -> RawGraph:
    """Read the extracted tables."""
    return _read(folder, lambda name: (folder / name).open("rb"))


def read_arxiv_archive(folder: Path) -> RawGraph:
    """Read the tables out of ``arxiv.zip`` without extracting it."""
    path = folder / ARXIV_ARCHIVE
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(path, lambda name: archive.open(_INSIDE_ARCHIVE + name))
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(f"{path}: not a readable zip archive ({error}).") from None


def _read(where: Path, opened: OpenFile) -> RawGraph:
    def table(name: str, dtype: type) -> np.ndarray:
        return _table(f"{where}: {name}", lambda: opened(name), dtype)

    def column(name: str) -> np.ndarray:
        return table(name, np.int64).reshape(-1)

    edges = table("raw/edge.csv.gz", np.int64)
    x = table("raw/node-feat.csv.gz", np.float32)
    nodes, count = column("raw/num-node-list.csv.gz"), column("raw/num-edge-list.csv.gz")
    require(
        nodes.tolist() == [x.shape[0]] and count.tolist() == [edges.shape[0]],
        f"{where}: holds {x.shape[0]} feature rows and {edges.shape[0]} edges, but declares"
        f" {nodes.tolist()} nodes and {count.tolist()} edges.",
    )
    return RawGraph(
        x=x,
        edges=edges.T,
        y=table("raw/node-label.csv.gz", np.int64),
        train=column("split/time/train.csv.gz"),
        val=column("split/time/valid.csv.gz"),
        test=column("split/time/test.csv.gz"),
    )


def _table(name: str, opened: Callable[[], IO[bytes]], dtype: type) -> np.ndarray:
    """A gzipped table of numbers without a header, always as a matrix."""
    try:
        with opened() as packed, gzip.open(packed, "rb") as stream, warnings.catch_warnings():
            warnings.simplefilter("error")  # an empty table is only a warning to numpy
            text: Any = io.TextIOWrapper(io.BufferedReader(stream), encoding="ascii")
            return np.loadtxt(text, dtype=dtype, delimiter=",", comments=None, ndmin=2)
    except KeyError:
        raise InputError(f"{name} is missing.") from None
    except (ValueError, OSError, EOFError, zlib.error, Warning, zipfile.BadZipFile) as error:
        raise InputError(f"{name}: not a readable table of numbers ({error}).") from None
