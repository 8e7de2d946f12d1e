"""The search of settings: one trial after the other, each scored by the same quickly trained networks.

The result has the trials, the best of them, and a figure.
"""

from __future__ import annotations

import itertools
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from gcsr.analysis.figures import FORMATS, figure_bytes
from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.interop import argument_graph
from gcsr.data.views import CondensingView, View
from gcsr.distributed.pool import Cluster, connected
from gcsr.distributed.start import ClusterError
from gcsr.engines.iterates import QuickScore
from gcsr.engines.loop import RUN_ERRORS
from gcsr.methods.distributed import condense_spread
from gcsr.methods.registry import known_setting
from gcsr.methods.registry import method as find_method
from gcsr.tuning.space import Choices, Value, import_optuna, space_for
from gcsr.tuning.study import (
    NOTE,
    SCORER,
    SCORER_NETWORKS,
    SCORER_SEED,
    StudySpec,
    open_study,
    require_sound_trials,
    sampler,
)
from gcsr.utils.devices import pick_device
from gcsr.utils.errors import InputError, plain_number, require, require_integer
from gcsr.utils.formatting import counted, text_of
from gcsr.utils.progress import Progress, ProgressOption, shows_progress, silent
from gcsr.utils.safe_io import is_number, write_atomically

if TYPE_CHECKING:
    import optuna
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The first two scores of a trial say little about its settings.
FIRST_PRUNED_SCORE = 3
# A combination of settings that the method refuses counts as pruned, and its note says why.
State = Literal["complete", "pruned"]


@dataclass(frozen=True)
class Trial:
    """One candidate: its settings and the validation accuracy of graphs made with them.

    ``curve`` has the validation accuracy of iterates by iteration; ``score`` is ``None`` if it was
    pruned.
    """

    number: int
    state: State
    settings: dict[str, Value]
    score: float | None
    curve: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True, eq=False)
class Tuning:
    """The trials of a search."""

    spec: StudySpec
    trials: Sequence[Trial]
    study: Path | None = None

    def __str__(self) -> str:
        trials = counted(len(self.trials), "trial")
        if not self.ranked:
            return f"none of {trials} of {self.spec.method} was completed"
        best = ", ".join(f"{name}={text_of(value)}" for name, value in self.settings.items())
        score = f"validation {100 * self.score:.2f} %"
        return f"the best of {trials} of {self.spec.method}: {score}{f' ({best})' if best else ''}"

    @property
    def question(self) -> StudySpec:
        """The name of :attr:`spec` until version 0.3."""
        warnings.warn("question is called spec now", DeprecationWarning, stacklevel=2)
        return self.spec

    @property
    def ranked(self) -> list[Trial]:
        """Complete trials, the best first, the earliest of equals."""
        complete = [trial for trial in self.trials if trial.score is not None]
        return sorted(complete, key=lambda trial: -(trial.score or 0.0))

    @property
    def best(self) -> Trial:
        """The trial that validates best."""
        ranked = self.ranked
        if not ranked:
            notes = [trial.note for trial in self.trials if trial.note]
            why = f" ({notes[0].rstrip('.')})" if notes else ""
            trials = counted(len(self.trials), "trial")
            raise InputError(f"tune: none of {trials} was completed{why}.")
        return ranked[0]

    @property
    def score(self) -> float:
        """Its validation accuracy."""
        return self.best.score or 0.0

    @property
    def settings(self) -> dict[str, Value]:
        """Its settings, for :func:`gcsr.condense`: what was searched and what was fixed."""
        return {**self.spec.space.fixed, **self.best.settings}

    def condense(
        self,
        graph: Graph | None = None,
        *,
        device: str | torch.device = "auto",
        progress: Progress = silent,
        cluster: str | Cluster | None = None,
    ) -> list[CondensedGraph]:
        """Condense with the best settings; by default the graph that was searched on."""
        spec = self.spec
        condenser, preset = spec.condenser(self.best.settings)
        tuned = {
            "study": None if self.study is None else self.study.name,
            "trials": len(self.trials),
            "trial": self.best.number,
            "space": spec.space.to_dict(),
            "validation": self.score,
            "scorer": SCORER,
            "content_hash": spec.graph.content_hash,
        }
        return condenser.condense_many(
            spec.graph if graph is None else graph,
            seeds=spec.seeds,
            device=device,
            progress=progress,
            context={"preset": preset, "tuned": tuned},
            cluster=cluster,
        )

    def plot(self, path: str | Path) -> Path:
        """Draw the trials and every parameter into a PNG or SVG file."""
        path = Path(path)
        kind = figure_format(path)
        write_atomically(path, figure_bytes(tuning_figure(self), kind))
        return path

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        complete = bool(self.ranked)
        return {
            **self.spec.identity(),
            "study": None if self.study is None else str(self.study),
            "best": asdict(self.best) if complete else None,
            "settings": self.settings if complete else None,
            "trials": [asdict(trial) for trial in self.trials],
        }


