"""Graph folders: plain ``.npy`` arrays beside a manifest, written whole or not at all.

===================  ==============================================================================
``features.npy``     float32, one row per node
``indptr.npy``       int64 row pointers of the symmetric adjacency in CSR form
``indices.npy``      its column indices, int32 (int64 from 2^31 nodes on), sorted within a row
``weights.npy``      float32 edge weights; absent where all are one
``labels.npy``       int64 class per node, -1 where unknown
``train.npy`` ...    int64 node ids, sorted; ``val.npy`` and ``test.npy`` likewise
``manifest.json``    counts, setting, the hash of every file and of the graph
``propagated/``      what was computed from it; may be removed at any time
===================  ==============================================================================
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from gcsr.data.array_file import WALK_BYTES, ArrayFile, ArrayWriter
from gcsr.data.graph import FEATURE_SCALINGS, MOST_CLASSES, Graph
from gcsr.utils.errors import InputError, require
from gcsr.utils.files import write_atomically
from gcsr.utils.safe_io import expanded, is_file

# -- What a graph folder says of itself: ``manifest.json``, checked against the files beside it ------


FORMAT = "gcsr-graph-folder/1"
MANIFEST = "manifest.json"
# Far more than the largest manifest; bounds what is read of a hostile one.
MOST_BYTES = 2**16
# The only files that are ever opened, with the types they may have; a manifest names no others.
FILES: dict[str, tuple[str, ...]] = {
    "features": ("<f4",),
    "indptr": ("<i8",),
    "indices": ("<i4", "<i8"),
    "weights": ("<f4",),
    "labels": ("<i8",),
    "train": ("<i8",),
    "val": ("<i8",),
    "test": ("<i8",),
}


@dataclass(frozen=True)
class Manifest:
    """Counts, setting and hashes of a graph folder.

    Attributes:
        name: shown in results.
        nodes: rows of the features.
        edges: stored entries of the symmetric adjacency.
        feature_count: width of a feature row.
        num_classes: number of classes.
        weighted: whether there is a file of edge weights.
        inductive: whether validation and test nodes are hidden while condensing.
        scaling: how the features were scaled.
        filled: how many feature entries are not zero.
        content_hash: that of the same graph in memory (:attr:`gcsr.Graph.content_hash`).
        sha256: of every file.
    """

    name: str
    nodes: int
    edges: int
    feature_count: int
    num_classes: int
    weighted: bool
    inductive: bool
    scaling: str
    filled: int
    content_hash: str
    sha256: dict[str, str]

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of a folder; anything odd about it is one sentence."""
        path = folder / MANIFEST
        require(path.is_file(), f"{path}: no such file.")
        try:
            with path.open("rb") as stream:
                blob = stream.read(MOST_BYTES + 1)
            require(len(blob) <= MOST_BYTES, f"{path}: is larger than a manifest can be.")
            stored = json.loads(blob)
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
        except (ValueError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path}: is not a JSON file ({error}).") from None
        require(
            isinstance(stored, dict) and stored.get("format") == FORMAT,
            f"{path}: does not say format {FORMAT!r}.",
        )
        return cls._checked(path, stored)

    @classmethod
    def _checked(cls, path: Path, stored: dict[str, Any]) -> Manifest:
        values: dict[str, Any] = {}
        for name, kind in get_type_hints(cls).items():
            value = stored.get(name)
            plain = dict if name == "sha256" else kind
            require(
                type(value) is plain, f"{path}: {name} {value!r:.60} must be a {plain.__name__}."
            )
            values[name] = value
        if values["scaling"] == "standardise":  # folders of older versions
            values["scaling"] = "standardize"
        one = cls(**values)
        for name in ("nodes", "edges", "feature_count", "num_classes", "filled"):
            count = getattr(one, name)
            require(0 <= count < 2**53, f"{path}: {name} {count} is not accepted.")
        require(one.nodes > 0 and one.feature_count > 0, f"{path}: describes an empty graph.")
        require(one.num_classes <= MOST_CLASSES, f"{path}: num_classes is above {MOST_CLASSES}.")
        require(
            one.scaling in FEATURE_SCALINGS, f"{path}: scaling {one.scaling!r:.40} is not known."
        )
        hashes = {"content_hash": one.content_hash, **one.sha256}
        for name, value in hashes.items():
            fine = (
                isinstance(value, str)
                and len(value) == 64
                and set(value) <= set("0123456789abcdef")
            )
            require(fine, f"{path}: the hash of {name!r:.40} is not one.")
        missing = set(one.files) - set(one.sha256)
        require(not missing, f"{path}: lacks the hash of {', '.join(sorted(missing))}.")
        return one

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the arrays that belong to the folder, without ``.npy``."""
        return tuple(name for name in FILES if name != "weights" or self.weighted)

    def open_files(self, folder: Path) -> dict[str, ArrayFile]:
        """Every array, its header held against this manifest and against its size; none is read."""
        rows = {"indptr": self.nodes + 1, "indices": self.edges, "weights": self.edges}
        found = {}
        for name in self.files:
            file = ArrayFile.open(folder / f"{name}.npy")
            split = name in ("train", "val", "test")
            count = file.rows if split else rows.get(name, self.nodes)
            shape = (count, self.feature_count) if name == "features" else (count,)
            require(
                file.shape == shape and file.dtype.str in FILES[name],
                f"{file.path}: holds {file.dtype} of shape {file.shape}; the manifest wants"
                f" {' or '.join(FILES[name])} of shape {shape}.",
            )
            require(
                not split or file.rows <= self.nodes,
                f"{file.path}: names {file.rows} nodes of {self.nodes}.",
            )
            found[name] = file
        return found


SPLITS = ("train", "val", "test")


def is_folder(path: str | Path) -> bool:
    """Whether a path is a graph folder."""
    return is_file(expanded(path) / MANIFEST)


@contextmanager
def new_folder(out: str | Path) -> Iterator[Path]:
    """A temporary folder beside ``out`` that becomes it when the block ends well, else vanishes."""
    out = expanded(out)
    require(not out.exists(), f"{out}: is there already; remove it or choose another folder.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror}).") from None
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        temporary.rename(out)
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror}).") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_list(folder: Path, name: str, values: np.ndarray) -> None:
    """One of the arrays, whole."""
    dtype = FILES[name][0] if values.dtype.str not in FILES[name] else values.dtype.str
    width = values.shape[1] if values.ndim == 2 else None
    with ArrayWriter(folder / f"{name}.npy", dtype, width) as writer:
        step = max(1, WALK_BYTES // (values.itemsize * (width or 1)))
        for start in range(0, values.shape[0], step):
            writer.write(start, values[start : start + step])
        writer.finish()


def write_folder(graph: Graph, out: str | Path) -> Path:
    """Write a graph that is in memory as a folder."""
    out = expanded(out)
    a = graph.adjacency
    with new_folder(out) as folder:
        write_list(folder, "features", graph.x.contiguous().numpy())
        write_list(folder, "indptr", a.indptr.astype(np.int64))
        narrow = np.int32 if graph.num_nodes < 2**31 else np.int64
        write_list(folder, "indices", a.indices.astype(narrow, copy=False))
        if graph.is_weighted:
            write_list(folder, "weights", a.data)
        write_list(folder, "labels", graph.y.numpy())
        for split in SPLITS:
            write_list(folder, split, getattr(graph, split).numpy())
        seal(
            folder,
            name=graph.name,
            num_classes=graph.num_classes,
            inductive=graph.inductive,
            scaling=graph.feature_scaling,
        )
    return out


def seal(folder: Path, *, name: str, num_classes: int, inductive: bool, scaling: str) -> Manifest:
    """Count and hash the arrays of a folder, and write its manifest."""
    found = _counted(folder)
    features, indices = found.files["features"], found.files["indices"]
    manifest = Manifest(
        name=name,
        nodes=features.rows,
        edges=indices.rows,
        feature_count=features.shape[1],
        num_classes=num_classes,
        weighted="weights" in found.files,
        inductive=inductive,
        scaling=scaling,
        filled=found.filled,
        content_hash=found.content_hash(num_classes),
        sha256=found.sha256,
    )
    write_atomically(folder / MANIFEST, manifest.to_json().encode())
    return manifest


def verify(folder: str | Path) -> Manifest:
    """Read every byte of a folder and hold it against the manifest; a difference is one sentence."""
    folder = expanded(folder)
    manifest = Manifest.read(folder)
    manifest.open_files(folder)
    found = _counted(folder)
    for name in manifest.files:
        require(
            found.sha256[name] == manifest.sha256[name],
            f"{folder / name}.npy: is not what was written (its hash differs from the manifest's).",
        )
    require(
        found.content_hash(manifest.num_classes) == manifest.content_hash
        and found.filled == manifest.filled,
        f"{folder}: the arrays are not those of the graph that the manifest describes.",
    )
    return manifest


class _counted:  # noqa: N801 - used like a function
    """One pass over the arrays of a folder: their hashes, the graph's, and what features hold."""

    def __init__(self, folder: Path) -> None:
        present = [name for name in FILES if (folder / f"{name}.npy").is_file()]
        self.files = {name: ArrayFile.open(folder / f"{name}.npy") for name in present}
        self.sha256: dict[str, str] = {}
        self.filled = 0
        self._content = hashlib.sha256()
        for name in FILES:
            if name not in self.files:
                # Unweighted: in memory every edge has the weight one.
                require(name == "weights", f"{folder}: lacks {name}.npy.")
                self._ones(self.files["indices"].rows)
                continue
            self._walk(name, self.files[name])

    def content_hash(self, num_classes: int) -> str:
        """See :attr:`gcsr.Graph.content_hash`."""
        digest = self._content.copy()
        digest.update(str(num_classes).encode())
        return digest.hexdigest()

    def _walk(self, name: str, file: ArrayFile) -> None:
        digest = hashlib.sha256()
        with file.path.open("rb") as stream:
            digest.update(stream.read(file.offset))
        self._content.update(str(file.shape).encode())
        for block in file.blocks():
            digest.update(block.data)
            if name == "features":
                require(bool(np.isfinite(block).all()), "x: features contain NaN or infinity.")
                self.filled += int(np.count_nonzero(block))
            hashed = block.astype(np.int64) if name == "indices" else block
            self._content.update(np.ascontiguousarray(hashed).data)
        self.sha256[name] = digest.hexdigest()

    def _ones(self, count: int) -> None:
        self._content.update(str((count,)).encode())
        block = np.ones(min(count, WALK_BYTES // 4), np.float32)
        for start in range(0, count, max(1, block.size)):
            self._content.update(block[: count - start].data)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
