"""Automatic: the best clustered start, improved by bilevel condensation, within a budget.

1. Where labels are few, pseudo-labels of the unlabeled nodes are trained.
2. Clustered starts after 1, 0 and 2 hops are compared by quickly trained GCNs on validation nodes.
3. Bilevel condensation goes on from the best start and keeps its best validated iterate.
4. The result, its start, Random and Herding are compared by other networks. The best one is returned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Any

import torch

from gcsr.auto.costs import Costs, expected_costs
from gcsr.data.graph import Graph
from gcsr.data.views import CondensingView, View
from gcsr.distributed.worker import Shared
from gcsr.engines.iterates import QuickScore
from gcsr.engines.loop import RUN_ERRORS, reason_of, run_tasks, run_units
from gcsr.engines.result import CondensationResult, Context
from gcsr.methods.base import Condenser
from gcsr.methods.bilevel import QUICK, QUICK_HIDDEN, Bilevel, few_labels, known_labels
from gcsr.methods.selection import Herding, Random
from gcsr.outofcore.estimate import Work
from gcsr.outofcore.real import real_graph
from gcsr.starts.pseudo_labels import LabelShares
from gcsr.starts.sample import Start, class_budget
from gcsr.utils.errors import InputError, Rate, require, require_one_of, warn_user
from gcsr.utils.progress import silent


@dataclass(frozen=True, eq=False)
class Candidate:
    """A method with its settings, what it made from which start, and how that validates, by round."""

    method: Condenser
    made: CondensationResult
    start: Start | None = None
    validation: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Failed:
    """A method with its settings, and why it made nothing."""

    method: Condenser
    reason: str


Outcome = Candidate | Failed


def named(method: Condenser) -> dict[str, Any]:
    """A method and those of its settings that differ from their defaults."""
    settings = {
        f.name: getattr(method, f.name)
        for f in fields(method)
        if f.name not in ("nodes", "ratio") and getattr(method, f.name) != f.default
    }
    return {"method": method.name, "settings": settings}


Settings = tuple[tuple[str, Any], ...]
# Hops of the starts that are compared; a small budget takes the first alone.
HOPS = (1, 0, 2)
# Outer steps: least, most, and the expected seconds that decide in between. With few labels the outer
# loss soon fits errors of the pseudo-labels, so fewer steps are better.
STEPS_MANY_LABELS, STEPS_FEW_LABELS = (200, 400, 60.0), (10, 50, 8.0)
# Students of an outer step. Where the least number of steps would take longer than expected there are
# fewer students: at the same cost, more steps bring more than more students.
STUDENTS = (4, 2, 1)
# With many labels fewer outer steps are longer, up to this factor.
MOST_RATE = 2.0
# Fewer than these are not worth beginning.
LEAST_ITERATIONS = 10
# The networks of the final comparison chose nothing before.
FINAL_NETWORKS, FINAL_SEED = range(3), 1
# Herding's embedding is trained on the whole graph: a small network for a few epochs is enough.
BRIEF_EMBEDDING: dict[str, Any] = {"hidden_channels": 64, "epochs": 100}
# Parts that can be switched off: the setting of bilevel and its value then, and what happens.
PARTS: dict[str, tuple[str, Any, str]] = {
    "pseudo-labels": ("pseudo_labels", "none", "only training labels count"),
    "hops": ("num_hops", 1, "one start, after one hop"),
    "clusters": ("init", "sample", "starts are sampled training rows"),
    "labels": ("label_lr", 0.0, "labels stay as they are at the start"),
    "burn-in": ("burn_in", 0, "new students are differentiated from their first step"),
    "bilevel": ("iterations", 0, "the best start is the result"),
}
REMOVED_PARTS = (
    *("agreement", "calibration", "class-means", "consistent", "grouping", "matching", "redraws"),
    *("soft-labels", "teachers", "tempering", "window"),
)


@dataclass(frozen=True)
class Plan:
    """What is done within the budget.

    Args:
        hops: of the starts that are compared.
        iterations: outer steps of bilevel condensation.
        students: networks that are in training in an outer step.
        feature_lr: Adam's rate for X'. With many labels twice the usual one for half of the most steps.
        least_seconds: what everything else is expected to take, with one start.
        expected_seconds: what all of it is expected to take.
        least_seconds_with_steps: the least budget that leaves time for outer steps.
    """

    hops: tuple[int, ...]
    iterations: int
    students: int
    feature_lr: float
    least_seconds: float
    expected_seconds: float
    least_seconds_with_steps: float


@dataclass(frozen=True, kw_only=True)
class Automatic(Condenser):
    """Bilevel condensation from the best clustered start; never worse on validation than a subset.

    Random and Herding are always compared, so the result validates no worse than they do, nor worse
    than its start. Test labels are never read.

    Args:
        budget: seconds that one graph may take on one core or a GPU: an upper bound. It decides how
            many starts are compared and how many outer steps follow, by a count of operations:
            nothing is timed, so the same budget gives the same result.
        disable: parts that are switched off, separated by commas: ``pseudo-labels``, ``hops``,
            ``clusters``, ``labels``, ``burn-in``, ``bilevel``. For ablations.
        fixed: names and values of settings of :class:`Bilevel` that are not up for choice.
            ``gcsr.condense(..., num_hops=2)`` and ``--set num_hops=2`` end up here.
    """

    name = "auto"
    revision = 8
    summary = "bilevel condensation from the best clustered start: the default"
    # The pseudo-labeler sees another draw of dropout on another device.
    same_on_every_device = False
    beyond_training_nodes = True
    works_in_blocks = True
    exact_class_budget = False
    multi_label = True
    divides_its_work = True
    delegates = (Bilevel,)
    includes = (Random, Herding, Bilevel)

    budget: Rate = 240.0
    disable: str = ""
    fixed: Settings = ()

    def _check(self) -> None:
        require(isinstance(self.disable, str), f"disable must be a string, got {self.disable!r}.")
        for part in self._disabled:
            require(
                part not in REMOVED_PARTS,
                f"disable={part} was removed in version 0.1: auto has no such part; leave it out.",
            )
            require_one_of("disable", part, PARTS)
        require(
            isinstance(self.fixed, tuple), f"fixed must be a tuple of pairs, got {self.fixed!r}."
        )
        known = {f.name for f in fields(Bilevel)} - {"nodes", "ratio"}
        for name in dict(self.fixed):
            require(name in known, f"fixed must name settings of bilevel, got {name!r}.")
        for part in self._disabled:
            name, value, _ = PARTS[part]
            given = dict(self.fixed).get(name, value)
            require(
                given == value,
                f"{name} must be {value!r} if {part!r} is disabled, got {given!r}.",
            )
        self._bilevel(1)

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the result, by name; those in ``fixed`` under their own names."""
        own = {name: value for name, value in super().settings.items() if name != "fixed"}
        return own | dict(self.fixed)

    @property
    def _disabled(self) -> list[str]:
        return [part.strip() for part in self.disable.split(",") if part.strip()]

    @property
    def _fixed(self) -> dict[str, Any]:
        """Settings of bilevel that are not up for choice."""
        return dict(PARTS[part][:2] for part in self._disabled) | dict(self.fixed)

    def _bilevel(self, nodes: int, **chosen: Any) -> Bilevel:
        return Bilevel(nodes=nodes, **(chosen | self._fixed))

    def _work(self, nodes: int) -> Work:
        return replace(self._bilevel(nodes)._work(nodes), iterations=0, least=self.budget)

    def _estimated_work(self, work: Work, graph: Graph, kind: str) -> Work:
        plan, costs = self.expected(View(graph).condensing(), work.nodes, kind)
        return replace(work, least=plan.expected_seconds, held=costs.held(plan.iterations))

    def expected(self, view: CondensingView, nodes: int, kind: str) -> tuple[Plan, Costs]:
        """What is done on a graph, and what that is expected to take.

        The same graph, size, budget and ``kind`` of device (``cpu`` or ``cuda``) give the same plan.
        """
        fixed, few = self._fixed, few_labels(view.visible)
        hops: tuple[int, ...] = (fixed["num_hops"],) if "num_hops" in fixed else HOPS
        fewest, most, seconds = STEPS_FEW_LABELS if few else STEPS_MANY_LABELS
        for students in STUDENTS:
            costs = expected_costs(view, nodes, kind, self._bilevel(nodes, students=students))
            if fewest * costs.iteration <= seconds:
                break
        wanted = fixed.get("iterations", max(fewest, min(most, int(seconds / costs.iteration))))
        for tried in dict.fromkeys((hops, hops[:1])):
            base = costs.seconds(starts=len(tried), iterations=1) - costs.iteration
            iterations = min(wanted, int((self.budget - base) / costs.iteration))
            # Rather one start and many outer steps than several starts and few.
            if iterations >= wanted // 2:
                break
        if iterations < LEAST_ITERATIONS:
            iterations = 0
        feature_lr = Bilevel.feature_lr
        if iterations and not few and "iterations" not in fixed:
            feature_lr *= min(MOST_RATE, most / iterations)
        # Settings that are fixed replace those that were chosen.
        method = self._bilevel(
            nodes, iterations=iterations, students=students, feature_lr=feature_lr
        )
        plan = Plan(
            tried,
            method.iterations,
            method.students,
            method.feature_lr,
            least_seconds=costs.seconds(starts=1, iterations=0),
            expected_seconds=costs.seconds(len(tried), method.iterations),
            least_seconds_with_steps=costs.seconds(starts=1, iterations=LEAST_ITERATIONS),
        )
        return plan, costs

    def _shortage(self, plan: Plan) -> str | None:
        """Why there are no outer steps, or that the budget is exceeded; ``None`` where it is enough."""
        budget = f"the budget of {self.budget:g} s"
        if "iterations" in self._fixed:
            return (
                f"{budget} is exceeded: with {plan.iterations} outer steps everything is expected to"
                f" take {plan.expected_seconds:.0f} s on one core or GPU"
                if plan.expected_seconds > self.budget
                else None
            )
        if plan.iterations:
            return None
        why = f"more than {budget}, and runs anyway"
        if plan.least_seconds <= self.budget:
            why = f"and {budget} leaves time for fewer than {LEAST_ITERATIONS} steps"
        return (
            "without outer steps: everything else is expected to take"
            f" {plan.least_seconds:.0f} s on one core or GPU, {why}; a budget of"
            f" {math.ceil(plan.least_seconds_with_steps)} s allows them"
        )

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        nodes, device, progress = ctx.nodes, ctx.device, ctx.progress
        checkpoint, view = ctx.view.checkpoint, replace(ctx.view, watch=None, checkpoint=None)
        # Too few nodes for the classes is an error of the user's, not of a candidate.
        class_budget(view.visible.train_strata, view.visible.num_classes, nodes)
        plan, _ = self.expected(view, nodes, device.type)
        shortage = self._shortage(plan)
        if shortage is not None:
            warn_user(f"{shortage}.")
        ctx = replace(ctx, view=view)
        # Candidates run side by side: what they share is computed before.
        if ctx.cluster is None:
            real_graph(view.visible, device, progress=progress).propagate(max(1, *plan.hops))
        known: Shared | LabelShares | None = None
        # If pseudo-labels fail, every candidate that needs them reports the reason.
        with suppress(*RUN_ERRORS):
            known = known_labels(self._bilevel(nodes), ctx)
        if ctx.cluster is not None:
            known = Shared(ctx.cluster.ray.put(known))
        methods: list[Condenser] = [Random(nodes=nodes), Herding(nodes=nodes, **BRIEF_EMBEDDING)]
        for hops in plan.hops:
            # Starts are compared whichever iterate is asked for later.
            method = self._bilevel(nodes, num_hops=hops)
            methods.append(replace(method, iterations=0, iterate="best-val"))
        tasks = [partial(_made, one, [seed], known, ()) for seed in ctx.seeds for one in methods]
        found = [one for (one,) in run_tasks(ctx, tasks)]
        # By seed: Random, Herding and the starts; what is learned comes last.
        outcomes = [found[i : i + len(methods)] for i in range(0, len(found), len(methods))]
        starts = [
            # The start that validates best; of equals the one that is tried first.
            max(
                (one for one in tried if isinstance(one, Candidate) and one.start is not None),
                key=lambda one: one.validation.get("quick", 0.0),
                default=None,
            )
            for tried in outcomes
        ]
        if plan.iterations:
            if checkpoint is not None:
                ctx = replace(ctx, view=replace(view, checkpoint=checkpoint))
            for i, learned in self._learn(ctx, plan, known, dict(enumerate(starts))).items():
                outcomes[i].append(learned)
        finalists = [
            [
                one
                for one in tried
                if isinstance(one, Candidate) and (one.start is None or one is start)
            ]
            for tried, start in zip(outcomes, starts, strict=True)
        ]
        everyone = [one for group in finalists for one in group]
        scores = run_tasks(ctx, [partial(final_score, one.made) for one in everyone])
        for one, score in zip(everyone, scores, strict=True):
            one.validation["final"] = score
        return [
            self._result(plan, tried, group)
            for tried, group in zip(outcomes, finalists, strict=True)
        ]

    def _learn(
        self,
        ctx: Context,
        plan: Plan,
        known: Shared | LabelShares | None,
        starts: Mapping[int, Candidate | None],
    ) -> dict[int, Outcome]:
        """Bilevel condensation from the start of every seed, by the seed's place in ``ctx.seeds``.

        Those whose starts have the same settings go together.
        """
        chosen = {name: getattr(plan, name) for name in ("iterations", "students", "feature_lr")}
        begun = {i: one.start for i, one in starts.items() if one is not None and one.start}
        methods = {
            i: self._bilevel(ctx.nodes, num_hops=one.method.num_hops, **chosen)
            for i, one in starts.items()
            if one is not None and isinstance(one.method, Bilevel)
        }
        if ctx.cluster is not None:
            tasks = [partial(_made, methods[i], [ctx.seeds[i]], known, [begun[i]]) for i in begun]
            return dict(zip(begun, (one for (one,) in run_units(ctx, tasks)), strict=True))
        found: dict[int, Outcome] = {}
        for method in dict.fromkeys(methods.values()):
            group = [i for i in begun if methods[i] == method]
            seeds, chosen_starts = [ctx.seeds[i] for i in group], [begun[i] for i in group]
            found |= zip(group, _made(method, seeds, known, chosen_starts, ctx), strict=True)
        return found

    def _result(
        self, plan: Plan, tried: Sequence[Outcome], finalists: Sequence[Candidate]
    ) -> CondensationResult:
        """The best finalist, with how it was found."""
        failed = [one for one in tried if isinstance(one, Failed)]
        if not finalists:
            raise InputError(f"no candidate could be made ({failed[0].reason})")
        # Of equals the last: what was learned.
        chosen = max(reversed(finalists), key=lambda one: one.validation["final"])
        notes = [*chosen.made.notes]
        if not isinstance(chosen.method, Bilevel):
            notes.append(
                f"{chosen.method.name} validated best: nothing that was learned beat a choice of real"
                " nodes"
            )
        shortage = self._shortage(plan)
        if shortage is not None:
            notes.append(shortage)
        found = {
            "chosen": named(chosen.method),
            "plan": asdict(plan) | {"hops": list(plan.hops)},
            "candidates": [
                {**named(one.method), "validation": one.validation}
                for one in tried
                if isinstance(one, Candidate)
            ],
            "left_out": [{**named(one.method), "reason": one.reason} for one in failed],
        }
        details = {**chosen.made.details, "automatic": found}
        return replace(chosen.made, notes=tuple(notes), details=details)


