"""Features, labels and node ids from the arrays and tensors of users; names of parts and scalings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, cast, get_args

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gcsr.data.features import dense, from_csr, stays_sparse
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import InputError, require, require_one_of
from gcsr.utils.formatting import counted

SPARSE = (sp.sparray, sp.spmatrix)
Features: TypeAlias = "ArrayLike | Tensor | sp.sparray | sp.spmatrix"
FeatureScaling = Literal["keep", "rows", "standardize"]
FEATURE_SCALINGS: tuple[FeatureScaling, ...] = get_args(FeatureScaling)
SPLITS = ("train", "val", "test")
# More classes than any node classification has; bounds what a file can make us allocate.
MOST_CLASSES = 1_000_000
# Classes that a note lists.
_MOST_LISTED = 5
_WITHOUT_GAPS = "torch.unique(y, return_inverse=True)[1] numbers classes without gaps"


def scaling_name(given: str) -> FeatureScaling:
    """The name of a feature scaling; any other is refused."""
    require_one_of("features", given, FEATURE_SCALINGS)
    return cast("FeatureScaling", given)


def features_of(x: Features) -> Tensor:
    """Float32 features, a copy; sparse where they are given so and it pays (:func:`stays_sparse`)."""
    if isinstance(x, Tensor):
        _require_matrix(tuple(x.shape))
        call = "; x.real is the real part" if x.is_complex() else ""
        call = "; x.dequantize() converts it" if x.is_quantized else call
        call = " on the device meta, which has no values" if x.is_meta else call
        require(not call, f"x must be real numbers, got {x.dtype}{call}.")
        given = x.detach().cpu().to(torch.float32)
        if given.layout == torch.strided:
            return given.clone().contiguous()
        coo = given.to_sparse_coo().coalesce()
        x = sp.coo_array((coo.values().numpy(), coo.indices().numpy()), shape=tuple(coo.shape))
    if isinstance(x, SPARSE):
        _require_numbers(np.empty(0, x.dtype))
        _require_matrix(x.shape)
        with np.errstate(over="ignore"):
            matrix = sp.csr_array(x).astype(np.float32)
        kept = from_csr(matrix)
        return kept if stays_sparse(matrix) else dense(kept, "features that are mostly not zero")
    array = array_of("x", x)
    _require_numbers(array)
    _require_matrix(array.shape)
    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite and are refused
        return torch.from_numpy(np.array(array, dtype=np.float32, order="C"))


def _require_numbers(array: np.ndarray) -> None:
    kind = array.dtype.kind
    call = "; x.real is the real part" if kind == "c" else ""
    if kind in "OSU" and converts(array, "float32"):
        call = "; x.astype('float32') converts it"
    require(kind in "biuf", f"x must be real numbers, got {kind_of(array)}{call}.")


def converts(array: np.ndarray, dtype: str) -> bool:
    """Whether objects or texts are numbers, which ``astype`` reads."""
    try:
        array.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def are_texts(array: np.ndarray) -> bool:
    """Whether the values are texts, also as objects."""
    return array.dtype.kind in "OU" and isinstance(next(iter(array.flat), None), str)


def kind_of(array: np.ndarray) -> str:
    """The type of an array, as a user would name it: ``texts such as 'a'``, ``float64``."""
    return f"texts such as {str(array.flat[0])!r}" if are_texts(array) else str(array.dtype)


def _require_matrix(shape: tuple[int, ...]) -> None:
    call = "; x.reshape(-1, 1) makes one column" if len(shape) == 1 else ""
    require(len(shape) == 2, f"x must be a matrix with one row per node, got shape {shape}{call}.")


def labels_of(y: ArrayLike | Tensor) -> Tensor:
    """One integer class per node, or a 0/1 matrix ``(n, C)`` where a node may have several labels."""
    array = array_of("y", y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    require(
        array.ndim in (1, 2),
        f"y must have one class per node or a 0/1 matrix, got shape {array.shape}.",
    )
    accepted = "y must be integers 0..C-1 (-1 or NaN: no label)"
    if array.ndim == 2:
        accepted = "y must be 0 or 1 for every label (a row of -1 or NaN: no labels known)"
    array = array.astype(np.int64) if array.dtype == np.bool_ else array
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), -1, array)
        other = array[array != np.floor(array)]
        require(
            not other.size,
            f"{accepted}, got numbers such as {other[0] if other.size else ''}; this library is for"
            " node classification, not for regression.",
        )
        array = np.clip(array.astype(np.float64), -(2.0**53), 2.0**53).astype(np.int64)
    require(
        array.dtype.kind in "iu",
        f"{accepted}, got {kind_of(array)}; numpy.unique(y, return_inverse=True)[1] converts it.",
    )
    labels = torch.from_numpy(array.astype(np.int64))
    if labels.ndim == 2:
        require(
            bool((labels.clamp_min(0).sum(1) > 1).any()),
            f"y must be one class per node, or a 0/1 matrix with several ones in a row, got shape"
            f" {tuple(labels.shape)} without such a row; y.argmax(1) converts one-hot labels.",
        )
    return labels


def is_labeled(labels: Tensor) -> Tensor:
    """Which nodes have a label, ``(n,)``; of a 0/1 matrix whole rows are -1 or none."""
    return (labels if labels.ndim == 1 else labels[:, 0]) >= 0


def node_ids(split: str, ids: ArrayLike | Tensor, num_nodes: int) -> Tensor:
    """Node ids of a split, or of other nodes, given as ids or as a mask."""
    array = array_of(split, ids)
    accepted = f"{split} must be a list of node ids or a boolean mask"
    require(array.ndim == 1, f"{accepted}, got shape {array.shape}.")
    if array.dtype == np.bool_:
        require(
            array.size == num_nodes,
            f"{split} must have {num_nodes} entries as a mask, got {array.size}.",
        )
        array = np.flatnonzero(array)
    require(not array.size or array.dtype.kind in "iu", f"{accepted}, got {array.dtype}.")
    zeros_and_ones = array.size == num_nodes > 2 and int(array.min()) >= 0 and int(array.max()) <= 1
    require(
        not zeros_and_ones,
        f"{accepted}, got 0 and 1 for every node; {split}.astype(bool) makes a mask of them.",
    )
    return torch.from_numpy(array.astype(np.int64))


def split_of(
    labels: Tensor, given: Mapping[str, ArrayLike | Tensor | None]
) -> tuple[dict[str, Tensor], list[str]]:
    """Nodes of the parts train, val and test, and sentences about what was not as given.

    Nodes without a label leave their part. Without ``train``, all other labeled nodes are training
    nodes. Without labeled nodes in ``val``, some training nodes are held out (:func:`_held_out`).
    """
    nodes, notes = labels.shape[0], []
    split = {part: node_ids(part, [] if ids is None else ids, nodes) for part, ids in given.items()}
    empty = "is not given" if given["val"] is None else "is empty"
    if split["val"].numel():
        empty = "has no labeled nodes"
    if any(((ids < 0) | (ids >= nodes)).any() for ids in split.values()):
        return split, []  # the graph refuses these ids
    if given["train"] is None:
        free = is_labeled(labels)
        free[torch.cat([split["val"], split["test"]])] = False
        split["train"] = free.nonzero().ravel()
        notes.append(
            f"train is not given: all {counted(split['train'].numel(), 'labeled node')} outside val and"
            " test are training nodes"
        )
    for part, ids in split.items():
        known = is_labeled(labels[ids])
        missing = int((~known).sum())
        if missing:
            split[part] = ids[known]
            notes.append(f"{part}: {counted(missing, 'node')} without a label left out")
    train = split["train"]
    if train.numel() and not split["val"].numel() and train.unique().numel() == train.numel():
        # Of a multi-label graph a fifth of all training nodes is held out.
        classes = labels[train] if labels.ndim == 1 else torch.zeros_like(train)
        held = _held_out(train, classes)
        require(
            bool(held.any()),
            "val must have at least one node, got none, and no class has two training nodes, of which"
            " one could be held out; give val or more training nodes.",
        )
        split |= {"train": train[~held], "val": train[held]}
        notes.append(
            f"val {empty}: {int(held.sum())} of {counted(train.numel(), 'training node')}, always"
            " the same, are held out for validation"
        )
    return split, notes


def class_notes(labels: Tensor, split: Mapping[str, Tensor]) -> list[str]:
    """Sentences about classes of validation and test nodes that no training node has."""
    if labels.ndim == 2:
        return []
    lacking = {
        part: labels[split[part]][~torch.isin(labels[split[part]], labels[split["train"]])]
        for part in ("val", "test")
    }
    classes = torch.cat([*lacking.values()]).unique().tolist()
    if not classes:
        return []
    kinds = {"val": "validation node", "test": "test node"}
    counts = [counted(of.numel(), kinds[part]) for part, of in lacking.items() if of.numel()]
    one = sum(of.numel() for of in lacking.values()) == 1
    nodes = f"{' and '.join(counts)} {'has' if one else 'have'}"
    listed = ", ".join(map(str, classes[:_MOST_LISTED]))
    if len(classes) == 1:
        return [f"class {listed} has no training nodes: it cannot be learned, and {nodes} it"]
    more = len(classes) - _MOST_LISTED
    listed += f" and {more:,} more" if more > 0 else ""
    return [f"classes {listed} have no training nodes: they cannot be learned, and {nodes} them"]


def gap_notes(labels: Tensor) -> list[str]:
    """Sentences about numbers of classes that no node has; for labels without a given number.

    More classes than nodes are refused: one of the labels is no class then.
    """
    if labels.ndim == 2:
        return []
    classes, nodes = int(labels.max()) + 1, labels.shape[0]
    require(
        classes <= nodes,
        f"y must be classes 0..{nodes - 1}, as there are {counted(nodes, 'node')}, got"
        f" {classes - 1} (node {int(labels.argmax())}); {_WITHOUT_GAPS}, and"
        f" Graph.from_arrays(..., num_classes={classes}) keeps the numbers.",
    )
    has_node = torch.zeros(classes, dtype=torch.bool)
    has_node[labels[labels >= 0]] = True
    empty = (~has_node).nonzero().ravel().tolist()
    if empty == [0]:
        return ["no node has class 0, which stays an empty class: classes count from 0"]
    if not empty:
        return []
    have = f"{'has' if len(empty) == 1 else 'have'} no node (first: {empty[0]})"
    return [f"{len(empty):,} of {counted(classes, 'class')} {have}; {_WITHOUT_GAPS}"]


def _held_out(train: Tensor, labels: Tensor) -> Tensor:
    """A fifth of every class, at least one node, as a mask; a single node of a class stays.

    Always the same nodes: the seed is fixed.
    """
    drawn = torch.randperm(train.numel(), generator=make_generator(0, "validation split"))
    drawn = drawn[labels[drawn].argsort(stable=True)]
    counts = labels.unique(return_counts=True)[1]
    size = counts.repeat_interleave(counts)
    rank = torch.arange(train.numel()) - (counts.cumsum(0) - counts).repeat_interleave(counts)
    held = torch.zeros(train.numel(), dtype=torch.bool)
    held[drawn] = (rank < (size // 5).clamp_min(1)) & (size > 1)
    return held


def array_of(field: str, values: object) -> np.ndarray:
    """Any array-like or tensor as an array."""
    if isinstance(values, Tensor):
        try:
            return np.asarray(values.detach().cpu().numpy())
        except (TypeError, RuntimeError):  # bfloat16 and sparse layouts
            raise InputError(
                f"{field} must be a dense tensor of a type that numpy has, got {values.dtype} with"
                f" {values.layout}; {field}.to_dense() or {field}.float() converts it."
            ) from None
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        kind = type(values).__name__
        raise InputError(f"{field} must have rows of equal length, got a ragged {kind}.") from None