OnTrial = Callable[[Trial], None]


class _PrunedError(Exception):
    """Optuna's pruner ends a trial."""


@shows_progress
def tune(
    graph: object,
    *,
    nodes: int | None = None,
    ratio: float | None = None,
    method: str = "gcsr",
    space: object = None,
    preset: str = "default",
    trials: int = 30,
    seconds: float | None = None,
    study: str | Path | None = None,
    seed: int = 0,
    graphs: int = 1,
    device: str | torch.device = "auto",
    progress: ProgressOption = None,
    on_trial: OnTrial | None = None,
    cluster: str | Cluster | None = None,
    **settings: object,
) -> Tuning:
    """Search the settings with which a method's condensed graph validates best.

    Only training and validation labels are used.

    Args:
        graph: the graph to condense, or an object that :func:`gcsr.load` converts.
        nodes: size of the condensed graph.
        ratio: the same as a share of the visible nodes.
        method: any registered one.
        space: ``paper``, ``wide``, a TOML file, or a mapping from names to dimensions, which are
            texts (``"0.1..10:log"``, ``"1,2"``), lists of choices, or values. By default what
            ``settings`` search or, if that is nothing, the paper's grid.
        preset: where settings that are not searched come from: ``default``, ``paper`` or ``official``.
        trials: how many there are in all, those of a continued study included.
        seconds: no trial begins after so many seconds.
        study: a SQLite file that keeps every trial; the same call continues it.
        seed: of the proposals, and of the first graph of every trial.
        graphs: condensed graphs per trial, over which validation accuracy is averaged.
        device: where to compute.
        progress: called with the number of finished trials and by every trial's own stages.
        on_trial: called with every trial that is finished.
        cluster: ``local`` or the ``HOST:PORT`` of a Ray cluster's head, where the graphs of a trial are
            then made and scored, with the same trials as a result.
        settings: dimensions that replace those of the space or come beside them; a single value is
            fixed.
    """
    for name in settings:
        known_setting(find_method(method), name, tune)
    spec = StudySpec.of(
        argument_graph(graph),
        nodes=nodes,
        ratio=ratio,
        method=method,
        space=space_for(method, space, settings),
        preset=preset,
        seed=seed,
        graphs=graphs,
    )
    path = None if study is None else Path(study)
    with open_search(spec, study=path, device=device, cluster=cluster) as search:
        search.run(trials=trials, seconds=seconds, progress=progress, on_trial=on_trial)
        return search.result()


@contextmanager
def open_search(
    spec: StudySpec,
    *,
    study: Path | None = None,
    device: str | torch.device = "auto",
    cluster: str | Cluster | None = None,
) -> Iterator[Search]:
    """Open the study, and connect to the cluster."""
    with ExitStack() as stack:
        connection = None if cluster is None else stack.enter_context(connected(cluster))
        target = pick_device(device) if connection is None else connection.device(device)
        opened = stack.enter_context(open_study(study, spec.identity()))
        stack.callback(_scorer.cache_clear)
        yield Search(spec, opened, study, target, connection)


