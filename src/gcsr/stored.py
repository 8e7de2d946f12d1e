"""How the tensors of a condensed graph lie in a file.

Features and labels are stored as they are. The adjacency is stored densely or as compressed sparse
rows, whichever takes fewer bytes: ``adjacency.pointers`` (n' + 1, int32) says where each row begins in
``adjacency.columns`` (int16, ascending) and ``adjacency.values``. An identity, which stands for "no
structure", thus costs ten bytes per node. In half precision features and adjacency are float16; they
are read back as float32.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from gcsr.errors import require
from gcsr.untrusted import allowed_bytes, require_unfoldable

# With one dense tensor per part in the precision it was computed in; and with all that came later.
PLAIN, FORMAT = "gcsr-condensed-graph/1", "gcsr-condensed-graph/2"
DENSE = frozenset({"x", "adjacency", "y"})
SPARSE = frozenset({"x", "adjacency.pointers", "adjacency.columns", "adjacency.values", "y"})
# int16 columns; and a sparse file of a few bytes unfolds to n' x n' numbers: 1 GiB in float32.
MOST_SPARSE_NODES = 2**14
_COMPUTED = (torch.float32, torch.float64)
_COLUMN, _POINTER = torch.int16, torch.int32


def adjacency_bytes(adjacency: Tensor, itemsize: int, beside: int) -> tuple[int, int | None]:
    """Bytes of an adjacency stored densely and sparsely, with numbers of ``itemsize`` bytes.

    The second is ``None`` where there are too many nodes for the sparse layout, or too few bytes
    ``beside`` it in the file for a reader to unfold so much.
    """
    n = adjacency.shape[0]
    dense = n * n * itemsize
    if n > MOST_SPARSE_NODES:
        return dense, None
    entries = int(torch.count_nonzero(adjacency))
    sparse = entries * (itemsize + _COLUMN.itemsize) + (n + 1) * _POINTER.itemsize
    return dense, sparse if _unfolded_bytes(n, itemsize) <= allowed_bytes(beside + sparse) else None


def _unfolded_bytes(n: int, itemsize: int) -> int:
    return n * n * max(itemsize, torch.float32.itemsize)


def stored_adjacency_bytes(adjacency: Tensor, itemsize: int, beside: int) -> int:
    """Bytes of an adjacency in the layout that it is stored in."""
    dense, sparse = adjacency_bytes(adjacency, itemsize, beside)
    return dense if sparse is None else min(dense, sparse)


def is_stored_sparsely(adjacency: Tensor, itemsize: int, beside: int) -> bool:
    """Whether the sparse layout takes fewer bytes."""
    dense, sparse = adjacency_bytes(adjacency, itemsize, beside)
    return sparse is not None and sparse < dense


def to_stored(
    x: Tensor, adjacency: Tensor, y: Tensor, *, half: bool
) -> tuple[str, dict[str, Tensor]]:
    """The name of the format and the tensors that go into a file."""
    if half:
        x, adjacency = x.half(), adjacency.half()
    if not is_stored_sparsely(adjacency, adjacency.element_size(), x.nbytes + y.nbytes):
        return (FORMAT if half else PLAIN), {"x": x, "adjacency": adjacency, "y": y}
    rows, columns = adjacency.nonzero(as_tuple=True)
    counts = torch.bincount(rows, minlength=adjacency.shape[0])
    pointers = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return FORMAT, {
        "x": x,
        "adjacency.pointers": pointers.to(_POINTER),
        "adjacency.columns": columns.to(_COLUMN),
        "adjacency.values": adjacency[rows, columns],
        "y": y,
    }


def is_known(format_name: str | None, names: frozenset[str]) -> bool:
    """Whether a file of this format may hold tensors of these names."""
    return (format_name == PLAIN and names == DENSE) or (
        format_name == FORMAT and names in (DENSE, SPARSE)
    )


def from_stored(
    tensors: Mapping[str, Tensor], file_bytes: int
) -> tuple[Tensor, Tensor, Tensor, bool]:
    """Features, dense adjacency, labels, and whether the first two were in half precision.

    Tensors come from anywhere: whatever cannot be unfolded safely is refused here; the rest is for
    :class:`~gcsr.condensed.CondensedGraph` to check.
    """
    x = tensors["x"]
    adjacency = tensors["adjacency"] if "adjacency" in tensors else _unfolded(tensors, file_bytes)
    half = x.dtype == adjacency.dtype == torch.float16
    return _usable("x", x), _usable("adjacency", adjacency), tensors["y"], half


def _usable(name: str, tensor: Tensor) -> Tensor:
    """Half precision is for storing; everything computes in float32 at least."""
    if tensor.dtype == torch.float16:
        return tensor.float()
    require(
        tensor.dtype in _COMPUTED,
        f"{name}: {tensor.dtype} is not accepted; float16, float32 and float64 are.",
    )
    return tensor


def _unfolded(tensors: Mapping[str, Tensor], file_bytes: int) -> Tensor:
    x = tensors["x"]
    pointers, columns, values = (
        tensors[f"adjacency.{part}"] for part in ("pointers", "columns", "values")
    )
    require(x.ndim == 2, f"x: expected (n', d) features, not {tuple(x.shape)}.")
    n = x.shape[0]
    require(
        n <= MOST_SPARSE_NODES,
        f"adjacency: {n} nodes are too many for the sparse layout; up to {MOST_SPARSE_NODES} are"
        " accepted.",
    )
    require(
        pointers.dtype == _POINTER and columns.dtype == _COLUMN and values.is_floating_point(),
        "adjacency: its sparse parts must be int32 pointers, int16 columns and floating-point values.",
    )
    require(
        pointers.shape == (n + 1,) and columns.ndim == 1 and values.shape == columns.shape,
        f"adjacency: its sparse parts do not fit each other and {n} feature rows.",
    )
    needed = _unfolded_bytes(n, values.element_size())
    require_unfoldable(f"adjacency: {n} x {n} numbers", needed, file_bytes)
    counts = pointers.long().diff()
    require(
        int(pointers[0]) == 0
        and int(pointers[-1]) == columns.numel()
        and bool((counts >= 0).all()),
        "adjacency: its row pointers do not ascend from 0 to the number of entries.",
    )
    places = columns.long()
    require(
        bool(((places >= 0) & (places < n)).all()), f"adjacency: a column is outside 0..{n - 1}."
    )
    rows = torch.repeat_interleave(torch.arange(n), counts)
    require(
        bool(((rows * n + places).diff() > 0).all()),
        "adjacency: columns of a row do not ascend.",
    )
    dense = torch.zeros((n, n), dtype=values.dtype)
    dense[rows, places] = values
    return dense
