"""Automatic: the best clustered start, improved by bilevel condensation, within a budget.

1. Where labels are few, pseudo-labels of the unlabeled nodes are trained (:mod:`.bilevel`).
2. Clustered starts after 1, 0 and 2 hops are compared by quickly trained GCNs on validation nodes.
3. Bilevel condensation goes on from the best start and keeps its best validated iterate.
4. The result, its start, Random and Herding are compared by other networks. The best one is returned.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

import torch

from gcsr.auto.costs import Costs
from gcsr.data.graph import Graph
from gcsr.data.stored_graph import StoredGraph
from gcsr.data.views import CondensingView
from gcsr.engines.divergence import reason_of
from gcsr.engines.iterates import QuickScore
from gcsr.engines.result import CondensationResult, Context
from gcsr.methods.base import Condenser
from gcsr.methods.bilevel import QUICK, QUICK_HIDDEN, Bilevel, few_labels, labeler_of
from gcsr.methods.herding import Herding
from gcsr.methods.random import Random
from gcsr.outofcore.estimate import Work
from gcsr.starts.budget import class_budget
from gcsr.starts.pseudo_labels import class_shares
from gcsr.utils.checkpoint import CheckpointLog
from gcsr.utils.errors import InputError, require, require_one_of
from gcsr.utils.parallel import part_of, run_jobs
from gcsr.utils.progress import Progress, silent
from gcsr.utils.validation import real_number

# -- Candidates of the automatic mode: made side by side, named and scored alike ---------------------


# What takes a candidate out instead of ending the run.
FAILURES: tuple[type[Exception], ...] = (
    InputError,
    torch.linalg.LinAlgError,  # type: ignore[attr-defined]
    torch.OutOfMemoryError,
)

# Parts of the automatic mode that there were before.
REMOVED_PARTS = frozenset(
    [
        "teachers",
        "consistent",
        "tempering",
        "grouping",
        "soft-labels",
        "redraws",
        "agreement",
        "matching",
        "calibration",
        "window",
        "class-means",
    ]
)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A method with its settings, what it made, and how that validates, by round."""

    method: Condenser
    made: CondensationResult
    validation: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """For the provenance; settings are those that differ from their defaults."""
        return {**named(self.method), "validation": self.validation}


def side_by_side(
    jobs: Sequence[Callable[[Progress], None]], device: torch.device, progress: Progress, stage: str
) -> None:
    """Independent jobs: on the cores of a CPU at the same time, on CUDA one after the other."""

    def counted(job: Callable[[Progress], None]) -> Callable[[Progress], None]:
        def run(report: Progress) -> None:
            job(silent)
            report(stage, 1, 1)

        return run

    counting = [counted(job) for job in jobs]
    if device.type == "cpu":
        run_jobs(counting, progress)
        return
    for done, job in enumerate(counting):
        job(part_of(progress, done, len(jobs)))


def validated(made: CondensationResult) -> dict[str, float]:
    """What the iterate that was kept scored; nothing where none was looked at."""
    if "validation" not in made.details:
        return {}
    values = made.details["validation"]["values"]
    return {"quick": float(max(value for value in values if value is not None))}


