"""Automatic: the best clustered start, improved by bilevel condensation, within a budget.

1. Where labels are few, pseudo-labels of the unlabeled nodes are trained (:mod:`.bilevel`).
2. Clustered starts after 1, 0 and 2 hops are compared by quickly trained GCNs on validation nodes.
3. Bilevel condensation goes on from the best start and keeps its best validated iterate.
4. The result, its start, Random and Herding are compared by other networks. The best one is returned.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar

import torch

from gcsr.auto.costs import Costs
from gcsr.data.graph import Graph
from gcsr.data.views import CondensingView, View
from gcsr.distributed.worker import Shared
from gcsr.engines.iterates import QuickScore
from gcsr.engines.loop import RUN_ERRORS, reason_of
from gcsr.engines.result import CondensationResult, Context
from gcsr.methods.base import Condenser
from gcsr.methods.bilevel import QUICK, QUICK_HIDDEN, Bilevel, Targets, few_labels, labeler_of
from gcsr.methods.distributed import run_tasks, run_units
from gcsr.methods.herding import Herding
from gcsr.methods.random import Random
from gcsr.outofcore.estimate import Work
from gcsr.outofcore.real import real_graph
from gcsr.starts.sample import Start, class_budget
from gcsr.utils.errors import InputError, Rate, require, require_one_of
from gcsr.utils.progress import silent


@dataclass(frozen=True, eq=False)
class Candidate:
    """A method with its settings, what it made from which start, and how that validates, by round."""

    method: Condenser
    made: CondensationResult
    start: Start | None = None
    validation: dict[str, float] = field(default_factory=dict)

    @property
    def quick(self) -> float:
        """The score of the first comparison."""
        return self.validation.get("quick", 0.0)


# A candidate, or the reason why there is none.
Outcome = Candidate | str


def validated(made: CondensationResult) -> dict[str, float]:
    """What the iterate that was kept scored; nothing where none was looked at."""
    if "validation" not in made.details:
        return {}
    values = [score for score in made.details["validation"]["values"] if score is not None]
    return {"quick": float(max(values))} if values else {}


def named(method: Condenser) -> dict[str, Any]:
    """A method and those of its settings that differ from their defaults."""
    settings = {
        f.name: getattr(method, f.name)
        for f in fields(method)
        if f.name not in ("nodes", "ratio") and getattr(method, f.name) != f.default
    }
    return {"method": method.name, "settings": settings}


logger = logging.getLogger(__name__)
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
# Parts that can be switched off, and what happens then.
PARTS = {
    "pseudo-labels": "only training labels count",
    "hops": "one start, after one hop",
    "clusters": "starts are sampled training rows",
    "labels": "labels stay as they are at the start",
    "burn-in": "new students are differentiated from their first step",
    "bilevel": "the best start is the result",
}
# What a part is as a setting of bilevel.
AS_SETTING: dict[str, tuple[str, Any]] = {
    "pseudo-labels": ("pseudo_labels", "none"),
    "hops": ("num_hops", 1),
    "clusters": ("init", "sample"),
    "labels": ("label_lr", 0.0),
    "burn-in": ("burn_in", 0),
    "bilevel": ("iterations", 0),
}


@dataclass(frozen=True)
class Plan:
    """What is done within the budget.

    Args:
        hops: of the starts that are compared.
        iterations: outer steps of bilevel condensation.
        students: networks that are in training in an outer step.
        feature_lr: rate of X'. With many labels twice the usual one for half of the most steps.
        least_seconds: what everything else is expected to take, with one start.
        expected_seconds: what all of it is expected to take.
    """

    hops: tuple[int, ...]
    iterations: int
    students: int
    feature_lr: float
    least_seconds: float
    expected_seconds: float


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

    name: ClassVar[str] = "auto"
    revision: ClassVar[int] = 8
    summary: ClassVar[str] = "bilevel condensation from the best clustered start: the default"
    # The pseudo-labeler sees another draw of dropout on another device.
    same_on_every_device: ClassVar[bool] = False
    beyond_training_nodes: ClassVar[bool] = True
    works_in_blocks: ClassVar[bool] = True
    exact_class_budget: ClassVar[bool] = False
    multi_label: ClassVar[bool] = True
    divides_its_work: ClassVar[bool] = True
    delegates: ClassVar[tuple[type[Condenser], ...]] = (Bilevel,)
    includes: ClassVar[tuple[type[Condenser], ...]] = (Random, Herding, Bilevel)

    budget: Rate = 240.0
    disable: str = ""
    fixed: Settings = ()

    def _check(self) -> None:
        require(isinstance(self.disable, str), f"disable must be a string, got {self.disable!r}.")
        for part in self._off:
            require_one_of("disable", part, PARTS)
        require(
            isinstance(self.fixed, tuple), f"fixed must be a tuple of pairs, got {self.fixed!r}."
        )
        known = {f.name for f in fields(Bilevel)} - {"nodes", "ratio"}
        for name in dict(self.fixed):
            require(name in known, f"fixed must name settings of bilevel, got {name!r}.")
        for part in self._off:
            name, value = AS_SETTING[part]
            pinned = dict(self.fixed).get(name, value)
            require(
                pinned == value,
                f"{name} must be {value!r} if {part!r} is disabled, got {pinned!r}.",
            )
        self._bilevel(1)

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the result, by name; pins under their own names."""
        own = {name: value for name, value in super().settings.items() if name != "fixed"}
        return own | dict(self.fixed)

    @property
    def _off(self) -> tuple[str, ...]:
        return tuple(part.strip() for part in self.disable.split(",") if part.strip())

    @property
    def _fixed(self) -> dict[str, Any]:
        """Settings of bilevel that are not up for choice."""
        return dict(AS_SETTING[part] for part in self._off) | dict(self.fixed)

    def _bilevel(self, nodes: int, **chosen: Any) -> Bilevel:
        return Bilevel(nodes=nodes, **(chosen | self._fixed))

    def _work(self, nodes: int) -> Work:
        return replace(self._bilevel(nodes)._work(nodes), iterations=0, least=self.budget)

    def _estimated_work(self, work: Work, graph: Graph, kind: str) -> Work:
        view = View(graph).condensing()
        plan = self._plan(view, work.nodes, kind)
        held = self._costs(view, work.nodes, students=plan.students).held
        return replace(work, least=plan.expected_seconds, held=held)

    def expected(self, view: CondensingView, nodes: int, kind: str) -> tuple[Plan, Costs]:
        """What is done on a graph, and what that is expected to take."""
        plan = self._plan(view, nodes, kind)
        return plan, self._costs(view, nodes, kind, plan.students)

    def _costs(
        self, view: CondensingView, nodes: int, kind: str = "cpu", students: int = STUDENTS[0]
    ) -> Costs:
        method = self._bilevel(nodes, students=students)
        return Costs(
            view, nodes, kind, method, labeler=labeler_of(method, view.visible) is not None
        )

    def _plan(self, view: CondensingView, nodes: int, kind: str) -> Plan:
        """The same graph, size, budget and kind of device give the same plan."""
        fixed = self._fixed
        hops: tuple[int, ...] = (fixed["num_hops"],) if "num_hops" in fixed else HOPS
        fewest, most, seconds = STEPS_FEW_LABELS if few_labels(view.visible) else STEPS_MANY_LABELS
        for students in STUDENTS:
            costs = self._costs(view, nodes, kind, students)
            if fewest * costs.iteration <= seconds:
                break
        within = max(fewest, min(most, int(seconds / costs.iteration)))
        wanted = fixed.get("iterations", within)
        least = costs.seconds(starts=1, iterations=0)
        for tried in dict.fromkeys((hops, hops[:1])):
            base = costs.seconds(starts=len(tried), iterations=1) - costs.iteration
            affordable = int((self.budget - base) / costs.iteration)
            # Rather one start and many outer steps than several starts and few.
            if affordable >= wanted // 2 or tried == hops[:1]:
                break
        iterations = wanted if "iterations" in fixed else max(0, min(wanted, affordable))
        if iterations < LEAST_ITERATIONS and "iterations" not in fixed:
            iterations = 0
        rate = Bilevel.feature_lr
        if iterations and not few_labels(view.visible) and "iterations" not in fixed:
            rate *= min(MOST_RATE, most / iterations)
        return Plan(tried, iterations, students, rate, least, costs.seconds(len(tried), iterations))

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        nodes, device, progress = ctx.nodes, ctx.device, ctx.progress
        checkpoint, view = ctx.view.checkpoint, replace(ctx.view, watch=None, checkpoint=None)
        # Too few nodes for the classes is an error of the user's, not of a candidate.
        class_budget(view.visible.train_strata, view.visible.num_classes, nodes)
        plan = self._plan(view, nodes, device.type)
        if plan.least_seconds > self.budget:
            logger.warning(
                "budget must be at least %.0f s for pseudo-labels, one start and the final comparison,"
                " got %.3g s; they run anyway, without outer steps.",
                plan.least_seconds,
                self.budget,
            )
        ctx = replace(ctx, view=view)
        # Candidates run side by side: what they share is computed before.
        if ctx.cluster is None:
            real_graph(view.visible, device, progress=progress).propagate(max(1, *plan.hops))
        known: Shared | Targets | None = None
        # If pseudo-labels fail every candidate that needs them tells why.
        with suppress(*RUN_ERRORS):
            known = Targets.of(self._bilevel(nodes), ctx)
        if ctx.cluster is not None:
            known = Shared(ctx.cluster.ray.put(known))
        methods: list[Condenser] = [Random(nodes=nodes), Herding(nodes=nodes, **BRIEF_EMBEDDING)]
        for hops in plan.hops:
            # Starts are compared whichever iterate is asked for later.
            method = self._bilevel(nodes, num_hops=hops)
            methods.append(replace(method, iterations=0, iterate="best-val"))
        tasks = [partial(_candidate, one, seed, known) for seed in ctx.seeds for one in methods]
        found = run_tasks(ctx, tasks)
        runs = [
            _Run(self, plan, seed, methods, found[i * len(methods) : (i + 1) * len(methods)])
            for i, seed in enumerate(ctx.seeds)
        ]
        if plan.iterations:
            if checkpoint is not None:
                ctx = replace(ctx, view=replace(view, checkpoint=checkpoint))
            self._improve([run for run in runs if run.start], ctx, plan, known)
        finalists = [one for run in runs for one in run.finalists]
        scores = run_tasks(ctx, [partial(_compared, one.made) for one in finalists])
        for one, score in zip(finalists, scores, strict=True):
            one.validation["final"] = score
        return [run.result() for run in runs]

    def _improve(
        self, runs: Sequence[_Run], ctx: Context, plan: Plan, known: Shared | Targets | None
    ) -> None:
        """Bilevel condensation of every graph; those with the same start settings go together."""

        def method(hops: int) -> Bilevel:
            chosen = {
                name: getattr(plan, name) for name in ("iterations", "students", "feature_lr")
            }
            return self._bilevel(ctx.nodes, num_hops=hops, **chosen)

        if ctx.cluster is not None:
            tasks = [partial(_made, method(r.hops), r.seed, known, r.begun) for r in runs]
            for run, outcome in zip(runs, run_units(ctx, tasks), strict=True):
                run.learned(method(run.hops), outcome)
            return
        assert not isinstance(known, Shared)
        by_hops: dict[int, list[_Run]] = {}
        for run in runs:
            by_hops.setdefault(run.hops, []).append(run)
        for hops, group in by_hops.items():
            together = replace(ctx, seeds=[run.seed for run in group])
            try:
                made = method(hops).run(together, [run.begun for run in group], known)
            except RUN_ERRORS as error:
                if len(group) == 1:
                    group[0].learned(method(hops), reason_of(error))
                    continue
                # A graph that fails must not take the others with it.
                for run in group:
                    self._improve([run], ctx, plan, known)
                continue
            for run, one in zip(group, made, strict=True):
                run.learned(method(hops), Candidate(method(hops), one, None, validated(one)))


