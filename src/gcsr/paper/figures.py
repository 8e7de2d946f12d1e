"""The files of a reproduced experiment: tables, and figures drawn from rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from gcsr.analysis.figures import FORMATS, draw_nodes, draw_similarities, figure_bytes, heat_map
from gcsr.benchmarking.analyses import ADJACENCY, CORRELATION, GRAM, SILHOUETTE
from gcsr.benchmarking.cells import WHOLE_GRAPH, Protocol
from gcsr.benchmarking.store import Row
from gcsr.paper.experiments import Axis, Experiment
from gcsr.paper.tables import Compared, Number, csv_text, known, markdown, size, title
from gcsr.utils.errors import InputError
from gcsr.utils.formatting import counted
from gcsr.utils.safe_io import reason, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 130
_PUBLISHED = {"color": "0.55", "marker": "s", "markersize": 4, "capsize": 2}
_OURS = {"marker": "o", "markersize": 4, "capsize": 2}
_FAIR = {"marker": "D", "markersize": 4, "capsize": 2, "mfc": "white"}
OURS_COLOR, FAIR_COLOR = "tab:blue", "tab:orange"
# Inches per line of a table and per panel, and letters of a title per inch.
_LINE, _PANEL, _EDGE, _LETTERS = 0.24, 4.6, 1.6, 14
_PICTURE, _PICTURE_LETTERS = 3.4, 13
_DRAWN_CLASSES = 3
_SCALES = {GRAM: "signed", ADJACENCY: "edges"}


def rows_file(folder: Path, protocol: Protocol) -> Path:
    """The file of finished cells of all experiments; quick runs have their own."""
    return folder / f"rows{protocol.suffix}.jsonl"


def graphs_folder(folder: Path, protocol: Protocol) -> Path:
    """The folder of condensed graphs (``--keep-graphs``)."""
    return folder / f"graphs{protocol.suffix}"


def write_outputs(
    folder: Path, experiment: Experiment, compared: Sequence[Compared], protocol: Protocol
) -> list[Path]:
    """Markdown, CSV and, where there is something to draw, a figure as PNG and SVG.

    No other process may write them at the same time (:meth:`Store.outputs`).
    """
    stem = f"{experiment.name}{protocol.suffix}"
    files = {
        f"{stem}.md": markdown(experiment, compared, protocol).encode(),
        f"{stem}.csv": csv_text(experiment, compared, protocol).encode(),
    }
    if experiment.drawn:
        drawing = draw_graphs if experiment.analysis else draw
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
    ours = "ours †" if all(one.ours.leaks for one in lines) else "ours"
    own, fair = ({}, {}) if series else ({"color": OURS_COLOR}, {"color": FAIR_COLOR})
    kinds: tuple[tuple[str, Sequence[Number | None], dict[str, Any]], ...] = (
        ("published", [known(one.line) for one in lines], _PUBLISHED),
        (series or ours, [one.ours for one in lines], _OURS | own),
        (series or "ours, without leak", [one.without_leak for one in lines], _FAIR | fair),
    )
    places = list(places)
    for label, numbers, style in kinds:
        found = [(at, n) for at, n in zip(places, numbers, strict=True) if n and n.mean is not None]
        if not found and not (across and style is _PUBLISHED):
            continue
        points = [(n.mean, at) if across else (at, n.mean) for at, n in found]
        x, y = zip(*points, strict=True) if points else ((), ())
        errors = {"xerr" if across else "yerr": [n.std or 0.0 for _, n in found]}
        axes.errorbar(x, y, **errors, label=label, **options, **style)
        for point, (_, number) in zip(points, found, strict=True):
            if number.difference is not None:
                gap = f"{number.difference:+.1f}"
                axes.annotate(gap, point, textcoords="offset points", xytext=(4, 4), fontsize=6)


# -- Pictures of graphs -------------------------------------------------------------------------------


def draw_graphs(experiment: Experiment, compared: Sequence[Compared], protocol: Protocol) -> Figure:
    """A panel per method (and matrix), those with the leak and without it side by side."""
    pictures = list(_pictures(compared))
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


def _pictures(compared: Sequence[Compared]) -> Iterator[tuple[str, Callable[[Any], object]]]:
    """A heading and what draws below it, of every row once; the original last, as in the paper."""
    rows: dict[str, tuple[str, Row]] = {}
    texts: dict[tuple[str, str], str] = {}
    for one in compared:
        for number in one.numbers:
            for row in number.rows:
                name = f"{row['method']}{' †' if row['leaks_test_labels'] else ''}"
                if one.without_leak is not None and number is one.without_leak:
                    name += ", without leak"
                rows.setdefault(row["key"], (name, row))
                texts[row["key"], one.line.value] = _beside_published(one, number)
    for name, row in sorted(rows.values(), key=lambda found: found[1]["method"] == WHOLE_GRAPH):
        drawn = row["drawn"]
        if "ccns" in drawn:
            correlation = texts.get((row["key"], CORRELATION), "-")
            whole = row["method"] == WHOLE_GRAPH
            heading = "original" if whole else f"{name}\ncorrelation {correlation}"
            yield heading, partial(draw_similarities, values=np.array(drawn["ccns"], dtype=float))
        elif "matrices" in drawn:
            starts = np.flatnonzero(np.diff(drawn["classes"])) + 1
            for kind, numbers in drawn["matrices"].items():
                heading = f"{name}\n{kind}, {texts.get((row['key'], kind), '-')} % within classes"
                values, scale = np.array(numbers, dtype=float), _SCALES.get(kind, "all")
                yield heading, partial(heat_map, matrix=values, starts=starts, scale=scale)
        else:
            heading = f"{name}\nSC = {texts.get((row['key'], SILHOUETTE), '-')}"
            yield heading, partial(_map, drawn)


def _beside_published(one: Compared, number: Number) -> str:
    digits = one.line.digits
    ours = f"{number.mean:.{digits}f}"
    if number.difference is None:
        return ours
    return f"{ours} (published {one.line.published:.{digits}f}, {number.difference:+.{digits}f})"


def _map(drawn: Mapping[str, Any], axis: Any) -> None:
    """t-SNE of real and condensed nodes of the first classes."""
    for kind in ("real", "condensed"):
        places = np.array(drawn[kind], dtype=float).reshape(-1, 2)
        classes = np.array(drawn[f"{kind}_classes"])
        chosen = (classes >= 0) & (classes < _DRAWN_CLASSES)
        draw_nodes(axis, places[chosen], [f"C{label}" for label in classes[chosen]], kind)
    axis.set(xticks=[], yticks=[])
