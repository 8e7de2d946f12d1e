"""Small charts in HTML and SVG: they stretch with the page, their text does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from gcsr.reporting.html import Html, joined, tag
from gcsr.reporting.text import NOTHING, ticks
from gcsr.utils.formatting import deviation

Points = Sequence[tuple[float, float]]
SMOOTHED_FROM, WINDOW = 30, 9


# -- accuracies --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Strip:
    """One line of a strip chart: every run a dot, their mean and deviation a mark."""

    label: str
    detail: str
    scores: Sequence[float]
    mean: float
    std: float
    kind: str
    flag: str = ""


def strips(lines: Sequence[Strip]) -> Html:
    """Accuracies in percent on one axis."""
    low, high = _range([score for line in lines for score in line.scores])

    def at(value: float) -> str:
        return f"left:{100 * (value - low) / (high - low):.2f}%"

    rows = []
    for line in lines:
        left = max(low, line.mean - line.std)
        width = 100 * (min(high, line.mean + line.std) - left) / (high - low)
        track = tag(
            "div",
            tag("span", class_="band", style=f"{at(left)};width:{width:.2f}%"),
            *(tag("span", class_="dot", style=at(score)) for score in line.scores),
            tag("span", class_="mean", style=at(line.mean)),
            class_="track",
            aria_hidden="true",
        )
        flag = tag("span", line.flag, class_="flag") if line.flag else None
        label = tag(
            "div",
            tag("strong", line.label),
            flag,
            tag("span", line.detail, class_="detail"),
            class_="label",
        )
        value = tag(
            "div",
            tag("b", f"{line.mean:.1f}"),
            tag("span", f" {deviation(line.std, len(line.scores))} %".replace("  ", " ")),
            class_="value",
        )
        rows.append(tag("div", label, track, value, class_=f"strip {line.kind}"))
    axis = tag(
        "div",
        *(tag("span", f"{tick:g}", style=at(tick)) for tick in ticks(low, high)),
        class_="axis",
        aria_hidden="true",
    )
    return tag(
        "div", *rows, tag("div", tag("div"), axis, tag("div"), class_="strip"), class_="strips"
    )


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = max(1.0, 0.08 * (high - low))
    return max(0.0, np.floor(low - margin).item()), min(100.0, np.ceil(high + margin).item())


# -- curves ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Series:
    """A line of a chart; ``kind`` is its style."""

    name: str
    points: Points
    kind: str = "first"
    marked: bool = False
    highlighted: float | None = None


@dataclass(frozen=True)
class Dot:
    """A published number and ours."""

    published: float
    ours: float
    name: str
    kind: str


def scatter(dots: Sequence[Dot], names: dict[str, str]) -> Html:
    """Ours over the published: on the diagonal they are equal."""
    low, high = _range([value for dot in dots for value in (dot.published, dot.ours)])
    equal = Series("equal", [(low, low), (high, high)], "published")
    kept = [(kind, name) for kind, name in names.items() if any(d.kind == kind for d in dots)]
    return line_chart(
        [equal, *(Series(name, (), kind) for kind, name in kept)],
        x="published, %",
        y="Ours over published accuracy, %",
        described="Ours over published accuracies; the table has the numbers",
        dots=dots,
    )


def line_chart(
    lines: Sequence[Series],
    *,
    x: str,
    y: str,
    described: str,
    names: Sequence[str] = (),
    dots: Sequence[Dot] = (),
) -> Html:
    """Curves on one pair of axes; ``names`` replaces the numbers below whole places."""
    points = [point for line in lines for point in line.points]
    left, right = min(p[0] for p in points), max(p[0] for p in points)
    low, high = min(p[1] for p in points), max(p[1] for p in points)
    margin = 0.06 * (high - low) or abs(high) * 0.05 or 1.0
    low, high = low - margin, high + margin
    span = right - left or 1.0
    if names:
        left, span = left - 0.3, span + 0.6

    def across(value: float) -> float:
        return 100 * (value - left) / span

    def down(value: float) -> float:
        return 100 * (high - value) / (high - low)

    drawn, marks = [], []
    for line in lines:
        path = " ".join(f"{across(a):.2f},{down(b):.2f}" for a, b in line.points)
        if path:
            drawn.append(tag("polyline", points=path, class_=f"line {line.kind}"))
        shown = line.points if line.marked else ()
        marks += [
            tag(
                "span",
                class_=f"mark {line.kind}{' best' if a == line.highlighted else ''}",
                style=f"left:{across(a):.2f}%;top:{down(b):.2f}%",
                title=f"{line.name}: {b:.4g} at {a:g}",
            )
            for a, b in shown
        ]
    marks += [
        tag(
            "span",
            class_=f"mark {dot.kind}",
            style=f"left:{across(dot.published):.2f}%;top:{down(dot.ours):.2f}%",
            title=f"{dot.name}: {dot.ours:.1f}, published {dot.published:.1f}",
        )
        for dot in dots
    ]
    rules = ticks(low, high, 4)
    drawn = [
        *(
            tag("line", x1=0, x2=100, y1=f"{down(r):.2f}", y2=f"{down(r):.2f}", class_="rule")
            for r in rules
        ),
        *drawn,
    ]
    # As many digits as tell two neighboring ticks apart.
    digits = max(0, -int(np.floor(np.log10(rules[1] - rules[0])))) if len(rules) > 1 else 2
    below = (
        list(enumerate(names)) if names else [(t, f"{t:,g}") for t in ticks(left, left + span, 4)]
    )
    return tag(
        "figure",
        tag("figcaption", y, class_="y-name"),
        tag(
            "div",
            tag(
                "svg", *drawn, viewBox="0 0 100 100", preserveAspectRatio="none", aria_hidden="true"
            ),
            *marks,
            *(
                tag("span", f"{r:,.{digits}f}", class_="y-tick", style=f"top:{down(r):.2f}%")
                for r in rules
            ),
            *(
                tag("span", said, class_="x-tick", style=f"left:{across(place):.2f}%")
                for place, said in below
            ),
            class_="plot square" if dots else "plot",
            role="img",
            aria_label=described,
        ),
        tag("p", x, class_="x-name"),
        _legend(lines),
        class_="chart",
    )


def _legend(lines: Sequence[Series]) -> Html | None:
    named = {line.kind: line.name for line in lines if line.name}
    if len(named) < 2:
        return None
    keys = (tag("li", tag("i", class_=kind), name) for kind, name in named.items())
    return tag("ul", *keys, class_="keys")


def smoothed(points: Points) -> Points:
    """Running medians of a noisy curve."""
    half = WINDOW // 2
    values = [value for _, value in points]
    return [
        (place, median(values[max(0, i - half) : i + half + 1]))
        for i, (place, _) in enumerate(points)
    ]


# -- tables ------------------------------------------------------------------------------------------


def data_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numeric: Sequence[int] = (),
    caption: str = "",
) -> Html:
    """A table that scrolls inside itself where the page is narrow."""
    sides = ["n" if i in numeric else None for i in range(len(headings))]
    head = tag(
        "tr",
        *(tag("th", h, scope="col", class_=s) for h, s in zip(headings, sides, strict=True)),
    )
    body = []
    for first, *rest in rows:
        cells = (tag("td", cell, class_=s) for cell, s in zip(rest, sides[1:], strict=True))
        body.append(tag("tr", tag("th", first, scope="row"), *cells))
    title = tag("caption", caption) if caption else None
    table = tag("table", title, tag("thead", head), tag("tbody", *body))
    return tag(
        "div", table, class_="scroll", tabindex=0, role="region", aria_label=caption or "table"
    )


def heat_table(values: np.ndarray, caption: str) -> Html:
    """A similarity matrix as a table whose cells are as dark as they are high."""
    count = values.shape[0]
    head = tag("tr", tag("td"), *(tag("th", c, scope="col") for c in range(count)))
    body = [
        tag("tr", tag("th", row, scope="row"), *(_heat_cell(float(v)) for v in values[row]))
        for row in range(count)
    ]
    return tag(
        "div",
        tag(
            "table", tag("caption", caption), tag("thead", head), tag("tbody", *body), class_="heat"
        ),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=caption,
    )


def _heat_cell(value: float) -> Html:
    if not np.isfinite(value):
        return tag("td", NOTHING)
    share = round(100 * min(max(value, 0.0), 1.0))
    # ".87" leaves room for forty per line.
    said = "1.0" if value >= 0.995 else f"{value:.2f}".removeprefix("0")
    return tag("td", said, style=f"--heat:{share}%", class_="high" if share > 52 else None)


def shares(rows: Sequence[tuple[str, float, float]], first: str, second: str) -> Html:
    """Two distributions over classes, bar below bar."""
    most = max(max(a, b) for _, a, b in rows) or 1.0
    lines = []
    for name, a, b in rows:
        bars = (
            tag("span", class_=kind, style=f"width:{100 * value / most:.1f}%")
            for kind, value in (("first", a), ("second", b))
            if first or kind == "second"
        )
        said = tag(
            "span",
            f"{100 * a:.1f} / {100 * b:.1f} %" if first else f"{100 * b:.1f} %",
            class_="value",
        )
        lines.append(tag("li", tag("span", name), tag("div", *bars), said))
    keys = tag(
        "ul",
        tag("li", tag("i", class_="first"), first) if first else None,
        tag("li", tag("i", class_="second"), second),
        class_="keys",
    )
    return joined(keys, tag("ul", *lines, class_="shares"))
