"""The files of a reproduced experiment: tables, and figures drawn from rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from gcsr.analysis.figures import FORMATS, figure_bytes, heat_map, write_values
from gcsr.benchmarking.analyses import ADJACENCY, CORRELATION, GRAM, SILHOUETTE
from gcsr.benchmarking.cells import WHOLE_GRAPH, Protocol
from gcsr.benchmarking.store import Row
from gcsr.paper.experiments import Axis, Experiment
from gcsr.paper.tables import Compared, Number, csv_text, markdown, size, title
from gcsr.utils.errors import InputError
from gcsr.utils.files import write_atomically
from gcsr.utils.formatting import counted
from gcsr.utils.safe_io import reason

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 130
_PUBLISHED = {"color": "0.55", "marker": "s", "markersize": 4, "capsize": 2}
_OURS = {"color": "tab:blue", "marker": "o", "markersize": 4, "capsize": 2}
_FAIR = {"color": "tab:orange", "marker": "D", "markersize": 4, "capsize": 2, "mfc": "white"}
# Inches per line of a table and per panel, and letters of a title per inch.
_LINE, _PANEL, _EDGE, _LETTERS = 0.24, 4.6, 1.6, 14
_PICTURE, _PICTURE_LETTERS = 3.4, 13
_DRAWN_CLASSES = 3


def rows_file(folder: Path, protocol: Protocol) -> Path:
    """The file of finished cells of all experiments; quick runs have their own."""
    return folder / f"rows{_mark(protocol)}.jsonl"


def graphs_folder(folder: Path, protocol: Protocol) -> Path:
    """The folder of condensed graphs (``--keep-graphs``)."""
    return folder / f"graphs{_mark(protocol)}"


def _mark(protocol: Protocol) -> str:
    return "-quick" if protocol.quick else ""


def write_outputs(
    folder: Path, experiment: Experiment, compared: Sequence[Compared], protocol: Protocol
) -> list[Path]:
    """Markdown, CSV and, where there is something to draw, a figure as PNG and SVG.

    No other process may write them at the same time (:meth:`Store.outputs`).
    """
    stem = f"{experiment.name}{_mark(protocol)}"
    files = {
        f"{stem}.md": markdown(experiment, compared, protocol).encode(),
        f"{stem}.csv": csv_text(experiment, compared, protocol).encode(),
    }
    if experiment.drawn:
        drawing = portraits if experiment.analysis else draw
        try:
            figure = drawing(experiment, compared, protocol)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(
                f"{rows_file(folder, protocol)}: a row of {experiment.name} cannot be drawn"
                f" ({reason(error)})."
            ) from None
        files |= {f"{stem}.{kind}": figure_bytes(figure, kind, DPI) for kind in FORMATS}
    for name, blob in files.items():
        for unfinished in folder.glob(f".{name}.*"):  # of a process that was killed
            unfinished.unlink(missing_ok=True)
        write_atomically(folder / name, blob)
    return [folder / name for name in files]


def _panels(
    experiment: Experiment,
    compared: Sequence[Compared],
    protocol: Protocol,
    counts: str,
    letters: int,
    grid: tuple[int, int, float, float],
) -> tuple[Figure, Any]:
    """A figure with a heading and a grid: rows, columns, width and height in inches."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - takes a second to import

    rows, columns, width, height = grid
    figure = Figure(figsize=(width, height), layout="constrained")
    leaks = any(number.leaks for one in compared for number in one.numbers)
    heading = f"{title(experiment, protocol)} ({counts}{'; † leaks test labels' * leaks})"
    figure.suptitle(fill(heading, int(width * letters)), fontsize=9)
    return figure, figure.subplots(rows, columns, squeeze=False).ravel()


# -- Tables: curves over a setting, or points beside the published ones -------------------------------


