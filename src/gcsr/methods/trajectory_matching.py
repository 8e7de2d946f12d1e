"""What the methods that match trajectories have in common: experts, student, iterations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from gcsr.data.views import CondensingView, Target
from gcsr.engines.divergence import DivergenceGuard
from gcsr.engines.iterates import CURVE_POINTS, BestValidated, Chooser, looking, recorded
from gcsr.engines.result import CondensationResult, Context
from gcsr.engines.structure import State, Structure, SyntheticFeatures
from gcsr.engines.together import (
    PRECISIONS,
    UNITS,
    Precision,
    Units,
    advance_together,
    feature_unit,
)
from gcsr.engines.trajectory.engine import (
    ExpertSource,
    Iterate,
    LearnedRate,
    Matching,
    Step,
    match_trajectories,
)
from gcsr.engines.trajectory.students import student_for
from gcsr.methods.base import Condenser, resource
from gcsr.models.registry import CONDENSING_MODELS, condensing_model
from gcsr.outofcore.estimate import Work
from gcsr.outofcore.predict import require_blocks
from gcsr.starts.budget import block_labels, class_budget
from gcsr.starts.clusters import Clustering, Grouping, class_centers
from gcsr.starts.pseudo_labels import Labeler
from gcsr.starts.sample import Start, rows_after, sample_training_rows
from gcsr.training.expert_recipe import ExpertRecipe
from gcsr.training.experts import ExpertRequest
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import require, require_one_of
from gcsr.utils.progress import Progress
from gcsr.utils.validation import real_number, whole_number


@dataclass(frozen=True, kw_only=True)
class TrajectoryCondenser(Condenser):
    """Settings of Algorithm 1 that do not concern the structure.

    Args:
        num_hops: hops of message passing before training rows are sampled (Eq. 3); 0 is plain sampling.
        init: ``sample``: rows of random training nodes (Eq. 4); ``clusters``: class-wise centers
            of all visible nodes, labeled by ``pseudo_labels``.
        pseudo_labels, tempered, grouping: who labels them, at which temperature, and how nodes are
            grouped (:class:`Clusters`).
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

    # Raised when clustered starts changed; runs from sampled rows give what they gave before.
    revision: ClassVar[int] = 2
    ITERATES: ClassVar[tuple[str, ...]] = ("last", "best-val")

    num_hops: int = 2
    init: Literal["sample", "clusters"] = "sample"
    pseudo_labels: Labeler = "gcn"
    tempered: bool = True
    grouping: Grouping = "bisection"
    soft_labels: bool = False
    model: str = "sgc"
    hidden_channels: int = 256
    iterations: int = 1000
    student_steps: int = 5
    student_lr: float = 0.01
    expert_steps: int = 2
    max_start: int = 60
    feature_lr: float = 3e-4
    units: Units = "relative"
    iterate: str = "best-val"
    experts: int = 20
    expert_epochs: int = 100
    expert_lr: float = 1e-2
    expert_weight_decay: float = 5e-4
    expert_seed: int = 0
    expert_memory: int | None = resource(None)
    expert_disk: int = resource(0)
    dtype: Precision = "float32"

    def _check(self) -> None:
        require_one_of("model", self.model, CONDENSING_MODELS)
        require_one_of("init", self.init, ("sample", "clusters"))
        Clustering.of(self)
        require(
            not self.soft_labels or self.init == "clusters",
            "soft_labels: true needs init 'clusters'; sampled rows have the class of their node.",
        )
        require_one_of("units", self.units, UNITS)
        require_one_of("iterate", self.iterate, self.ITERATES)
        require_one_of("dtype", self.dtype, PRECISIONS)
        whole_number(self, "iterations", "expert_disk")
        whole_number(
            self,
            "hidden_channels",
            "student_steps",
            "expert_steps",
            "max_start",
            "experts",
            "expert_epochs",
            least=1,
        )
        real_number(self, "student_lr", "feature_lr", "expert_lr", above=True)
        real_number(self, "expert_weight_decay")
        if self.expert_memory is not None:
            whole_number(self, "expert_memory")
        self._check_structure()
        every = self._snapshot_every
        unit = "" if every == 1 else f", in snapshots every {every} epochs,"
        require(
            self._last_snapshot * every <= self.expert_epochs,
            f"max_start: {self.max_start} plus expert_steps {self.expert_steps}{unit} goes beyond"
            f" expert_epochs {self.expert_epochs}.",
        )

    @abstractmethod
    def _check_structure(self) -> None:
        """Raise :class:`InputError` for a setting of the structure that cannot be used."""

    @abstractmethod
    def _graph_statistics(self, view: CondensingView, source: ExpertSource) -> dict[str, Any]:
        """What the structure wants to know of the real graph; kept with the result."""

    @abstractmethod
    def _structure(
        self,
        view: CondensingView,
        knowledge: dict[str, Any],
        labels: Tensor,
        starts: Sequence[Start],
        seeds: Sequence[int],
    ) -> tuple[Structure, State]:
        """The structure and its initial state for every graph."""

    def _require_blocks(self) -> None:
        super()._require_blocks()
        for name, needed in (("init", "sample"), ("dtype", "float32")):
            value = getattr(self, name)
            require(
                value == needed,
                f"{name}: {value!r} needs the whole graph in memory, and it was opened to stay on disk;"
                f" {needed!r} works in blocks.",
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
        """Whether the structure asks fully trained experts for predictions."""
        return False

    @property
    def _learned_rate(self) -> LearnedRate | None:
        """How the student's rate is learned; ``None``: it stays ``student_lr``."""
        return None

    @property
    def _snapshot_every(self) -> int:
        """Epochs of an expert in one unit of ``max_start`` and ``expert_steps``."""
        return 1

    @property
    def _last_snapshot(self) -> int:
        return self.max_start + self.expert_steps - 1

    def _starts(
        self,
        view: CondensingView,
        labels: Tensor,
        seeds: Sequence[int],
        device: torch.device,
        progress: Progress,
    ) -> list[Start]:
        """Where the features of every graph begin; here rows of random training nodes (Eq. 4)."""
        features = rows_after(view.visible, self.num_hops, device, PRECISIONS[self.dtype], progress)
        return [
            sample_training_rows(
                features, view.visible, labels, make_generator(seed, "initial rows")
            )
            for seed in seeds
        ]

    def _centers(
        self,
        view: CondensingView,
        labels: Tensor,
        seeds: Sequence[int],
        device: torch.device,
        progress: Progress,
    ) -> list[Start]:
        """Class-wise centers of all visible nodes."""
        return class_centers(
            view,
            torch.bincount(labels, minlength=view.visible.num_classes),
            seeds,
            Clustering.of(self),
            device=device,
            dtype=PRECISIONS[self.dtype],
            progress=progress,
        )

    def _chooser(
        self, targets: Tensor, validation: Target, device: torch.device
    ) -> tuple[Chooser | None, int]:
        """Who chooses the iterate (``None``: the last), and how many iterations apart they look."""
        tenth = max(1, self.iterations // 10)
        if self.iterate == "last":
            return None, tenth
        return BestValidated(targets, validation, device), tenth

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        view, nodes, seeds = ctx.view, ctx.nodes, ctx.seeds
        device, progress = ctx.device, ctx.progress
        visible = view.visible
        labels = block_labels(class_budget(visible.train_labels, visible.num_classes, nodes))
        if self.init == "clusters":
            starts = self._centers(view, labels, seeds, device, progress)
        else:
            starts = self._starts(view, labels, seeds, device, progress)
        source = ExpertSource.of(self.expert_request, view, device, progress)
        knowledge = self._graph_statistics(view, source)

        def run(group: slice, report: Progress) -> list[CondensationResult]:
            return self._run(view, source, knowledge, labels, starts[group], seeds[group], report)

        return advance_together(run, seeds, device, progress)

    def _run(
        self,
        view: CondensingView,
        source: ExpertSource,
        knowledge: dict[str, Any],
        labels: Tensor,
        starts: Sequence[Start],
        seeds: Sequence[int],
        progress: Progress,
    ) -> list[CondensationResult]:
        """Condense some graphs along one leading dimension."""
        device = source.device
        structure, state = self._structure(view, knowledge, labels, starts, seeds)
        matching = Matching(
            iterations=self.iterations,
            student_steps=self.student_steps,
            student_lr=self.student_lr,
            expert_steps=self.expert_steps,
            max_start=self.max_start,
            learned_rate=self._learned_rate,
        )
        iterate = Iterate.begin(
            torch.stack([start.x for start in starts]), state, matching.student_lr
        )
        one_hot = torch.nn.functional.one_hot(labels, view.visible.num_classes)
        targets = torch.stack(
            [one_hot if start.targets is None else start.targets for start in starts]
        ).to(device, iterate.x.dtype)

        def adjacency(at: Iterate) -> Tensor:
            with torch.no_grad():
                return structure.topology(SyntheticFeatures(at.x), at.state)[1]

        chooser, look_every = self._chooser(targets, view.validation, device)
        tenth = max(1, self.iterations // 10)
        look = looking(chooser, view, seeds, targets, device, every=tenth)
        step = Step(
            iterate,
            targets,
            structure,
            student_for(source.model, labels.numel(), int(iterate.x.shape[-1])),
            matching,
            self.feature_lr * feature_unit(iterate.x, self.units),
        )
        recovery = DivergenceGuard(chooser, view.journal, seeds, device)
        losses = match_trajectories(
            step,
            source.experts.trajectories,
            schedules=[make_generator(seed, "expert schedule") for seed in seeds],
            progress=progress,
            look=None if look is None else lambda i, at: look(i, at.x, adjacency(at)),
            look_every=look_every,
            breaks=self._breaks,
            recovery=recovery,
        )
        notes: tuple[str, ...] = ()
        if not bool(torch.isfinite(losses).all()):
            notes = (
                f"the matching loss stopped being finite by iteration {losses.shape[0]}: the best"
                " iterate before is returned",
            )
        x, a = iterate.x, adjacency(iterate)
        if chooser is not None and chooser.x is not None and chooser.a is not None:
            x, a = chooser.x, chooser.a
        rates = recorded(iterate.student_lr) if self._learned_rate is not None else None
        every = max(1, self.iterations // CURVE_POINTS)
        return [
            CondensationResult(
                x[g],
                a[g],
                targets[g] if self.soft_labels else labels,
                (*starts[g].notes, *recovery.notes(g), *notes),
                {
                    "matching_loss": {"every": every, "values": recorded(losses[::every, g])},
                    **({} if chooser is None else {chooser.measure: chooser.curve(g)}),
                    **starts[g].told,
                    **({} if rates is None else {"learned_student_rate": rates[g]}),
                    **knowledge,
                },
                {"experts": source.experts.measured},
            )
            for g in range(len(seeds))
        ]

    @property
    def _breaks(self) -> bool:
        """Whether a loss that is not finite ends the run with the best iterate so far."""
        return False

    def _recipe(self) -> ExpertRecipe:
        """How the experts are trained, and what of them is kept: only what can be read."""
        kept = self._last_snapshot * self._snapshot_every
        gap = self.expert_steps > self.max_start
        return ExpertRecipe(
            count=self.experts,
            epochs=self.expert_epochs,
            kept_epochs=kept,
            trained_epochs=self.expert_epochs if self._needs_predictions else kept,
            rate=self.expert_lr,
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
