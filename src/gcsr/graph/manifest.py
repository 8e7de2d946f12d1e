"""What a graph folder says of itself: ``manifest.json``, checked against the files beside it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_type_hints

from gcsr.errors import InputError, require
from gcsr.graph.array_file import ArrayFile
from gcsr.graph.graph import FEATURE_SCALINGS, MOST_CLASSES

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