def draw(experiment: Experiment, compared: Sequence[Compared], protocol: Protocol) -> Figure:
    """One panel per dataset; differences from the published numbers stand beside ours."""
    panels: dict[str, list[Compared]] = {}
    for one in compared:
        panels.setdefault(one.line.dataset, []).append(one)
    columns = max(1, len(panels))
    tallest = max((len(lines) for lines in panels.values()), default=1)
    height = 4.2 if experiment.axis else max(3.0, _LINE * tallest + _EDGE)
    counts = size(protocol.graphs, protocol.runs)
    grid = (1, columns, _PANEL * columns, height)
    figure, all_axes = _panels(experiment, compared, protocol, counts, _LETTERS, grid)
    for axes, (dataset, lines) in zip(all_axes, panels.items(), strict=False):
        states = {number.state for one in lines for number in one.numbers}
        axes.set_title(dataset if "done" in states else f"{dataset} ({', '.join(sorted(states))})")
        if experiment.axis is None:
            _points(axes, lines)
        else:
            _curves(axes, lines, experiment.axis)
        axes.tick_params(labelsize=7)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7)
    return figure


def _points(axes: Any, lines: Sequence[Compared]) -> None:
    """Accuracies to the right, one line of the table below the other."""
    places = range(len(lines))
    _error_bars(axes, places, lines, across=True, linestyle="none")
    names = [
        f"{one.line.label}{'' if one.line.nodes is None else f' ({one.line.nodes})'}"
        f"{' †' if one.ours.leaks else ''}"
        for one in lines
    ]
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_xlabel("test accuracy (%)", fontsize=8)


def _curves(axes: Any, lines: Sequence[Compared], axis: Axis) -> None:
    """Accuracies over a setting, a line per series."""
    series: dict[str, list[Compared]] = {}
    for one in lines:
        series.setdefault(one.line.series, []).append(one)
    values = sorted({one.line.x or 0.0 for one in lines})
    for name, members in series.items():
        xs = [one.line.x or 0.0 for one in members]
        places = [values.index(x) for x in xs] if axis.even else xs
        _error_bars(axes, places, members, series=name if len(series) > 1 else "")
    if axis.even:
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
    axes.set_xlabel(axis.label, fontsize=8)
    axes.set_ylabel("test accuracy (%)", fontsize=8)


def _error_bars(
    axes: Any,
    places: Iterable[float],
    lines: Sequence[Compared],
    *,
    across: bool = False,
    series: str = "",
    **options: Any,
) -> None:
    """Published and our numbers at their places; ``across`` has accuracies on the x axis.

    One of several ``series`` in a panel has its name as the label and a color of its own.
    """
    placed = list(zip(places, lines, strict=True))

    def bars(found: Sequence[tuple[float, Any, Any]], **style: Any) -> None:
        at, means = [place for place, _, _ in found], [mean for _, mean, _ in found]
        errors = [std or 0.0 for _, _, std in found]
        if across:
            axes.errorbar(means, at, xerr=errors, **options, **style)
        else:
            axes.errorbar(at, means, yerr=errors, **options, **style)

    known = [
        (place, one.line.published, one.line.published_std)
        for place, one in placed
        if one.line.published is not None
    ]
    if known or across:
        bars(known, label="published", **_PUBLISHED)
    ours = "ours †" if all(one.ours.leaks for one in lines) else "ours"
    for label, fair, style in ((ours, False, _OURS), ("ours, without leak", True, _FAIR)):
        numbers = [(place, one.without_leak if fair else one.ours) for place, one in placed]
        found = [(place, n) for place, n in numbers if n is not None and n.mean is not None]
        if not found:
            continue
        own = {key: value for key, value in style.items() if not (series and key == "color")}
        bars([(place, n.mean, n.std) for place, n in found], label=series or label, **own)
        for place, number in found:
            if number.difference is not None:
                axes.annotate(
                    f"{number.difference:+.1f}",
                    (number.mean, place) if across else (place, number.mean),
                    textcoords="offset points",
                    xytext=(4, 4),
                    fontsize=6,
                )


# -- Pictures of graphs -------------------------------------------------------------------------------

# A heading, and what draws below it.
Picture = tuple[str, Callable[[Any], None]]


