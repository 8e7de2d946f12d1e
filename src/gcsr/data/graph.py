"""The :class:`Graph` everything starts from."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gcsr.data.arrays import (
    MOST_CLASSES,
    SPARSE,
    SPLITS,
    Features,
    FeatureScaling,
    array_of,
    class_notes,
    features_of,
    gap_notes,
    is_labeled,
    labels_of,
    node_ids,
    scaling_name,
    split_of,
)
from gcsr.data.edges import adjacency_from_edges, clean_adjacency
from gcsr.data.features import (
    LABEL_BYTES,
    StoredParts,
    csr_matrix,
    dense,
    filled,
    from_csr,
    is_sparse,
    nbytes,
    real_bytes,
    row_blocks,
    row_scale,
    select_rows,
    take_rows,
)
from gcsr.data.folder import write_folder
from gcsr.data.npz import read_npz, write_npz
from gcsr.data.objects import ObjectParts, read_networkx, read_pandas, read_pyg, renaming
from gcsr.data.stored_matrix import edges_among
from gcsr.utils.errors import (
    InputError,
    plain_number,
    require,
    require_integer,
    require_truth,
    warn_user,
)
from gcsr.utils.formatting import counted
from gcsr.utils.safe_io import naming

if TYPE_CHECKING:
    from torch_geometric.data import Data

Scale = Callable[[Tensor], Tensor]
# Where a graph read from a folder keeps the folder and the content hash of its manifest. It is no
# field: graphs that are made from this one do not have it.
STORED_AS = "_stored_as"


def standard_scale(training_rows: Tensor) -> Scale:
    """Every column to mean 0 and deviation 1 over the training rows; constant ones only centered."""
    rows = training_rows.double()
    deviation = rows.std(0, correction=0)
    deviation = torch.where(deviation > 0, deviation, torch.ones_like(deviation))
    mean = rows.mean(0).float()
    return lambda x: (x - mean) / deviation.float()


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Features, undirected sparse adjacency, labels and split; validated once, never changed.

    Args:
        x: features, one float32 row per node, dense or as a torch CSR tensor. Rows of zeros are
            allowed and stay zero.
        adjacency: symmetric CSR matrix without self-loops (see :mod:`gcsr.data.edges`); nodes
            without edges are allowed.
        y: one class per node, ``0 .. num_classes - 1``, or -1 where the class is not known. Where nodes
            may have several labels, a matrix ``(n, num_classes)`` of 0 and 1, with rows of -1.
        train, val, test: disjoint lists of labeled nodes; only ``test`` may be empty. A class may
            lack training nodes: it stays a class to be predicted and gets no condensed node.
        num_classes: by default the largest label plus one, or the columns of ``y``.
        name: shown in results.
        inductive: whether validation and test nodes are hidden while condensing (the paper's
            setting for Flickr and Reddit).
        feature_scaling: how ``x`` was scaled; see :meth:`scaled`.
        notes: sentences about what was ignored or chosen when the graph was made; results repeat
            them in their provenance.
    """

    x: Tensor
    adjacency: sp.csr_array
    y: Tensor
    train: Tensor
    val: Tensor
    test: Tensor
    num_classes: int = 0
    name: str = "graph"
    inductive: bool = False
    feature_scaling: FeatureScaling = "keep"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature_scaling", scaling_name(self.feature_scaling))
        for name in ("x", "y", *SPLITS):
            tensor, kind = getattr(self, name), torch.float32 if name == "x" else torch.int64
            got = getattr(tensor, "dtype", type(tensor).__name__)
            require(
                isinstance(tensor, Tensor) and tensor.dtype == kind,
                f"{name} must be a {kind} tensor, got {got}; Graph.from_arrays takes any array.",
            )
        require(
            isinstance(self.adjacency, sp.csr_array),
            f"adjacency must be a scipy csr_array, got {type(self.adjacency).__name__};"
            " Graph.from_arrays takes any edge list or sparse matrix.",
        )
        shape = tuple(self.x.shape)
        nodes = shape[0] if shape else 0
        require(
            len(shape) == 2 and min(shape) > 0,
            f"x must have one row per node and at least one column, got shape {shape};"
            " torch.ones(num_nodes, 1) stands for no features.",
        )
        infinite = self._infinite_rows()
        require(
            infinite.numel() == 0,
            f"x must be finite, got NaN or infinity in {counted(infinite.numel(), 'row')} (first:"
            f" {infinite[0] if infinite.numel() else ''}); torch.nan_to_num(x, 0, 0, 0)"
            " replaces them by 0.",
        )
        require(
            self.adjacency.shape == (nodes, nodes),
            f"edges must be a {nodes} x {nodes} matrix, as x has {nodes} rows, got shape"
            f" {self.adjacency.shape}.",
        )
        require(
            self.y.shape == (nodes,) or (self.multi_label and self.y.shape[0] == nodes),
            f"y must have one class per row of x ({nodes}), got shape {tuple(self.y.shape)}.",
        )
        if self.adjacency.data.flags.writeable:
            # Read-only arrays come from clean_adjacency and follow the rules already.
            cleaned = clean_adjacency(self.adjacency, weighted=True)
            require(
                cleaned.nnz == self.adjacency.nnz,
                f"adjacency must have no self-loops, zeros or duplicates, got"
                f" {self.adjacency.nnz - cleaned.nnz} of them; Graph.from_arrays removes them.",
            )
            object.__setattr__(self, "adjacency", cleaned)
        self._check_nodes()
        self._count_changes()

    def _infinite_rows(self) -> Tensor:
        """Rows with NaN or infinity; brings sparse features into their canonical form."""
        if not is_sparse(self.x):
            require(
                self.x.layout == torch.strided,
                f"x must be dense or a CSR tensor, got {self.x.layout}; x.to_sparse_csr() converts it.",
            )
            return (~torch.isfinite(self.x).all(1)).nonzero().ravel()
        x = self.x
        arrays = x.crow_indices(), x.col_indices(), x.values()
        try:
            torch.sparse_csr_tensor(*arrays, x.shape, check_invariants=True)
        except RuntimeError as error:
            raise InputError(f"x must be a valid CSR tensor, got one where {error}.") from None
        if arrays[0].dtype != torch.int32 or not bool(x.values().all()):
            object.__setattr__(self, "x", from_csr(csr_matrix(x).copy()))
        infinite = (~x.values().isfinite()).nonzero().ravel()
        rows = torch.searchsorted(x.crow_indices().long(), infinite, right=True) - 1
        return rows.unique()  # type: ignore[no-any-return]

    def _current_versions(self) -> tuple[int, ...]:
        """How often each tensor was changed in place; inference tensors do not count it."""
        tensors = (self.x, self.y, self.train, self.val, self.test)
        return tuple(0 if tensor.is_inference() else tensor._version for tensor in tensors)

    def _count_changes(self) -> None:
        object.__setattr__(self, "_versions", self._current_versions())

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        made = object.__new__(type(self))
        memo |= {id(self): made, id(self.x): self.x.clone()}  # torch copies no CSR tensor deeply
        made.__setstate__(copy.deepcopy(vars(self), memo))
        return made

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # The tensors of a copy count their own changes.
        self._count_changes()

    def require_unchanged(self) -> None:
        """Refuse a graph whose tensors were changed in place, as its checks and hash are of before.

        Changes through NumPy views (``graph.x.numpy()``) are not noticed.
        """
        current = self._current_versions()
        require(
            vars(self)["_versions"] == current,
            "graph must not be changed in place, got other values of x, y or the split than when it"
            " was made; dataclasses.replace(graph, x=x) makes another graph.",
        )

    def _check_nodes(self) -> None:
        """Setting, labels and split; fills in ``num_classes`` and sorts the split."""
        for name in ("inductive", "num_classes"):
            object.__setattr__(self, name, plain_number(getattr(self, name)))
        require_truth("inductive", self.inductive)
        require_integer("num_classes", self.num_classes)
        low, high = int(self.y.min()), int(self.y.max())
        if self.multi_label:
            self._check_matrix(low, high)
            high = int(self.y.shape[1]) - 1
        classes = self.num_classes or high + 1
        require(low >= -1, f"y must be >= -1 (-1: no label), got {low}.")
        require(
            high < classes,
            f"y must be below num_classes ({classes}), got {high}; leave num_classes out to take the"
            " largest label plus one.",
        )
        require(
            classes <= MOST_CLASSES,
            f"num_classes must be at most {MOST_CLASSES}, got {classes};"
            " numpy.unique(y, return_inverse=True)[1] numbers the classes without gaps.",
        )
        found = int(torch.unique(self.y[self.y >= 0]).numel())
        require(found >= 2, f"y must have at least two classes, got {found}: nothing to classify.")
        object.__setattr__(self, "num_classes", classes)
        for split in SPLITS:
            object.__setattr__(self, split, self._check_split(split))
        for first, second in combinations(SPLITS, 2):
            shared = np.intersect1d(getattr(self, first).numpy(), getattr(self, second).numpy())
            require(
                shared.size == 0,
                f"{first} and {second} must be disjoint, got {counted(shared.size, 'node')} in both"
                f" (first: {shared[0] if shared.size else ''}); numpy.setdiff1d({second}, {first}) of"
                f" ids, or {second} & ~{first} of masks, drops them from {second}.",
            )

    def _check_matrix(self, low: int, high: int) -> None:
        columns, negative = int(self.y.shape[1]), (self.y < 0).sum(1)
        require(
            low >= -1 and high == 1 and bool(((negative == 0) | (negative == columns)).all()),
            "y must be 0 or 1 for every label, or -1 in a whole row (no labels known), got"
            f" {low if low < -1 else high if high != 1 else 'rows with both'}.",
        )
        require(
            self.num_classes in (0, columns),
            f"num_classes must be {columns}, the columns of y, got {self.num_classes}.",
        )

    def _check_split(self, split: str) -> Tensor:
        ids: Tensor = getattr(self, split)
        require(
            ids.ndim == 1 and (ids.numel() > 0 or split == "test"),
            f"{split} must have at least one node, got none.",
        )
        if not ids.numel():
            return ids
        low, high = int(ids.min()), int(ids.max())
        require(
            low >= 0 and high < self.num_nodes,
            f"{split} must be node ids 0..{self.num_nodes - 1}, got {low if low < 0 else high}.",
        )
        unique: Tensor = torch.unique(ids)
        require(
            unique.numel() == ids.numel(),
            f"{split} must not repeat nodes, got {ids.numel() - unique.numel()} repeated;"
            f" numpy.unique({split}) drops the repetitions.",
        )
        unlabeled = unique[~is_labeled(self.y[unique])]
        require(
            unlabeled.numel() == 0,
            f"{split} must be labeled nodes, got {counted(unlabeled.numel(), 'node')} with y = -1"
            f" (first: {unlabeled[0] if unlabeled.numel() else ''}); {split}[y[{split}] >= 0] keeps"
            " the labeled ones.",
        )
        return unique

    @classmethod
    def from_arrays(
        cls,
        x: Features,
        edges: ArrayLike | sp.sparray | sp.spmatrix,
        y: ArrayLike | Tensor,
        *,
        train: ArrayLike | Tensor | None = None,
        val: ArrayLike | Tensor | None = None,
        test: ArrayLike | Tensor | None = None,
        edge_weights: ArrayLike | None = None,
        weighted: bool | None = None,
        undirected: bool = False,
        num_classes: int = 0,
        name: str = "graph",
        inductive: bool = False,
        features: FeatureScaling = "keep",
    ) -> Graph:
        """Build a graph from plain arrays.

        Args:
            x: features, one row per node: an array, a tensor or a scipy sparse matrix.
            edges: a ``2 x E`` or ``E x 2`` list of node ids (``2 x 2`` is read as the first), or a
                scipy sparse matrix.
            y: one class per node, -1 or NaN where it is not known; or a 0/1 matrix, where nodes may
                have several labels, with rows of -1 or NaN.
            train: node ids or a boolean mask; ``val`` and ``test`` likewise. By default every labeled
                node that is in no other part. Nodes without a label leave their part, with a warning.
            val: nodes for model selection. By default a fifth of the training nodes of every class,
                drawn with a fixed seed, with a warning.
            test: nodes for evaluation only; condensing needs none.
            edge_weights: one number >= 0 per column of ``edges``; those of a repeated edge are summed.
            weighted: whether the values of a sparse matrix are weights; by default if any is not 1.
            undirected: add missing reverse edges; without it a directed graph is an error.
            num_classes: by default the largest label plus one.
            name: shown in results.
            inductive: hide validation and test nodes while condensing.
            features: how to scale ``x`` (:meth:`scaled`).
        """
        require_truth("undirected", undirected)
        require_truth("inductive", inductive)
        x = features_of(x)
        if isinstance(edges, SPARSE):
            require(
                edge_weights is None,
                "edge_weights must be None where edges are a sparse matrix, whose values are the"
                " weights.",
            )
            matrix = sp.coo_array(edges)
            if matrix.dtype == np.bool_:
                matrix = matrix.astype(np.float32)
            if weighted is None:
                weighted = bool((matrix.data != 1).any())
            adjacency = clean_adjacency(matrix, weighted=weighted, undirected=undirected)
        else:
            pairs, nodes = array_of("edges", edges), x.shape[0]
            if pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.shape[0] != 2:
                pairs = pairs.T
            call = ""
            if pairs.shape == (nodes, nodes):
                call = "; scipy.sparse.csr_array(edges) converts a dense adjacency"
            require(
                pairs.ndim == 2 and pairs.shape[0] == 2,
                f"edges must be a 2 x E or E x 2 array of node ids or a scipy sparse matrix, got shape"
                f" {pairs.shape}{call}.",
            )
            adjacency = adjacency_from_edges(
                pairs[0], pairs[1], nodes, edge_weights, undirected=undirected
            )
        labels = labels_of(y)
        require(
            labels.shape[0] == x.shape[0],
            f"y must have one class per row of x ({x.shape[0]}), got shape {tuple(labels.shape)}.",
        )
        split, notes = split_of(labels, {"train": train, "val": val, "test": test})
        graph = cls(
            x=x,
            adjacency=adjacency,
            y=labels,
            num_classes=num_classes,
            name=name,
            inductive=inductive,
            **cast("dict[str, Any]", split),
        )
        notes += [] if num_classes else gap_notes(labels)
        notes += class_notes(labels, split)
        return graph.scaled(features).with_notes(*notes, warn=True)

    @classmethod
    def from_pyg(
        cls,
        data: Any,
        *,
        split: int | None = None,
        weight: str | None = None,
        undirected: bool = False,
        inductive: bool = False,
        name: str = "graph",
        features: FeatureScaling = "keep",
    ) -> Graph:
        """Build a graph from PyG: ``x``, ``edge_index`` or ``adj_t``, ``y`` and masks.

        Args:
            data: a ``Data``, a dataset (its first graph) or a ``HeteroData`` with one node type. Its
                ``x`` is a tensor or a SciPy sparse matrix. For missing masks see
                :meth:`from_arrays`.
            split: which column, where the masks hold several splits; by default the first, with a
                warning.
            weight: the attribute with one weight per edge, such as ``edge_attr``; by default
                ``edge_weight``, if there is one. Other attributes of edges are ignored, with a warning.
            undirected: add missing reverse edges; without it a directed graph is an error.
            inductive, name, features: as in :meth:`from_arrays`.
        """
        options = {"undirected": undirected, "inductive": inductive, "features": features}
        return cls._of_object(read_pyg(data, split, weight), name=name, **options)

    @classmethod
    def _of_object(cls, parts: ObjectParts, **options: Any) -> Graph:
        arguments, warned, notes, names = parts
        with renaming(names):
            graph = cls.from_arrays(**(options | arguments))
        return graph.with_notes(*warned, warn=True).with_notes(*notes)

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        *,
        x: Any = "x",
        y: Any = "y",
        train: Any = None,
        val: Any = None,
        test: Any = None,
        weight: str | None = None,
        undirected: bool = False,
        inductive: bool = False,
        name: str = "graph",
        features: FeatureScaling = "keep",
    ) -> Graph:
        """Build a graph from a NetworkX graph; nodes are numbered in the order of ``graph.nodes``.

        Args:
            graph: a ``Graph`` or ``MultiGraph``, or a directed one with ``undirected=True``.
            x: names of the node attributes that are features, or an array with one row per node.
            y: the node attribute with the class, or an array. Texts are numbered in alphabetical
                order. Nodes without the attribute have no label.
            train: nodes, a mask or a node attribute that is true for them; by default ``train_mask``
                or ``train``, if there is one, otherwise as in :meth:`from_arrays`.
            val, test: likewise, for model selection and for evaluation only.
            weight: the edge attribute with the weight; by default ``weight``, if there is one.
            undirected: add missing reverse edges of a directed graph.
            inductive, name, features: as in :meth:`from_arrays`.
        """
        given = {"x": x, "y": y, "train": train, "val": val, "test": test}
        options = {"undirected": undirected, "inductive": inductive, "features": features}
        return cls._of_object(read_networkx(graph, given, weight), name=name, **options)

    @classmethod
    def from_pandas(
        cls,
        edges: Any,
        nodes: Any,
        *,
        source: str = "source",
        target: str = "target",
        node: str = "id",
        x: Any = None,
        y: Any = "y",
        train: Any = None,
        val: Any = None,
        test: Any = None,
        weight: str | None = None,
        undirected: bool = False,
        inductive: bool = False,
        name: str = "graph",
        features: FeatureScaling = "keep",
    ) -> Graph:
        """Build a graph from two pandas frames: a list of edges and a table of nodes.

        Args:
            edges: one row per edge.
            nodes: one row per node.
            source: the column of ``edges`` with ids of nodes; ``target`` likewise.
            target: the other end.
            node: the column of ``nodes`` with their ids; without such a column the index has them.
            x: columns that are features, or an array; by default all other columns of numbers.
            y: the column with the class, or an array. Texts are numbered in alphabetical order.
            train: ids of nodes, a mask or a column that is true for them; by default ``train_mask``
                or ``train``, if there is one, otherwise as in :meth:`from_arrays`.
            val, test: likewise, for model selection and for evaluation only.
            weight: the column of ``edges`` with the weight; by default ``weight``, if there is one.
            undirected: add missing reverse edges; without it a directed graph is an error.
            inductive, name, features: as in :meth:`from_arrays`.
        """
        given = {"x": x, "y": y, "train": train, "val": val, "test": test}
        columns = {"source": source, "target": target, "node": node}
        parts = read_pandas(edges, nodes, given, weight=weight, **columns)
        options = {"undirected": undirected, "inductive": inductive, "features": features}
        return cls._of_object(parts, name=name, **options)

    @classmethod
    def from_npz(
        cls,
        path: str | Path,
        *,
        undirected: bool = False,
        inductive: bool | None = None,
        features: FeatureScaling = "keep",
    ) -> Graph:
        """Read a graph file (see :mod:`gcsr.data.npz` for the layout).

        Args:
            path: an ``.npz`` file of plain arrays; pickled objects are refused.
            undirected: add missing reverse edges; without it a directed graph is an error.
            inductive: hide validation and test nodes while condensing; by default as the file says.
            features: how to scale ``x`` (:meth:`scaled`).
        """
        path = Path(path)
        arguments = read_npz(path)
        if inductive is not None:
            arguments["inductive"] = inductive
        with naming(path):
            return cls.from_arrays(**arguments, undirected=undirected, features=features)

    def to_npz(self, path: str | Path) -> Path:
        """Write the graph in the layout that :meth:`from_npz` reads."""
        return write_npz(self, path)

    def to_folder(self, path: str | Path) -> Path:
        """Write the graph as a folder of plain arrays (see :mod:`gcsr.data.folder`)."""
        return write_folder(self, path)

    def to_pyg(self) -> Data:
        """The graph as a PyG ``Data`` with boolean masks; edge weights only where they matter."""
        from torch_geometric.data import Data  # noqa: PLC0415 - takes a second to import
        from torch_geometric.utils import index_to_mask  # noqa: PLC0415

        coo = self.adjacency.tocoo()
        index = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
        data = Data(x=self.x.clone(), edge_index=index, y=self.y.clone())
        if self.is_weighted:
            data.edge_weight = torch.from_numpy(coo.data.copy())
        for part in SPLITS:
            data[f"{part}_mask"] = index_to_mask(getattr(self, part), self.num_nodes)
        return data

    def scaled(self, features: FeatureScaling) -> Graph:
        """The same graph with its features scaled.

        - ``keep``: as they are.
        - ``rows``: every row divided by its absolute sum (Planetoid; rows of zeros stay zero).
        - ``standardize``: every column to mean 0 and deviation 1 *over the training rows* (the
          paper's large graphs); columns that are constant there are only centered.
        """
        features = scaling_name(features)
        if features == "keep":
            return self
        require(
            self.feature_scaling == "keep",
            f"features must be 'keep', as x is scaled by {self.feature_scaling!r} already, got"
            f" {features!r}; scale the unscaled graph instead.",
        )
        if STORED_AS in vars(self):
            _ = self.content_hash  # is compared; that of scaled features cannot be
        if features == "rows":
            return replace(self, x=row_scale(self.x), feature_scaling=features)
        scale = standard_scale(take_rows(self.x, self.train))
        return replace(self, x=scale(dense(self.x, "standardize")), feature_scaling=features)

    def with_notes(self, *notes: str, warn: bool = False) -> Self:
        """The same graph with more notes, which are also issued as warnings if ``warn``."""
        if not notes:
            return self
        for note in notes if warn else ():
            warn_user(f"{note}.")
        return replace(self, notes=(*self.notes, *notes))

    def subgraph(self, nodes: ArrayLike | Tensor) -> Graph:
        """The graph among some nodes, ids or a boolean mask; classes keep their numbers."""
        ids = node_ids("nodes", nodes, self.num_nodes).unique()
        require(ids.numel() > 0, "nodes must have at least one node, got none.")
        for node in ids[(ids < 0) | (ids >= self.num_nodes)].tolist():
            raise InputError(f"nodes must be node ids 0..{self.num_nodes - 1}, got {node}.")
        kept = torch.zeros(self.num_nodes, dtype=torch.bool)
        kept[ids] = True
        places = kept.cumsum(0) - 1
        train, val, test = (places[one[kept[one]]] for one in (self.train, self.val, self.test))
        own = {f.name: getattr(self, f.name) for f in fields(Graph)}
        own |= {"x": self.feature_rows(ids), "adjacency": edges_among(self.adjacency, ids)}
        own |= {"y": self.y[ids], "train": train, "val": val, "test": test}
        return Graph(**own)

    def feature_rows(self, nodes: Tensor) -> Tensor:
        """Feature rows of some nodes, in memory; sparse if the features are."""
        return select_rows(self.x, nodes)

    def renamed(self, name: str) -> Graph:
        """The same graph under another name."""
        return replace(self, name=name)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.x.shape[0])

    @property
    def num_features(self) -> int:
        """Width of a feature row."""
        return int(self.x.shape[1])

    @property
    def multi_label(self) -> bool:
        """Whether nodes may have several labels: ``y`` is a 0/1 matrix."""
        return self.y.ndim == 2

    def require_single_label(self, field: str) -> None:
        """Refuse a multi-label graph for what needs one class per node."""
        require(
            not self.multi_label,
            f"{field} must be of a graph with one class per node, got the multi-label {self.name}.",
        )

    @property
    def label_bytes(self) -> int:
        """Bytes of the labels of a node in a file."""
        return self.num_classes if self.multi_label else LABEL_BYTES

    @property
    def num_edges(self) -> int:
        """Stored entries of the symmetric adjacency: twice the number of undirected edges."""
        return int(self.adjacency.nnz)

    @property
    def is_weighted(self) -> bool:
        """Whether any edge has a weight other than one."""
        return bool((self.adjacency.data != 1).any())

    @property
    def nbytes(self) -> int:
        """Bytes of features, adjacency and labels in memory."""
        a = self.adjacency
        arrays = a.data.nbytes + a.indices.nbytes + a.indptr.nbytes
        return nbytes(self.x) + self.y.nbytes + int(arrays)

    @cached_property
    def stored_parts(self) -> StoredParts:
        """Bytes of features, adjacency and labels in a file, sparse where that is smaller."""
        return real_bytes(
            self.x,
            self.adjacency,
            entries=self.filled,
            weighted=self.is_weighted,
            label_bytes=self.label_bytes,
        )

    @property
    def is_sparse(self) -> bool:
        """Whether ``x`` is a CSR tensor."""
        return is_sparse(self.x)

    @cached_property
    def filled(self) -> int:
        """How many feature entries are not zero."""
        return filled(self.x)

    @property
    def stored_bytes(self) -> int:
        """Bytes of the graph in a file that is as sparing as that of a condensed one."""
        return self.stored_parts.total

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of features, edges, labels and split, whatever the name.

        A graph read from a folder is refused if it is not the one that the manifest describes.
        """
        digest = hashlib.sha256(str(tuple(self.x.shape)).encode())
        for block in row_blocks(self.x):  # the same hash whether features are sparse or dense
            digest.update(block.data)
        a = self.adjacency
        for array in (
            a.indptr.astype(np.int64),
            a.indices.astype(np.int64),
            a.data.astype(np.float32),
            *(t.numpy() for t in (self.y, self.train, self.val, self.test)),
        ):
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array).data)
        digest.update(str(self.num_classes).encode())
        found = digest.hexdigest()
        folder, recorded = vars(self).get(STORED_AS, (None, found))
        require(
            found == recorded,
            f"{folder}: its arrays must have the content hash of its manifest ({recorded[:12]}), got"
            f" {found[:12]}; the folder is damaged, and gcsr convert {folder} --verify names the file.",
        )
        return found

    def __repr__(self) -> str:
        setting = "inductive" if self.inductive else "transductive"
        labels = "labels per node" if self.multi_label else "classes"
        return (
            f"Graph({self.name}: {self.num_nodes} nodes, {self.num_edges} edges, "
            f"{self.num_features} features, {self.num_classes} {labels}, "
            f"split {self.train.numel()}/{self.val.numel()}/{self.test.numel()}, {setting})"
        )
