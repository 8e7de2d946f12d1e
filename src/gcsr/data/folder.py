"""Graph folders: plain ``.npy`` arrays beside a manifest, written whole or not at all.

===================  ==============================================================================
``features.npy``     float32, one row per node; sparse features are three files instead:
``features_indptr``  int64 row pointers of the features in CSR form
``features_indices`` their column indices, int32 (int64 from 2^31 columns on), sorted within a row
``features_values``  float32 values, none of them zero
``indptr.npy``       int64 row pointers of the symmetric adjacency in CSR form
``indices.npy``      its column indices, int32 (int64 from 2^31 nodes on), sorted within a row
``weights.npy``      float32 edge weights; absent where all are one
``labels.npy``       int64 class per node, -1 where unknown
``train.npy`` ...    int64 node ids, sorted; ``val.npy`` and ``test.npy`` likewise
``manifest.json``    counts, setting, the hash of every file and of the graph
``propagated/``      propagated features; may be removed at any time
===================  ==============================================================================
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from gcsr.data.array_file import WALK_BYTES, ArrayFile, ArrayWriter
from gcsr.data.arrays import FEATURE_SCALINGS, MOST_CLASSES, SPLITS
from gcsr.data.features import csr_matrix, is_sparse
from gcsr.data.stored_matrix import SPARSE_FILES, StoredFeatures
from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import (
    accessing,
    current_umask,
    expanded,
    is_file,
    require_path,
    require_unfoldable,
    write_atomically,
)

if TYPE_CHECKING:
    from gcsr.data.graph import Graph

FORMAT = "gcsr-graph-folder/1"
MANIFEST = "manifest.json"
# Far more than the largest manifest; bounds what is read of a hostile one.
MOST_BYTES = 2**16
# The only files that are ever opened, with the types they may have.
FILES: dict[str, tuple[str, ...]] = {
    "features": ("<f4",),
    "features_indptr": ("<i8",),
    "features_indices": ("<i4", "<i8"),
    "features_values": ("<f4",),
    "indptr": ("<i8",),
    "indices": ("<i4", "<i8"),
    "weights": ("<f4",),
    "labels": ("<i8",),
    "train": ("<i8",),
    "val": ("<i8",),
    "test": ("<i8",),
}
_HASH = re.compile("[0-9a-f]{64}")
_AGAIN = "; write the folder again with gcsr convert or Graph.to_folder."


@dataclass(frozen=True)
class Manifest:
    """Counts, setting and hashes of a graph folder.

    ``edges`` are stored entries of the symmetric adjacency, ``filled`` feature entries that are not
    zero. ``content_hash`` is :attr:`gcsr.Graph.content_hash`, ``sha256`` are hashes of the files.
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
    sparse: bool = False

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of a folder, checked."""
        path = folder / MANIFEST
        require(path.is_file(), f"{path}: no such file.")
        with accessing(f"{path}: cannot be read"), path.open("rb") as stream:
            blob = stream.read(MOST_BYTES + 1)
        try:
            stored: Any = json.loads(blob) if len(blob) <= MOST_BYTES else None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: is not a JSON file ({error}).") from None
        require(
            isinstance(stored, dict) and stored.get("format") == FORMAT,
            f"{path}: must be a JSON object with format {FORMAT!r}{_AGAIN}",
        )
        stored = {"sparse": False, **stored}
        if stored.get("scaling") == "standardise":  # folders of older versions
            stored["scaling"] = "standardize"
        types = get_type_hints(cls) | {"sha256": dict}
        for name, kind in types.items():
            value = stored.get(name)
            require(
                type(value) is kind,
                f"{path}: {name} must be of type {kind.__name__}, got {value!r:.60}{_AGAIN}",
            )
            low = 1 if name in ("nodes", "feature_count") else 0
            high = MOST_CLASSES if name == "num_classes" else 2**53
            require(
                kind is not int or low <= value <= high,
                f"{path}: {name} must be {low}..{high}, got {value!r:.60}{_AGAIN}",
            )
        one = cls(**{name: stored[name] for name in types})
        require(
            one.scaling in FEATURE_SCALINGS,
            f"{path}: scaling must be one of {', '.join(FEATURE_SCALINGS)}, got {one.scaling!r:.40}.",
        )
        hashes = {"content_hash": one.content_hash, **dict.fromkeys(one.files), **one.sha256}
        for name, digest in hashes.items():
            require(
                isinstance(digest, str) and _HASH.fullmatch(digest) is not None,
                f"{path}: the hash of {name!r:.40} must be 64 hexadecimal digits{_AGAIN}",
            )
        return one

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the arrays that belong to the folder, without ``.npy``."""
        absent = {"features"} if self.sparse else set(SPARSE_FILES)
        absent |= set() if self.weighted else {"weights"}
        return tuple(name for name in FILES if name not in absent)

    def open_files(self, folder: Path) -> dict[str, ArrayFile]:
        """Every array, its header checked against this manifest; none is read."""
        rows = {"indptr": self.nodes + 1, "indices": self.edges, "weights": self.edges}
        rows |= dict.fromkeys(SPARSE_FILES, self.filled) | {"features_indptr": self.nodes + 1}
        found = {}
        for name in self.files:
            file = ArrayFile.open(folder / f"{name}.npy")
            count = min(file.rows, self.nodes) if name in SPLITS else rows.get(name, self.nodes)
            shape = (count, self.feature_count) if name == "features" else (count,)
            require(
                file.shape == shape and file.dtype.str in FILES[name],
                f"{file.path}: must be {' or '.join(FILES[name])} of shape {shape} by the manifest,"
                f" got {file.dtype} of shape {file.shape}{_AGAIN}",
            )
            found[name] = file
        if self.sparse:
            # What one row takes in a product.
            row = f"{folder / MANIFEST}: a row of {self.feature_count:,} features"
            require_unfoldable(row, 16 * self.feature_count, 4 * self.filled)
        return found


