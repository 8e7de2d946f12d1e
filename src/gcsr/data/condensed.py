"""The result: a small graph and how it was made."""

from __future__ import annotations

import json
import math
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from gcsr.data.arrays import MOST_CLASSES
from gcsr.data.card import card
from gcsr.data.features import FLOAT, StoredParts, sparse_bytes
from gcsr.data.torch_files import SUFFIXES, read_tensors
from gcsr.utils.errors import InputError, InputWarning, plain_number, require, require_one_of
from gcsr.utils.formatting import counted
from gcsr.utils.safe_io import (
    allowed_bytes,
    is_file,
    is_number,
    naming,
    parsing,
    part,
    require_path,
    require_unfoldable,
    write_atomically,
)

if TYPE_CHECKING:
    from torch_geometric.data import Data

SUFFIX = ".safetensors"
StoredDtype = Literal["float32", "float16"]
STORED_DTYPES: tuple[StoredDtype, ...] = get_args(StoredDtype)
# The provenance key of the edges that layers without edge weights can use.
UNWEIGHTED_EDGES = "unweighted_edges"
LARGEST_HALF = torch.finfo(torch.float16).max
# Formats: dense float tensors; then half precision and sparse A'; then sparse X'. A file has the first
# one that can hold it.
FAMILY = "gcsr-condensed-graph/"
FORMATS = tuple(f"{FAMILY}{version}" for version in (1, 2, 3))
DENSE = frozenset({"x", "adjacency", "y"})
CSR = ("pointers", "columns", "values")
# Of a sparse layout: a file of a few bytes becomes n' x n' numbers, 1 GiB in float32.
MOST_SPARSE_NODES = 2**14
_POINTER = torch.int32


def stored_matrix_bytes(matrix: Tensor, itemsize: int, beside: int) -> int:
    """Bytes of features or an adjacency in a file, in numbers of ``itemsize`` bytes.

    They are those of the dense layout, or of the sparse one if that is smaller and a reader accepts it:
    not too many nodes, and enough bytes, with those ``beside`` it, for a dense matrix of that size.
    """
    rows, width = matrix.shape
    dense = rows * width * itemsize
    if rows > MOST_SPARSE_NODES:
        return dense
    sparse = sparse_bytes(rows, width, int(_occupied(matrix).sum()), itemsize)
    readable = rows * width * max(itemsize, FLOAT) <= allowed_bytes(beside + sparse)
    return min(dense, sparse) if readable else dense


def _occupied(matrix: Tensor) -> Tensor:
    """Entries that a sparse layout holds: a negative zero is one, as it would not come back."""
    return (matrix != 0) | matrix.signbit()


def _column_type(width: int) -> torch.dtype:
    return torch.int16 if width <= 2**15 else torch.int32


def size_note(condensed: int, original: float | None) -> list[str]:
    """One sentence if the condensed graph is not smaller than the graph that it replaces."""
    if original is None or condensed < original:
        return []
    return [
        f"the condensed graph takes {condensed:,} bytes, the graph that it replaces, stored sparsely,"
        f" {original:,.0f}: fewer nodes, --dtype float16 or --sparsify make it smaller"
    ]


def to_stored(
    x: Tensor, adjacency: Tensor, y: Tensor, *, half: bool
) -> tuple[str, dict[str, Tensor]]:
    """The name of the format and the tensors that go into a file."""
    if half:
        x, adjacency = x.half(), adjacency.half()
    features = _laid_out("x", x, y.nbytes)
    beside = sum(tensor.nbytes for tensor in features.values()) + y.nbytes
    edges = _laid_out("adjacency", adjacency, beside)
    version = 2 if "x" not in features else 1 if half or "adjacency" not in edges else 0
    return FORMATS[version], {**features, **edges, "y": y}


def _laid_out(name: str, matrix: Tensor, beside: int) -> dict[str, Tensor]:
    """A matrix in the layout that takes fewer bytes."""
    if stored_matrix_bytes(matrix, matrix.element_size(), beside) == matrix.nbytes:
        return {name: matrix}
    rows, columns = _occupied(matrix).nonzero(as_tuple=True)
    counts = torch.bincount(rows, minlength=matrix.shape[0])
    pointers = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return {
        f"{name}.pointers": pointers.to(_POINTER),
        f"{name}.columns": columns.to(_column_type(matrix.shape[1])),
        f"{name}.values": matrix[rows, columns],
    }


