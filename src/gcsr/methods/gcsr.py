"""GCSR: condensation with a self-expressive structure (Liu, Zeng and Zheng, KDD 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from gcsr.engines.result import Context
from gcsr.engines.structure import SelfExpressiveStructure, State, Structure
from gcsr.equations.prior import class_prior
from gcsr.methods.trajectory_matching import TrajectoryCondenser
from gcsr.outofcore.real import real_graph
from gcsr.starts.sample import Start
from gcsr.training.obtain_experts import Experts
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import InputError, Share, Weight, require

Prior = Literal["train", "predicted", "all"]
Regularizer = Literal["prior", "substructure", "random"]


@dataclass(frozen=True, kw_only=True)
class GCSR(TrajectoryCondenser):
    """Algorithm 1 of the paper.

    Equation numbers are labels of the paper's LaTeX source; docs/architecture.md has the printed ones.

    Args:
        prior: whose labels the class correlation (Eq. 5) counts. ``train``: training labels;
            ``predicted``: those, and the experts' prediction for every other visible node; ``all``:
            every label, test labels included, which is what the paper does. It leaks, and results
            are marked.
        regularizer: what P starts as: the class ``prior`` (the paper), the ``substructure`` of the
            sampled nodes in the real graph, or ``random``.
        alpha, beta: weights of P and of the history Z_h in the reconstruction (Eq. 8).
        tau, gamma: how much of P and Z_h is kept per iteration (Eq. 14-15).
    """

    name = "gcsr"
    summary = "trajectory matching with a self-expressive structure (KDD 2024)"
    reference = (
        'Liu, Zeng and Zheng, "Graph Data Condensation via Self-expressive Graph Structure '
        'Reconstruction", KDD 2024'
    )

    prior: Prior = "predicted"
    regularizer: Regularizer = "prior"
    alpha: Weight = 1.0
    beta: Weight = 1.0
    tau: Share = 0.9
    gamma: Share = 0.5

    works_in_blocks = True

    def _check(self) -> None:
        super()._check()
        require(
            self.regularizer != "substructure" or self.init == "sample",
            "init must be 'sample' for regularizer 'substructure', got 'clusters'.",
        )
        require(
            self.alpha + self.beta > 0,
            f"alpha + beta must be > 0, got {self.alpha} + {self.beta}.",
        )

    @property
    def leaks_test_labels(self) -> bool:
        """The prior over all labels is the one setting that leaks."""
        return self.prior == "all" and self.regularizer == "prior"

    @property
    def _needs_predictions(self) -> bool:
        return self.prior == "predicted" and self.regularizer == "prior"

    def _graph_statistics(self, ctx: Context, experts: Experts) -> dict[str, Any]:
        """The class correlation (Eq. 5) that the prior is made of."""
        if self.regularizer != "prior":
            return {}
        visible = ctx.view.visible
        labels = visible.labels
        if self.prior == "all":
            if ctx.view.every_label is None:
                raise InputError("prior must be 'predicted' or 'train' for this view, got 'all'.")
            labels = ctx.view.every_label
        elif self.prior == "predicted":
            labels = torch.where(labels >= 0, labels, experts.predicted_classes.cpu())
        real = real_graph(visible, ctx.device, progress=ctx.progress)
        correlation = real.class_correlation(labels, visible.num_classes)
        return {"class_correlation": correlation.tolist()}

    def _structure(
        self, ctx: Context, statistics: dict[str, Any], labels: Tensor, starts: Sequence[Start]
    ) -> tuple[Structure, State]:
        x = torch.stack([start.x for start in starts]).to(ctx.device)
        graphs, n = len(starts), labels.numel()
        if self.regularizer == "prior":
            correlation = torch.tensor(statistics["class_correlation"], dtype=torch.float64)
            prior = class_prior(correlation, labels).to(x).repeat(graphs, 1, 1)
        elif self.regularizer == "substructure":
            among = [ctx.view.visible.among(start.nodes).toarray() for start in starts]
            prior = torch.stack([torch.from_numpy(one) for one in among]).to(x)
        else:
            # The name seeds the generator: another spelling would change results.
            generators = [make_generator(seed, "random regulariser") for seed in ctx.seeds]
            prior = torch.stack([torch.rand((n, n), generator=one) for one in generators]).to(x)
        history = torch.eye(n).to(x).repeat(graphs, 1, 1)
        unit = torch.ones((graphs, 1, 1)).to(x)
        if self.units == "relative":
            unit = x.square().sum(-1).mean(-1).view(-1, 1, 1)
        structure = SelfExpressiveStructure(
            self.alpha * unit, self.beta * unit, self.tau, self.gamma
        )
        return structure, (prior, history)
