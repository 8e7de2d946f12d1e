r"""Kernel ridge condensation: GC-SNTK (Wang et al., 2024), corrected.

Instead of a network that is trained on the condensed graph, ridge regression with a graph neural
tangent kernel :math:`\Theta` (:func:`gcsr.equations.gntk.tangent_kernel`) predicts the training nodes
from it in closed form:

.. math:: \min_{X', Y'} \big\| \mathrm{softmax}\big(\Theta_{ts}
          (\Theta_{ss} + \lambda\,\mathrm{tr}(\Theta_{ss}) / n' \cdot I)^{-1} Y'\big) - Y \big\|^2 .

Rows t are training rows of :math:`\hat A^k X`. They are propagated once over all that may be seen. The
authors propagate over the whole graph and then once more within the kernel, over the edges among
training (or among test) nodes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gcsr.data.views import Target
from gcsr.engines.direct import CHECK_EVERY, DirectStep
from gcsr.engines.iterates import QUICK_RUNS
from gcsr.engines.loop import COMPARISONS, Units, advance_together, feature_unit, learn
from gcsr.engines.result import CondensationResult, Context
from gcsr.equations.gntk import KernelNodes, ridge_prediction, tangent_kernel
from gcsr.methods.base import Condenser
from gcsr.outofcore.estimate import Work
from gcsr.starts.sample import (
    Start,
    block_labels,
    class_budget,
    propagated_features,
    rows_by_hop,
    sampled_starts,
)
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import Count, Rate, Weight, Whole

# Rows of the real graph that are predicted at a time.
ROWS = 4096
# Networks that are trained on X' fail on real rows that are so many times smaller than a uniform start.
LARGER = 20


@dataclass(frozen=True, kw_only=True)
class KRR(Condenser):
    """Features and labels from which kernel ridge regression predicts the training nodes.

    The kernel is that of an infinitely wide network, so no network is trained, and the gradient is
    exact. Networks that are trained on the result are tested as for every other method; the kernel's
    own validation accuracy is in the provenance (``kernel``).

    Args:
        num_hops: hops of message passing on the real graph.
        blocks, layers: aggregations of the kernel (K), and fully connected layers after each (L).
        ridge: lambda, in mean diagonals of the kernel.
        neighbors: mean number of neighbors in A', which joins the nodes that are nearest; 0: A' = I.
        iterations: steps of Adam.
        batch: training nodes per step; all where they are not more.
        feature_lr, label_lr: Adam's rates for X' and Y'.
        units: ``relative``: ``feature_lr`` in root mean squares of the initial X'; or ``absolute``.
        init: ``sample``: training rows and their labels; or ``uniform`` numbers between 0 and 1.
        soft_labels: whether the result has class shares, Y' without negative numbers and scaled to
            one; otherwise the largest entry of a row is its class.
        iterate: ``best-val``: the iterate on which quickly trained GCNs validate best; or ``last``.
    """

    name = "krr"
    summary = "features and labels learned by ridge regression with a tangent kernel"
    reference = (
        'Wang et al., "Fast Graph Condensation with Structure-based Neural Tangent Kernel", '
        "WWW 2024"
    )
    # Classes are learned too.
    exact_class_budget = False
    # Labels are numbers that differ in their last bit.
    same_on_every_device = False

    num_hops: Whole = 2
    blocks: Count = 2
    layers: Count = 2
    ridge: Rate = 1.0
    neighbors: Whole = 0
    iterations: Whole = 200
    batch: Count = 2048
    feature_lr: Weight = 0.01
    label_lr: Weight = 0.01
    units: Units = "relative"
    init: Literal["sample", "uniform"] = "sample"
    soft_labels: bool = True
    iterate: Literal["best-val", "last"] = "best-val"

    def _work(self, nodes: int) -> Work:
        comparisons = QUICK_RUNS * (COMPARISONS + 1) * (self.iterate == "best-val")
        return Work(
            nodes,
            hops=self.num_hops,
            iterations=self.iterations,
            steps=self.blocks * self.layers,
            comparisons=comparisons,
        )

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        visible = ctx.view.visible
        labels = block_labels(class_budget(visible.train_labels, visible.num_classes, ctx.nodes))
        features = propagated_features(visible, self.num_hops, ctx.device)
        starts = sampled_starts(features, visible, labels, ctx.seeds)
        rows = features[visible.train.to(features.device)].to(ctx.device)
        return advance_together(
            lambda part, group: self._run(part, rows, labels, starts[group]), ctx
        )

    def _run(
        self, ctx: Context, rows: Tensor, labels: Tensor, starts: Sequence[Start]
    ) -> list[CondensationResult]:
        """Condense some graphs along one leading dimension, in float64."""
        view, seeds, device = ctx.view, ctx.seeds, ctx.device
        classes = view.visible.num_classes
        known = torch.nn.functional.one_hot(view.visible.train_labels, classes).to(device).double()
        one_hot = torch.nn.functional.one_hot(labels, classes).to(device).double()
        x = torch.stack([start.x for start in starts]).to(device, torch.float64)
        y = one_hot.repeat(len(seeds), 1, 1)
        if self.init == "uniform":
            for g, seed in enumerate(seeds):
                generator = make_generator(seed, "uniform start")
                for part in (x[g], y[g]):
                    part.copy_(torch.rand(part.shape, generator=generator))

        def loss(iteration: int, params: Sequence[Tensor]) -> Tensor:
            at = self.drawn(len(rows), iteration, seeds).to(device)
            predicted = self.predicted(rows[at].double(), *params)
            return (predicted.softmax(-1) - known[at]).square().mean((-2, -1))

        feature_lr = self.feature_lr * feature_unit(x, self.units)
        scale = self._scale_notes(x, rows)

        def iterate(_: int) -> tuple[Tensor, ...]:
            return x, torch.stack([self.adjacency(one) for one in x]), self.targets(y), y

        step = DirectStep((x, y), (feature_lr, self.label_lr), loss)
        made = learn(ctx, step, self.iterations, iterate, self.iterate, check_every=CHECK_EVERY)
        x, adjacency, targets, y = made.iterate
        accuracy = self._kernel_accuracy(view.validation, x, y)
        results = []
        for g, start in enumerate(starts):
            # In blocks by class like every other method's.
            order = targets[g].argmax(1).argsort(stable=True)
            results.append(
                CondensationResult(
                    x[g][order].float(),
                    adjacency[g][order][:, order].float(),
                    targets[g][order].float() if self.soft_labels else targets[g].argmax(1)[order],
                    (*(start.notes if self.init == "sample" else scale), *made.notes[g]),
                    made.details[g] | {"kernel": {"validation": accuracy[g]}},
                )
            )
        return results

    def _scale_notes(self, x: Tensor, rows: Tensor) -> tuple[str, ...]:
        """A note if the uniform start is far larger than the real rows."""
        ours, real = (float(feature_unit(part, "relative").mean()) for part in (x, rows[None]))
        if self.init != "uniform" or ours <= LARGER * real:
            return ()
        return (
            f"numbers between 0 and 1, the start of X', are {ours / max(real, 1e-30):.3g} times as"
            " large as the real features: init='uniform' is for standardized features",
        )

    def drawn(self, count: int, iteration: int, seeds: Sequence[int]) -> Tensor:
        """Which training rows a step predicts: all ``(count,)``, or some for each graph."""
        if count <= self.batch:
            return torch.arange(count)
        generators = (make_generator(seed, f"training rows of {iteration}") for seed in seeds)
        return torch.stack(
            [torch.randint(count, (self.batch,), generator=one) for one in generators]
        )

    def adjacency(self, x: Tensor) -> Tensor:
        """A' of features ``(..., n', d)``: edges between the nearest nodes, or the identity."""
        nodes = x.shape[-2]
        eye = torch.eye(nodes, dtype=x.dtype, device=x.device)
        edges = min(self.neighbors * nodes // 2, nodes * (nodes - 1) // 2)
        if not edges:
            return eye.expand(*x.shape[:-2], -1, -1)
        above = torch.triu_indices(nodes, nodes, 1, device=x.device)
        apart = torch.cdist(x, x)[..., above[0], above[1]]
        nearest = apart.argsort(dim=-1, stable=True)[..., :edges]
        found = torch.zeros_like(apart).scatter(-1, nearest, 1.0)
        joined = eye.new_zeros((*x.shape[:-2], nodes, nodes))
        joined[..., above[0], above[1]] = found
        return joined + joined.mT

    def predicted(self, rows: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """The ridge regression's outputs for real rows."""
        mean = None
        if self.neighbors:
            looped = self.adjacency(x.detach()) + torch.eye(x.shape[-2]).to(x)
            mean = looped / looped.sum(-1, keepdim=True)
        small, real = KernelNodes(x, mean), KernelNodes(rows)
        cross = tangent_kernel(real, small, self.blocks, self.layers)
        own = tangent_kernel(small, small, self.blocks, self.layers)
        return ridge_prediction(cross, own, y, self.ridge)

    def _kernel_accuracy(self, validation: Target, x: Tensor, y: Tensor) -> list[float]:
        """The share of validation nodes that the kernel classes rightly, for every graph."""
        rows = rows_by_hop(validation, validation.nodes, self.num_hops, x.device)[-1]
        labels = validation.labels.to(x.device)
        right = [
            (self.predicted(part.double(), x, y).argmax(-1) == known).sum(-1)
            for part, known in zip(rows.split(ROWS), labels.split(ROWS), strict=True)
        ]
        total = torch.stack(right).sum(0) if right else torch.zeros(len(x))
        return (total.double() / max(1, len(labels))).tolist()

    def targets(self, y: Tensor) -> Tensor:
        """Class shares ``(n', C)`` of the labels that were learned."""
        positive = y.clamp_min(0)
        total = positive.sum(-1, keepdim=True)
        hard = torch.nn.functional.one_hot(y.argmax(-1), y.shape[-1]).to(y)
        if not self.soft_labels:
            return hard
        return torch.where(total > 0, positive / total.where(total > 0, 1.0), hard)