# The tensors that a file of each format may have.
_X, _EDGES = ({f"{name}.{one}" for one in CSR} for name in ("x", "adjacency"))
LAYOUTS = {
    FORMATS[0]: (DENSE,),
    FORMATS[1]: (DENSE, DENSE - {"adjacency"} | _EDGES),
    FORMATS[2]: (DENSE - {"x"} | _X, _X | _EDGES | {"y"}),
}


def from_stored(
    tensors: Mapping[str, Tensor], file_bytes: int, width: int
) -> tuple[Tensor, Tensor, Tensor, bool]:
    """Features, dense adjacency, labels, and whether the first two were in half precision.

    ``width`` is the number of features where they are stored sparsely. Checks what making matrices
    dense needs; :class:`CondensedGraph` checks the rest.
    """
    x = tensors["x"] if "x" in tensors else _densified("x", tensors, None, width, file_bytes)
    if "adjacency" in tensors:
        adjacency = tensors["adjacency"]
    else:
        require(x.ndim == 2, f"x must be a matrix (n', d), got shape {tuple(x.shape)}.")
        adjacency = _densified("adjacency", tensors, len(x), len(x), file_bytes)
    half = x.dtype == adjacency.dtype == torch.float16
    for name, tensor in (("x", x), ("adjacency", adjacency)):
        require(
            tensor.dtype in (torch.float16, torch.float32, torch.float64),
            f"{name} must be float16, float32 or float64, got {tensor.dtype}.",
        )
    x, adjacency = (t.float() if t.dtype == torch.float16 else t for t in (x, adjacency))
    return x, adjacency, tensors["y"], half


def _densified(
    name: str, tensors: Mapping[str, Tensor], rows: int | None, width: int, file_bytes: int
) -> Tensor:
    """A matrix that is stored sparsely; without ``rows`` it has as many as there are pointers for."""
    pointers, columns, values = (tensors[f"{name}.{one}"] for one in CSR)
    n = max(0, pointers.numel() - 1) if rows is None else rows
    require(
        n <= MOST_SPARSE_NODES,
        f"{name} must have at most {MOST_SPARSE_NODES} nodes in the sparse layout, got {n}.",
    )
    kind = _column_type(width)
    require(
        pointers.dtype == _POINTER and columns.dtype == kind and values.is_floating_point(),
        f"{name} must have int32 pointers, {str(kind).removeprefix('torch.')} columns and"
        " floating-point values.",
    )
    require(
        pointers.shape == (n + 1,) and columns.ndim == 1 and values.shape == columns.shape,
        f"{name} must have {n + 1} pointers and as many columns as values.",
    )
    needed = n * width * max(values.element_size(), FLOAT)
    require_unfoldable(f"{name}: {n} x {width} numbers", needed, file_bytes)
    counts, places = pointers.long().diff(), columns.long()
    require(
        int(pointers[0]) == 0
        and int(pointers[-1]) == columns.numel()
        and bool((counts >= 0).all())
        and bool(((places >= 0) & (places < width)).all()),
        f"{name} must have pointers from 0 to {columns.numel()} and columns 0..{width - 1}.",
    )
    at = torch.repeat_interleave(torch.arange(n), counts)
    ascending = bool(((at * width + places).diff() > 0).all())
    require(ascending, f"{name} must have ascending columns in every row.")
    dense = torch.zeros((n, width), dtype=values.dtype)
    dense[at, places] = values
    return dense


def require_threshold(threshold: object) -> None:
    """Refuse a threshold of edges that is neither ``None`` nor a number >= 0."""
    value = plain_number(threshold)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    require(
        value is None or (number and value >= 0),
        f"threshold must be a number >= 0, got {threshold!r}.",
    )


