"""The page of a benchmark: tables, curves over sizes, fronts of cost and accuracy, ranks and wins."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from markupsafe import Markup

from gcsr.benchmarking.results import Results, accuracy_of, seconds_of, short_name
from gcsr.benchmarking.store import Row
from gcsr.reporting.page import KINDS, Page, Panel, Points, Series, html, joined, line_chart
from gcsr.utils.formatting import counted

# The style of methods that are not among the best.
OTHERS = "published"
LEAD = (
    "Mean test accuracy in percent with half of its 95 % interval over condensed graphs. *: the best"
    " method, and those that are not distinguishable from it. † leaks test labels and is compared with"
    " nothing."
)


def benchmark_page(results: Results, title: str = "Benchmark") -> Page:
    """A page from rows alone."""
    ranked = [rank.label for rank in results.ranks] or results.compared
    kinds = dict(zip(ranked, KINDS, strict=False))
    panels = []
    for name, sentence, (head, *lines) in results.tables(("*", "")):
        table = html.data_table(head, lines, "", range(1, len(head)))
        panels.append(Panel(name, table, sentence))
    panels.sort(key=lambda panel: panel.title != "Average ranks")
    seconds = partial(_front, cost=seconds_of, axis="seconds of condensing a graph, log10")
    size = partial(_front, cost=lambda row: row.get("bytes"), axis="bytes, log10")
    for name, draw in (
        ("Accuracy against size", _sizes),
        ("Accuracy against seconds of condensing", seconds),
        ("Accuracy against bytes", size),
    ):
        found = [chart for graph in results.datasets if (chart := draw(results, graph, kinds))]
        if found:
            panels.append(Panel(name, html.pair(found, 320)))
    for name, sentences in results.remarks():
        panels.append(Panel(name, joined(*map(html.remark, sentences))))
    done = [row for row in results.rows if accuracy_of(row) is not None]
    machines = sorted({str(row.get("machine")) for row in done})
    leaks = [label for label in results.methods if label not in results.fair]
    marked = f"{', '.join(leaks)}: marked †, not ranked."
    return Page(
        title,
        LEAD,
        banners=[("bad", "Some rows leak test labels.", marked)] if leaks else [],
        tiles=[
            ("Rows", f"{len(done):,}", f"{counted(len(results.rows) - len(done), 'failure')}"),
            ("Methods", str(len(results.methods)), f"{len(results.datasets)} graphs"),
            ("Machines", str(len(machines)), ", ".join(machines)),
        ],
        panels=panels,
    )


def _series(points: dict[str, Points], kinds: dict[str, str]) -> list[Series]:
    """A line per method; those that rank best have a color of their own."""
    order = sorted(points, key=lambda label: label in kinds)
    lines = [Series(label, points[label], kinds.get(label, OTHERS), True) for label in order]
    return [*lines, *([Series("others", (), OTHERS)] if set(points) - set(kinds) else [])]


def _sizes(results: Results, name: str, kinds: dict[str, str]) -> Markup | None:
    points = {}
    for label in results.methods:
        found = [(case[1], accuracy_of(results.row(label, case))) for case in _cases(results, name)]
        points[label] = [(float(nodes), one.mean) for nodes, one in found if one is not None]
    lines = _series({label: one for label, one in points.items() if len(one) > 1}, kinds)
    return _chart(lines, "nodes", name) if lines else None


def _front(
    results: Results,
    name: str,
    kinds: dict[str, str],
    cost: Callable[[Row], float | None],
    axis: str,
) -> Markup | None:
    """All sizes of all methods, and the line of those that nothing cheaper is as accurate as."""
    points: dict[str, list[tuple[float, float]]] = {}
    for label in results.compared:
        for case in _cases(results, name):
            row = results.compared_row(label, case)
            found = accuracy_of(row)
            if row is not None and found is not None and (paid := cost(row)):
                points.setdefault(label, []).append((math.log10(paid), found.mean))
    if not points:
        return None
    front: list[tuple[float, float]] = []
    every = [point for one in points.values() for point in one]
    for x, y in sorted(every, key=lambda point: (point[0], -point[1])):
        if not front or y > front[-1][1]:
            front.append((x, y))
    steps = [corner for (a, b), (c, d) in pairwise(front) for corner in ((a, b), (c, b), (c, d))]
    dots = [replace(line, joined=False) for line in _series(dict(points), kinds)]
    return _chart([Series("", steps or front, OTHERS), *dots], axis, name)


def _cases(results: Results, name: str) -> list[tuple[str, int, str]]:
    return [case for case in results.cases() if case[0] == name]


def _chart(lines: Sequence[Series], x: str, name: str) -> Markup:
    described = f"Accuracy on {name} over {x}; the tables have the numbers"
    return line_chart(lines, x=x, y=f"{short_name(name)}, accuracy %", described=described)
