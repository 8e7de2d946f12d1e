"""Small charts in HTML and SVG: they stretch with the page, their text does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from markupsafe import Markup

from gcsr.reporting.page import html
from gcsr.reporting.results import Score
from gcsr.reporting.text import NOTHING, ticks

Points = Sequence[tuple[float, float]]
SMOOTHED_FROM, WINDOW = 30, 9
# Styles of lines and marks.
KINDS = ("first", "second", "third", "fourth", "fifth")


def strips(scores: Sequence[Score]) -> Markup:
    """Accuracies in percent on one axis: every run a dot, their mean and its 95 % interval a mark."""
    low, high = _range([one for score in scores for one in score.evaluation.scores])

    def across(value: float) -> str:
        return f"{100 * (value - low) / (high - low):.2f}"

    return html.strips(scores, low, high, ticks(low, high), across)


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = max(1.0, 0.08 * (high - low))
    return max(0.0, np.floor(low - margin).item()), min(100.0, np.ceil(high + margin).item())


@dataclass(frozen=True)
class Series:
    """A line of a chart, or dots that are not ``joined``; ``kind`` is its style."""

    name: str
    points: Points
    kind: str = "first"
    marked: bool = False
    joined: bool = True
    highlighted: float | None = None


def scatter(dots: Sequence[Series], names: dict[str, str], *, x: str, y: str) -> Markup:
    """Dots with names, each a series of one point; equal numbers are on the diagonal."""
    low, high = _range([value for dot in dots for value in dot.points[0]])
    equal = Series("equal", [(low, low), (high, high)], "published")
    kinds = {dot.kind for dot in dots}
    # The last name of a style is that of the legend.
    legend = [Series(name, (), kind) for kind, name in names.items() if kind in kinds]
    described = f"{y}: the table has the numbers"
    return line_chart([equal, *dots, *legend], x=x, y=y, described=described, square=True)


def line_chart(
    lines: Sequence[Series],
    *,
    x: str,
    y: str,
    described: str,
    names: Sequence[str] = (),
    square: bool = False,
) -> Markup:
    """Curves on one pair of axes; ``names`` replaces the numbers below whole places."""
    points = [point for line in lines for point in line.points]
    left, right = min(p[0] for p in points), max(p[0] for p in points)
    low, high = min(p[1] for p in points), max(p[1] for p in points)
    margin = 0.06 * (high - low) or abs(high) * 0.05 or 1.0
    low, high = low - margin, high + margin
    span = right - left or 1.0
    if names:
        left, span = left - 0.3, span + 0.6
    rules = ticks(low, high, 4)
    below = [(t, f"{t:,g}") for t in ticks(left, left + span, 4)]
    return html.line_chart(
        lines=lines,
        square=square,
        x=x,
        y=y,
        described=described,
        rules=rules,
        # As many digits as tell two neighboring ticks apart.
        digits=max(0, -int(np.floor(np.log10(rules[1] - rules[0])))) if len(rules) > 1 else 2,
        below=list(enumerate(names)) if names else below,
        legend={line.kind: line.name for line in lines if line.name},
        across=lambda value: f"{100 * (value - left) / span:.2f}",
        down=lambda value: f"{100 * (high - value) / (high - low):.2f}",
    )


def smoothed(points: Points) -> Points:
    """Running medians of a noisy curve; the window is shorter at the ends."""
    half = WINDOW // 2
    return [
        (place, median(value for _, value in points[max(0, i - half) : i + half + 1]))
        for i, (place, _) in enumerate(points)
    ]


def heat_table(values: np.ndarray, caption: str) -> Markup:
    """A similarity matrix as a table whose cells are as dark as they are high."""

    def cell(value: float) -> tuple[str, int | None]:
        if not np.isfinite(value):
            return NOTHING, None
        # ".87" leaves room for forty per line.
        shown = "1.0" if value >= 0.995 else f"{value:.2f}".removeprefix("0")
        return shown, round(100 * min(max(value, 0.0), 1.0))

    return html.heat_table([[cell(v) for v in row] for row in values.tolist()], caption)
