"""A search as a picture: its course, and accuracy over every parameter."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gcsr.errors import require
from gcsr.files import write_atomically
from gcsr.tune.result import Trial, Tuning
from gcsr.tune.space import Choices, Dimension, text_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
DPI = 150
COLUMNS = 4
_COMPLETE, _BEST, _PRUNED = "tab:blue", "tab:orange", "0.6"


def figure_format(path: Path) -> str:
    """The format that a file's name asks for."""
    suffix = path.suffix.lower().removeprefix(".")
    require(
        suffix in FORMATS,
        f"plot: {path.name!r} is not accepted; a name that ends with .png or .svg is.",
    )
    return suffix


def save_figure(tuning: Tuning, path: Path) -> Path:
    """Write :func:`tuning_figure` whole or not at all."""
    suffix = figure_format(path)
    stream = io.BytesIO()
    tuning_figure(tuning).savefig(stream, format=suffix, dpi=DPI)
    write_atomically(path, stream.getvalue())
    return path


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

    asked = tuning.question
    title = f"{asked.graph.name}, {asked.nodes} nodes, {asked.method}"
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
    for state, marker, colour, size in kinds:
        shown = [
            (place, percent)
            for trial, place in zip(trials, places, strict=True)
            if trial.state == state and (percent := _percent(trial)) is not None
        ]
        if shown:
            x, y = zip(*shown, strict=True)
            axis.scatter(x, y, marker=marker, color=colour, s=size, label=state)
