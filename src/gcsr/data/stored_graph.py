"""A graph that stays on disk: the same :class:`~gcsr.Graph`, its features and edges read by blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike

from gcsr.data.array_file import ArrayFile
from gcsr.data.folder import Manifest
from gcsr.data.graph import SPLITS, FeatureScaling, Graph, scaling_name
from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import expanded, never_falls

SCRATCH_VARIABLE = "GCSR_SCRATCH"
NEEDS_MEMORY = (
    "this needs the whole graph in memory, and it was opened to stay on disk; open it with more memory"
    " (gcsr.load(..., memory=...); condense and evaluate: --memory), or choose what works in blocks."
)
_AGAIN = "gcsr convert writes the folder again."
# In memory an entry of the adjacency is stored as given, with loops, normalized, and on the device; the
# features as they are and after each of two hops; and class scores while they are added.
ENTRY_COPIES, FEATURE_COPIES, SCORE_COPIES = 48, 3, 3


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
        # Code that expects a matrix in memory gets a clear error.
        if name.startswith("_"):
            raise AttributeError(name)
        raise InputError(f"edges: {NEEDS_MEMORY}")

    def __getitem__(self, _: object) -> NoReturn:
        raise InputError(f"edges: {NEEDS_MEMORY}")

    def rows(self, start: int, stop: int) -> sp.csr_array:
        """Rows ``start`` up to, not including, ``stop``; every column."""
        pointers = self.indptr.read(start, stop + 1)
        first, last = int(pointers[0]), int(pointers[-1])
        self._require_pointers(0 <= first <= last <= self.nnz and never_falls(pointers))
        values = None if self.weights is None else self.weights.read(first, last)
        return self._matrix(pointers - first, self.indices.read(first, last), values)

    def take(self, ids: ArrayLike) -> sp.csr_array:
        """The rows of some nodes."""
        ids = np.asarray(ids, np.int64)
        if ids.size and bool((np.diff(ids) == 1).all()):
            return self.rows(int(ids[0]), int(ids[-1]) + 1)
        starts, stops = self.indptr.take(ids), self.indptr.take(ids + 1)
        sizes = stops - starts
        fine = (stops >= starts) & (starts >= 0) & (stops <= self.nnz)
        self._require_pointers(bool(fine.all()))
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

    def _require_pointers(self, fine: bool) -> None:
        require(fine, f"{self.indptr.path}: must describe {self.nnz} entries; {_AGAIN}")

    def _matrix(
        self, pointers: np.ndarray, columns: np.ndarray, values: np.ndarray | None
    ) -> sp.csr_array:
        nodes = self.shape[0]
        require(
            columns.size == 0 or (int(columns.min()) >= 0 and int(columns.max()) < nodes),
            f"{self.indices.path}: must be node ids 0..{nodes - 1}; {_AGAIN}",
        )
        if values is None:
            values = np.ones(columns.size, np.float32)
        index = np.int32 if max(columns.size, nodes) < 2**31 else np.int64
        arrays = (values, columns.astype(index, copy=False), pointers.astype(index))
        return sp.csr_array(arrays, shape=(pointers.size - 1, nodes))


@dataclass(frozen=True)
class OnDisk:
    """Features and edges of a graph on disk, without labels.

    ``filled`` entries of the features are not zero. Propagated features are in ``scratch``, named by
    ``content_hash``. Blocks may take ``memory`` bytes together.
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

    ``x`` is a meta tensor: code that cannot work in blocks raises :class:`gcsr.InputError`.
    :meth:`to_memory` is the same graph in memory.
    """

    disk: OnDisk = field(kw_only=True)
    manifest: Manifest = field(kw_only=True)

    def __post_init__(self) -> None:
        self._check_nodes()
        self._count_changes()

    def to_memory(self) -> Graph:
        """The same graph in memory, checked like any other."""
        own = {f.name: getattr(self, f.name) for f in fields(Graph)}
        own["x"] = torch.from_numpy(self.disk.features.read())
        own["adjacency"] = self.disk.adjacency.rows(0, self.num_nodes)
        return Graph(**own)

    def scaled(self, features: FeatureScaling) -> Graph:
        """Itself where nothing changes; features on disk are scaled when they are converted."""
        require(
            scaling_name(features) in ("keep", self.feature_scaling),
            f"features must be 'keep' or {self.feature_scaling!r} for this folder, got {features!r};"
            f" gcsr convert --features {features} writes another one.",
        )
        return self

    def to_npz(self, path: str | Path) -> Path:
        """Refused: an ``.npz`` file is written from memory."""
        raise InputError(f"{path}: {NEEDS_MEMORY}")

    def to_folder(self, path: str | Path) -> Path:
        """Refused: it is a folder already, which can be copied."""
        raise InputError(
            f"{path}: the graph is in the folder {self.disk.features.path.parent} already; copy it."
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

    @property
    def filled(self) -> int:
        """As the manifest says."""
        return self.disk.filled

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
    require(memory > 0, f"memory must be > 0 bytes, got {memory}.")
    manifest = Manifest.read(folder)
    files = manifest.open_files(folder)
    pointers = files["indptr"]
    adjacency = StoredAdjacency(pointers, files["indices"], files.get("weights"))
    ends = int(pointers.read(0, 1)[0]), int(pointers.read(manifest.nodes)[0])
    adjacency._require_pointers(ends == (0, manifest.edges))
    scratch = os.environ.get(SCRATCH_VARIABLE)
    disk = OnDisk(
        features=files["features"],
        adjacency=adjacency,
        filled=manifest.filled,
        content_hash=manifest.content_hash,
        scratch=expanded(scratch) if scratch else folder / "propagated",
        memory=memory,
    )
    lists: dict[str, Any] = {split: torch.from_numpy(files[split].read()) for split in SPLITS}
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


def in_memory_bytes(graph: Graph) -> int:
    """About the bytes that condensing and testing take in memory."""
    x = graph.num_nodes * graph.num_features * 4
    scores = graph.num_nodes * graph.num_classes * 4
    entries = graph.num_edges + graph.num_nodes
    return FEATURE_COPIES * x + ENTRY_COPIES * entries + SCORE_COPIES * scores


def require_in_memory(graph: Graph, what: str) -> None:
    """Refuse a graph that stays on disk."""
    if isinstance(graph, StoredGraph):
        raise InputError(f"{what}: {NEEDS_MEMORY}")
