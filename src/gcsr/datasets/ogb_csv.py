"""OGB's gzipped tables of a graph, in a folder or still in their zip archive."""

from __future__ import annotations

import gzip
import io
import warnings
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from gcsr.datasets.layout import ARXIV_ARCHIVE, RawGraph
from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import ALWAYS_BYTES, UNREADABLE, reason

_REFUSED: tuple[type[Exception], ...] = (*UNREADABLE, Warning)
# Tables of numbers compress to a third; a ratio above this is no real dataset.
_MOST_TEXT_PER_BYTE = 16


class OgbFiles:
    """Opens tables by their names below the graph's folder; ``stack`` closes the archive."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        if path.is_dir():
            found = [file.relative_to(path).as_posix() for file in path.glob("*/**/*.csv.gz")]
            self._names = {name: name for name in found}
            return
        try:
            self._zip = stack.enter_context(zipfile.ZipFile(path))
        except UNREADABLE as error:
            raise InputError(f"{path}: not a readable zip archive ({reason(error)}).") from None
        # All tables are in one folder, which has the graph's name.
        inner = [name.split("/", 1) for name in self._zip.namelist() if name.endswith(".csv.gz")]
        self._names = {parts[-1]: "/".join(parts) for parts in inner if len(parts) == 2}

    def open(self, name: str) -> tuple[IO[bytes], int]:
        """The compressed table and its size in bytes."""
        require(name in self._names, f"{self.path}: {name} is missing.")
        if self._zip is None:
            file = self.path / name
            return file.open("rb"), file.stat().st_size
        info = self._zip.getinfo(self._names[name])
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("not compressed with deflate")
        return self._zip.open(info), min(info.compress_size, self.path.stat().st_size)

    def split(self, part: str) -> str:
        """The name of the table of a part, whatever the split is called."""
        found = [
            name
            for name in self._names
            if name.startswith("split/") and name.endswith(f"/{part}.csv.gz")
        ]
        require(len(found) == 1, f"{self.path}: must have one split with {part}, got {len(found)}.")
        return found[0]


def read_arxiv_folder(folder: Path) -> RawGraph:
    """Read the extracted tables of ogbn-arxiv."""
    with ExitStack() as stack:
        return _read(OgbFiles(folder, stack))


def read_arxiv_archive(folder: Path) -> RawGraph:
    """Read the tables out of ``arxiv.zip`` without extracting it."""
    with ExitStack() as stack:
        return _read(OgbFiles(folder / ARXIV_ARCHIVE, stack))


def _read(files: OgbFiles) -> RawGraph:
    def column(name: str) -> np.ndarray:
        return _table(files, name, np.int64).reshape(-1)

    edges = _table(files, "raw/edge.csv.gz", np.int64)
    x = _table(files, "raw/node-feat.csv.gz", np.float32)
    nodes, count = column("raw/num-node-list.csv.gz"), column("raw/num-edge-list.csv.gz")
    require(
        (nodes.tolist(), count.tolist()) == ([x.shape[0]], [edges.shape[0]]),
        f"{files.path}: must have one graph of {nodes} nodes and {count} edges, got {x.shape[0]}"
        f" feature rows and {edges.shape[0]} edges.",
    )
    return RawGraph(
        x=x,
        edges=edges.T,
        y=_table(files, "raw/node-label.csv.gz", np.int64),
        train=column("split/time/train.csv.gz"),
        val=column("split/time/valid.csv.gz"),
        test=column("split/time/test.csv.gz"),
    )


def _table(files: OgbFiles, name: str, dtype: type) -> np.ndarray:
    """A gzipped table of numbers without a header, always as a matrix."""
    try:
        packed, size = files.open(name)
        with packed, gzip.open(packed, "rb") as stream, warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns about an empty table
            most = ALWAYS_BYTES // 32 + _MOST_TEXT_PER_BYTE * size
            bounded: Any = io.BufferedReader(_Bounded(stream, most))
            text = io.TextIOWrapper(bounded, encoding="ascii")
            return np.loadtxt(text, dtype=dtype, delimiter=",", comments=None, ndmin=2)
    except InputError:
        raise
    except _REFUSED as error:
        raise InputError(
            f"{files.path}: {name}: not a readable table of numbers ({reason(error)})."
        ) from None


class _Bounded(io.RawIOBase):
    """Another stream up to a number of bytes; more is an error."""

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
