r"""A distribution term beside the matching loss: condensed classes stay where real ones are.

.. math::

    L_\text{means} = \frac{w}{C u} \sum_c \Big\| \sum_i s_{ic}\, x'_i - \mu_c \Big\|^2, \qquad
    u = \frac{1}{C} \sum_c \|\mu_c\|^2,

over the classes that have training nodes, where :math:`\mu_c` is the mean of the training rows of
class c after k hops and :math:`s_{ic}` the share of node i in what X' has of class c. Matching
trajectories says little of directions that experts do not move in; the means of the classes do.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.views import RowsByNumber, VisibleGraph

# Training rows that are read at once.
AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class ClassMeans:
    r"""The term for graphs along a leading dimension.

    Args:
        weight: w.
        real: the classes' means :math:`\mu`, ``(C, d)``.
        shares: s, ``(graphs, n', C)``; what there is of a class adds up to one.
    """

    weight: float
    real: Tensor
    shares: Tensor

    @classmethod
    def of(cls, weight: float, real: Tensor, targets: Tensor) -> ClassMeans:
        """The term for condensed nodes with these class shares; rows of NaN are of no class."""
        there = torch.isfinite(real).all(1)
        targets = targets[..., there.to(targets.device)]
        whole = targets.sum(1, keepdim=True)
        shares = torch.where(whole > 0, targets / whole.clamp_min(1e-9), 0)
        return cls(weight, real[there].to(targets), shares)

    def gradient(self, x: Tensor) -> Tensor:
        """Its gradient with respect to X'."""
        away = torch.bmm(self.shares.mT, x) - self.real
        # Classes that X' has nothing of pull nothing: their shares are zero.
        unit = self.real.square().sum(-1).mean().clamp_min(torch.finfo(x.dtype).tiny)
        return torch.bmm(self.shares, away) * (2 * self.weight / self.real.shape[0] / unit)


def class_means(rows: RowsByNumber, visible: VisibleGraph) -> Tensor:
    """The mean row of every class over its training nodes, ``(C, d)``; NaN for a class without any.

    Sums are products with one-hot matrices, block by block: the same bytes each time, on CUDA too.
    """
    total: Tensor | None = None
    counts = torch.bincount(visible.train_labels, minlength=visible.num_classes)
    blocks = zip(visible.train.split(AT_ONCE), visible.train_labels.split(AT_ONCE), strict=True)
    for nodes, labels in blocks:
        block = rows[nodes.to(rows.device)].double()
        inside = torch.nn.functional.one_hot(labels, visible.num_classes).to(block)
        summed = inside.mT @ block
        total = summed if total is None else total + summed
    assert total is not None
    return total / counts[:, None].to(total)
