"""Rows of a graph class by class, padded to one width, so that all classes are one product."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


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
    def of(cls, groups: list[Tensor], classes: Tensor, dtype: torch.dtype) -> Blocks:
        """Blocks from the rows of every class."""
        width = max(group.numel() for group in groups)
        index = torch.zeros((len(groups), width), dtype=torch.long)
        weights = torch.zeros((len(groups), width), dtype=dtype)
        for block, group in enumerate(groups):
            index[block, : group.numel()] = group
            weights[block, : group.numel()] = 1 / group.numel()
        return cls(classes, index, weights)

    def to(self, device: torch.device) -> Blocks:
        """The same on another device."""
        return Blocks(self.classes.to(device), self.index.to(device), self.weights.to(device))

    def targets(self, num_classes: int) -> Tensor:
        """One-hot class of every block, ``(blocks, 1, C)``."""
        hot = torch.nn.functional.one_hot(self.classes, num_classes)
        return hot.to(self.weights.dtype).unsqueeze(1)


@dataclass(frozen=True, eq=False)
class CondensedClasses:
    """The classes of condensed nodes, which lie one after the other.

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
