"""Rows of a graph class by class, padded to one width, so that all classes are one product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

# -- Neighborhoods of a few nodes in a large sparse graph: all of them, or a random sample ----------


@dataclass(frozen=True, eq=False)
class Chain:
    """Propagation from neighborhoods to nodes: one matrix per hop, the outermost last.

    ``support`` are the nodes that the outermost matrix reads from.
    """

    hops: tuple[sp.csr_array, ...]
    support: np.ndarray

    def product(self, start: int, stop: int) -> sp.csr_array | None:
        """Hops ``start`` up to ``stop`` as one matrix; ``None`` if there is none."""
        result: sp.csr_array | None = None
        for matrix in self.hops[start:stop]:
            result = matrix if result is None else sp.csr_array(result @ matrix)
        return result


def chain(
    operator: sp.csr_array,
    nodes: np.ndarray,
    fan_outs: Sequence[int | None],
    rng: np.random.Generator,
) -> Chain:
    """Hops from ``nodes`` outwards; a fan-out of ``None`` takes every neighbor."""
    hops = []
    for fan_out in fan_outs:
        taken = operator[nodes] if fan_out is None else sampled_rows(operator, nodes, fan_out, rng)
        support = np.unique(taken.indices)
        columns = np.searchsorted(support, taken.indices)
        shape = (nodes.size, support.size)
        hops.append(sp.csr_array((taken.data, columns, taken.indptr), shape=shape))
        nodes = support
    return Chain(tuple(hops), nodes)


def sampled_rows(
    operator: sp.csr_array, nodes: np.ndarray, fan_out: int, rng: np.random.Generator
) -> sp.csr_array:
    """Rows of an operator with at most ``fan_out`` entries each, drawn without replacement.

    Floyd's algorithm for all rows at once: time grows with the entries drawn, not with degrees.
    """
    begins = operator.indptr[nodes].astype(np.int64)
    degrees = operator.indptr[nodes + 1].astype(np.int64) - begins
    places = np.tile(np.arange(fan_out), (nodes.size, 1))
    large = np.flatnonzero(degrees > fan_out)
    picks = np.empty((large.size, fan_out), np.int64)
    for step in range(fan_out):
        last = degrees[large] - fan_out + step
        draw = (rng.random(large.size) * (last + 1)).astype(np.int64)
        seen = (picks[:, :step] == draw[:, None]).any(1)
        picks[:, step] = np.where(seen, last, draw)
    places[large] = picks
    counts = np.minimum(degrees, fan_out)
    entries = (begins[:, None] + places)[np.arange(fan_out) < counts[:, None]]
    pointers = np.concatenate([[0], np.cumsum(counts)])
    return sp.csr_array(
        (operator.data[entries], operator.indices[entries], pointers),
        shape=(nodes.size, operator.shape[1]),
    )


def walks_from(operator: sp.csr_array, nodes: np.ndarray, hops: int) -> int:
    """How many walks of ``hops`` steps leave ``nodes``: a bound on the size of their neighborhood."""
    ones = sp.csr_array(
        (np.ones(operator.nnz), operator.indices, operator.indptr), shape=operator.shape
    )
    walks = np.ones(operator.shape[0])
    for _ in range(hops):
        walks = ones @ walks
    return int(walks[nodes].sum())


@dataclass(frozen=True, eq=False)
class Blocks:
    """Which rows belong to which class.

    Attributes:
        classes: the class of every block; classes without a node have none.
        index: rows of each block, ``(..., blocks, width)``; padding points to the first row.
        weights: one over the size of the block, 0 where there is padding.
    """

    classes: Tensor
    index: Tensor
    weights: Tensor

    @classmethod
    def of(
        cls, groups: list[Tensor], classes: Tensor, dtype: torch.dtype = torch.float32
    ) -> Blocks:
        """Blocks from the rows of every class."""
        weights = [torch.full(group.shape, 1 / group.numel(), dtype=dtype) for group in groups]
        index, padded = (pad_sequence(rows, batch_first=True) for rows in (groups, weights))
        return cls(classes, index, padded)

    def to(self, device: torch.device) -> Blocks:
        """The same on another device."""
        return Blocks(self.classes.to(device), self.index.to(device), self.weights.to(device))

    def targets(self, num_classes: int) -> Tensor:
        """One-hot class of every block, ``(blocks, 1, C)``."""
        hot = torch.nn.functional.one_hot(self.classes, num_classes)
        return hot.to(self.weights.dtype).unsqueeze(1)


@dataclass(frozen=True, eq=False)
class CondensedClasses:
    """The classes of condensed nodes, which are sorted by class.

    Attributes:
        blocks: the rows of every class.
        targets: one-hot labels ``(n', C)``.
        share: 1 over the size of its class for every node, 0 in the rows of other classes:
            ``(blocks, n', 1)``.
        importance: size of every class relative to the largest, its weight in the matching loss.
    """

    blocks: Blocks
    targets: Tensor
    share: Tensor
    importance: Tensor

    @classmethod
    def of(
        cls, labels: Tensor, num_classes: int, device: torch.device, dtype: torch.dtype
    ) -> CondensedClasses:
        """From the labels of the condensed nodes."""
        classes, sizes = labels.unique(return_counts=True)
        groups = [(labels == label).nonzero().flatten() for label in classes]
        blocks = Blocks.of(groups, classes, dtype)
        targets = torch.nn.functional.one_hot(labels, num_classes).to(dtype)
        share = targets[:, classes].T / sizes.to(dtype).unsqueeze(1)
        return cls(
            blocks.to(device),
            targets.to(device),
            share.unsqueeze(-1).contiguous().to(device),
            (sizes / sizes.max()).to(device, dtype),
        )

    @property
    def even(self) -> bool:
        """Whether all classes have the same size, so that blocks are a view."""
        return self.blocks.index.numel() == self.targets.shape[0]

    def split(self, signal: Tensor) -> Tensor:
        """Rows ``(graphs, n', c)`` in blocks ``(graphs, blocks, width, c)``."""
        if self.even:
            blocks: Tensor = signal.unflatten(1, tuple(self.blocks.index.shape))
            return blocks
        # Only padding reads a row twice, and its gradient is zero: the order of sums is no matter.
        return signal[:, self.blocks.index]