def portraits(experiment: Experiment, compared: Sequence[Compared], protocol: Protocol) -> Figure:
    """A panel per method (and matrix), those with the leak and without it side by side."""
    make = _PICTURES[experiment.analysis]
    pictures = [picture for one in _analyzed(compared) for picture in make(one)]
    columns = 3 if experiment.analysis == "adjacency" else max(1, len(pictures))
    rows = max(1, -(-len(pictures) // columns))
    counts = f"{counted(protocol.graphs, 'graph')}, the first is drawn"
    grid = (rows, columns, _PICTURE * columns, _PICTURE * rows + 0.8)
    figure, axes = _panels(experiment, compared, protocol, counts, _PICTURE_LETTERS, grid)
    for axis in axes[len(pictures) :]:
        axis.axis("off")
    if not pictures:
        states = sorted({number.state for one in compared for number in one.numbers})
        axes[0].text(0.5, 0.5, ", ".join(states), ha="center", va="center")
    for axis, (heading, paint) in zip(axes, pictures, strict=False):
        axis.set_title(heading, fontsize=8)
        axis.tick_params(labelsize=7)
        paint(axis)
    return figure


@dataclass(frozen=True)
class _Analyzed:
    """A row with its name, and our numbers in it beside the published ones as text."""

    name: str
    row: Row
    numbers: dict[str, str]

    def number(self, value: str) -> str:
        return self.numbers.get(value, "-")


def _analyzed(compared: Sequence[Compared]) -> list[_Analyzed]:
    """Every row once; the original last, as in the paper."""
    found: dict[str, _Analyzed] = {}
    for one in compared:
        for number in one.numbers:
            for row in number.rows:
                name = f"{row['method']}{' †' if row['leaks_test_labels'] else ''}"
                if one.without_leak is not None and number is one.without_leak:
                    name += ", without leak"
                known = found.setdefault(row["key"], _Analyzed(name, row, {}))
                known.numbers[one.line.value] = _beside_published(one, number)
    return sorted(found.values(), key=lambda one: one.row["method"] == WHOLE_GRAPH)


def _beside_published(one: Compared, number: Number) -> str:
    digits = one.line.digits
    ours = f"{number.mean:.{digits}f}"
    if number.difference is None:
        return ours
    return f"{ours} (published {one.line.published:.{digits}f}, {number.difference:+.{digits}f})"


def _ccns(one: _Analyzed) -> list[Picture]:
    values = np.array(one.row["drawn"]["ccns"], dtype=float)  # None becomes NaN

    def paint(axis: Any) -> None:
        axis.imshow(values, vmin=0, vmax=1, cmap="viridis")
        axis.set_xticks(range(len(values)))
        axis.set_yticks(range(len(values)))
        write_values(axis, values)

    if one.row["method"] == WHOLE_GRAPH:
        return [("original", paint)]
    return [(f"{one.name}\ncorrelation {one.number(CORRELATION)}", paint)]


def _adjacency(one: _Analyzed) -> list[Picture]:
    drawn = one.row["drawn"]
    starts = np.flatnonzero(np.diff(drawn["classes"])) + 1
    scales = {GRAM: "signed", ADJACENCY: "edges"}

    def picture(name: str, numbers: list[list[float]]) -> Picture:
        values, scale = np.array(numbers, dtype=float), scales.get(name, "all")

        def paint(axis: Any) -> None:
            heat_map(axis, values, starts, scale)

        return f"{one.name}\n{name}, {one.number(name)} % within classes", paint

    return [picture(name, numbers) for name, numbers in drawn["matrices"].items()]


def _tsne(one: _Analyzed) -> list[Picture]:
    drawn = one.row["drawn"]

    def paint(axis: Any) -> None:
        for kind, style in (
            ("real", {"s": 5, "alpha": 0.4, "linewidths": 0}),
            ("condensed", {"s": 60, "marker": "*", "edgecolors": "black", "linewidths": 0.4}),
        ):
            places = np.array(drawn[kind], dtype=float).reshape(-1, 2)
            classes = np.array(drawn[f"{kind}_classes"])
            for label in range(_DRAWN_CLASSES):
                chosen = places[classes == label]
                axis.scatter(chosen[:, 0], chosen[:, 1], color=f"C{label}", **style)
        axis.set(xticks=[], yticks=[])

    return [(f"{one.name}\nSC = {one.number(SILHOUETTE)}", paint)]


_PICTURES: dict[str, Callable[[_Analyzed], list[Picture]]] = {
    "ccns": _ccns,
    "adjacency": _adjacency,
    "tsne": _tsne,
}
