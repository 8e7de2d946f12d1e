"""GEOM: trajectory matching with a curriculum and an expanding window (Zhang et al., ICML 2024)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gcsr.equations.curriculum import Curriculum, Pace
from gcsr.methods.sfgc import SnapshotCondenser
from gcsr.models.topology import EmptyTopology
from gcsr.training.expert_recipe import ExpertRecipe
from gcsr.training.obtain_experts import Experts
from gcsr.utils.errors import Count, PositiveShare, Rate, Weight, Whole


@dataclass(frozen=True, kw_only=True)
class GEOM(SnapshotCondenser):
    """SFGC with experts that learn easy nodes first, and soft labels; the loss is not squared.

    A training node is easy if its neighbors are of few classes. Training nodes have their labels in
    this, other nodes what an expert predicts. (The authors count validation and test labels.)

    Args:
        easy_share, curriculum_epochs, pace: the share of training nodes that an expert begins with, the
            epoch from which it has all of them, and how the share grows.
        window: epochs below which the first iteration starts; one more in every iteration, up to
            ``max_start`` snapshots.
        learn_labels: whether Y' is learned, from what an expert says of the initial X' on.
        label_lr: the rate of SGD (momentum 0.9) for the logits of Y'.
        knowledge: weight of the loss of the trained expert on the condensed graph.
    """

    name = "geom"
    summary = "trajectory matching with a curriculum and soft labels (ICML 2024)"
    reference = (
        'Zhang et al., "Navigating Complexity: Toward Lossless Graph Condensation via '
        'Expanding Window Matching", ICML 2024'
    )
    exact_class_budget = False
    root = True

    model: str = "gcn"
    num_hops: Whole = 2
    iterations: Whole = 300
    student_steps: Count = 50
    student_lr: Rate = 0.3
    expert_steps: Count = 10
    feature_lr: Rate = 0.01
    easy_share: PositiveShare = 0.75
    curriculum_epochs: Whole = 50
    pace: Pace = "root"
    window: Count = 10
    learn_labels: bool = True
    label_lr: Weight = 1e-4
    knowledge: Weight = 0.1

    @property
    def _compare_every(self) -> int:
        return self.score_every

    def _recipe(self) -> ExpertRecipe:
        curriculum = Curriculum(self.easy_share, self.curriculum_epochs, self.pace)
        return replace(
            super()._recipe(),
            curriculum=curriculum,
            final=True,
            trained_epochs=self.expert_epochs,
        )

    def _label_logits(self, experts: Experts, labels: Tensor, x: Tensor) -> Tensor | None:
        if not self.learn_labels:
            return None
        last = experts.trajectories.recipe.final_snapshot
        expert = experts.trajectories.pairs([0], [last], 0)[1]
        model = self.expert_request.model
        with torch.no_grad():
            found = [
                model.logits(expert, model.prepare(one, EmptyTopology(one.shape[0], one.device)))
                for one in x
            ]
            logits = torch.cat(found)
            own = labels.to(x.device).expand(x.shape[0], -1).unsqueeze(-1)
            # Where the expert is wrong it exchanges the two classes.
            top = logits.argmax(-1, keepdim=True)
            scores = logits.gather(-1, top), logits.gather(-1, own)
            return logits.scatter(-1, own, scores[0]).scatter(
                -1, top, torch.where(top == own, *scores)
            )
