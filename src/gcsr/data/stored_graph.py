"""A graph that stays on disk: the same :class:`~gcsr.Graph`, its features and edges read by blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike

from gcsr.data.array_file import ArrayFile
from gcsr.data.folder import Manifest
from gcsr.data.graph import FeatureScaling, Graph, StoredParts, scaling_name, stored_parts
from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import expanded, never_falls

SCRATCH_VARIABLE = "GCSR_SCRATCH"
NEEDS_MEMORY = (
    "this needs the whole graph in memory, and it was opened to stay on disk; open it with more memory"
    " (gcsr.load(..., memory=...); condense and evaluate: --memory), or choose what works in blocks."
)


@dataclass(frozen=True)
class StoredAdjacency:
    """A symmetric CSR matrix on disk; blocks of its rows are scipy matrices."""

    indptr: ArrayFile
    indices: ArrayFile
    weights: ArrayFile | None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.indptr.rows - 1, self.indptr.rows - 1

    @property
    def nnz(self) -> int:
        """Stored entries."""
        return self.indices.rows

    def __getattr__(self, name: str) -> NoReturn:
        # Whoever takes it for a matrix in memory gets a sentence rather than a surprise.
        if name.startswith("_"):
            raise AttributeError(name)
        raise InputError(f"edges: {NEEDS_MEMORY}")

    def __getitem__(self, _: object) -> NoReturn:
        raise InputError(f"edges: {NEEDS_MEMORY}")

    def rows(self, start: int, stop: int) -> sp.csr_array:
        """Rows ``start`` up to, not including, ``stop``; every column."""
        pointers = self.indptr.read(start, stop + 1)
        first, last = self._bounds(pointers)
        values = None if self.weights is None else self.weights.read(first, last)
        return self._matrix(pointers - first, self.indices.read(first, last), values)

    def take(self, ids: ArrayLike) -> sp.csr_array:
        """The rows of some nodes."""
        ids = np.asarray(ids, np.int64)
        if ids.size and bool((np.diff(ids) == 1).all()):
            return self.rows(int(ids[0]), int(ids[-1]) + 1)
        starts, stops = self.indptr.take(ids), self.indptr.take(ids + 1)
        sizes = stops - starts
        require(
            bool(((stops >= starts) & (starts >= 0) & (stops <= self.nnz)).all()),
            f"{self.indptr.path}: does not describe {self.nnz} entries.",
        )
        pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        places = np.arange(int(pointers[-1])) + np.repeat(starts - pointers[:-1], sizes)
        values = None if self.weights is None else self.weights.take(places)
        return self._matrix(pointers, self.indices.take(places), values)

    def among(self, ids: ArrayLike) -> sp.csr_array:
        """The edges among some nodes, in memory."""
        ids = np.asarray(ids, np.int64)
        return sp.csr_array(self.take(ids)[:, ids])

    def cuts(self, most_rows: int, most_entries: int) -> Iterator[tuple[int, int]]:
        """Blocks of rows within both bounds; a row beyond the second is a block of its own."""
        nodes, window = self.shape[0], 2**20
        start = 0
        while start < nodes:
            stop = min(nodes, start + min(window, most_rows))
            pointers = self.indptr.read(start, stop + 1)
            room = int(np.searchsorted(pointers, int(pointers[0]) + most_entries, "right")) - 1
            stop = start + min(stop - start, max(1, room))
            yield start, stop
            start = stop

    def _bounds(self, pointers: np.ndarray) -> tuple[int, int]:
        first, last = int(pointers[0]), int(pointers[-1])
        require(
            0 <= first <= last <= self.nnz and never_falls(pointers),
            f"{self.indptr.path}: does not describe {self.nnz} entries.",
        )
        return first, last

    def _matrix(
        self, pointers: np.ndarray, columns: np.ndarray, values: np.ndarray | None
    ) -> sp.csr_array:
        nodes = self.shape[0]
        require(
            columns.size == 0 or (int(columns.min()) >= 0 and int(columns.max()) < nodes),
            f"{self.indices.path}: names nodes outside 0..{nodes - 1}.",
        )
        if values is None:
            values = np.ones(columns.size, np.float32)
        index = np.int32 if max(columns.size, nodes) < 2**31 else np.int64
        arrays = (values, columns.astype(index, copy=False), pointers.astype(index))
        return sp.csr_array(arrays, shape=(pointers.size - 1, nodes))


@dataclass(frozen=True)
class OnDisk:
    """Features and edges of a graph on disk, without labels, and how much memory work may take.

    Attributes:
        features: one row per node.
        adjacency: the edges.
        filled: how many feature entries are not zero.
        content_hash: of the graph; what is computed from it carries this name.
        scratch: where propagated features are kept.
        memory: bytes that blocks may take together.
    """

    features: ArrayFile
    adjacency: StoredAdjacency
    filled: int
    content_hash: str
    scratch: Path
    memory: int

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.features.rows


@dataclass(frozen=True, eq=False, repr=False)
class StoredGraph(Graph):
    """A graph whose features and edges stay on disk (:func:`open_folder`); labels are in memory.

    ``x`` has the shape of the features and none of their numbers: what cannot work in blocks fails
    with a sentence rather than fill the memory. :meth:`to_memory` is the same graph in memory.
    """

    disk: OnDisk = field(kw_only=True)
    manifest: Manifest = field(kw_only=True)

    def __post_init__(self) -> None:
        self._check_nodes()

    def to_memory(self) -> Graph:
        """The same graph in memory, checked like any other."""
        matrix = self.disk.adjacency.rows(0, self.num_nodes)
        return Graph(
            x=torch.from_numpy(self.disk.features.read()),
            adjacency=matrix,
            y=self.y,
            train=self.train,
            val=self.val,
            test=self.test,
            num_classes=self.num_classes,
            name=self.name,
            inductive=self.inductive,
            feature_scaling=self.feature_scaling,
        )

    def scaled(self, features: FeatureScaling) -> Graph:
        """Itself where nothing changes; features on disk are scaled when they are converted."""
        require(
            scaling_name(features) in ("keep", self.feature_scaling),
            f"features: the folder holds features scaled by {self.feature_scaling!r}; gcsr convert"
            f" --features {features} writes others.",
        )
        return self

    def to_npz(self, path: str | Path) -> Path:
        """Refused: an ``.npz`` file is written from memory."""
        raise InputError(f"{path}: {NEEDS_MEMORY}")

    def to_folder(self, path: str | Path) -> Path:
        """Refused: it is a folder already, which can be copied."""
        raise InputError(
            f"{path}: the graph lies in {self.disk.features.path.parent} already; copy it."
        )

    def to_pyg(self) -> NoReturn:
        """Refused: PyG's ``Data`` is in memory."""
        raise InputError(f"graph: {NEEDS_MEMORY}")

    @property
    def is_weighted(self) -> bool:
        """Whether any edge has a weight other than one."""
        return self.disk.adjacency.weights is not None

    @property
    def nbytes(self) -> int:
        """Bytes of features, adjacency and labels if they were in memory."""
        index = 4 if max(self.num_edges, self.num_nodes) < 2**31 else 8
        arrays = self.num_edges * (4 + index) + (self.num_nodes + 1) * index
        return self.disk.features.nbytes + self.y.nbytes + arrays

    @cached_property
    def stored_parts(self) -> StoredParts:
        """Bytes in a file, sparse where that is smaller; what is not zero was counted when written."""
        shape = self.num_nodes, self.num_features
        return stored_parts(shape, self.disk.filled, self.num_edges, weighted=self.is_weighted)

    @cached_property
    def content_hash(self) -> str:
        """As the manifest says; ``gcsr convert --verify`` computes it again."""
        return self.disk.content_hash


