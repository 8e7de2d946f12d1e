"""The search: trials one after the other, each judged by the same quickly trained networks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.views import CondensingView
from gcsr.distributed.pool import Cluster, connected
from gcsr.distributed.start import ClusterError
from gcsr.distributed.worker import Kept
from gcsr.engines.iterates import QuickScore
from gcsr.methods.distributed import condense_spread
from gcsr.tuning.result import Trial, Tuning
from gcsr.tuning.space import Value
from gcsr.tuning.study import (
    JUDGE_NETWORKS,
    JUDGE_SEED,
    NOTE,
    StudySpec,
    import_optuna,
    open_study,
    require_sound_trials,
    sampler,
)
from gcsr.utils.devices import pick_device
from gcsr.utils.errors import InputError, require
from gcsr.utils.formatting import counted
from gcsr.utils.progress import Progress, silent

if TYPE_CHECKING:
    import optuna

# A candidate may be impossible, too large, or diverge; the others go on.
REFUSALS: tuple[type[Exception], ...] = (
    InputError,
    torch.linalg.LinAlgError,  # type: ignore[attr-defined]
    torch.OutOfMemoryError,
    MemoryError,
)
# The first iterates are hardly more than the start, and say little of the settings.
FIRST_LOOK_THAT_PRUNES = 3
OnTrial = Callable[[Trial], None]


class _PrunedError(Exception):
    """A trial is not worth its while any more."""


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
    progress: Progress = silent,
    on_trial: OnTrial | None = None,
    cluster: str | Cluster | None = None,
    **settings: object,
) -> Tuning:
    """Search the settings with which a method's condensed graph validates best.

    Test labels are out of reach: only training and validation nodes have a say.

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
            then made and judged, with the same trials as a result; by default this process does it all.
        settings: dimensions that replace those of the space or come beside them; a single value is
            fixed.
    """
    asked = StudySpec.of(
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
    with Search(asked, study=path, device=device, cluster=cluster) as search:
        search.run(trials=trials, seconds=seconds, progress=progress, on_trial=on_trial)
        return search.result()


class Search:
    """A study that is open; trials are kept one by one, whatever ends the process."""

    def __init__(
        self,
        asked: StudySpec,
        *,
        study: Path | None = None,
        device: str | torch.device = "auto",
        cluster: str | Cluster | None = None,
    ) -> None:
        self._asked, self._path = asked, study
        self._asked_device, self._asked_cluster = device, cluster
        self._cluster: Cluster | None = None
        if cluster is None:
            pick_device(device)
        self._opened = ExitStack()
        self._optuna = import_optuna()

    def __enter__(self) -> Search:
        # Whatever fails here, the study is closed: nobody calls __exit__ then.
        with ExitStack() as opening:
            self._study: optuna.Study = opening.enter_context(
                open_study(self._path, self._asked.identity())
            )
            require_sound_trials(
                self._path, self._optuna, self._ended(), self._asked.space.searched
            )
            self._view = self._asked.view()
            if self._asked_cluster is None:
                self._device = pick_device(self._asked_device)
                self._judge = _judge(self._view, self._device)
            else:
                self._cluster = opening.enter_context(connected(self._asked_cluster))
                self._device = self._cluster.device(self._asked_device)
            self._opened = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def result(self) -> Tuning:
        """What was found so far."""
        return Tuning(self._asked, tuple(self._finished()), self._path)

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
            number = isinstance(value, int | float) and not isinstance(value, bool)
            fine = value is None or (number and value > 0)
            require(fine, f"{name}: {value!r} is not accepted; a number > 0 is.")
        ends = None if seconds is None else time.monotonic() + seconds
        finished = list(self._finished())
        while len(finished) < trials and not self._known_all(finished):
            if ends is not None and time.monotonic() > ends:
                break
            progress("trials", len(finished), trials)
            self._try(finished, progress)
            finished = list(self._finished())
            if on_trial is not None:
                on_trial(finished[-1])
        progress("trials", len(finished), len(finished))

    def _known_all(self, finished: list[Trial]) -> bool:
        different = {tuple(sorted(trial.settings.items())) for trial in finished}
        count = self._asked.space.count
        return count is not None and len(different) >= count

    def _finished(self) -> Iterator[Trial]:
        """Trials that were ended by their result; failed ones leave no trace in what comes after."""
        for number, trial in enumerate(self._ended()):
            complete = trial.state == self._optuna.trial.TrialState.COMPLETE
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
        state = self._optuna.trial.TrialState
        ended = self._study.get_trials(deepcopy=False, states=(state.COMPLETE, state.PRUNED))
        return list(ended)

    def _try(self, finished: list[Trial], progress: Progress) -> None:
        study, state = self._study, self._optuna.trial.TrialState
        study.sampler = sampler(self._asked.seed, len(finished))
        trial = study.ask()
        try:
            values = {
                name: dimension.suggest(trial, name)
                for name, dimension in self._asked.space.searched.items()
            }
            twin = next((one for one in finished if one.settings == values), None)
            if twin is not None:
                # The same seeds would make the same graphs.
                trial.set_user_attr(NOTE, f"the same as trial {twin.number}")
                if twin.score is None:
                    raise _PrunedError
                study.tell(trial, twin.score)
                return
            study.tell(trial, self._score(values, _Pruning(trial, self._asked.graphs), progress))
        except _PrunedError:
            study.tell(trial, state=state.PRUNED)
        except ClusterError as error:
            study.tell(trial, state=state.FAIL)
            kept = f"{str(error).rstrip('.')}; {counted(len(finished), 'finished trial')} kept."
            raise ClusterError(kept) from None
        except REFUSALS as error:
            trial.set_user_attr(NOTE, str(error).strip() or type(error).__name__)
            study.tell(trial, state=state.PRUNED)
        except BaseException:
            study.tell(trial, state=state.FAIL)
            raise

    def _score(self, values: Mapping[str, Value], watch: _Pruning, progress: Progress) -> float:
        """Mean validation accuracy of the judge's networks over the graphs of a candidate."""
        condenser, _ = self._asked.condenser(values)
        if self._cluster is None:
            made = condenser.condense_many(
                replace(self._view, watch=watch),
                seeds=self._asked.seeds,
                device=self._device,
                progress=progress,
            )
            scores = _scores(self._judge, made, self._device)
        else:
            scores = condense_spread(
                condenser,
                self._view,
                self._asked.seeds,
                cluster=self._cluster,
                device=self._device,
                progress=progress,
                watch=watch,
                then=_judged,
            )
        return sum(scores) / len(scores)


