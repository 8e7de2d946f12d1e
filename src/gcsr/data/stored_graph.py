"""A graph that stays on disk: the same :class:`~gcsr.Graph`, its features and edges read by blocks."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor

from gcsr.data.array_file import ArrayFile
from gcsr.data.arrays import SPLITS, FeatureScaling, scaling_name
from gcsr.data.folder import Manifest
from gcsr.data.graph import STORED_AS, Graph
from gcsr.data.stored_matrix import NEEDS_MEMORY, StoredFeatures, StoredMatrix, StoredRows
from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import expanded, naming

SCRATCH_VARIABLE = "GCSR_SCRATCH"
# In memory an entry of the adjacency is stored as given, with loops, normalized, and on the device; the
# features as they are and after each of two hops; and class scores while they are added.
ENTRY_COPIES, FEATURE_COPIES, SCORE_COPIES = 48, 3, 3
# After so many hops a sparse row has the columns of all nodes that it can reach.
MANY_HOPS = 32


@dataclass(frozen=True)
class OnDisk:
    """Features and edges of a graph on disk, without labels.

    ``filled`` entries of the features are not zero. Propagated features are in ``scratch``, named by
    ``content_hash``. Blocks may take ``memory`` bytes together.
    """

    num_nodes: int
    features: ArrayFile | StoredFeatures
    adjacency: StoredMatrix
    filled: int
    content_hash: str
    scratch: Path
    memory: int


@dataclass(frozen=True, eq=False, repr=False)
class StoredGraph(Graph):
    """A graph whose features and edges stay on disk (:func:`open_folder`); labels are in memory.

    ``x`` is a meta tensor: code that cannot work in blocks raises :class:`gcsr.InputError`.
    :meth:`to_memory` is the same graph in memory.
    """

    disk: OnDisk = field(kw_only=True)

    def __post_init__(self) -> None:
        self._check_nodes()
        self._count_changes()

    def to_memory(self) -> Graph:
        """The same graph in memory, checked like any other.

        Its content hash is compared with the manifest's when it is computed first.
        """
        own = {f.name: getattr(self, f.name) for f in fields(Graph)}
        own["x"] = self.feature_rows(torch.arange(self.num_nodes))
        own["adjacency"] = self.disk.adjacency.rows(0, self.num_nodes)
        graph = Graph(**own)
        folder = self.disk.adjacency.indices.path.parent
        vars(graph)[STORED_AS] = folder, self.disk.content_hash
        return graph

    def feature_rows(self, nodes: Tensor) -> Tensor:
        """Feature rows of some nodes, in memory; sparse if the features are."""
        return StoredRows(self.disk.features).kept(nodes)

    def scaled(self, features: FeatureScaling) -> Graph:
        """Itself where nothing changes; features on disk are scaled when they are converted."""
        require(
            scaling_name(features) in ("keep", self.feature_scaling),
            f"features must be {self.feature_scaling!r} for this folder, got {features!r};"
            f" gcsr convert --features {features} writes another one.",
        )
        return self

    def to_npz(self, path: str | Path) -> Path:
        """Refused: an ``.npz`` file is written from memory."""
        raise InputError(f"{path}: {NEEDS_MEMORY}")

    def to_folder(self, path: str | Path) -> Path:
        """Refused: it is a folder already, which can be copied."""
        folder = self.disk.adjacency.indices.path.parent
        raise InputError(f"{path}: the graph is in the folder {folder} already; copy it.")

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
    def is_sparse(self) -> bool:
        """Whether the folder has sparse features."""
        return isinstance(self.disk.features, StoredFeatures)

    @property
    def filled(self) -> int:
        """As the manifest says."""
        return self.disk.filled

    @property
    def content_hash(self) -> str:
        """As the manifest says; ``gcsr convert --verify`` computes it again."""
        return self.disk.content_hash


def open_folder(folder: str | Path, *, memory: int, inductive: bool | None = None) -> StoredGraph:
    """A graph folder, checked against its manifest, to be worked on in blocks.

    Args:
        folder: what :func:`~gcsr.data.folder.write_folder` or ``gcsr convert`` wrote.
        memory: bytes that blocks may take together.
        inductive: hide validation and test nodes while condensing; by default as the manifest says.
    """
    folder = expanded(folder)
    require(memory > 0, f"memory must be > 0 bytes, got {memory}.")
    manifest = Manifest.read(folder)
    files = manifest.open_files(folder)
    adjacency = StoredMatrix(files["indptr"], files["indices"], files.get("weights"))
    adjacency.require_ends()
    features: ArrayFile | StoredFeatures
    if manifest.sparse:
        features = StoredFeatures.of(files, manifest.feature_count)
        features.matrix.require_ends()
    else:
        features = files["features"]
    scratch = os.environ.get(SCRATCH_VARIABLE)
    disk = OnDisk(
        num_nodes=manifest.nodes,
        features=features,
        adjacency=adjacency,
        filled=manifest.filled,
        content_hash=manifest.content_hash,
        scratch=expanded(scratch) if scratch else folder / "propagated",
        memory=memory,
    )
    lists: dict[str, Any] = {split: torch.from_numpy(files[split].read()) for split in SPLITS}
    with naming(folder):
        return StoredGraph(
            x=torch.empty(features.shape, dtype=torch.float32, device="meta"),
            adjacency=adjacency,
            y=torch.from_numpy(files["labels"].read()),
            num_classes=manifest.num_classes,
            name=manifest.name,
            inductive=manifest.inductive if inductive is None else inductive,
            feature_scaling=manifest.scaling,  # type: ignore[arg-type]
            disk=disk,
            **lists,
        )


def feature_numbers(graph: Graph, hops: int = 1) -> int:
    """Numbers of a feature row; of a sparse one after some hops, with their columns."""
    if not graph.is_sparse:
        return graph.num_features
    nodes = graph.num_nodes
    hops = min(hops, MANY_HOPS)
    reached = graph.filled * (graph.num_edges + nodes) ** hops // nodes ** (hops + 1)
    return min(graph.num_features, 2 * int(reached) + 1)


def in_memory_bytes(graph: Graph) -> int:
    """About the bytes that condensing and testing take in memory."""
    scores = graph.num_nodes * graph.num_classes * 4
    entries = graph.num_edges + graph.num_nodes
    numbers = feature_numbers(graph)
    return matrix_bytes(graph.num_nodes, numbers, entries) + SCORE_COPIES * scores


def matrix_bytes(nodes: int, features: int, entries: int) -> int:
    """About the bytes of features, two hops of them, and an adjacency with so many entries."""
    return FEATURE_COPIES * nodes * features * 4 + ENTRY_COPIES * entries


def require_in_memory(graph: Graph, what: str) -> None:
    """Refuse a graph that stays on disk."""
    if isinstance(graph, StoredGraph):
        raise InputError(f"{what}: {NEEDS_MEMORY}")