def _made(
    method: Condenser,
    seeds: Sequence[int],
    known: Shared | LabelShares | None,
    starts: Sequence[Start],
    ctx: Context,
) -> list[Outcome]:
    """The task: what a method makes of some seeds; bilevel condensation without starts makes them."""
    part = replace(ctx, seeds=seeds, progress=ctx.progress if starts else silent)
    outcomes: list[Outcome]
    try:
        if isinstance(method, Bilevel):
            labels = known.read() if isinstance(known, Shared) else known
            labels = labels or known_labels(method, part)
            begun = starts or method.starts(part, labels)
            outcomes = []
            for made, start in zip(method.run(part, begun, labels), begun, strict=True):
                found = made.details.get("validation", {"values": []})["values"]
                # That of the iterate that was kept, if iterates were compared.
                scores = [score for score in found if score is not None]
                quick = {"quick": float(max(scores))} if scores else {}
                outcomes.append(Candidate(method, made, None if starts else start, quick))
        else:
            outcomes = [Candidate(method, made) for made in method.run(part)]
    except RUN_ERRORS as error:
        outcomes = [Failed(method, reason_of(error))]
        if len(seeds) > 1:
            # A graph that fails must not take the others with it.
            pairs = zip(seeds, starts, strict=True)
            alone = [_made(method, [seed], known, [start], ctx) for seed, start in pairs]
            outcomes = [one for (one,) in alone]
    if not starts:
        ctx.progress("starts", 1, 1)
    return outcomes


def final_score(made: CondensationResult, ctx: Context) -> float:
    """The task: the score of a finalist by networks that chose nothing before."""
    y, device = made.y, ctx.device
    if y.ndim == 1:
        # Class shares; rows of zeros where there is no label.
        classes = ctx.view.visible.num_classes
        y = torch.nn.functional.one_hot(y.clamp_min(0), classes) * (y >= 0)[:, None]
    score = QuickScore(ctx.view.validation, device).score(
        made.x.to(device),
        made.adjacency.to(device),
        y.to(device),
        FINAL_NETWORKS,
        FINAL_SEED,
        hidden_channels=QUICK_HIDDEN,
        recipe=QUICK,
    )
    ctx.progress("comparing", 1, 1)
    return score