def _judge(view: CondensingView, device: torch.device) -> QuickScore:
    return QuickScore(view.validation, device, networks=JUDGE_NETWORKS, seed=JUDGE_SEED)


def _scores(judge: QuickScore, made: list[CondensedGraph], device: torch.device) -> list[float]:
    return [judge(*(part.to(device) for part in (g.x, g.adjacency, g.targets))) for g in made]


_JUDGE = Kept()


def _judged(made: list[CondensedGraph], view: CondensingView, device: torch.device) -> list[float]:
    """The scores of graphs in the worker process that made them."""
    return _scores(_JUDGE.get((view, str(device)), lambda: _judge(view, device)), made, device)


class _Pruning:
    """Reports how iterates validate, mean over the graphs of a trial, and ends one that is behind."""

    def __init__(self, trial: Any, graphs: int) -> None:
        self._trial, self._graphs = trial, graphs
        self._lock = threading.Lock()
        self._heard: dict[int, dict[int, float]] = {}
        self._last = self._looks = 0

    def __call__(self, iteration: int, scores: Mapping[int, float]) -> None:
        """Hear the scores of some of the graphs."""
        with self._lock:
            heard = self._heard.setdefault(iteration, {})
            heard.update(scores)
            if len(heard) < self._graphs or iteration <= self._last:
                return
            self._last = iteration
            self._looks += 1
            self._trial.report(sum(heard.values()) / len(heard), iteration)
            if self._looks >= FIRST_LOOK_THAT_PRUNES and self._trial.should_prune():
                raise _PrunedError
