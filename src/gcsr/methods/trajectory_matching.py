"""The base class of methods that match trajectories, and MTT, which adds nothing to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from gcsr.engines.iterates import Best, recorded
from gcsr.engines.loop import (
    PRECISIONS,
    Precision,
    Units,
    advance_together,
    feature_unit,
    learn,
)
from gcsr.engines.result import CondensationResult, Context
from gcsr.engines.structure import IdentityStructure, State, Structure, SyntheticFeatures
from gcsr.engines.trajectory.engine import CHECK_EVERY, Matching, MatchTrajectories, Step
from gcsr.engines.trajectory.students import student_for
from gcsr.methods.base import RESOURCE, Condenser
from gcsr.models.registry import CONDENSING_MODELS, condensing_model
from gcsr.outofcore.estimate import Work
from gcsr.outofcore.predict import require_blocks
from gcsr.starts.clusters import Grouping, class_centers
from gcsr.starts.pseudo_labels import Labeler
from gcsr.starts.sample import (
    Start,
    block_labels,
    class_budget,
    propagated_features,
    sampled_starts,
)
from gcsr.training.expert_recipe import ExpertRecipe, ExpertRequest
from gcsr.training.obtain_experts import Experts, experts_for
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import Count, Rate, Weight, Whole, require, require_one_of


@dataclass(frozen=True, kw_only=True)
class TrajectoryCondenser(Condenser):
    """Settings of Algorithm 1 that do not concern the structure.

    Args:
        num_hops: hops of message passing before training rows are sampled (Eq. 3); 0 is plain sampling.
        init: ``sample``: rows of random training nodes (Eq. 4); ``clusters``: class-wise centers
            of all visible nodes, labeled by ``pseudo_labels``.
        pseudo_labels, tempered, grouping: their labeler, its temperature, and how nodes are grouped
            (:class:`Clusters`).
        soft_labels: whether Y' are then the mean shares of the nodes behind a center.
        model: the condensing model (``sgc`` is linear here, as in the paper).
        iterations: K of Algorithm 1.
        student_steps, student_lr: N and η₁.
        expert_steps, max_start: M, and the epoch below which an expert's start is drawn.
        feature_lr: η₂, Adam's rate for X'.
        units: ``relative`` measures ``feature_lr`` in root mean squares of the initial X' (and
            ``alpha``, ``beta`` in mean diagonals of X'X'ᵀ); ``absolute`` takes them as they are.
        iterate: ``best-val``, the iterate on which a quickly trained GCN validates best, the start
            included; or ``last`` (the paper).
        experts, expert_epochs, expert_lr, expert_weight_decay, expert_seed: the experts.
        expert_memory: bytes that their trajectories may take; by default a quarter of free memory.
        expert_disk: bytes that experts may take on disk, where later runs find them, or in a file
            of that size where memory cannot hold their trajectories; by default 0.
        dtype: the precision of features, experts, students and, if it is ``float64``, the result.
    """

    revision = 3
    ITERATES: ClassVar[tuple[str, ...]] = ("last", "best-val")

    num_hops: Whole = 2
    init: Literal["sample", "clusters"] = "sample"
    pseudo_labels: Labeler = "gcn"
    tempered: bool = True
    grouping: Grouping = "bisection"
    soft_labels: bool = False
    model: str = "sgc"
    hidden_channels: Count = 256
    iterations: Whole = 1000
    student_steps: Count = 5
    student_lr: Rate = 0.01
    expert_steps: Count = 2
    max_start: Count = 60
    feature_lr: Rate = 3e-4
    units: Units = "relative"
    iterate: str = "best-val"
    experts: Count = 20
    expert_epochs: Count = 100
    expert_lr: Rate = 1e-2
    expert_weight_decay: Weight = 5e-4
    expert_seed: Whole = 0
    expert_memory: Whole | None = field(default=None, metadata=RESOURCE)
    expert_disk: Whole = field(default=0, metadata=RESOURCE)
    dtype: Precision = "float32"

    def _check(self) -> None:
        require_one_of("model", self.model, CONDENSING_MODELS)
        require(
            not self.soft_labels or self.init == "clusters",
            "soft_labels must be false for init 'sample', got true.",
        )
        require_one_of("iterate", self.iterate, self.ITERATES)
        every = self._snapshot_every
        unit = "" if every == 1 else f" (in snapshots every {every} epochs)"
        require(
            self._kept_epochs <= self.expert_epochs,
            f"max_start + expert_steps - 1{unit} must be <= expert_epochs = {self.expert_epochs}, got"
            f" max_start = {self.max_start} and expert_steps = {self.expert_steps}.",
        )

    def _graph_statistics(self, ctx: Context, experts: Experts) -> dict[str, Any]:
        """Statistics of the real graph that the structure needs; they are part of the provenance."""
        return {}

    def _structure(
        self, ctx: Context, statistics: dict[str, Any], labels: Tensor, starts: Sequence[Start]
    ) -> tuple[Structure, State]:
        """The structure and its initial state for every graph; by default A' = I."""
        return IdentityStructure(), ()

    def _require_blocks(self) -> None:
        super()._require_blocks()
        require(
            self.dtype == "float32",
            f"dtype must be 'float32' for a graph on disk, got {self.dtype!r}.",
        )
        require_blocks(condensing_model(self.model, self.hidden_channels))

    def _work(self, nodes: int) -> Work:
        return Work(
            nodes,
            hops=max(2, self.num_hops),
            experts=self.experts,
            expert_epochs=self.expert_epochs,
            iterations=self.iterations,
            steps=self.student_steps,
            hidden_channels=self.hidden_channels,
        )

    @property
    def _needs_predictions(self) -> bool:
        """Whether the structure needs predictions of fully trained experts."""
        return False

    @property
    def _snapshot_every(self) -> int:
        """Epochs of an expert in one unit of ``max_start`` and ``expert_steps``."""
        return 1

    @property
    def _kept_epochs(self) -> int:
        """The last epoch of an expert that is read."""
        return (self.max_start + self.expert_steps - 1) * self._snapshot_every

    @property
    def _compare_every(self) -> int:
        """Iterations between two comparisons of iterates."""
        return max(1, self.iterations // 10)

    @property
    def _stops_if_diverged(self) -> bool:
        """Whether a loss that is not finite ends the run with the best iterate so far."""
        return False

    def _starts(self, ctx: Context, labels: Tensor) -> list[Start]:
        """Initial features: rows of random training nodes (Eq. 4), or class-wise centers."""
        visible, dtype = ctx.view.visible, PRECISIONS[self.dtype]
        if self.init == "clusters":
            budget = torch.bincount(labels, minlength=visible.num_classes)
            return class_centers(ctx, budget, self, dtype)
        features = propagated_features(visible, self.num_hops, ctx.device, dtype, ctx.progress)
        return sampled_starts(features, visible, labels, ctx.seeds)

    @property
    def _matching(self) -> Matching:
        """Numbers of the engine, which are settings by their names there."""
        names = [one.name for one in fields(Matching) if hasattr(self, one.name)]
        return Matching(**{name: getattr(self, name) for name in names})

    def _label_logits(self, experts: Experts, labels: Tensor, x: Tensor) -> Tensor | None:
        """What Y' is learned from; ``None``: it is not learned."""
        return None

    def _best(self, ctx: Context) -> Best | str:
        """What keeps the best iterate, or its name (:func:`~gcsr.engines.loop.learn`)."""
        return self.iterate

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        visible = ctx.view.visible
        labels = block_labels(class_budget(visible.train_labels, visible.num_classes, ctx.nodes))
        starts = self._starts(ctx, labels)
        request = self.expert_request
        experts = experts_for(request, visible, device=ctx.device, progress=ctx.progress)
        statistics = self._graph_statistics(ctx, experts)
        return advance_together(
            lambda part, group: self._run(part, experts, statistics, labels, starts[group]), ctx
        )

    def _run(
        self,
        ctx: Context,
        experts: Experts,
        statistics: dict[str, Any],
        labels: Tensor,
        starts: Sequence[Start],
    ) -> list[CondensationResult]:
        """Condense some graphs along one leading dimension."""
        structure, state = self._structure(ctx, statistics, labels, starts)
        x = torch.stack([start.x for start in starts]).to(ctx.device)
        model, logits = self.expert_request.model, self._label_logits(experts, labels, x)
        one_hot = torch.nn.functional.one_hot(labels, ctx.view.visible.num_classes)
        targets = [one_hot if start.targets is None else start.targets for start in starts]
        learned_labels = logits is not None
        step = Step(
            x,
            state,
            torch.stack(targets).to(ctx.device, x.dtype),
            structure,
            student_for(model, ctx.nodes, int(x.shape[-1]), learned_labels=learned_labels),
            self._matching,
            self.feature_lr * feature_unit(x, self.units),
            model,
            logits,
        )

        def iterate(_: int) -> tuple[Tensor, ...]:
            with torch.no_grad():
                adjacency = structure.topology(SyntheticFeatures(x), state)[1]
            return x, adjacency, step.current_targets()

        schedules = [make_generator(seed, "expert schedule") for seed in ctx.seeds]
        made = learn(
            ctx,
            MatchTrajectories(step, experts.trajectories, schedules),
            self.iterations,
            iterate,
            self._best(ctx),
            compare_at=range(0, self.iterations, self._compare_every),
            watch_every=max(1, self.iterations // 10),
            check_every=CHECK_EVERY[ctx.device.type],
            stop_if_diverged=self._stops_if_diverged,
        )
        notes: tuple[str, ...] = ()
        if not bool(torch.isfinite(made.losses).all()):
            notes = (
                f"the matching loss stopped being finite by iteration {len(made.losses)}: the best"
                " iterate before is returned",
            )
        x, a, y = made.iterate
        if learned_labels:
            # Nodes in blocks by class.
            order = y.argmax(-1).sort(stable=True).indices.unsqueeze(-1)
            x, y = (part.take_along_dim(order, 1) for part in (x, y))
        results = []
        for g, start in enumerate(starts):
            details = made.details[g] | start.provenance
            if self._matching.learn_student_lr:
                details["learned_student_lr"] = recorded(step.student_lr)[g]
            results.append(
                CondensationResult(
                    x[g],
                    a[g],
                    y[g] if self.soft_labels or learned_labels else labels,
                    (*start.notes, *made.notes[g], *notes),
                    details | statistics,
                    {"experts": experts.measured},
                )
            )
        return results

    def _recipe(self) -> ExpertRecipe:
        """How the experts are trained, and what of them is kept: only what can be read."""
        kept = self._kept_epochs
        gap = self.expert_steps > self.max_start
        return ExpertRecipe(
            count=self.experts,
            epochs=self.expert_epochs,
            kept_epochs=kept,
            trained_epochs=self.expert_epochs if self._needs_predictions else kept,
            lr=self.expert_lr,
            weight_decay=self.expert_weight_decay,
            seed=self.expert_seed,
            snapshot_every=self._snapshot_every,
            unread=(self.max_start, self.expert_steps) if gap else (0, 0),
        )

    @property
    def expert_request(self) -> ExpertRequest:
        """The experts of these settings."""
        return ExpertRequest(
            condensing_model(self.model, self.hidden_channels),
            self._recipe(),
            PRECISIONS[self.dtype],
            self._needs_predictions,
            self.expert_memory,
            self.expert_disk,
        )


@dataclass(frozen=True, kw_only=True)
class MTT(TrajectoryCondenser):
    """Trajectory matching with A' = I and rows sampled without message passing (``num_hops=0``).

    ``num_hops`` above 0 is the GCSR paper's ablation "message-passing initialization only".
    """

    name = "mtt"
    summary = "trajectory matching of features alone (the paper's ablation)"
    revision = 4
    reference = (
        'Cazenavette et al., "Dataset Distillation by Matching Training Trajectories", CVPR 2022'
    )

    works_in_blocks = True

    num_hops: Whole = 0
    # With GCSR's rates, chosen for starts with message passing, iterates were no better than the start.
    expert_lr: Rate = 1e-3
    feature_lr: Rate = 1e-3