def class_targets(made: CondensationResult, classes: int) -> torch.Tensor:
    """Class shares of the nodes; rows of zeros where there is no label."""
    if made.y.ndim == 2:
        return made.y
    known = (made.y >= 0)[:, None]
    return torch.nn.functional.one_hot(made.y.clamp_min(0), classes) * known


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
        least_seconds: what everything else is expected to take, with one start.
        expected_seconds: what all of it is expected to take.
    """

    hops: tuple[int, ...]
    iterations: int
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
    revision: ClassVar[int] = 6
    summary: ClassVar[str] = "bilevel condensation from the best clustered start: the default"
    # The pseudo-labeler sees another draw of dropout on another device.
    same_on_every_device: ClassVar[bool] = False
    beyond_training_nodes: ClassVar[bool] = True
    exact_class_budget: ClassVar[bool] = False
    delegates: ClassVar[tuple[type[Condenser], ...]] = (Bilevel,)

    budget: float = 240.0
    disable: str = ""
    fixed: Settings = ()

    def _check(self) -> None:
        real_number(self, "budget", above=True)
        require(isinstance(self.disable, str), f"disable: {self.disable!r} is not a text.")
        for part in self._off:
            require(
                part not in REMOVED_PARTS,
                f"disable: {part!r} was a part of the automatic mode until version 0.1 and is gone;"
                f" accepted: {', '.join(PARTS)}.",
            )
            require_one_of("disable", part, PARTS)
        require(isinstance(self.fixed, tuple), f"fixed: {self.fixed!r} is not a tuple of pairs.")
        known = {f.name for f in fields(Bilevel)} - {"nodes", "ratio"}
        for name in dict(self.fixed):
            require(name in known, f"fixed: bilevel has no setting {name!r}.")
        for part in self._off:
            name, value = AS_SETTING[part]
            pinned = dict(self.fixed).get(name, value)
            require(
                pinned == value,
                f"disable: {part!r} contradicts the fixed {name}={pinned}; leave one out.",
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

    def _others(self) -> Iterable[type[Condenser]]:
        return (Random, Herding, Bilevel)

    def _work(self, nodes: int) -> Work:
        return Work(nodes, hops=2, least=self.budget)

    def _estimated_work(self, work: Work, graph: Graph) -> Work:
        if isinstance(graph, StoredGraph):
            return work  # of what stays on disk nothing is read for an estimate
        view = self._seen(graph)
        plan = self._plan(view, work.nodes, "cpu")
        return replace(work, least=plan.expected_seconds, held=self._costs(view, work.nodes).held)

    def _costs(self, view: CondensingView, nodes: int, kind: str = "cpu") -> Costs:
        method = self._bilevel(nodes)
        return Costs(
            view, nodes, kind, method, labeler=labeler_of(method, view.visible) is not None
        )

    def _plan(self, view: CondensingView, nodes: int, kind: str) -> Plan:
        """The same graph, size, budget and kind of device give the same plan."""
        costs, fixed = self._costs(view, nodes, kind), self._fixed
        hops: tuple[int, ...] = (fixed["num_hops"],) if "num_hops" in fixed else HOPS
        fewest, most, seconds = STEPS_FEW_LABELS if few_labels(view.visible) else STEPS_MANY_LABELS
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
        return Plan(tried, iterations, least, costs.seconds(len(tried), iterations))

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        view, nodes, seeds = ctx.view, ctx.nodes, ctx.seeds
        device, progress = ctx.device, ctx.progress
        # Too few nodes for the classes is an error of the user's, not of a candidate.
        class_budget(view.visible.train_labels, view.visible.num_classes, nodes)
        checkpoint, view = view.checkpoint, replace(view, watch=None, checkpoint=None)
        plan = self._plan(view, nodes, device.type)
        if plan.least_seconds > self.budget:
            logger.warning(
                "budget must be at least %.0f s for pseudo-labels, one start and the final comparison,"
                " got %.3g s; they run anyway, without outer steps.",
                plan.least_seconds,
                self.budget,
            )
        labeler = labeler_of(self._bilevel(nodes), view.visible)
        if labeler is not None:
            # Once for all candidates, which may run side by side. If it fails each of them tells why.
            seed = self._fixed.get("expert_seed", 0)
            with suppress(*FAILURES):
                class_shares(view, labeler, seed=seed, device=device, progress=progress)
        search = _Search(self, view, nodes, device, plan)
        runs = [search.begin(seed) for seed in seeds]
        side_by_side([job for run in runs for job in run.starting], device, progress, "starts")
        for run in runs:
            run.choose_start()
        search.improve([run for run in runs if run.start is not None], checkpoint, progress)
        side_by_side([job for run in runs for job in run.comparing], device, progress, "comparing")
        return [run.result(self.budget) for run in runs]


@dataclass(frozen=True, eq=False)
class _Search:
    """What all graphs of a call have in common."""

    automatic: Automatic
    view: CondensingView
    nodes: int
    device: torch.device
    plan: Plan

    def begin(self, seed: int) -> _Run:
        return _Run(self, seed)

    def improve(
        self, runs: Sequence[_Run], checkpoint: CheckpointLog | None, progress: Progress
    ) -> None:
        """Bilevel condensation of every graph; those with the same start settings go together."""
        if not self.plan.iterations:
            return
        by_hops: dict[int, list[_Run]] = {}
        for run in runs:
            by_hops.setdefault(run.hops, []).append(run)
        for hops, group in by_hops.items():
            method = self.automatic._bilevel(
                self.nodes, num_hops=hops, iterations=self.plan.iterations
            )
            self._improve(group, method, checkpoint, progress)

    def _improve(
        self,
        group: Sequence[_Run],
        method: Bilevel,
        checkpoint: CheckpointLog | None,
        progress: Progress,
    ) -> None:
        view, seeds = replace(self.view, checkpoint=checkpoint), [run.seed for run in group]
        try:
            made = method.run(Context(view, self.nodes, seeds, self.device, progress))
        except FAILURES as error:
            # A graph that fails must not take the others with it.
            if len(group) > 1:
                for run in group:
                    self._improve([run], method, checkpoint, progress)
                return
            group[0].left_out.append((method, reason_of(error)))
            return
        for run, one in zip(group, made, strict=True):
            run.candidates.append(Candidate(method, one, validated(one)))


class _Run:
    """The search of one graph."""

    def __init__(self, search: _Search, seed: int) -> None:
        self._search, self.seed = search, seed
        self._simple: list[Candidate] = []
        self._starts: list[Candidate] = []
        self.candidates: list[Candidate] = []
        self.left_out: list[tuple[Condenser, str]] = []
        self.start: Candidate | None = None

    @property
    def hops(self) -> int:
        assert self.start is not None and isinstance(self.start.method, Bilevel)
        return self.start.method.num_hops

    @property
    def starting(self) -> list[Callable[[Progress], None]]:
        """Jobs that make Random, Herding and every start."""
        nodes = self._search.nodes
        herding = Herding(nodes=nodes, **BRIEF_EMBEDDING)
        simple = [(Random(nodes=nodes), self._simple), (herding, self._simple)]
        starts = [
            (self._search.automatic._bilevel(nodes, num_hops=hops), self._starts)
            for hops in self._search.plan.hops
        ]
        return [self._job(method, where) for method, where in (*simple, *starts)]

    def _job(self, method: Condenser, where: list[Candidate]) -> Callable[[Progress], None]:
        search = self._search

        def job(_: Progress) -> None:
            first = method
            if isinstance(method, Bilevel):
                # Starts are compared whichever iterate is asked for later.
                first = replace(method, iterations=0, iterate="best-val")
            try:
                (made,) = first.run(
                    Context(search.view, search.nodes, [self.seed], search.device, silent)
                )
            except FAILURES as error:
                self.left_out.append((first, reason_of(error)))
                return
            where.append(Candidate(first, made, validated(made)))

        return job

    def choose_start(self) -> None:
        """The start that validates best; of equals the one that is tried first."""
        # Jobs finish in any order.
        self._simple.sort(key=lambda one: one.method.name, reverse=True)
        order = {hops: place for place, hops in enumerate(self._search.plan.hops)}
        self._starts.sort(key=lambda one: order[getattr(one.method, "num_hops", 0)])
        self.left_out.sort(key=lambda one: repr(one[0]))
        if self._starts:
            self.start = max(self._starts, key=lambda one: one.validation.get("quick", 0.0))

    @property
    def finalists(self) -> list[Candidate]:
        """The simple ones, the start, and what was learned from it."""
        return [*self._simple, *([] if self.start is None else [self.start]), *self.candidates]

    @property
    def comparing(self) -> list[Callable[[Progress], None]]:
        """Jobs that score the finalists by networks that chose nothing."""
        search = self._search
        score = QuickScore(search.view.validation, search.device)
        classes = search.view.visible.num_classes

        def job(one: Candidate) -> Callable[[Progress], None]:
            def scored(_: Progress) -> None:
                parts = (one.made.x, one.made.adjacency, class_targets(one.made, classes))
                x, a, y = (part.to(search.device) for part in parts)
                one.validation["final"] = score.score(
                    x, a, y, FINAL_NETWORKS, FINAL_SEED, hidden_channels=QUICK_HIDDEN, recipe=QUICK
                )

            return scored

        return [job(one) for one in self.finalists]

    def result(self, budget: float) -> CondensationResult:
        """The best finalist, with how it was found."""
        if not self.finalists:
            raise InputError(f"method: no candidate could be made ({self.left_out[0][1]})")
        # Of equals the last: what was learned.
        chosen = max(reversed(self.finalists), key=lambda one: one.validation["final"])
        made, plan = chosen.made, self._search.plan
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
                one.to_dict() for one in (*self._simple, *self._starts, *self.candidates)
            ],
            "left_out": [{**named(method), "reason": why} for method, why in self.left_out],
        }
        return replace(made, notes=tuple(notes), details={**made.details, "automatic": found})