def is_folder(path: str | Path) -> bool:
    """Whether a path is a graph folder."""
    return is_file(expanded(path) / MANIFEST)


@contextmanager
def new_folder(out: str | Path) -> Iterator[Path]:
    """A temporary folder beside ``out`` that becomes it when the block ends without an error."""
    out = expanded(out)
    require(not out.exists(), f"{out}: is there already; remove it or choose another folder.")
    with accessing(f"{out}: cannot be written"):
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
        try:
            yield temporary
            temporary.chmod(0o777 & ~current_umask())
            temporary.rename(out)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def write_list(folder: Path, name: str, values: np.ndarray) -> None:
    """One of the arrays, whole."""
    dtype = FILES[name][0] if values.dtype.str not in FILES[name] else values.dtype.str
    width = values.shape[1] if values.ndim == 2 else None
    with ArrayWriter(folder / f"{name}.npy", dtype, width) as writer:
        writer.append(values)
        writer.finish()


def write_folder(graph: Graph, out: str | Path) -> Path:
    """Write a graph that is in memory as a folder."""
    require_path(out)
    out = expanded(out)
    graph.require_single_label("a graph folder")
    a = graph.adjacency
    index = np.int32 if graph.num_nodes < 2**31 else np.int64
    arrays = {
        "indptr": a.indptr.astype(np.int64),
        "indices": a.indices.astype(index, copy=False),
        "labels": graph.y.numpy(),
        **{split: getattr(graph, split).numpy() for split in SPLITS},
    }
    if graph.is_weighted:
        arrays["weights"] = a.data
    if is_sparse(graph.x):
        matrix = csr_matrix(graph.x)
        parts = matrix.indptr, matrix.indices, matrix.data
        arrays |= dict(zip(SPARSE_FILES, parts, strict=True))
    else:
        arrays["features"] = graph.x.contiguous().numpy()
    with new_folder(out) as folder:
        for name, array in arrays.items():
            write_list(folder, name, array)
        seal(
            folder,
            name=graph.name,
            width=graph.num_features,
            num_classes=graph.num_classes,
            inductive=graph.inductive,
            scaling=graph.feature_scaling,
        )
    return out


def seal(
    folder: Path, *, name: str, width: int, num_classes: int, inductive: bool, scaling: str
) -> Manifest:
    """Count and hash the arrays of a folder, and write its manifest."""
    files = {
        part: ArrayFile.open(folder / f"{part}.npy")
        for part in FILES
        if part not in ("features", "weights", *SPARSE_FILES) or (folder / f"{part}.npy").is_file()
    }
    sha256, content_hash, filled = _hashed(files, width, num_classes)
    manifest = Manifest(
        name=name,
        nodes=files["labels"].rows,
        edges=files["indices"].rows,
        feature_count=width,
        num_classes=num_classes,
        weighted="weights" in files,
        inductive=inductive,
        scaling=scaling,
        filled=filled,
        content_hash=content_hash,
        sha256=sha256,
        sparse="features" not in files,
    )
    text = json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1) + "\n"
    write_atomically(folder / MANIFEST, text.encode())
    return manifest


def verify(folder: str | Path) -> Manifest:
    """Read every byte of a folder and compare it with the manifest."""
    folder = expanded(folder)
    manifest = Manifest.read(folder)
    sha256, content_hash, filled = _hashed(
        manifest.open_files(folder), manifest.feature_count, manifest.num_classes
    )
    for name in manifest.files:
        require(
            sha256[name] == manifest.sha256[name],
            f"{folder / name}.npy: its hash differs from the manifest's{_AGAIN}",
        )
    require(
        (content_hash, filled) == (manifest.content_hash, manifest.filled),
        f"{folder}: the arrays are not those of the graph that the manifest describes{_AGAIN}",
    )
    return manifest


def _hashed(
    files: dict[str, ArrayFile], width: int, num_classes: int
) -> tuple[dict[str, str], str, int]:
    """Hashes of files, :attr:`gcsr.Graph.content_hash`, and the features that are not zero."""
    sha256: dict[str, str] = {}
    content = hashlib.sha256()
    filled = 0
    if "features" not in files:
        rows = StoredFeatures.of(files, width)
        content.update(str(rows.shape).encode())
        for block in rows.blocks():
            content.update(block.data)
    for name in FILES:
        if name == "weights" and name not in files:  # in memory every edge has the weight one
            count = files["indices"].rows
            content.update(str((count,)).encode())
            ones = np.ones(min(count, WALK_BYTES // 4), np.float32)
            for start in range(0, count, max(1, ones.size)):
                content.update(ones[: count - start].data)
        if name not in files:
            continue
        file, digest = files[name], hashlib.sha256()
        with file.path.open("rb") as stream:
            digest.update(stream.read(file.offset))
        own = name not in SPARSE_FILES  # which are part of the content as unfolded rows above
        content.update(str(file.shape).encode() if own else b"")
        for block in file.blocks():
            digest.update(block.data)
            if name in ("features", "features_values"):
                require(bool(np.isfinite(block).all()), "x must be finite, got NaN or infinity.")
                filled += int(np.count_nonzero(block))
            if not own:
                continue
            hashed = block.astype(np.int64) if name == "indices" else block
            content.update(np.ascontiguousarray(hashed).data)
        sha256[name] = digest.hexdigest()
    content.update(str(num_classes).encode())
    return sha256, content.hexdigest(), filled
