"""Pictures of graphs, drawn from rows alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from gcsr.paper.cells import WHOLE_GRAPH, Experiment, Protocol
from gcsr.paper.compare import Compared, Number
from gcsr.paper.looks import ADJACENCY, CORRELATION, GRAM, SILHOUETTE
from gcsr.paper.render import title
from gcsr.paper.rows import Row
from gcsr.wording import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[[Any], None]
_PANEL = 3.4
_LETTERS = 13  # of a title in an inch
_DRAWN_CLASSES = 3


def portraits(experiment: Experiment, compared: Sequence[Compared], protocol: Protocol) -> Figure:
    """A panel per method (and matrix), those with the leak and without it side by side."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - takes a second to import

    make = _PANELS[experiment.look]
    panels = [panel for seen in _seen(compared) for panel in make(seen)]
    columns = 3 if experiment.look == "adjacency" else max(1, len(panels))
    lines = max(1, -(-len(panels) // columns))
    width = _PANEL * columns
    figure = Figure(figsize=(width, _PANEL * lines + 0.8), layout="constrained")
    graphs = f"{counted(protocol.graphs, 'graph')}, the first is drawn"
    leaks = any(number.leaks for one in compared for number in one.numbers)
    heading = f"{title(experiment, protocol)} ({graphs}{'; † leaks test labels' * leaks})"
    figure.suptitle(fill(heading, int(width * _LETTERS)), fontsize=9)
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
