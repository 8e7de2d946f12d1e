"""Bilevel: features and labels learned through the training of the networks they are for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from gcsr.data.views import ViewCache, VisibleGraph, known_nodes, parts_read
from gcsr.engines.bilevel.engine import (
    BATCH_NODES,
    BATCHES,
    CHECK_EVERY,
    STUDENT_MODELS,
    BilevelSchedule,
    BilevelStep,
    RealLoss,
)
from gcsr.engines.iterates import BestValidated
from gcsr.engines.loop import advance_together, learn, reason_of, run_units
from gcsr.engines.result import CondensationResult, Context
from gcsr.engines.structure import SelfExpressiveStructure
from gcsr.equations.prior import class_prior
from gcsr.methods.base import Condenser
from gcsr.outofcore.estimate import Work
from gcsr.outofcore.real import real_graph
from gcsr.starts.clusters import cluster_start
from gcsr.starts.pseudo_labels import (
    LabelShares,
    best_labels,
    class_shares,
    compared,
    varied_columns_of,
)
from gcsr.starts.sample import (
    Start,
    block_labels,
    class_budget,
    propagated_features,
    sampled_starts,
    taken,
)
from gcsr.training.classification import targets_of
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import Count, InputError, Whole, require, require_one_of

PseudoLabels = Literal["auto", "none", "consistent", "gcn", "appnp"]
# Below this share of labeled nodes, pseudo-labels of the others are worth training for.
FEW_LABELS = 0.25
# Iterates are compared at the start, at the end and in between.
COMPARISONS = 3
QUICK_HIDDEN, QUICK_NETWORKS = 64, 3
# Features of small norm (rows that sum to one) are learned slowly: with half of the epochs the order
# of iterates is that of how fast they are learned.
QUICK = TrainingRecipe(epochs=300, validate_every=20)
# Weights of the paper's structure inside the loop (Eq. 8, 14, 15).
ALPHA, BETA, TAU, GAMMA = 1.0, 1.0, 0.9, 0.5
FLOAT = 4


@dataclass(frozen=True, kw_only=True)
class Bilevel(BilevelSchedule, Condenser):
    """Truncated backpropagation through the training of students on the condensed graph.

    The outer loss is that of the students on the real graph: true labels of training nodes and, where
    labels are few, pseudo-labels of all others. See :mod:`gcsr.engines.bilevel.engine`.

    Args:
        num_hops: hops of message passing before rows are grouped or sampled.
        init: ``clusters``: means of groups of nodes of each class; ``sample``: training rows.
        pseudo_labels: ``consistent``, ``gcn`` or ``appnp`` label the nodes without a training label;
            ``none``: only training nodes count; ``auto``: where less than a quarter of the visible
            nodes has a label, ``consistent`` or ``gcn``, whichever validates better. Of a multi-label
            graph ``auto`` is ``gcn``, and ``consistent`` cannot be used.
        structure: ``none``: A' = I; ``self-expressive``: the closed form of GCSR inside the loop as
            well, kept where it validates better; not of a multi-label graph.
        models: student models whose real losses are averaged, separated by commas: ``gcn``, ``sgc``,
            ``appnp``, ``mlp``. With ``self-expressive`` structure: ``gcn``.
        iterations: outer steps.
        students, hidden_channels: networks in training at a time, and their hidden units.
        window, burn_in, longest: training steps that are differentiated, steps of a new student
            that are not, and steps after which a student is replaced.
        max_columns: columns of X' that are learned, those that vary most in the real features; the
            others keep their initial values. Without ``structure``.
        feature_lr: Adam's rate for X', in standard deviations of the columns of the initial X'.
        label_lr: Adam's rate for the logits of Y'; 0 keeps Y'.
        student_lr, student_weight_decay: Adam of the students; by default the test protocol's.
        iterate: ``best-val``: the iterate on which quickly trained GCNs validate best, the start
            included; or ``last``.
        expert_seed: seed of the pseudo-labeler.
    """

    name = "bilevel"
    summary = "features and labels learned through the training of students"
    reference = 'Feng, Vedantam and Kempe, "Embarrassingly Simple Dataset Distillation", ICLR 2024'
    revision = 4
    # Dropout of the pseudo-labeler is another draw on another device.
    same_on_every_device = False
    beyond_training_nodes = True
    # Labels are learned too: a node may end in another class than it began in.
    exact_class_budget = False
    multi_label = True
    works_in_blocks = True

    num_hops: Whole = 1
    init: Literal["clusters", "sample"] = "clusters"
    pseudo_labels: PseudoLabels = "auto"
    structure: Literal["none", "self-expressive"] = "none"
    models: str = "gcn"
    max_columns: Count = 4096
    iterate: Literal["best-val", "last"] = "best-val"
    expert_seed: Whole = 0

    def _check(self) -> None:
        require(isinstance(self.models, str), f"models must be a string, got {self.models!r}.")
        for name in self._models:
            require_one_of("models", name, STUDENT_MODELS)
        require(
            self.structure == "none" or self._models == ("gcn",),
            f"models must be 'gcn' for structure {self.structure!r}, got {self.models!r}.",
        )
        require(
            self.structure == "none" or self.iterate == "best-val",
            f"iterate must be 'best-val' for structure {self.structure!r}, got {self.iterate!r}.",
        )
        require(
            self.burn_in + self.window <= self.longest,
            f"longest must be >= {self.burn_in + self.window}, which is burn_in + window, got"
            f" {self.longest}.",
        )

    @property
    def _models(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.models.split(","))

    def _work(self, nodes: int) -> Work:
        steps = (self.window * 3 + self.burn_in // 4) * self.students
        return Work(
            nodes,
            hops=max(2, self.num_hops),
            iterations=self.iterations,
            steps=steps,
            hidden_channels=self.hidden_channels,
            clustered=self.init == "clusters",
            outer_nodes=BATCHES * BATCH_NODES,
        )

    def run(
        self, ctx: Context, starts: Sequence[Start] | None = None, known: LabelShares | None = None
    ) -> list[CondensationResult]:
        """One condensed graph per seed; ``starts`` and ``known`` labels are made if not given."""
        visible, device = ctx.view.visible, ctx.device
        require(
            self.structure == "none" or not visible.multi_label,
            f"structure must be 'none' for a multi-label graph, got {self.structure!r}.",
        )
        known = known or known_labels(self, ctx)
        starts = self.starts(ctx, known) if starts is None else starts
        features = int(visible.x.shape[1])
        learned = self.learned_columns(features)
        # The columns of X' that are learned, where these are not all.
        columns = None
        if learned < features and self.iterations:
            columns = varied_columns_of(visible, learned)
        real = None
        if self.iterations:
            real = RealLoss(
                real_graph(visible, device, progress=ctx.progress, columns=columns),
                known.shares,
                known.nodes,
                self._models,
                self.hidden_channels,
                multi_label=visible.multi_label,
            )

        def run(part: Context, group: slice) -> list[CondensationResult]:
            chosen = starts[group]
            found = self._run(part, known, real, chosen, None, columns)
            if self.structure == "none":
                return found
            closed_form = self._structure(visible, known, chosen, device)
            try:
                other = self._run(part, known, real, chosen, closed_form)
            except (InputError, torch.linalg.LinAlgError) as error:  # type: ignore[attr-defined]
                note = f"the structure was left out: {reason_of(error)}"
                return [replace(plain, notes=(*plain.notes, note)) for plain in found]
            return [
                better(plain, structured) for plain, structured in zip(found, other, strict=True)
            ]

        each = self.held_bytes(ctx.nodes, learned, visible.num_classes)
        return advance_together(run, ctx, bytes_each=each)

    def held_bytes(self, nodes: int, features: int, classes: int) -> int:
        """Bytes of one graph while it is learned: the states of the window and its activations."""
        width = self.students * self.hidden_channels
        states = 5 * (self.window + 2) * (features + classes) * width
        activations = self.window * nodes * (4 * width + 3 * classes * self.students)
        return FLOAT * (states + activations)

    def learned_columns(self, features: int) -> int:
        """How many columns of X' are learned; with a structure, which reads all of them, all."""
        return features if self.structure != "none" else min(features, self.max_columns)

    def starts(self, ctx: Context, known: LabelShares, budget: Tensor | None = None) -> list[Start]:
        """The start of every seed; ``budget`` are its nodes per class."""
        visible, device = ctx.view.visible, known.shares.device
        if budget is None:
            budget = class_budget(visible.train_strata, visible.num_classes, ctx.nodes)
        features = propagated_features(visible, self.num_hops, device, progress=ctx.progress)
        if self.init == "sample":
            starts = sampled_starts(features, visible, block_labels(budget), ctx.seeds)
            targets = [targets_of(visible.labels[one.nodes], visible.num_classes) for one in starts]
            return [
                replace(one, x=one.x.to(device), targets=own.to(device))
                for one, own in zip(starts, targets, strict=True)
            ]
        rows = taken(features, known.nodes, device)
        generators = [make_generator(seed, "clusters") for seed in ctx.seeds]
        return [
            cluster_start(rows, known.shares, budget, one, multi_label=visible.multi_label)
            for one in generators
        ]

    def _structure(
        self,
        visible: VisibleGraph,
        known: LabelShares,
        starts: Sequence[Start],
        device: torch.device,
    ) -> tuple[SelfExpressiveStructure, tuple[Tensor, ...]]:
        """The closed form of GCSR with its prior over true and pseudo-labels (Eq. 5, 6 and 9)."""
        x = torch.stack([start.x for start in starts])
        classes = torch.full((visible.num_nodes,), -1)
        classes[known.nodes] = known.shares.argmax(1).cpu()
        correlation = real_graph(visible, device).class_correlation(classes, visible.num_classes)
        correlation = correlation.cpu()
        targets = [start.targets for start in starts if start.targets is not None]
        priors = [class_prior(correlation, one.argmax(1).cpu()) for one in targets]
        history = torch.eye(x.shape[1]).to(x).repeat(x.shape[0], 1, 1)
        unit = x.square().sum(-1).mean(-1).view(-1, 1, 1)
        structure = SelfExpressiveStructure(ALPHA * unit, BETA * unit, TAU, GAMMA)
        return structure, (torch.stack(priors).to(x), history)

    def _run(
        self,
        ctx: Context,
        known: LabelShares,
        real: RealLoss | None,
        starts: Sequence[Start],
        structure: tuple[SelfExpressiveStructure, tuple[Tensor, ...]] | None,
        columns: Tensor | None = None,
    ) -> list[CondensationResult]:
        view, seeds = ctx.view, ctx.seeds
        initial = torch.stack([start.x for start in starts])
        x = initial.clone() if columns is None else initial[..., columns.to(initial.device)]
        y = torch.stack([start.targets for start in starts if start.targets is not None])
        step = BilevelStep(x, y, self, real, seeds, structure, view.visible.multi_label)
        best: BestValidated | str = "last"
        if self.iterate == "best-val":

            def score(g: int, x: Tensor, a: Tensor, y: Tensor) -> float:
                named: dict[str, Any] = {"hidden_channels": QUICK_HIDDEN, "recipe": QUICK}
                quickly = partial(kept.quick.score, x, a, y, range(QUICK_NETWORKS), 0, **named)
                if kept.scores:
                    return quickly()
                # The first iterate is the start, which the automatic mode has scored before.
                key = (structure is not None, starts[g])
                return _START_SCORES.get(view.visible, view.validation, key, quickly)

            # Of equals the latest is kept: its outer loss is lower, and few validation nodes often tie.
            best = kept = BestValidated(view.validation, x.device, latest=True, score=score)

        def iterate(iteration: int) -> tuple[Tensor, Tensor, Tensor]:
            """X', A' and Y' now; the start is as it is, with labels that nothing was taken from."""
            now = (
                step.x if columns is None else initial.index_copy(-1, columns.to(x.device), step.x)
            )
            return now, step.adjacency(), y if iteration == 0 else step.targets()

        made = learn(
            ctx,
            step,
            self.iterations,
            iterate,
            best,
            loss="real_loss",
            part=seeds if structure is None else [*seeds, -1],
            compare_at=range(0, self.iterations, max(1, -(-self.iterations // COMPARISONS))),
            check_every=CHECK_EVERY,
        )
        results = []
        for g in range(len(seeds)):
            details = {
                **made.details[g],
                "bilevel": {"structure": "none" if structure is None else "self-expressive"},
                **({} if known.provenance is None else {"pseudo_labels": known.provenance}),
                **parts_read(view, known.nodes),
            }
            features, a, shares = (part[g] for part in made.iterate)
            order = shares.argmax(1).sort(stable=True).indices  # nodes in blocks by class
            notes = (*starts[g].notes, *made.notes[g])
            if real is not None and real.note is not None:
                notes = (*notes, real.note)
            a = a[order][:, order]
            results.append(CondensationResult(features[order], a, shares[order], notes, details))
        return results


def labeler_of(method: Bilevel, visible: VisibleGraph) -> str | None:
    """The pseudo-labeler; ``None`` without pseudo-labels."""
    if method.pseudo_labels == "none" or visible.train.numel() == visible.num_nodes:
        return None
    if method.pseudo_labels != "auto":
        return method.pseudo_labels
    return "auto" if few_labels(visible) else None


def few_labels(visible: VisibleGraph) -> bool:
    """Whether pseudo-labels are worth training for."""
    return visible.train.numel() < FEW_LABELS * visible.num_nodes


def known_labels(method: Bilevel, ctx: Context) -> LabelShares:
    """Training labels, and the pseudo-labels asked for: what starts and the outer loss are made of."""
    visible, seed = ctx.view.visible, method.expert_seed
    labeler = labeler_of(method, visible)
    if labeler is None:
        nodes = known_nodes(visible, visible.train)
        targets = targets_of(visible.labels[nodes], visible.num_classes)
        return LabelShares(nodes, targets.to(ctx.device))
    if ctx.cluster is None:
        return class_shares(ctx.view, labeler, seed=seed, device=ctx.device, progress=ctx.progress)
    names = compared(visible) if labeler == "auto" else (labeler,)
    return best_labels(run_units(ctx, [partial(_labeled, seed, name) for name in names]))


def _labeled(seed: int, labeler: str, ctx: Context) -> LabelShares:
    """The task: the pseudo-labels of one labeler."""
    return class_shares(ctx.view, labeler, seed=seed, device=ctx.device, progress=ctx.progress)


# The automatic mode scores the starts before it optimizes one of them.
_START_SCORES: ViewCache[float] = ViewCache()


def better(plain: CondensationResult, structured: CondensationResult) -> CondensationResult:
    """The result with a structure where it validates better."""
    scores = [
        max(score for score in made.details["validation"]["values"] if score is not None)
        for made in (plain, structured)
    ]
    return structured if scores[1] > scores[0] else plain
