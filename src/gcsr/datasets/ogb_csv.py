"""ogbn-arxiv as OGB publishes it: gzipped tables, in a folder or still in their zip archive."""

from __future__ import annotations

import gzip
import io
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from gcsr.datasets.layout import ARXIV_ARCHIVE, RawGraph
from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import ALWAYS_BYTES, UNREADABLE, reason

_INSIDE_ARCHIVE = "arxiv/"
_REFUSED: tuple[type[Exception], ...] = (*UNREADABLE, Warning)

# Tables of numbers pack to a third; those of a single number repeated are nobody's dataset.
_MOST_TEXT_PER_BYTE = 16
# A file as it lies there and how many bytes that is.
OpenFile = Callable[[str], tuple[IO[bytes], int]]


def read_arxiv_folder(folder: Path) -> RawGraph:
    """Read the extracted tables."""

    def opened(name: str) -> tuple[IO[bytes], int]:
        path = folder / name
        return path.open("rb"), path.stat().st_size

    return _read(folder, opened)


def read_arxiv_archive(folder: Path) -> RawGraph:
    """Read the tables out of ``arxiv.zip`` without extracting it."""
    path = folder / ARXIV_ARCHIVE
    try:
        with zipfile.ZipFile(path) as archive:

            def opened(name: str) -> tuple[IO[bytes], int]:
                info = archive.getinfo(_INSIDE_ARCHIVE + name)
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError("packed in another way than deflate")
                return archive.open(info), min(info.compress_size, path.stat().st_size)

            return _read(path, opened)
    except InputError:
        raise
    except UNREADABLE as error:
        raise InputError(f"{path}: not a readable zip archive ({reason(error)}).") from None


def _read(where: Path, opened: OpenFile) -> RawGraph:
    def table(name: str, dtype: type) -> np.ndarray:
        return _table(f"{where}: {name}", lambda: opened(name), dtype)

    def column(name: str) -> np.ndarray:
        return table(name, np.int64).reshape(-1)

    edges = table("raw/edge.csv.gz", np.int64)
    x = table("raw/node-feat.csv.gz", np.float32)
    nodes, count = column("raw/num-node-list.csv.gz"), column("raw/num-edge-list.csv.gz")
    require(nodes.size == count.size == 1, f"{where}: must hold one graph, not several.")
    require(
        int(nodes[0]) == x.shape[0] and int(count[0]) == edges.shape[0],
        f"{where}: holds {x.shape[0]} feature rows and {edges.shape[0]} edges, but declares"
        f" {nodes[0]} nodes and {count[0]} edges.",
    )
    return RawGraph(
        x=x,
        edges=edges.T,
        y=table("raw/node-label.csv.gz", np.int64),
        train=column("split/time/train.csv.gz"),
        val=column("split/time/valid.csv.gz"),
        test=column("split/time/test.csv.gz"),
    )


def _table(name: str, opened: Callable[[], tuple[IO[bytes], int]], dtype: type) -> np.ndarray:
    """A gzipped table of numbers without a header, always as a matrix."""
    try:
        packed, size = opened()
        with packed, gzip.open(packed, "rb") as stream, warnings.catch_warnings():
            warnings.simplefilter("error")  # an empty table is only a warning to numpy
            bounded = io.BufferedReader(_Bounded(stream, _most_text(size)))
            text: Any = io.TextIOWrapper(bounded, encoding="ascii")
            return np.loadtxt(text, dtype=dtype, delimiter=",", comments=None, ndmin=2)
    except KeyError:
        raise InputError(f"{name} is missing.") from None
    except _REFUSED as error:
        raise InputError(f"{name}: not a readable table of numbers ({reason(error)}).") from None


def _most_text(packed: int) -> int:
    return ALWAYS_BYTES // 32 + _MOST_TEXT_PER_BYTE * packed


class _Bounded(io.RawIOBase):
    """What another stream gives, up to a number of bytes; more is an error and not an end."""

    def __init__(self, stream: gzip.GzipFile, most: int) -> None:
        self._stream, self._left = stream, most

    def readable(self) -> bool:
        return True

    def readinto(self, place: Any) -> int:
        part = self._stream.read(len(place))
        self._left -= len(part)
        if self._left < 0:
            raise ValueError("it unpacks to far more than a table of numbers does")
        place[: len(part)] = part
        return len(part)
