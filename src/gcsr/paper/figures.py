"""Figures of the tables: curves over a setting, or points beside the published ones."""

from __future__ import annotations

import io
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from gcsr.paper.cells import Axis, Experiment, Protocol
from gcsr.paper.compare import Compared, Number
from gcsr.paper.render import size, title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
            # Series of one panel tell each other apart by colour.
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