class Search:
    """An open study; every trial is stored when it ends."""

    def __init__(
        self,
        spec: StudySpec,
        study: optuna.Study,
        path: Path | None,
        device: torch.device,
        cluster: Cluster | None,
    ) -> None:
        self._spec, self._study, self._path = spec, study, path
        self._device, self._cluster = device, cluster
        self._state = import_optuna().trial.TrialState
        self._view = View(spec.graph).condensing()
        require_sound_trials(path, self._ended(), spec.space)

    def result(self) -> Tuning:
        """The trials so far."""
        return Tuning(self._spec, self._finished(), self._path)

    def run(
        self,
        *,
        trials: int = 30,
        seconds: float | None = None,
        progress: Progress = silent,
        on_trial: OnTrial | None = None,
    ) -> None:
        """Run trials until there are that many in all, time is up, or every candidate is known."""
        trials = plain_number(trials)
        require_integer("trials", trials, 1)
        fine = seconds is None or (is_number(seconds) and seconds > 0)
        require(fine, f"seconds must be a number > 0, got {seconds!r}.")
        ends = None if seconds is None else time.monotonic() + seconds
        finished = self._finished()
        count = self._spec.space.count
        while len(finished) < trials:
            different = {tuple(sorted(trial.settings.items())) for trial in finished}
            if count is not None and len(different) >= count:
                break
            if ends is not None and time.monotonic() > ends:
                break
            progress("trials", len(finished), trials)
            self._try(finished, progress)
            finished = self._finished()
            if on_trial is not None:
                on_trial(finished[-1])
        progress("trials", len(finished), len(finished))

    def _finished(self) -> list[Trial]:
        """Complete and pruned trials; failed ones do not affect the following."""
        return [
            Trial(
                number=number,
                state="complete" if trial.state == self._state.COMPLETE else "pruned",
                settings=dict(trial.params),
                score=trial.value if trial.state == self._state.COMPLETE else None,
                curve=dict(trial.intermediate_values),
                seconds=trial.duration.total_seconds() if trial.duration else 0.0,
                note=trial.user_attrs.get(NOTE, ""),
            )
            for number, trial in enumerate(self._ended())
        ]

    def _ended(self) -> list[Any]:
        states = (self._state.COMPLETE, self._state.PRUNED)
        return list(self._study.get_trials(deepcopy=False, states=states))

    def _try(self, finished: list[Trial], progress: Progress) -> None:
        study, state = self._study, self._state
        study.sampler = sampler(self._spec.seed, len(finished))
        trial = study.ask(self._spec.space.distributions())
        try:
            study.tell(trial, self._score(trial, finished, progress))
        except _PrunedError:
            study.tell(trial, state=state.PRUNED)
        except ClusterError as error:
            study.tell(trial, state=state.FAIL)
            kept = f"{str(error).rstrip('.')}; {counted(len(finished), 'finished trial')} kept."
            raise ClusterError(kept) from None
        except RUN_ERRORS as error:
            trial.set_user_attr(NOTE, str(error).strip() or type(error).__name__)
            study.tell(trial, state=state.PRUNED)
        except BaseException:
            # Ctrl-C may come when the score has just been reported.
            study.tell(trial, state=state.FAIL, skip_if_finished=True)
            raise

    def _score(self, trial: Any, finished: list[Trial], progress: Progress) -> float:
        """Mean validation accuracy over the graphs of a trial."""
        values = dict(trial.params)
        same = next((one for one in finished if one.settings == values), None)
        if same is not None:  # the same seeds would make the same graphs
            trial.set_user_attr(NOTE, f"the same as trial {same.number}")
            if same.score is None:
                raise _PrunedError
            return same.score
        condenser, _ = self._spec.condenser(values)
        watch = _Pruning(trial, self._spec.graphs)
        if self._cluster is None:
            made = condenser.condense_many(
                replace(self._view, watch=watch),
                seeds=self._spec.seeds,
                device=self._device,
                progress=progress,
            )
            scores = _scores(made, self._view, self._device)
        else:
            scores = condense_spread(
                condenser,
                self._view,
                self._spec.seeds,
                cluster=self._cluster,
                device=self._device,
                progress=progress,
                watch=watch,
                then=_scores,
            )
        return sum(scores) / len(scores)


@lru_cache(maxsize=1)
def _scorer(view: CondensingView, device: str) -> QuickScore:
    return QuickScore(
        view.validation, torch.device(device), networks=SCORER_NETWORKS, seed=SCORER_SEED
    )


def _scores(made: list[CondensedGraph], view: CondensingView, device: torch.device) -> list[float]:
    """Validation accuracies of graphs, in the process that made them."""
    scorer = _scorer(view, str(device))
    return [scorer(*(part.to(device) for part in (g.x, g.adjacency, g.targets))) for g in made]


