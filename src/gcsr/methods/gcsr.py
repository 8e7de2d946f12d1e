"""GCSR: condensation with a self-expressive structure (Liu, Zeng and Zheng, KDD 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from gcsr.data.views import CondensingView
from gcsr.engines.structure import SelfExpressiveStructure, State, Structure
from gcsr.engines.trajectory.engine import ExpertSource
from gcsr.equations.prior import class_correlation, class_prior
from gcsr.methods.trajectory_matching import TrajectoryCondenser
from gcsr.models.sparse import csr_tensor
from gcsr.outofcore.prior import class_correlation_in_blocks
from gcsr.starts.sample import Start
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import InputError, require, require_one_of
from gcsr.utils.validation import real_number

Prior = Literal["train", "predicted", "all"]
Regularizer = Literal["prior", "substructure", "random"]


@dataclass(frozen=True, kw_only=True)
class GCSR(TrajectoryCondenser):
    """Algorithm 1 of the paper.

    Args:
        prior: whose labels the class correlation (Eq. 5) counts. ``train``: training labels;
            ``predicted``: those, and the experts' prediction for every other visible node; ``all``:
            every label, test labels included, which is what the paper does. It leaks, and results
            say so.
        regularizer: what P starts as: the class ``prior`` (the paper), the ``substructure`` of the
            sampled nodes in the real graph, or ``random``.
        alpha, beta: weights of P and of the history Z_h in the reconstruction (Eq. 8).
        tau, gamma: how much of P and Z_h is kept per iteration (Eq. 14-15).
    """

    name: ClassVar[str] = "gcsr"
    summary: ClassVar[str] = "trajectory matching with a self-expressive structure (KDD 2024)"

    prior: Prior = "predicted"
    regularizer: Regularizer = "prior"
    alpha: float = 1.0
    beta: float = 1.0
    tau: float = 0.9
    gamma: float = 0.5

    works_in_blocks: ClassVar[bool] = True

    def _check_structure(self) -> None:
        require_one_of("prior", self.prior, ("train", "predicted", "all"))
        require_one_of("regularizer", self.regularizer, ("prior", "substructure", "random"))
        require(
            self.regularizer != "substructure" or self.init == "sample",
            "regularizer: 'substructure' needs init 'sample'; centers are no nodes of the graph.",
        )
        real_number(self, "alpha", "beta")
        real_number(self, "tau", "gamma", most=1.0)
        require(
            self.alpha + self.beta > 0,
            f"alpha, beta: {self.alpha} + {self.beta} must be above 0, or the reconstruction has no"
            " unique solution.",
        )

    @property
    def leaks_test_labels(self) -> bool:
        """The prior over all labels is the one setting that leaks."""
        return self.prior == "all" and self.regularizer == "prior"

    @property
    def _needs_predictions(self) -> bool:
        return self.prior == "predicted" and self.regularizer == "prior"

    def _graph_statistics(self, view: CondensingView, source: ExpertSource) -> dict[str, Any]:
        if self.regularizer != "prior":
            return {}
        return {"class_correlation": self._class_correlation(view, source).tolist()}

    def _structure(
        self,
        view: CondensingView,
        knowledge: dict[str, Any],
        labels: Tensor,
        starts: Sequence[Start],
        seeds: Sequence[int],
    ) -> tuple[Structure, State]:
        x = torch.stack([start.x for start in starts])
        if self.regularizer == "prior":
            correlation = torch.tensor(knowledge["class_correlation"], dtype=torch.float64)
            prior = class_prior(correlation, labels).to(x).repeat(len(seeds), 1, 1)
        elif self.regularizer == "substructure":
            prior = torch.stack([_substructure(view, start.nodes) for start in starts]).to(x)
        else:
            prior = torch.stack([_random(seed, labels.numel()) for seed in seeds]).to(x)
        history = torch.eye(labels.numel()).to(x).repeat(len(seeds), 1, 1)
        unit = torch.ones((len(seeds), 1, 1)).to(x)
        if self.units == "relative":
            unit = x.square().sum(-1).mean(-1).view(-1, 1, 1)
        structure = SelfExpressiveStructure(
            self.alpha * unit, self.beta * unit, self.tau, self.gamma
        )
        return structure, (prior, history)

    def _class_correlation(self, view: CondensingView, source: ExpertSource) -> Tensor:
        visible = view.visible
        labels = visible.labels
        if self.prior == "all":
            if view.every_label is None:
                raise InputError("prior: 'all' needs labels that this view does not hold.")
            labels = view.every_label
        elif self.prior == "predicted":
            predicted = source.experts.predicted_classes
            labels = torch.where(labels >= 0, labels, predicted.cpu())
        if visible.disk is not None:
            return class_correlation_in_blocks(
                visible.disk, labels, visible.num_classes, source.progress
            )
        adjacency = csr_tensor(visible.adjacency, source.device, torch.float32)
        return class_correlation(adjacency, labels, visible.num_classes)


def _substructure(view: CondensingView, nodes: Tensor) -> Tensor:
    return torch.from_numpy(view.visible.among(nodes).toarray())


def _random(seed: int, nodes: int) -> Tensor:
    return torch.rand((nodes, nodes), generator=make_generator(seed, "random regulariser"))
