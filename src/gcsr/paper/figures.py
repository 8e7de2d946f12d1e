"""The files of a reproduced experiment."""

from __future__ import annotations

import io
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from gcsr.paper.cells import Axis, Experiment, Protocol
from gcsr.paper.tables import Compared, Number, size, title

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gcsr.paper.cells import WHOLE_GRAPH
from gcsr.paper.store import Row
from gcsr.paper.tables import csv_text, markdown
from gcsr.paper.work import ADJACENCY, CORRELATION, GRAM, SILHOUETTE
from gcsr.utils.errors import InputError
from gcsr.utils.files import write_atomically
from gcsr.utils.formatting import counted
from gcsr.utils.safe_io import reason

# -- Figures of the tables: curves over a setting, or points beside the published ones ---------------


FORMATS = ("png", "svg")
_PUBLISHED = {"color": "0.55", "marker": "s", "markersize": 4, "capsize": 2}
_OURS = {"color": "tab:blue", "marker": "o", "markersize": 4, "capsize": 2}
_FAIR = {"color": "tab:orange", "marker": "D", "markersize": 4, "capsize": 2, "mfc": "white"}
# A table lies on its side: inches per line, and per panel.
_LINE, _PANEL, _EDGE = 0.24, 4.6, 1.6
_LETTERS = 14  # of a title in an inch