class _Pruning:
    """Reports the mean score of iterates over the graphs of a trial to Optuna's pruner."""

    def __init__(self, trial: Any, graphs: int) -> None:
        self._trial, self._graphs = trial, graphs
        self._lock = threading.Lock()
        self._scores: dict[int, dict[int, float]] = {}
        self._last = self._reported = 0

    def __call__(self, iteration: int, scores: Mapping[int, float]) -> None:
        """Add the scores of some of the graphs."""
        with self._lock:
            known = self._scores.setdefault(iteration, {})
            known.update(scores)
            if len(known) < self._graphs or iteration <= self._last:
                return
            self._last = iteration
            self._reported += 1
            self._trial.report(sum(known.values()) / len(known), iteration)
            if self._reported >= FIRST_PRUNED_SCORE and self._trial.should_prune():
                raise _PrunedError


# -- the figure of a search ---------------------------------------------------------------------------

COLUMNS = 4
_BEST = "tab:orange"
_MARKS: dict[str, dict[str, Any]] = {
    "complete": {"marker": "o", "color": "tab:blue", "s": 28},
    "pruned": {"marker": "x", "color": "0.6", "s": 22},
}


def figure_format(path: Path) -> str:
    """``png`` or ``svg``, by the name of a file."""
    suffix = path.suffix.lower().removeprefix(".")
    require(suffix in FORMATS, f"plot must end with .png or .svg, got {path.name!r}.")
    return suffix


def tuning_figure(tuning: Tuning) -> Figure:
    """Validation accuracy of every trial above, and below it one panel per parameter."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - takes a second to import
    from matplotlib.ticker import MaxNLocator, NullFormatter  # noqa: PLC0415

    spec, trials = tuning.spec, tuning.trials
    columns = max(1, min(COLUMNS, len(spec.space.searched)))
    rows = -(-len(spec.space.searched) // columns)
    figure = Figure(figsize=(10, 3.2 + 2.4 * rows), layout="constrained")
    grid = figure.add_gridspec(1 + rows, columns)
    course = figure.add_subplot(grid[0, :])
    title = f"{spec.graph.name}, {spec.nodes} nodes, {spec.method}"
    course.set(title=title, xlabel="trial", ylabel="validation, %")
    course.xaxis.set_major_locator(MaxNLocator(integer=True))
    _scatter(course, trials, [trial.number for trial in trials])
    complete = [(t.number, 100 * t.score) for t in trials if t.score is not None]
    if complete:
        numbers, scores = zip(*complete, strict=True)
        best = list(itertools.accumulate(scores, max))
        course.step(numbers, best, where="post", color=_BEST, label="best so far")
    if trials:
        course.legend(loc="lower right", fontsize="small")
    for place, (name, dimension) in enumerate(spec.space.searched.items()):
        row, column = divmod(place, columns)
        panel = figure.add_subplot(grid[1 + row, column], sharey=course)
        panel.set(xlabel=name, ylabel="" if column else "validation, %")
        panel.tick_params(labelleft=not column)
        values: list[Any] = [trial.settings[name] for trial in trials]
        if isinstance(dimension, Choices):
            values = [dimension.values.index(value) for value in values]
            panel.set_xticks(range(len(dimension.values)), [text_of(v) for v in dimension.values])
            panel.set_xlim(-0.5, len(dimension.values) - 0.5)
        else:
            if dimension.log:
                panel.set_xscale("log")
                panel.xaxis.set_minor_formatter(NullFormatter())
            panel.set_xlim(dimension.low, dimension.high)
        _scatter(panel, trials, values)
    return figure


def _scatter(axis: Axes, trials: Sequence[Trial], places: Sequence[float]) -> None:
    """The score of every trial in percent; of a pruned one the last that was seen."""
    for state, style in _MARKS.items():
        shown = []
        for trial, place in zip(trials, places, strict=True):
            score = trial.curve[max(trial.curve)] if trial.curve else None
            score = score if trial.score is None else trial.score
            if trial.state == state and score is not None:
                shown.append((place, 100 * score))
        if shown:
            x, y = zip(*shown, strict=True)
            axis.scatter(x, y, label=state, **style)
