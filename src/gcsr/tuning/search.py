"""The search: one trial after the other, each scored by the same quickly trained networks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.views import CondensingView
from gcsr.distributed.pool import Cluster, connected
from gcsr.distributed.start import ClusterError
from gcsr.engines.iterates import QuickScore
from gcsr.engines.loop import RUN_ERRORS
from gcsr.methods.distributed import condense_spread
from gcsr.tuning.result import Trial, Tuning
from gcsr.tuning.space import Value, import_optuna
from gcsr.tuning.study import (
    NOTE,
    SCORER_NETWORKS,
    SCORER_SEED,
    StudySpec,
    open_study,
    require_sound_trials,
    sampler,
)
from gcsr.utils.devices import pick_device
from gcsr.utils.errors import require
from gcsr.utils.formatting import counted
from gcsr.utils.progress import Progress, ProgressOption, shows_progress, silent
from gcsr.utils.safe_io import is_number

if TYPE_CHECKING:
    import optuna

# The first two scores of a trial say little about its settings.
FIRST_PRUNED_SCORE = 3
OnTrial = Callable[[Trial], None]


class _PrunedError(Exception):
    """Optuna's pruner ends a trial."""


@shows_progress
def tune(
    graph: Graph,
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
        graph: the graph to condense.
        nodes: size of the condensed graph.
        ratio: the same as a share of the nodes that may be seen.
        method: any registered one.
        space: ``paper``, ``wide``, a TOML file, or a mapping from names to dimensions, which are
            texts (``"0.1..10:log"``, ``"1,2"``), lists of choices, or values. By default what
            ``settings`` search or, if that is nothing, the paper's grid.
        preset: what settings that are not searched are taken from.
        trials: how many there are in all, those of a continued study included.
        seconds: no trial begins after that many.
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
    spec = StudySpec.of(
        graph,
        nodes=nodes,
        ratio=ratio,
        method=method,
        space=space,
        changes=settings,
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
    if cluster is None:
        pick_device(device)
    with ExitStack() as stack:
        opened = stack.enter_context(open_study(study, spec.identity()))
        stack.callback(_scorer.cache_clear)
        if cluster is None:
            search = Search(spec, opened, study, pick_device(device), None)
        else:
            connection = stack.enter_context(connected(cluster))
            search = Search(spec, opened, study, connection.device(device), connection)
        yield search


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
        self._view = spec.view()
        require_sound_trials(path, self._ended(), spec.space)

    def result(self) -> Tuning:
        """The trials so far."""
        return Tuning(self._spec, tuple(self._finished()), self._path)

    def run(
        self,
        *,
        trials: int = 30,
        seconds: float | None = None,
        progress: Progress = silent,
        on_trial: OnTrial | None = None,
    ) -> None:
        """Run trials until there are that many in all, time is up, or every candidate is known."""
        for name, value in (("trials", trials), ("seconds", seconds)):
            fine = value is None or (is_number(value) and value > 0)
            require(fine, f"{name} must be > 0, got {value!r}.")
        ends = None if seconds is None else time.monotonic() + seconds
        finished = list(self._finished())
        count = self._spec.space.count
        while len(finished) < trials:
            different = {tuple(sorted(trial.settings.items())) for trial in finished}
            if count is not None and len(different) >= count:
                break
            if ends is not None and time.monotonic() > ends:
                break
            progress("trials", len(finished), trials)
            self._try(finished, progress)
            finished = list(self._finished())
            if on_trial is not None:
                on_trial(finished[-1])
        progress("trials", len(finished), len(finished))

    def _finished(self) -> Iterator[Trial]:
        """Complete and pruned trials; failed ones do not affect the following."""
        for number, trial in enumerate(self._ended()):
            complete = trial.state == self._state.COMPLETE
            yield Trial(
                number=number,
                state="complete" if complete else "pruned",
                settings=dict(trial.params),
                score=trial.value if complete else None,
                curve=dict(trial.intermediate_values),
                seconds=trial.duration.total_seconds() if trial.duration else 0.0,
                note=trial.user_attrs.get(NOTE, ""),
            )

    def _ended(self) -> list[Any]:
        states = (self._state.COMPLETE, self._state.PRUNED)
        return list(self._study.get_trials(deepcopy=False, states=states))

    def _try(self, finished: list[Trial], progress: Progress) -> None:
        study, state = self._study, self._state
        study.sampler = sampler(self._spec.seed, len(finished))
        trial = study.ask(self._spec.space.distributions())
        try:
            values = dict(trial.params)
            same = next((one for one in finished if one.settings == values), None)
            if same is None:
                score = self._score(values, _Pruning(trial, self._spec.graphs), progress)
                study.tell(trial, score)
                return
            # The same seeds would make the same graphs.
            trial.set_user_attr(NOTE, f"the same as trial {same.number}")
            if same.score is None:
                raise _PrunedError
            study.tell(trial, same.score)
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
            study.tell(trial, state=state.FAIL)
            raise

    def _score(self, values: Mapping[str, Value], watch: _Pruning, progress: Progress) -> float:
        """Mean validation accuracy over the graphs of a trial."""
        condenser, _ = self._spec.condenser(values)
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
