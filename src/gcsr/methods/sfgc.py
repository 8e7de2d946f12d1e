"""SFGC: structure-free condensation (Zheng et al., NeurIPS 2023)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from gcsr.data.views import CondensingView, Target
from gcsr.engines.iterates import Chooser
from gcsr.engines.selection.coreset import embed_training_nodes, k_center
from gcsr.engines.together import PRECISIONS
from gcsr.engines.trajectory.engine import LearnedRate
from gcsr.engines.trajectory.gntk import BestByKernel
from gcsr.methods.mtt import MTT
from gcsr.starts.sample import Start, pick_training_rows, propagated_features
from gcsr.training.expert_recipe import OPTIMISERS, ExpertRecipe, Optimizer
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import require, require_one_of
from gcsr.utils.parallel import part_of, run_jobs
from gcsr.utils.progress import Progress
from gcsr.utils.validation import real_number, whole_number


@dataclass(frozen=True, kw_only=True)
class SFGC(MTT):
    """MTT with a K-Center start, a learned student rate and a kernel that chooses the iterate.

    ``max_start`` and ``expert_steps`` are counted in snapshots, ``expert_epochs`` in epochs.

    Args:
        selection: ``kcenter``, on the hidden units of a GCN trained with ``embedding_weight_decay``
            for ``embedding_epochs``; or ``random``. ``num_hops`` above 0 takes the chosen nodes'
            rows after message passing (the paper's SFGC+MPI).
        learn_student_lr: whether η₁ is learned, from ``student_lr`` on.
        iterate: ``gntk``, the iterate whose graph neural tangent kernel predicts validation labels
            with the least error; ``best-val``; or ``last``.
        score_every: iterations between two looks of the kernel, the start and the end included.
        gntk_ridge: λ of its ridge regression, in mean diagonals of the kernel.
        gntk_nodes: validation nodes of each class that it predicts; by default all of them, 1,000
            in all where there are more.
        gntk_draws: over how many draws of such nodes its error is averaged.
        snapshot_every: epochs between the snapshots of an expert.
        expert_optimizer: ``adam`` or ``sgd``.
        expert_restart: a fresh optimiser at a tenth of the rate from the middle of the schedule on.
    """

    name: ClassVar[str] = "sfgc"
    # As in :class:`~gcsr.methods.selection.EmbeddedSelection`.
    same_on_every_device: ClassVar[bool] = False
    summary: ClassVar[str] = "structure-free trajectory matching with a kernel's choice (2023)"
    ITERATES: ClassVar[tuple[str, ...]] = ("gntk", "last", "best-val")

    iterate: str = "gntk"
    selection: Literal["kcenter", "random"] = "kcenter"
    learn_student_lr: bool = True
    score_every: int = 10
    gntk_ridge: float = 1.0
    gntk_nodes: int | None = None
    gntk_draws: int = 1
    embedding_epochs: int = 600
    embedding_weight_decay: float = 5e-4
    snapshot_every: int = 1
    expert_optimizer: Optimizer = "adam"
    expert_restart: bool = True

    def _check_structure(self) -> None:
        require_one_of("selection", self.selection, ("kcenter", "random"))
        require_one_of("expert_optimizer", self.expert_optimizer, OPTIMISERS)
        whole_number(
            self, "score_every", "gntk_draws", "embedding_epochs", "snapshot_every", least=1
        )
        if self.gntk_nodes is not None:
            whole_number(self, "gntk_nodes", least=1)
        real_number(self, "gntk_ridge", above=True)
        real_number(self, "embedding_weight_decay")
        for name in ("learn_student_lr", "expert_restart"):
            value = getattr(self, name)
            require(
                isinstance(value, bool), f"{name}: {value!r} is not accepted; a truth value is."
            )

    @property
    def _learned_rate(self) -> LearnedRate | None:
        return LearnedRate() if self.learn_student_lr else None

    @property
    def _breaks(self) -> bool:
        return self.iterate == "gntk"

    @property
    def _snapshot_every(self) -> int:
        return self.snapshot_every

    def _recipe(self) -> ExpertRecipe:
        return replace(
            super()._recipe(), optimiser=self.expert_optimizer, restart=self.expert_restart
        )

    def _starts(
        self,
        view: CondensingView,
        labels: Tensor,
        seeds: Sequence[int],
        device: torch.device,
        progress: Progress,
    ) -> list[Start]:
        if self.selection == "random":
            return super()._starts(view, labels, seeds, device, progress)
        features = propagated_features(view.visible, self.num_hops, device, PRECISIONS[self.dtype])

        def job(seed: int) -> Callable[[Progress], Start]:
            def start(report: Progress) -> Start:
                embeddings = embed_training_nodes(
                    view,
                    layer="hidden_channels",
                    seed=seed,
                    device=device,
                    weight_decay=self.embedding_weight_decay,
                    epochs=self.embedding_epochs,
                    progress=report,
                ).cpu()
                return pick_training_rows(
                    features,
                    view.visible,
                    labels,
                    make_generator(seed, "initial rows"),
                    lambda places, count: k_center(embeddings[places], count),
                )

            return start

        jobs = [job(seed) for seed in seeds]
        if device.type == "cpu":
            return run_jobs(jobs, progress)
        return [start(part_of(progress, done, len(jobs))) for done, start in enumerate(jobs)]

    def _chooser(
        self, targets: Tensor, validation: Target, device: torch.device
    ) -> tuple[Chooser | None, int]:
        if self.iterate != "gntk":
            return super()._chooser(targets, validation, device)
        kernel = BestByKernel(
            targets,
            validation,
            device,
            ridge=self.gntk_ridge,
            nodes=self.gntk_nodes,
            draws=self.gntk_draws,
        )
        return kernel, self.score_every
