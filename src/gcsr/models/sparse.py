"""The topology of a large graph: products with a sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.models.topology import Limited, Operator
from gcsr.utils.products import weighted_sums

# Channels from which a signal is wide enough to be multiplied on its own on a CPU.
WIDE = 64


class _SparseProduct(torch.autograd.Function):
    """Sparse times dense; the gradient multiplies by a transposed matrix that is made only once."""

    @staticmethod
    def forward(ctx: Any, operator: SparseOperator, signal: Tensor) -> Tensor:
        ctx.operator = operator
        return weighted_sums(*operator.rows, signal)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        operator: SparseOperator = ctx.operator
        return None, weighted_sums(*operator.transposed.rows, gradient)


@dataclass(frozen=True, eq=False)
class SparseOperator:
    """A large sparse matrix on a device."""

    matrix: sp.csr_array
    device: torch.device
    dtype: torch.dtype = torch.float32

    @cached_property
    def rows(self) -> tuple[Tensor, Tensor, Tensor]:
        """Row pointers, columns and values on the device."""
        matrix = self.matrix
        index = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else np.int64
        return (
            torch.from_numpy(matrix.indptr.astype(index)).to(self.device),
            torch.from_numpy(matrix.indices.astype(index)).to(self.device),
            torch.from_numpy(matrix.data.copy()).to(self.device, self.dtype),
        )

    @cached_property
    def transposed(self) -> SparseOperator:
        """What gradients are multiplied with."""
        return replace(self, matrix=self.matrix.T.tocsr())

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])

    def __call__(self, signal: Tensor) -> Tensor:
        """The product; narrow signals of a batch are multiplied side by side."""
        if signal.ndim == 2:
            return self._product(signal)
        batch, nodes, channels = signal.shape
        if batch == 1:
            return self._product(signal[0]).unsqueeze(0)
        if self.device.type == "cpu" and channels >= WIDE:
            # A network's own columns fit the cache; those of all networks side by side do not.
            if signal.requires_grad and torch.is_grad_enabled():
                return torch.stack([self._product(one) for one in signal])
            found = signal.new_empty((batch, self.shape[0], channels))
            for one, place in zip(signal, found, strict=True):
                place.copy_(self._product(one))
            return found
        wide = signal.permute(1, 0, 2).reshape(nodes, batch * channels)
        return self._product(wide).reshape(-1, batch, channels).permute(1, 0, 2)

    def _product(self, signal: Tensor) -> Tensor:
        if signal.requires_grad and torch.is_grad_enabled():
            result: Tensor = _SparseProduct.apply(self, signal)  # type: ignore[no-untyped-call]
            return result
        return weighted_sums(*self.rows, signal)

    def limited_to(self, nodes: Tensor | None) -> Limited:
        """Selected rows, and only the columns they touch."""
        if nodes is None:
            return Limited(self)
        wanted = nodes.cpu().numpy()
        return limited_rows(self.matrix[wanted], wanted, self.device, self.dtype)


def limited_rows(
    rows: sp.csr_array, wanted: np.ndarray, device: torch.device, dtype: torch.dtype
) -> Limited:
    """Rows of the ``wanted`` nodes as an operator on the nodes that they read from, and themselves."""
    support = np.union1d(rows.indices, wanted)
    limited = sp.csr_array(
        (rows.data, np.searchsorted(support, rows.indices), rows.indptr),
        shape=(rows.shape[0], support.size),
    )
    return Limited(
        SparseOperator(limited, device, dtype),
        support=torch.from_numpy(support).long(),
        own=torch.from_numpy(np.searchsorted(support, wanted)).to(device),
    )


@dataclass(frozen=True, eq=False)
class SparseTopology:
    """A large graph as a scipy CSR matrix; products run on ``device``."""

    adjacency: sp.csr_array
    device: torch.device
    dtype: torch.dtype = torch.float32

    @cached_property
    def normalized(self) -> SparseOperator:
        """Eq. 2: its matrix in float64, products in ``dtype``."""
        return self._symmetric(with_loops(self.adjacency))

    @cached_property
    def mean(self) -> Operator:
        """Rows divided by their sums; a node without neighbors receives zeros."""
        sums = np.asarray(self.adjacency.sum(1), dtype=np.float64)
        matrix = scaled(self.adjacency, 1 / np.where(sums > 0, sums, 1))
        return SparseOperator(matrix, self.device, self.dtype)

    @cached_property
    def loopless(self) -> Operator:
        """Symmetrically normalized without self-connections; isolated nodes receive zeros."""
        return self._symmetric(self.adjacency)

    def _symmetric(self, matrix: sp.csr_array) -> SparseOperator:
        scale = symmetric_scale(matrix)
        return SparseOperator(scaled(matrix, scale, scale), self.device, self.dtype)

    def edges(self) -> tuple[Tensor, Tensor, Tensor]:
        """Edges and self-connections."""
        coo = with_loops(self.adjacency).tocoo()
        sources, targets = (
            torch.from_numpy(ids.astype(np.int64)).to(self.device) for ids in (coo.col, coo.row)
        )
        return sources, targets, torch.from_numpy(coo.data).to(self.device, self.dtype)


def with_loops(rows: sp.csr_array, ids: np.ndarray | None = None) -> sp.csr_array:
    """The rows of all nodes, or of those with these ids, of A + I, sorted; float64."""
    ids = np.arange(rows.shape[0]) if ids is None else ids
    # Indices of another type would change those of the sum.
    places = (np.asarray(part, rows.indices.dtype) for part in (ids, np.arange(ids.size + 1)))
    own = sp.csr_array((np.ones(ids.size), *places), shape=rows.shape)
    return sp.csr_array(rows + own)


def symmetric_scale(matrix: sp.csr_array) -> np.ndarray:
    """One over the root of every row's sum; one where a row is empty."""
    sums = np.asarray(matrix.sum(1), dtype=np.float64)
    return np.asarray(1 / np.sqrt(np.where(sums > 0, sums, 1)))


def scaled(
    matrix: sp.csr_array, rows: np.ndarray, columns: np.ndarray | None = None
) -> sp.csr_array:
    """Every entry times the scale of its row, then times that of its column."""
    data = matrix.data * np.repeat(rows, np.diff(matrix.indptr))
    if columns is not None:
        # Columns of a matrix are within its bounds: where nothing is checked, more is read ahead.
        data = data * columns.take(matrix.indices, mode="clip")
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