def open_folder(
    folder: str | Path, *, memory: int, name: str | None = None, inductive: bool | None = None
) -> StoredGraph:
    """A graph folder, checked against its manifest, to be worked on in blocks.

    Args:
        folder: what :func:`~gcsr.data.folder.write_folder` or ``gcsr convert`` wrote.
        memory: bytes that blocks may take together.
        name: shown in results; by default as the manifest says.
        inductive: hide validation and test nodes while condensing; by default as the manifest says.
    """
    folder = expanded(folder)
    require(memory > 0, f"memory: {memory} is not accepted; a number of bytes > 0 is.")
    manifest = Manifest.read(folder)
    files = manifest.open_files(folder)
    adjacency = StoredAdjacency(files["indptr"], files["indices"], files.get("weights"))
    ends = files["indptr"].read(0, 1), files["indptr"].read(manifest.nodes)
    require(
        (int(ends[0][0]), int(ends[1][0])) == (0, manifest.edges),
        f"{files['indptr'].path}: does not describe {manifest.edges} entries.",
    )
    disk = OnDisk(
        features=files["features"],
        adjacency=adjacency,
        filled=manifest.filled,
        content_hash=manifest.content_hash,
        scratch=_scratch(folder),
        memory=memory,
    )
    lists: dict[str, Any] = {
        split: torch.from_numpy(files[split].read()) for split in ("train", "val", "test")
    }
    try:
        return StoredGraph(
            x=torch.empty(files["features"].shape, dtype=torch.float32, device="meta"),
            adjacency=adjacency,
            y=torch.from_numpy(files["labels"].read()),
            num_classes=manifest.num_classes,
            name=name or manifest.name,
            inductive=manifest.inductive if inductive is None else inductive,
            feature_scaling=manifest.scaling,  # type: ignore[arg-type]
            disk=disk,
            manifest=manifest,
            **lists,
        )
    except InputError as error:
        raise InputError(f"{folder}: {error}") from None


# In memory an entry of the adjacency is there as given, with loops, normalized, and on the device; the
# features as they are and after each of two hops; and class scores while they are summed up.
ENTRY_COPIES, FEATURE_COPIES, SCORE_COPIES = 48, 3, 3


def in_memory_bytes(graph: Graph) -> int:
    """About what condensing and testing take where everything is in memory."""
    x = graph.num_nodes * graph.num_features * 4
    scores = graph.num_nodes * graph.num_classes * 4
    entries = graph.num_edges + graph.num_nodes
    return FEATURE_COPIES * x + ENTRY_COPIES * entries + SCORE_COPIES * scores


def require_in_memory(graph: Graph, what: str) -> None:
    """Refuse a graph that stays on disk where all of it is needed."""
    if isinstance(graph, StoredGraph):
        raise InputError(f"{what}: {NEEDS_MEMORY}")


def _scratch(folder: Path) -> Path:
    chosen = os.environ.get(SCRATCH_VARIABLE)
    return expanded(chosen) if chosen else folder / "propagated"