def _made(
    method: Condenser, seed: int, known: Shared | Targets | None, start: Start | None, ctx: Context
) -> Outcome:
    """The task: what a method makes."""
    ctx = replace(ctx, seeds=[seed])
    try:
        if not isinstance(method, Bilevel):
            return Candidate(method, method.run(ctx)[0])
        known = (known.read() if isinstance(known, Shared) else known) or Targets.of(method, ctx)
        start = start or method.starts(ctx, known)[0]
        (made,) = method.run(ctx, [start], known)
        return Candidate(method, made, start, validated(made))
    except RUN_ERRORS as error:
        return reason_of(error)


def _candidate(
    method: Condenser, seed: int, known: Shared | Targets | None, ctx: Context
) -> Outcome:
    """The task: Random, Herding or a start."""
    found = _made(method, seed, known, None, replace(ctx, progress=silent))
    ctx.progress("starts", 1, 1)
    return found


def _compared(made: CondensationResult, ctx: Context) -> float:
    """The task: the score of a finalist by networks that chose nothing."""
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


class _Run:
    """The search of one graph."""

    def __init__(
        self,
        automatic: Automatic,
        plan: Plan,
        seed: int,
        methods: Sequence[Condenser],
        found: Sequence[Outcome],
    ) -> None:
        self._automatic, self._plan, self.seed = automatic, plan, seed
        self._simple: list[Candidate] = []
        self._starts: list[Candidate] = []
        self.candidates: list[Candidate] = []
        self.left_out: list[tuple[Condenser, str]] = []
        for method, one in zip(methods, found, strict=True):
            self._add(method, one, self._starts if isinstance(method, Bilevel) else self._simple)
        # The start that validates best; of equals the one that is tried first.
        self.start = max(self._starts, key=lambda one: one.quick, default=None)

    def _add(self, method: Condenser, outcome: Outcome, where: list[Candidate]) -> None:
        if isinstance(outcome, str):
            self.left_out.append((method, outcome))
        else:
            where.append(outcome)

    def learned(self, method: Condenser, outcome: Outcome) -> None:
        """Take what bilevel condensation made of the start."""
        self._add(method, outcome, self.candidates)

    @property
    def hops(self) -> int:
        """Of the best start."""
        return getattr(self.start.method, "num_hops", 0) if self.start else 0

    @property
    def begun(self) -> Start:
        """The best start; only where there is one."""
        assert self.start is not None and self.start.start is not None
        return self.start.start

    @property
    def finalists(self) -> list[Candidate]:
        """The simple ones, the start, and what was learned from it."""
        return [*self._simple, *([] if self.start is None else [self.start]), *self.candidates]

    def result(self) -> CondensationResult:
        """The best finalist, with how it was found."""
        if not self.finalists:
            raise InputError(f"no candidate could be made ({self.left_out[0][1]})")
        # Of equals the last: what was learned.
        chosen = max(reversed(self.finalists), key=lambda one: one.validation["final"])
        made, plan, budget = chosen.made, self._plan, self._automatic.budget
        notes = [*made.notes]
        if chosen in self._simple:
            notes.append(
                f"{chosen.method.name} validated best: nothing that was learned beat a choice of real"
                " nodes"
            )
        if plan.least_seconds > budget:
            notes.append(
                f"without outer steps: everything else is expected to take {plan.least_seconds:.0f} s"
                f" on one core or GPU, more than the budget of {budget:g} s"
            )
        found = {
            "chosen": named(chosen.method),
            "plan": asdict(plan) | {"hops": list(plan.hops)},
            "candidates": [
                {**named(one.method), "validation": one.validation}
                for one in (*self._simple, *self._starts, *self.candidates)
            ],
            "left_out": [{**named(method), "reason": why} for method, why in self.left_out],
        }
        return replace(made, notes=tuple(notes), details={**made.details, "automatic": found})
