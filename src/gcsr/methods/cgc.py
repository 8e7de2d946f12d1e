r"""CGC-X and CGC: centers of groups of propagated training rows, and edges between similar ones.

With :math:`H_k = \hat A^k X` and W the least-squares solution of
:math:`(H_0 + H_1 + H_2) W / 3 = Y` on the training nodes, rows of H2 and, drawn from classes that W
predicts badly on H1, some of H1 are grouped class by class. A center is

.. math:: x'_j = \sum_{i \in j} \mathrm{softmax}_i(q_i / \tau)\, h_i,

where q is the probability that W gives to a row's own class, or the least of all where another class
is likelier. CGC-X has no edges. CGC joins similar centers c, :math:`A'_{ij} = [\cos(c_i, c_j) > t]` for
i ≠ j, and with :math:`P = \mathrm{norm}(A')^3` and the normalized Laplacian L of A' its features are

.. math:: X' = \arg\min_X \alpha \|PX - C\|^2 + \mathrm{tr}(X^\top L X)
             = (\alpha P^\top P + L)^{-1} \alpha P^\top C.

Reference: Gao et al., "Rethinking and Accelerating Graph Condensation: A Training-Free Approach with
Class Partition", WWW 2025.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from gcsr.engines.result import CondensationResult, Context
from gcsr.equations.propagation import normalized_adjacency
from gcsr.methods.base import Condenser
from gcsr.outofcore.estimate import Work
from gcsr.starts.clusters import cluster_start
from gcsr.starts.sample import block_labels, class_budget, rows_by_hop
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import Bounds, Rate, Weight

NUM_HOPS = 2
# The least threshold of CGC by default; the authors' on Cora and Citeseer.
USUAL_THRESHOLD = 0.8


@dataclass(frozen=True, kw_only=True)
class CGCX(Condenser):
    """Centers of groups within each class, weighted by the confidence of a linear classifier.

    Rows of the training nodes after two hops are grouped, with some rows after one hop of classes that
    the classifier predicts badly. Nothing is trained, and there are no edges (Gao et al., 2025).

    Args:
        temperature: tau; large values weigh all rows of a group alike.
        augment: added rows of H1, as a share of the training nodes.
        grouping: ``k-means``, or ``spectral`` clustering as the authors use, which is slower.
    """

    name = "cgc-x"
    summary = "centers of groups of propagated training rows, weighted by confidence"
    reference = (
        'Gao et al., "Rethinking and Accelerating Graph Condensation: A Training-Free Approach '
        'with Class Partition", WWW 2025'
    )
    # A row that is as near to two centers may join either.
    same_on_every_device = False

    temperature: Rate = 1.0
    augment: Weight = 0.5
    grouping: Literal["k-means", "spectral"] = "k-means"

    def _work(self, nodes: int) -> Work:
        return Work(nodes, hops=NUM_HOPS)

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        visible = ctx.view.visible
        budget = class_budget(visible.train_labels, visible.num_classes, ctx.nodes)
        hops = rows_by_hop(visible, visible.train, NUM_HOPS, ctx.device)
        labels = visible.train_labels.to(ctx.device)
        shares = torch.nn.functional.one_hot(labels, visible.num_classes).to(hops[0])
        weights = least_squares(torch.stack(hops).mean(0), shares)
        predicted = (hops[1] @ weights).argmax(1)
        missed = 1 - class_f1(predicted, labels, visible.num_classes)
        added = int(self.augment * labels.numel())
        classes = block_labels(budget)
        results = []
        for done, seed in enumerate(ctx.seeds, 1):
            generator = make_generator(seed, "clusters")
            again = draw(missed[labels].cpu(), added, generator).to(ctx.device)
            sets = (hops[2], labels), (hops[1][again], labels[again])
            start = cluster_start(
                torch.cat([rows for rows, _ in sets]),
                torch.cat([shares, shares[again]]),
                budget,
                generator,
                self.grouping,
                confidence=torch.cat([confidence(rows, weights, y) for rows, y in sets])
                / self.temperature,
            )
            x, adjacency = self._graph(start.x, classes)
            results.append(CondensationResult(x, adjacency, classes, start.notes))
            ctx.progress("clustering", done, len(ctx.seeds))
        return results

    def _graph(self, centers: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """X' and A' of the centers."""
        return centers, torch.eye(centers.shape[0])


@dataclass(frozen=True, kw_only=True)
class CGC(CGCX):
    """Edges join centers of :class:`gcsr.CGCX` that are similar; features propagate to the centers.

    X' minimizes alpha times the squared distance of its propagation from the centers, plus its
    variation over the edges.

    Args:
        threshold: t, the cosine above which two centers are joined; by default 0.8 or, where it is
            higher, the greatest cosine between centers of different classes.
        alpha: weight of the first term.
        solver: ``exact``, or ``faithful`` to the released code, which omits alpha on the left, so that
            alpha only scales X'.
    """

    name = "cgc"
    revision = 2
    summary = "centers of groups of training rows, with edges between similar ones"

    threshold: Annotated[float, Bounds(least=-1.0, most=1.0)] | None = None
    alpha: Rate = 1.0
    solver: Literal["exact", "faithful"] = "exact"

    def _graph(self, centers: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        directions = torch.nn.functional.normalize(centers.double(), dim=1)
        cosines = directions @ directions.T
        threshold = self.threshold
        if threshold is None:
            # Of dense features without negative values nearly all pairs are above any fixed number.
            # Centers of two classes that are joined are hardly distinguishable after propagation.
            y = classes.to(centers.device)
            between = cosines[y[:, None] != y]
            threshold = max(USUAL_THRESHOLD, between.max().item() if len(between) else -1.0)
        adjacency = (cosines > threshold).double().fill_diagonal_(0)
        hop = normalized_adjacency(adjacency)
        reached = hop @ hop @ hop
        degree = adjacency.sum(1)
        scale = degree.clamp_min(1).rsqrt()
        # A center without edges has a row of zeros; its system is that of P alone, which is one.
        laplacian = (degree > 0).double().diag() - scale[:, None] * adjacency * scale
        left = self.alpha if self.solver == "exact" else 1.0
        x = torch.linalg.solve(
            left * reached.T @ reached + laplacian, self.alpha * reached.T @ centers.double()
        )
        return x.to(centers), adjacency.to(centers)


def least_squares(rows: Tensor, targets: Tensor) -> Tensor:
    """The solution W of ``rows @ W = targets`` in least squares that has the least norm.

    By the pseudo-inverse of the smaller Gram matrix, in float64.
    """
    x, y = rows.double(), targets.double()
    found: Tensor
    if x.shape[0] < x.shape[1]:
        found = x.T @ (torch.linalg.pinv(x @ x.T, hermitian=True) @ y)
    else:
        found = torch.linalg.pinv(x.T @ x, hermitian=True) @ (x.T @ y)
    return found.to(rows)


def confidence(rows: Tensor, weights: Tensor, labels: Tensor) -> Tensor:
    """The probability of every row's own class; the least of all where another one is likelier."""
    shares = (rows @ weights).softmax(1)
    own = shares.gather(1, labels[:, None]).flatten()
    least = own.min() if len(own) else own
    return torch.where(shares.argmax(1) == labels, own, least)


def class_f1(predicted: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """The F1 score of every class, float64; 0 for one that is neither there nor predicted."""
    right = torch.bincount(labels[predicted == labels], minlength=num_classes)
    both = sum(torch.bincount(one, minlength=num_classes) for one in (predicted, labels))
    return 2 * right.double() / torch.as_tensor(both).clamp_min(1)


def draw(weights: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """``count`` places with replacement, as likely as their weights; alike where none has any."""
    steps = (weights + torch.finfo(weights.dtype).tiny).cumsum(0)
    at = torch.rand(count, generator=generator, dtype=steps.dtype) * steps[-1]
    return torch.searchsorted(steps, at, right=True).clamp_max(len(steps) - 1)