def draw(experiment: Experiment, compared: Sequence[Compared], protocol: Protocol) -> Figure:
    """One panel per dataset; differences from the published numbers stand beside ours."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - takes a second to import

    panels: dict[str, list[Compared]] = {}
    for one in compared:
        panels.setdefault(one.line.dataset, []).append(one)
    tallest = max((len(lines) for lines in panels.values()), default=1)
    height = 4.2 if experiment.axis else max(3.0, _LINE * tallest + _EDGE)
    width = _PANEL * max(1, len(panels))
    figure = Figure(figsize=(width, height), layout="constrained")
    heading = f"{title(experiment, protocol)} ({_counts(compared, protocol)})"
    figure.suptitle(fill(heading, int(width * _LETTERS)), fontsize=9)
    axes = figure.subplots(1, max(1, len(panels)), squeeze=False)[0]
    for axes_of_one, (dataset, lines) in zip(axes, panels.items(), strict=False):
        states = {number.state for one in lines for number in one.numbers}
        axes_of_one.set_title(dataset if "done" in states else f"{dataset} ({_why(states)})")
        if experiment.axis is None:
            _points(axes_of_one, lines)
        else:
            _curves(axes_of_one, lines, experiment.axis)
        axes_of_one.tick_params(labelsize=7)
        if axes_of_one.get_legend_handles_labels()[0]:
            axes_of_one.legend(fontsize=7)
    return figure


def image(figure: Figure, kind: str) -> bytes:
    """The bytes of a file; the same figure gives the same ones, and text in an SVG stays text."""
    import matplotlib as mpl  # noqa: PLC0415 - takes a second to import

    stream = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with mpl.rc_context({"svg.hashsalt": "gcsr", "svg.fonttype": "none"}):
        figure.savefig(stream, format=kind, dpi=130, metadata=metadata)
    return stream.getvalue()


def _counts(compared: Sequence[Compared], protocol: Protocol) -> str:
    leaks = any(number.leaks for one in compared for number in one.numbers)
    return size(protocol.graphs, protocol.runs) + ("; † leaks test labels" if leaks else "")


def _why(states: set[str]) -> str:
    return ", ".join(sorted(states))


def _layers(lines: Sequence[Compared]) -> list[tuple[str, list[Number | None], dict[str, Any]]]:
    """Ours, and ours without the leak if any of these lines leaks."""
    leaks = any(one.without_leak is not None for one in lines)
    ours: list[Number | None] = [one.ours for one in lines]
    fair: list[Number | None] = [one.without_leak for one in lines]
    layers = [("ours †" if all(one.ours.leaks for one in lines) else "ours", ours, _OURS)]
    return [*layers, ("ours, without leak", fair, _FAIR)] if leaks else layers


def _points(axes: Any, lines: Sequence[Compared]) -> None:
    """Accuracies to the right, one line of the table below the other."""
    places = list(range(len(lines)))
    known = [(place, one.line) for place, one in zip(places, lines, strict=True)]
    known = [(place, line) for place, line in known if line.published is not None]
    axes.errorbar(
        [line.published for _, line in known],
        [place for place, _ in known],
        xerr=[line.published_std or 0.0 for _, line in known],
        linestyle="none",
        label="published",
        **_PUBLISHED,
    )
    for label, numbers, style in _layers(lines):
        found = [(p, n) for p, n in zip(places, numbers, strict=True) if n and n.mean is not None]
        if not found:
            continue
        axes.errorbar(
            [number.mean for _, number in found],
            [place for place, _ in found],
            xerr=[number.std or 0.0 for _, number in found],
            linestyle="none",
            label=label,
            **style,
        )
        for place, number in found:
            _annotate(axes, number.mean, place, number)
    axes.set_yticks(places, [_name(one) for one in lines])
    axes.invert_yaxis()
    axes.set_xlabel("test accuracy (%)", fontsize=8)


def _curves(axes: Any, lines: Sequence[Compared], axis: Axis) -> None:
    """Accuracies over a setting, a line per series."""
    series: dict[str, list[Compared]] = {}
    for one in lines:
        series.setdefault(one.line.series, []).append(one)
    values = sorted({one.line.x or 0.0 for one in lines})
    for name, members in series.items():
        places = [values.index(one.line.x or 0.0) if axis.even else one.line.x for one in members]
        known = [
            (place, one.line)
            for place, one in zip(places, members, strict=True)
            if one.line.published is not None
        ]
        if known:
            axes.errorbar(
                [place for place, _ in known],
                [line.published for _, line in known],
                yerr=[line.published_std or 0.0 for _, line in known],
                label="published",
                **_PUBLISHED,
            )
        for label, numbers, style in _layers(members):
            found = [
                (p, n) for p, n in zip(places, numbers, strict=True) if n and n.mean is not None
            ]
            if not found:
                continue
            several = len(series) > 1
            # Series of one panel tell each other apart by color.
            own = {k: v for k, v in style.items() if not (several and k == "color")}
            axes.errorbar(
                [place for place, _ in found],
                [number.mean for _, number in found],
                yerr=[number.std or 0.0 for _, number in found],
                label=name if several else label,
                **own,
            )
            for place, number in found:
                _annotate(axes, place, number.mean, number)
    if axis.even:
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
    axes.set_xlabel(axis.label, fontsize=8)
    axes.set_ylabel("test accuracy (%)", fontsize=8)


def _annotate(axes: Any, x: Any, y: Any, number: Number) -> None:
    if number.difference is not None:
        axes.annotate(
            f"{number.difference:+.1f}",
            (x, y),
            textcoords="offset points",
            xytext=(4, 4),
            fontsize=6,
        )


def _name(one: Compared) -> str:
    nodes = "" if one.line.nodes is None else f" ({one.line.nodes})"
    return f"{one.line.label}{nodes}{' †' if one.ours.leaks else ''}"


# -- Pictures of graphs, drawn from rows alone -------------------------------------------------------


Draw = Callable[[Any], None]
_PICTURE = 3.4
_PICTURE_LETTERS = 13  # of a title in an inch
_DRAWN_CLASSES = 3


def portraits(experiment: Experiment, compared: Sequence[Compared], protocol: Protocol) -> Figure:
    """A panel per method (and matrix), those with the leak and without it side by side."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - takes a second to import

    make = _PANELS[experiment.look]
    panels = [panel for seen in _seen(compared) for panel in make(seen)]
    columns = 3 if experiment.look == "adjacency" else max(1, len(panels))
    lines = max(1, -(-len(panels) // columns))
    width = _PICTURE * columns
    figure = Figure(figsize=(width, _PICTURE * lines + 0.8), layout="constrained")
    graphs = f"{counted(protocol.graphs, 'graph')}, the first is drawn"
    leaks = any(number.leaks for one in compared for number in one.numbers)
    heading = f"{title(experiment, protocol)} ({graphs}{'; † leaks test labels' * leaks})"
    figure.suptitle(fill(heading, int(width * _PICTURE_LETTERS)), fontsize=9)
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis in axes[len(panels) :]:
        axis.axis("off")
    if not panels:
        states = sorted({number.state for one in compared for number in one.numbers})
        axes[0].text(0.5, 0.5, ", ".join(states), ha="center", va="center")
    for axis, (heading, draw) in zip(axes, panels, strict=False):
        axis.set_title(heading, fontsize=8)
        axis.tick_params(labelsize=7)
        draw(axis)
    return figure


@dataclass(frozen=True)
class _Seen:
    """A row, what it is called, and our numbers in it beside the published ones."""

    name: str
    row: Row
    numbers: dict[str, str]


def _seen(compared: Sequence[Compared]) -> list[_Seen]:
    """Every row once; the original last, as in the paper."""
    found: dict[str, _Seen] = {}
    for one in compared:
        for number in one.numbers:
            for row in number.rows:
                name = f"{row['method']}{' †' if row['leaks_test_labels'] else ''}"
                if one.without_leak is not None and number is one.without_leak:
                    name += ", without leak"
                seen = found.setdefault(row["key"], _Seen(name, row, {}))
                seen.numbers[one.line.value] = _said(one, number)
    return sorted(found.values(), key=lambda seen: seen.row["method"] == WHOLE_GRAPH)


def _said(one: Compared, number: Number) -> str:
    digits = one.line.digits
    ours = f"{number.mean:.{digits}f}"
    if number.difference is None:
        return ours
    return f"{ours} (published {one.line.published:.{digits}f}, {number.difference:+.{digits}f})"


def _ccns(seen: _Seen) -> list[tuple[str, Draw]]:
    values = np.array(seen.row["drawn"]["ccns"], dtype=float)  # None becomes NaN

    def draw(axis: Any) -> None:
        axis.imshow(values, vmin=0, vmax=1, cmap="viridis")
        axis.set_xticks(range(len(values)))
        axis.set_yticks(range(len(values)))
        for (i, j), value in np.ndenumerate(values):
            ink = "black" if value > 0.6 else "white"
            if np.isfinite(value):
                axis.text(j, i, f"{value:.2f}", ha="center", va="center", color=ink, fontsize=6)

    if seen.row["method"] == WHOLE_GRAPH:
        return [("original", draw)]
    return [(f"{seen.name}\ncorrelation {seen.numbers.get(CORRELATION, '-')}", draw)]


def _adjacency(seen: _Seen) -> list[tuple[str, Draw]]:
    drawn = seen.row["drawn"]
    classes = drawn["classes"]
    borders = [i - 0.5 for i in range(1, len(classes)) if classes[i] != classes[i - 1]]

    def panel(what: str, numbers: list[list[float]]) -> tuple[str, Draw]:
        values = np.array(numbers, dtype=float)

        def draw(axis: Any) -> None:
            if what == GRAM:
                high = float(np.abs(values).max()) or 1.0
                axis.imshow(values, cmap="RdBu_r", vmin=-high, vmax=high, interpolation="nearest")
            else:
                # The diagonal of A' may outshine the rest: it is beyond the scale.
                others = values[~np.eye(len(values), dtype=bool)]
                high = float((others if what == ADJACENCY else values).max(initial=0)) or 1.0
                axis.imshow(values, cmap="viridis", vmin=0, vmax=high, interpolation="nearest")
            for border in borders:
                axis.axhline(border, color="white", linewidth=0.5)
                axis.axvline(border, color="white", linewidth=0.5)

        return f"{seen.name}\n{what}, {seen.numbers.get(what, '-')} % within classes", draw

    return [panel(what, numbers) for what, numbers in drawn["matrices"].items()]


def _tsne(seen: _Seen) -> list[tuple[str, Draw]]:
    drawn = seen.row["drawn"]

    def draw(axis: Any) -> None:
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

    return [(f"{seen.name}\nSC = {seen.numbers.get(SILHOUETTE, '-')}", draw)]


_PANELS: dict[str, Callable[[_Seen], list[tuple[str, Draw]]]] = {
    "ccns": _ccns,
    "adjacency": _adjacency,
    "tsne": _tsne,
}


def rows_file(folder: Path, protocol: Protocol) -> Path:
    """Where finished cells of all experiments are kept; a smoke run has a file of its own."""
    return folder / f"rows{_mark(protocol)}.jsonl"


def graphs_folder(folder: Path, protocol: Protocol) -> Path:
    """Where condensed graphs are kept if that is asked for."""
    return folder / f"graphs{_mark(protocol)}"


def prepare_folder(folder: Path) -> None:
    """Make the folder now rather than find out after hours that it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"out: {folder} cannot be made a folder ({error.strerror}).") from None


def write_outputs(
    folder: Path, experiment: Experiment, compared: Sequence[Compared], protocol: Protocol
) -> list[Path]:
    """Markdown, CSV and, where there is something to draw, a figure as PNG and SVG.

    No other process may write them meanwhile (:meth:`Store.outputs`).
    """
    stem = f"{experiment.name}{_mark(protocol)}"
    files = {
        f"{stem}.md": markdown(experiment, compared, protocol).encode(),
        f"{stem}.csv": csv_text(experiment, compared, protocol).encode(),
    }
    if experiment.drawn:
        drawing = portraits if experiment.look else draw
        try:
            figure = drawing(experiment, compared, protocol)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(
                f"{rows_file(folder, protocol)}: a row of {experiment.name} cannot be drawn"
                f" ({reason(error)})."
            ) from None
        files |= {f"{stem}.{kind}": image(figure, kind) for kind in FORMATS}
    for name, blob in files.items():
        for unfinished in folder.glob(f".{name}.*"):  # of a process that was killed
            unfinished.unlink(missing_ok=True)
        write_atomically(folder / name, blob)
    return [folder / name for name in files]


def _mark(protocol: Protocol) -> str:
    return "-quick" if protocol.quick else ""
