"""The page as one HTML file with its styles, script and data, and its charts; it loads nothing."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from statistics import median
from typing import Any, Protocol, cast

import numpy as np
from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from gcsr.reporting.results import NOTHING, Score
from gcsr.utils.formatting import printable
from gcsr.version import __version__

STYLES = ("page.css", "charts.css")
SCRIPTS = ("base.js", "marks.js", "plane.js", "graph.js", "map.js", "heat.js", "start.js")


def _asset(name: str) -> str:
    return (files("gcsr.reporting") / "assets" / name).read_text(encoding="utf-8").strip()


def _text(value: object) -> object:
    return value if isinstance(value, Markup) else printable(value)


_ENVIRONMENT = Environment(
    loader=DictLoader({name: _asset(name) for name in ("page.html", "parts.html")}),
    autoescape=True,
    finalize=_text,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.policies["json.dumps_kwargs"] = {
    "sort_keys": True,
    "separators": (",", ":"),
    "allow_nan": False,
}


class _Macros(Protocol):
    def __getattr__(self, name: str) -> Callable[..., Markup]: ...


# The macros of parts.html.
html = cast("_Macros", _ENVIRONMENT.get_template("parts.html").module)


def joined(*parts: str) -> Markup:
    """Parts one after the other; text among them is escaped."""
    return Markup("").join(parts)


@dataclass(frozen=True)
class Panel:
    """A part of the page with a heading.

    ``half`` ones stand side by side where there is room. ``data`` is drawn by the page's script.
    """

    title: str
    body: Markup
    lead: str = ""
    half: bool = False
    short: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def anchor(self) -> str:
        """The id of the section."""
        name = (self.short or self.title).lower()
        return re.sub(r"[^a-z0-9]+", "-", name).strip("-") or "part"


# A warning or note at the top: ``bad``, ``warn`` or ``note``, a heading and a sentence.
Banner = tuple[str, str, str]
# A number with a name: the name, the number and a detail.
Tile = tuple[str, str, str]


@dataclass(frozen=True)
class Page:
    """The content of a page; ``data`` is drawn by its script, with that of the panels."""

    title: str
    lead: str
    banners: Sequence[Banner] = ()
    tiles: Sequence[Tile] = ()
    panels: Sequence[Panel] = ()
    data: dict[str, Any] = field(default_factory=dict)

    def render(self) -> str:
        """One HTML file; equal pages are equal bytes."""
        parts = "\n".join(map(_asset, SCRIPTS))
        script = f'(() => {{\n"use strict";\n{parts}\n}})();'
        digest = hashlib.sha256(script.encode()).digest()
        return _ENVIRONMENT.get_template("page.html").render(
            page=self,
            data=dict(ChainMap(self.data, *(panel.data for panel in self.panels))),
            style=Markup("\n".join(map(_asset, STYLES))),  # noqa: S704 - our own files
            script=Markup(script),  # noqa: S704
            script_hash=base64.b64encode(digest).decode(),
            version=__version__,
        )


# -- small charts in HTML and SVG: they stretch with the page, their text does not --------------------

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
        # As many digits as distinguish two neighboring ticks.
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


def ticks(low: float, high: float, most: int = 5) -> Sequence[float]:
    """Round numbers between ``low`` and ``high``."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    raw = span / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * times for times in (1, 2, 2.5, 5, 10) if unit * times >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]
