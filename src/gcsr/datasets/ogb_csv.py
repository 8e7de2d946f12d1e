"""OGB's gzipped tables of a graph, in a folder or still in their zip archive."""

from __future__ import annotations

import gzip
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TextIO

import numpy as np

from gcsr.datasets.readers import RawGraph
from gcsr.utils.errors import require
from gcsr.utils.safe_io import ALWAYS_BYTES, parsing

# Tables of numbers compress to a third; a ratio above this is no real dataset.
_MOST_TEXT_PER_BYTE = 16


class OgbFiles:
    """Opens tables by their names below the graph's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_dir():
            found = [file.relative_to(path).as_posix() for file in path.glob("*/**/*.csv.gz")]
            self._names = {name: name for name in found}
            return
        with parsing(f"{path}: not a readable zip archive"), zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        # All tables are in one folder, which has the graph's name.
        inner = [name.split("/", 1) for name in names if name.endswith(".csv.gz")]
        self._names = {parts[-1]: "/".join(parts) for parts in inner if len(parts) == 2}

    @contextmanager
    def unpacked(self, name: str) -> Iterator[tuple[TextIO, int]]:
        """The text of a table, and the size in bytes of what it is unpacked from."""
        require(name in self._names, f"{self.path}: {name} is missing.")
        with ExitStack() as stack:
            packed: IO[bytes]
            if self.path.is_dir():
                packed = stack.enter_context((self.path / name).open("rb"))
                size = (self.path / name).stat().st_size
            else:
                archive = stack.enter_context(zipfile.ZipFile(self.path))
                info = archive.getinfo(self._names[name])
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError("not compressed with deflate")
                packed = stack.enter_context(archive.open(info))
                size = min(info.compress_size, self.path.stat().st_size)
            yield stack.enter_context(gzip.open(packed, "rt", encoding="ascii")), size

    def split(self, part: str) -> str:
        """The name of the table of a part, whatever the split is called."""
        found = [
            name
            for name in self._names
            if name.startswith("split/") and name.endswith(f"/{part}.csv.gz")
        ]
        require(len(found) == 1, f"{self.path}: must have one split with {part}, got {len(found)}.")
        return found[0]


def read_arxiv(folder: Path, archive: str = "") -> RawGraph:
    """Read the tables of ogbn-arxiv, extracted or in an archive in the folder."""
    files = OgbFiles(folder / archive)

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
    with (
        parsing(f"{files.path}: {name}: not a readable table of numbers"),
        files.unpacked(name) as (text, size),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")  # numpy only warns about an empty table
        lines = _bounded(text, ALWAYS_BYTES // 32 + _MOST_TEXT_PER_BYTE * size)
        return np.loadtxt(lines, dtype=dtype, delimiter=",", comments=None, ndmin=2)


def _bounded(text: TextIO, most: int) -> Iterator[str]:
    """The lines of a text; none, or more than so many characters, are an error."""
    started = most
    while line := text.readline(most + 1):
        most -= len(line)
        if most < 0:
            raise ValueError("it unpacks to far more than a table of numbers does")
        yield line
    if most == started:
        raise ValueError("it is empty")