@dataclass(frozen=True, eq=False, repr=False)
class CondensedGraph:
    """A condensed graph: features, dense adjacency, labels, provenance.

    Args:
        x: features, ``(n', d)``.
        adjacency: A', ``(n', n')``, non-negative and *before* normalization; its diagonal is part of
            it. The identity stands for "no structure".
        y: classes ``(n',)``, or class shares ``(n', C)``: every trainer accepts both. Class -1 means
            no label: such a node is context for its neighbors and no loss counts it. With
            ``multi_label``, targets between 0 and 1 of every label ``(n', C)``.
        num_classes: number of classes of the original graph.
        provenance: method, settings, seed, dataset, versions, cost; plain JSON.
        half: whether a file holds ``x`` and ``adjacency`` in float16. They are float32 here, and
            numbers that float16 can hold (:meth:`stored_as` rounds them): what is trained on is what
            is stored.
        multi_label: whether nodes of the original graph may have several labels.
    """

    x: Tensor
    adjacency: Tensor
    y: Tensor
    num_classes: int
    provenance: dict[str, Any] = field(default_factory=dict)
    half: bool = False
    multi_label: bool = False

    def __post_init__(self) -> None:
        n = self.x.shape[0] if self.x.ndim == 2 else 0
        require(n > 0, f"x must be a matrix (n', d), got shape {tuple(self.x.shape)}.")
        require(
            self.adjacency.shape == (n, n),
            f"adjacency must have shape ({n}, {n}), got {tuple(self.adjacency.shape)}.",
        )
        require(
            isinstance(self.num_classes, int) and 1 <= self.num_classes <= MOST_CLASSES,
            f"num_classes must be 1..{MOST_CLASSES}, got {self.num_classes}.",
        )
        for name in ("x", "adjacency"):
            tensor: Tensor = getattr(self, name)
            floating = tensor.is_floating_point()
            # NaN is both the least and the largest number; no copy of the tensor is made.
            low, high = map(float, tensor.aminmax() if floating and tensor.numel() else (0, 0))
            finite = floating and math.isfinite(low) and math.isfinite(high)
            got = "NaN or infinity" if floating else tensor.dtype
            require(finite, f"{name} must be finite floating-point numbers, got {got}.")
            if name == "adjacency":
                require(low >= 0, f"adjacency must be >= 0, got {low:g}.")
            # Row by row, because copies are large.
            fits = not self.half or all(
                torch.equal(rows, rows.half().to(rows.dtype)) for rows in tensor.split(256)
            )
            require(fits, f"{name} must fit float16 if half; stored_as('float16') rounds it.")
        if self.y.ndim == 1 and not self.multi_label:
            require(
                self.y.shape == (n,) and self.y.dtype == torch.int64,
                f"y must be {n} int64 classes, got {self.y.dtype} of shape {tuple(self.y.shape)}.",
            )
            least, most = int(self.y.min()), int(self.y.max())
            require(
                least >= -1 and most < self.num_classes,
                f"y must be 0..{self.num_classes - 1} (-1: no label), got"
                f" {least if least < -1 else most}.",
            )
            require(most >= 0, "y must have a label for at least one node, got none.")
        else:
            require(
                self.y.shape == (n, self.num_classes) and self.y.is_floating_point(),
                f"y must be class shares of shape ({n}, {self.num_classes}), got {self.y.dtype} of"
                f" shape {tuple(self.y.shape)}.",
            )
            if self.multi_label:
                valid, accepted = bool((self.y <= 1).all()), "targets between 0 and 1"
            else:
                sums, accepted = self.y.sum(1), "class shares >= 0 that sum to one"
                valid = torch.allclose(sums, torch.ones_like(sums), atol=1e-3)
            require(valid and bool((self.y >= 0).all()), f"y must be {accepted}.")

    @property
    def num_nodes(self) -> int:
        """Number of condensed nodes."""
        return int(self.x.shape[0])

    @property
    def targets(self) -> Tensor:
        """Labels as class shares ``(n', C)``: one-hot for classes, zeros for nodes without a label."""
        if self.y.ndim == 2:
            return self.y.to(self.x.dtype)
        shares = torch.nn.functional.one_hot(self.y.clamp_min(0), self.num_classes)
        return shares.to(self.x.dtype) * self.labeled[:, None]

    @property
    def classes(self) -> Tensor:
        """The (most likely) class of every node; -1 where it has none."""
        return self.y if self.y.ndim == 1 else self.y.argmax(1)

    @property
    def labeled(self) -> Tensor:
        """Which nodes have a label, ``(n',)``."""
        return self.classes >= 0

    @property
    def labels(self) -> Tensor:
        """Classes ``(n',)``, or the 0/1 matrix nearest to the targets of a multi-label graph."""
        return (self.y > 0.5).long() if self.multi_label else self.classes

    @property
    def nbytes(self) -> int:
        """Bytes of features, dense adjacency and labels in memory."""
        return self.x.nbytes + self.adjacency.nbytes + self.y.nbytes

    @property
    def stored_bytes(self) -> int:
        """Bytes of features, adjacency and labels in a file."""
        return self.stored_parts.total

    @property
    def stored_parts(self) -> StoredParts:
        """The same by part."""
        labels = self.y.nbytes
        features = stored_matrix_bytes(self.x, self._itemsize(self.x), labels)
        itemsize = self._itemsize(self.adjacency)
        edges = stored_matrix_bytes(self.adjacency, itemsize, features + labels)
        return StoredParts(features, edges, labels)

    def _itemsize(self, matrix: Tensor) -> int:
        """Bytes of a number in a file."""
        return 2 if self.half else matrix.element_size()

    @property
    def leaks_test_labels(self) -> bool:
        """Whether test labels of the original graph went into this one."""
        return self.provenance.get("leaks_test_labels", False) is not False

    def stored_as(self, dtype: StoredDtype) -> CondensedGraph:
        """The same graph with features and adjacency rounded to what a file of ``dtype`` holds."""
        require_one_of("dtype", dtype, STORED_DTYPES)
        x, adjacency = self.x.float(), self.adjacency.float()
        half = dtype == "float16"
        if half:
            largest = max(float(x.abs().max()), float(adjacency.max()))
            require(
                largest <= LARGEST_HALF,
                f"dtype must be float32, as numbers reach {largest:g} and float16 ends at"
                f" {LARGEST_HALF:g}, got float16.",
            )
            x, adjacency = x.half().float(), adjacency.half().float()
        return replace(self, x=x, adjacency=adjacency, half=half)

    @property
    def has_weights(self) -> bool:
        """Whether edges have other weights than one."""
        edges = self.adjacency - self.adjacency.diag().diag()
        return bool(((edges != 0) & (edges != 1)).any())

    @property
    def edge_threshold(self) -> float:
        """Entries of A' above it are edges for layers without weights; infinite: there are none.

        It was chosen by validation when the graph was made. Files of earlier versions do not have it:
        then weighted entries are no edges, and entries of a graph without weights all are.
        """
        chosen = self.provenance.get(UNWEIGHTED_EDGES)
        value = chosen.get("threshold") if isinstance(chosen, dict) else None
        if isinstance(value, int | float) and value >= 0:
            return float(value)
        return math.inf if self.has_weights else 0.0

    def to_pyg(self, threshold: float | None = None) -> Data:
        """A PyG ``Data`` for networks with or without edge weights.

        It has ``x``, ``edge_index``, ``edge_weight``, ``y`` (classes), ``train_mask`` (labeled nodes)
        and, where labels are class shares, ``y_soft``. Of a multi-label graph ``y`` are the targets
        of every label, for ``BCEWithLogitsLoss``.

        Edges are the entries of A' above ``threshold``: by default :attr:`edge_threshold`, so that
        layers that ignore weights can be trained; 0 gives every entry. Self-loops have the weight
        A'_ii + 1, as in the models of this library; layers of PyG that add self-loops keep them. Every
        node has one, but where A' has neither weights nor a diagonal, as among selected real nodes:
        there only nodes without neighbors have one, so that layers that add none, such as SAGEConv,
        train the weights that they apply to neighbors. Self-loops without other edges have weight 1.
        """
        from torch_geometric.data import Data  # noqa: PLC0415 - takes a second to import

        require_threshold(threshold)
        limit = self.edge_threshold if threshold is None else threshold
        # Row i of A' collects what node i receives; PyG's edges go from source to target.
        kept = (self.adjacency > limit).T
        kept.fill_diagonal_(False)
        alone = ~(kept.any(0) | kept.any(1))
        kept.diagonal().copy_((self.adjacency.diag() > 0) | self.has_weights | alone)
        index = kept.nonzero().T.contiguous()
        weight = self.adjacency[index[1], index[0]] + (index[0] == index[1])
        if bool((index[0] == index[1]).all()):
            weight = torch.ones_like(weight)
        soft = {} if self.multi_label or self.y.ndim == 1 else {"y_soft": self.y.clone()}
        return Data(
            x=self.x.clone(),
            edge_index=index,
            edge_weight=weight,
            y=self.y.clone() if self.multi_label else self.classes.clone(),
            train_mask=self.labeled,
            **soft,
        )

    @property
    def original_bytes(self) -> float | None:
        """Bytes of the graph that was condensed, if the file has them.

        Files of version 0.1 of an inductive graph have those of the whole graph instead.
        """
        source = part(self.provenance, "dataset")
        original: Any = part(self.provenance, "bytes").get("original")
        if source.get("inductive") and "visible_bytes" not in source:
            return None
        return original if is_number(original) else None

    @property
    def size_note(self) -> list[str]:
        """One sentence if this is not smaller than the graph that was condensed."""
        return size_note(self.stored_bytes, self.original_bytes)

    def describe(self) -> dict[str, Any]:
        """Sizes, structure and provenance in one plain dictionary."""
        off_diagonal = self.adjacency - self.adjacency.diag().diag()
        stored = self.stored_parts
        features, edges = (
            "sparse" if size < matrix.numel() * self._itemsize(matrix) else "dense"
            for size, matrix in ((stored.features, self.x), (stored.adjacency, self.adjacency))
        )
        pairs = max(1, self.num_nodes * (self.num_nodes - 1))
        if self.multi_label:
            per_class = self.labels.sum(0)
        else:
            per_class = torch.bincount(self.classes[self.labeled], minlength=self.num_classes)
        return {
            "nodes": self.num_nodes,
            "features": int(self.x.shape[1]),
            "classes": self.num_classes,
            "labels": "multi-label" if self.multi_label else "soft" if self.y.ndim == 2 else "hard",
            "nodes_per_class": per_class.tolist(),
            "unlabeled_nodes": int((~self.labeled).sum()),
            "edges_above_0.01": int((off_diagonal > 0.01).sum()) // 2,
            "density_above_0.01": float((off_diagonal > 0.01).sum()) / pairs,
            "mean_diagonal": float(self.adjacency.diag().mean()),
            "bytes": stored.total,
            "original_bytes": self.original_bytes,
            "notes": self.size_note,
            "stored_dtype": "float16" if self.half else str(self.x.dtype).removeprefix("torch."),
            "stored_features": features,
            "stored_adjacency": edges,
            "leaks_test_labels": self.leaks_test_labels,
            "provenance": self.provenance,
        }

    def card(
        self, *accuracies: object, license: str = "unknown", privacy: Sequence[str] = ()
    ) -> str:
        """A card in Markdown, to be shared with the file: sizes, source, accuracy, leaks, how to load.

        ``accuracies`` are results of :func:`gcsr.evaluate`, or sentences. ``license`` is its
        name, such as ``cc-by-4.0``. ``privacy`` is :attr:`Privacy.sentences` of :func:`gcsr.privacy`.
        """
        require(
            isinstance(license, str),
            f"license must be the name of a license, such as cc-by-4.0, got {license!r}.",
        )
        return card(self, accuracies, license, privacy)

    def __repr__(self) -> str:
        made = self.provenance.get("method", "?")
        source = self.provenance.get("dataset", {}).get("name", "?")
        return f"CondensedGraph({counted(self.num_nodes, 'node')} by {made} from {source})"

    def save(self, path: str | Path) -> Path:
        """Write a safetensors file, whose name ends with ``.safetensors``, whole or not at all.

        Warns if it holds more bytes than the graph that was condensed. The numbers in the file have no
        checksum: a flipped bit is not noticed when it is read.
        """
        require_path(path)
        path = Path(path)
        require(path.suffix == SUFFIX, f"path must end with {SUFFIX}, got {path}.")
        for note in self.size_note:
            warnings.warn(f"{note}.", InputWarning, stacklevel=2)
        parts = (part.detach().cpu() for part in (self.x, self.adjacency, self.y))
        kind, tensors = to_stored(*parts, half=self.half)
        try:
            provenance = json.dumps(self.provenance, sort_keys=True, allow_nan=False)
        except ValueError:
            raise InputError(
                "provenance must have finite numbers; use None instead of NaN or infinity."
            ) from None
        metadata = {
            "format": kind,
            "num_classes": str(self.num_classes),
            "provenance": provenance,
            **({"multi_label": "true"} if self.multi_label else {}),
        }
        if "x" not in tensors:
            metadata["num_features"] = str(self.x.shape[1])
        blob = save({key: t.contiguous() for key, t in tensors.items()}, metadata)
        write_atomically(path, _with_ordered_header(blob))
        return path

    @classmethod
    def load(cls, path: str | Path) -> CondensedGraph:
        """Read a file written by :meth:`save`, or tensors that another program saved (``.pt``).

        ``adj_NAME.pt``, ``feat_NAME.pt`` and ``label_NAME.pt`` are one graph, named by any of them.
        """
        require_path(path)
        path = Path(path)
        require(not path.is_dir(), f"{path}: must be the file of a condensed graph, got a folder.")
        require(is_file(path), f"{path}: no such file.")
        require(
            path.suffix != ".npz" or not zipfile.is_zipfile(path),
            f"{path}: must be the file of a condensed graph, got that of a real graph (.npz);"
            " gcsr.condense, or the command gcsr condense, makes a condensed one, and gcsr.load reads a"
            " real one.",
        )
        if path.suffix in SUFFIXES:
            return cls._of_tensors(path)
        with naming(path):
            with (
                parsing("not a readable safetensors file"),
                safe_open(path, framework="pt") as archive,
            ):
                metadata = archive.metadata() or {}
                names = frozenset(archive.keys())
                kind = metadata.get("format", "")
                known = names in LAYOUTS.get(kind, ())
                tensors = {name: archive.get_tensor(name) for name in names} if known else {}
            newer = kind.startswith(FAMILY) and kind not in FORMATS
            what = "one of a newer version" if newer else "another safetensors file"
            require(known, f"must be a condensed graph of this library, got {what}.")
            with parsing("broken metadata"):
                provenance = json.loads(
                    metadata["provenance"], parse_constant=_no_constant, parse_float=_finite
                )
                classes = int(metadata["num_classes"])
                plain = isinstance(provenance, dict) and isinstance(
                    provenance.get("dataset", {}), dict
                )
                require(plain, "provenance and its dataset must be JSON objects.")
                # A file with sparse features has their number beside them.
                width = int(metadata.get("num_features", 1))
                require(1 <= width < 2**31, f"num_features must be 1..{2**31 - 1}, got {width}.")
                x, adjacency, y, half = from_stored(tensors, path.stat().st_size, width)
                multi_label = metadata.get("multi_label") == "true"
                return cls(x, adjacency, y, classes, provenance, half, multi_label)

    @classmethod
    def _of_tensors(cls, path: Path) -> CondensedGraph:
        x, adjacency, y, made = read_tensors(path)
        seed = {"seed": int(made["seed"])} if "seed" in made else {}
        provenance = {"method": made.get("method", "imported"), "imported": made, **seed}
        classes = int(y.max()) + 1 if y.ndim == 1 and y.numel() else int(y.shape[-1])
        with naming(path):
            return cls(x, adjacency, y, classes, provenance)


def _with_ordered_header(blob: bytes) -> bytes:
    """The same file with its header sorted: safetensors writes metadata in a random order."""
    size = int.from_bytes(blob[:8], "little")
    header = json.dumps(json.loads(blob[8 : 8 + size]), sort_keys=True, separators=(",", ":"))
    padded = header.encode() + b" " * (-len(header.encode()) % 8)
    return len(padded).to_bytes(8, "little") + padded + blob[8 + size :]


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is not finite")
    return number


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
