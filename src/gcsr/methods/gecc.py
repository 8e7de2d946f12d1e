r"""GECC: centers of a weighted sum of hops, class by class (Gong et al., 2025).

Training rows of :math:`R = \gamma X + \alpha \hat A X + \beta \hat A^2 X` are grouped within each class
by k-means or, with m > 1, fuzzy c-means,

.. math:: \min_{u, c} \sum_{ij} u_{ij}^m \|r_i - c_j\|^2, \quad \sum_j u_{ij} = 1 .

Of several restarts the one with the least objective plus :math:`b \sum_j (n_j - \bar n)^2` is kept,
where :math:`n_j` rows are nearest to center j. X' are the centers and A' = I.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import torch
from torch import Tensor

from gcsr.engines.result import CondensationResult, Context
from gcsr.methods.base import Condenser
from gcsr.outofcore.estimate import Work
from gcsr.starts.clusters import cluster_start
from gcsr.starts.sample import block_labels, class_budget, rows_by_hop
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import Bounds, Count, Weight

NUM_HOPS = 2
# Rounds of a grouping, and how little centers may move, as a share of the rows' size, to end it before.
ROUNDS, STILL = 300, 1e-5
HopWeight = Annotated[float, Bounds(least=-1e6)]


@dataclass(frozen=True, kw_only=True)
class GECC(Condenser):
    """Centers of groups of propagated training rows within each class; nothing is trained.

    Args:
        gamma, alpha, beta: weights of the features after 0, 1 and 2 hops.
        fuzziness: m; 1 is k-means, more lets every row count for several centers.
        restarts: groupings that are compared.
        balance: b, the weight of unequal groups in this comparison.
    """

    name = "gecc"
    summary = "centers of groups of training rows of a weighted sum of hops"
    reference = 'Gong et al., "Scalable Graph Condensation with Evolving Capabilities", 2025'
    # A row that is as near to two centers may join either.
    same_on_every_device = False

    gamma: HopWeight = 0.0
    alpha: HopWeight = 0.5
    beta: HopWeight = 0.5
    fuzziness: Annotated[float, Bounds(least=1.0)] = 1.0
    restarts: Count = 10
    balance: Weight = 1.0

    def _work(self, nodes: int) -> Work:
        return Work(nodes, hops=NUM_HOPS)

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        visible = ctx.view.visible
        budget = class_budget(visible.train_labels, visible.num_classes, ctx.nodes)
        hops = rows_by_hop(visible, visible.train, NUM_HOPS, ctx.device)
        rows = self.gamma * hops[0] + self.alpha * hops[1] + self.beta * hops[2]
        shares = torch.nn.functional.one_hot(visible.train_labels, visible.num_classes).to(rows)
        grouping = partial(
            best_groups, fuzziness=self.fuzziness, restarts=self.restarts, balance=self.balance
        )
        results = []
        for done, seed in enumerate(ctx.seeds, 1):
            start = cluster_start(rows, shares, budget, make_generator(seed, "clusters"), grouping)
            labels, identity = block_labels(budget), torch.eye(ctx.nodes)
            results.append(CondensationResult(start.x, identity, labels, start.notes))
            ctx.progress("clustering", done, len(ctx.seeds))
        return results


def best_groups(
    x: Tensor,
    k: int,
    generator: torch.Generator,
    *,
    fuzziness: float,
    restarts: int,
    balance: float,
) -> tuple[Tensor, Tensor]:
    """Centers ``(k, d)`` and the nearest one of every row: the best of several groupings."""
    # Distances are differences of large squares unless the rows lie around zero.
    middle = x.mean(0)
    x = x - middle
    begin = torch.stack([torch.randperm(len(x), generator=generator)[:k] for _ in range(restarts)])
    centers = x[begin.to(x.device)]
    least = STILL * x.square().mean().sqrt()
    for _ in range(ROUNDS):
        weights = _memberships(_apart(x, centers), fuzziness) ** fuzziness
        sums = weights.sum(1).unsqueeze(-1)
        # A group that runs empty keeps its center.
        means = weights.mT @ x / sums.where(sums > 0, 1.0)
        moved = torch.where(sums > 0, means, centers)
        still = bool((moved - centers).abs().max() <= least)
        centers = moved
        if still:
            break
    apart = _apart(x, centers)
    objective = (_memberships(apart, fuzziness) ** fuzziness * apart).sum((1, 2))
    groups = apart.argmin(2)
    counts = torch.nn.functional.one_hot(groups, k).sum(1).to(x)
    unequal = (counts - counts.mean(1, keepdim=True)).square().sum(1)
    best = int((objective + balance * unequal).argmin())
    return centers[best] + middle, groups[best]


def _apart(x: Tensor, centers: Tensor) -> Tensor:
    """Squared distances ``(restarts, n, k)``."""
    squares = x.square().sum(1)[:, None] + centers.square().sum(2)[:, None]
    return (squares - 2 * x @ centers.mT).clamp_min(0)


def _memberships(apart: Tensor, fuzziness: float) -> Tensor:
    """Shares of every row in the centers: d^(-2/(m - 1)), scaled to one; the nearest for m = 1."""
    if fuzziness == 1:
        return torch.nn.functional.one_hot(apart.argmin(2), apart.shape[2]).to(apart)
    tiny = torch.finfo(apart.dtype).tiny
    return (-apart.clamp_min(tiny).log() / (fuzziness - 1)).softmax(2)
