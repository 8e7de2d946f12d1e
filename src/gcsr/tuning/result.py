"""The trials of a search, the best of them, and a figure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from gcsr.analysis.figures import FORMATS, figure_bytes
from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.distributed.pool import Cluster
from gcsr.tuning.space import Choices, Dimension, Value, text_of
from gcsr.tuning.study import SCORER, StudySpec
from gcsr.utils.errors import InputError, require
from gcsr.utils.files import write_atomically
from gcsr.utils.formatting import counted
from gcsr.utils.progress import Progress, silent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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

    question: StudySpec
    trials: Sequence[Trial]
    study: Path | None = None

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
        return {**self.question.space.fixed, **self.best.settings}

    def condense(
        self,
        graph: Graph | None = None,
        *,
        device: str | torch.device = "auto",
        progress: Progress = silent,
        cluster: str | Cluster | None = None,
    ) -> list[CondensedGraph]:
        """Condense with the best settings; by default the graph that was searched on."""
        spec = self.question
        condenser, preset = spec.condenser(self.best.settings)
        tuned = {
            "study": None if self.study is None else self.study.name,
            "trials": len(self.trials),
            "trial": self.best.number,
            "space": spec.space.to_dict(),
            "validation": self.score,
            "judge": SCORER,
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
            **self.question.identity(),
            "study": None if self.study is None else str(self.study),
            "best": asdict(self.best) if complete else None,
            "settings": self.settings if complete else None,
            "trials": [asdict(trial) for trial in self.trials],
        }


COLUMNS = 4
_COMPLETE, _BEST, _PRUNED = "tab:blue", "tab:orange", "0.6"


def figure_format(path: Path) -> str:
    """``png`` or ``svg``, by the name of a file."""
    suffix = path.suffix.lower().removeprefix(".")
    require(suffix in FORMATS, f"plot must end with .png or .svg, got {path.name!r}.")
    return suffix


def tuning_figure(tuning: Tuning) -> Figure:
    """Validation accuracy of every trial above, and below it one panel per parameter."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - takes a second to import

    searched = tuning.question.space.searched
    columns = max(1, min(COLUMNS, len(searched)))
    rows = -(-len(searched) // columns)
    figure = Figure(figsize=(10, 3.2 + 2.4 * rows), layout="constrained")
    grid = figure.add_gridspec(1 + rows, columns)
    course = figure.add_subplot(grid[0, :])
    _course(course, tuning)
    for place, (name, dimension) in enumerate(searched.items()):
        row, column = divmod(place, columns)
        panel = figure.add_subplot(grid[1 + row, column], sharey=course)
        _panel(panel, name, dimension, tuning.trials)
        if column == 0:
            panel.set_ylabel("validation, %")
        else:
            panel.tick_params(labelleft=False)
    return figure


def _percent(trial: Trial) -> float | None:
    """Its score; of a pruned one the last that was seen."""
    if trial.score is not None:
        return 100 * trial.score
    return 100 * trial.curve[max(trial.curve)] if trial.curve else None


def _course(axis: Axes, tuning: Tuning) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - as above

    spec = tuning.question
    title = f"{spec.graph.name}, {spec.nodes} nodes, {spec.method}"
    axis.set(title=title, xlabel="trial", ylabel="validation, %")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    _scatter(axis, tuning.trials, [trial.number for trial in tuning.trials])
    complete = [(t.number, 100 * t.score) for t in tuning.trials if t.score is not None]
    if complete:
        numbers, scores = zip(*complete, strict=True)
        best = list(itertools.accumulate(scores, max))
        axis.step(numbers, best, where="post", color=_BEST, label="best so far")
    if tuning.trials:
        axis.legend(loc="lower right", fontsize="small")


def _panel(axis: Axes, name: str, dimension: Dimension, trials: Sequence[Trial]) -> None:
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415 - as above

    axis.set_xlabel(name)
    values = [trial.settings[name] for trial in trials]
    if isinstance(dimension, Choices):
        axis.set_xticks(range(len(dimension.values)), [text_of(v) for v in dimension.values])
        axis.set_xlim(-0.5, len(dimension.values) - 0.5)
        _scatter(axis, trials, [dimension.values.index(value) for value in values])
        return
    if dimension.log:
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlim(dimension.low, dimension.high)
    _scatter(axis, trials, [float(value) for value in values if value is not None])


def _scatter(axis: Axes, trials: Sequence[Trial], places: Sequence[float]) -> None:
    kinds = (("complete", "o", _COMPLETE, 28), ("pruned", "x", _PRUNED, 22))
    for state, marker, color, size in kinds:
        shown = [
            (place, percent)
            for trial, place in zip(trials, places, strict=True)
            if trial.state == state and (percent := _percent(trial)) is not None
        ]
        if shown:
            x, y = zip(*shown, strict=True)
            axis.scatter(x, y, marker=marker, color=color, s=size, label=state)
