"""The page of a reproduced folder: its tables, how far they are, and what differs from the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from gcsr.paper.cells import Experiment, Protocol
from gcsr.paper.experiments import EXPERIMENTS
from gcsr.paper.figures import rows_file
from gcsr.paper.store import Row, Store
from gcsr.paper.tables import NUMERIC, Compared, Number, compare, reasons, size, text_table
from gcsr.paper.work import Outcome, recalled
from gcsr.reporting.charts import Dot, Series, line_chart, scatter
from gcsr.reporting.html import Html, joined, tag
from gcsr.reporting.page import Banner, Page, Panel, Tile
from gcsr.utils.errors import require
from gcsr.utils.formatting import counted

# A difference that fills half of its cell, in points.
FULL_BAR = 10.0
# Fewer are read from the table.
FEWEST_DOTS = 4


@dataclass(frozen=True)
class Progressed:
    """One experiment of the folder under one protocol, and how many of its lines are done."""

    experiment: Experiment
    protocol: Protocol
    compared: list[Compared]
    untouched: dict[str, int]
    keys: frozenset[str]

    @property
    def done(self) -> int:
        """Lines that have our number."""
        return sum(one.ours.state == "done" for one in self.compared)

    @property
    def total(self) -> int:
        """Lines in all, those of datasets that were not begun included."""
        return len(self.experiment.lines)

    @property
    def name(self) -> str:
        """What it is called; a smoke run says so."""
        return f"{self.experiment.name}{' (quick)' if self.protocol.quick else ''}"


def reproduced_page(folder: Path) -> Page:
    """Everything that the rows of a folder say."""
    rows: dict[str, Row] = {}
    found = []
    for path in _files(folder):
        store = Store(path)
        rows |= {row["key"]: row for row in store}
        found += list(_progressed(store))
    require(
        bool(found),
        f"{folder}: its {counted(len(rows), 'row')} belong to no table of this version.",
    )
    shown = frozenset().union(*(one.keys for one in found))
    gaps = [g for one in found if not one.protocol.quick for g in _gaps(one.compared)]
    return Page(
        title=f"Reproduced tables: {folder.resolve().name}",
        lead="Ours beside the published numbers. † leaks test labels, as the paper's own prior does.",
        banners=list(_banners(found, len(rows.keys() - shown))),
        tiles=list(_tiles(found, gaps)),
        panels=[_overview(found), *map(_panel, found)],
    )


def _files(folder: Path) -> Iterator[Path]:
    for quick in (False, True):
        path = rows_file(folder, Protocol(quick=quick))
        if path.is_file():
            yield path


def _progressed(store: Store) -> Iterator[Progressed]:
    measured = {
        _kind(row["method"], row["dataset"], row.get("nodes")) for row in store if _told(row)
    }
    for experiment in EXPERIMENTS.values():
        # A key takes a moment to compute; most cells of a large table are plainly not there.
        possible = {
            cell
            for cell in experiment.cells
            if _kind(cell.method, cell.dataset, cell.nodes) in measured
        }
        for protocol in _protocols(store) if possible else ():
            outcomes = {
                cell: recalled(cell, store, protocol) if cell in possible else Outcome("not run")
                for cell in experiment.cells
            }
            lines = compare(experiment, outcomes)
            begun = {o.line.dataset for o in lines if any(n.state == "done" for n in o.numbers)}
            if begun:
                kept = [one for one in lines if one.line.dataset in begun]
                others = [one.line.dataset for one in lines if one.line.dataset not in begun]
                untouched = {name: others.count(name) for name in dict.fromkeys(others)}
                keys = frozenset(found.row["key"] for found in outcomes.values() if found.row)
                yield Progressed(experiment, protocol, kept, untouched, keys)


def _protocols(store: Store) -> list[Protocol]:
    """How often the cells of this file were repeated."""
    quick = store.path == rows_file(store.path.parent, Protocol(quick=True))
    condensed: dict[tuple[int, int], None] = {}
    whole: dict[int, None] = {}
    for row in store:
        graphs, runs = row.get("graphs"), row.get("runs")
        if isinstance(graphs, int) and isinstance(runs, int) and min(graphs, runs) >= 1:
            if "nodes" in row:
                condensed[graphs, runs] = None
            else:
                whole[runs] = None
    # Cells of the whole graph have no number of condensed graphs, statistics no runs either.
    seen = {runs for _, runs in condensed}
    lone = [(Protocol().graphs, runs) for runs in whole if runs not in seen]
    told = [*condensed, *lone] or [(Protocol().graphs, Protocol().runs)]
    return [Protocol(graphs, runs, quick) for graphs, runs in sorted(told, reverse=True)]


def _kind(method: str, dataset: str, nodes: int | None) -> tuple[str, str, int | None]:
    return method, dataset, nodes


def _told(row: Row) -> bool:
    return isinstance(row.get("method"), str) and isinstance(row.get("dataset"), str)


def _gaps(compared: Sequence[Compared]) -> list[float]:
    return [
        one.ours.difference
        for one in compared
        if one.ours.difference is not None and one.line.published_std is not None
    ]


def _banners(found: Sequence[Progressed], unknown: int) -> Iterator[Banner]:
    quick = [one.name for one in found if one.protocol.quick]
    if quick:
        yield Banner(
            "warn",
            "Quick smoke runs.",
            f"{', '.join(quick)}: one graph, few iterations and epochs. These numbers are no results.",
        )
    if any(number.leaks for one in found for c in one.compared for number in c.numbers):
        yield Banner(
            "bad",
            "Some rows leak test labels.",
            "Rows marked † use the paper's prior, which counts every label; beside them stands the"
            " same without the leak.",
        )
    if unknown:
        rows = f"{counted(unknown, 'row')} of other settings or versions"
        yield Banner("note", "Not shown.", f"{rows} belong to no table of this version.")


def _tiles(found: Sequence[Progressed], gaps: Sequence[float]) -> Iterator[Tile]:
    done, total = sum(one.done for one in found), sum(one.total for one in found)
    yield Tile("Lines done", f"{done:,}", f"of {total:,} in {counted(len(found), 'table')}")
    if gaps:
        yield Tile("Mean difference", f"{fmean(gaps):+.2f}", "points, ours minus published")
        yield Tile(
            "Mean distance",
            f"{fmean(map(abs, gaps)):.2f}",
            f"points, {counted(len(gaps), 'number')}",
        )


def _overview(found: Sequence[Progressed]) -> Panel:
    lines = [
        tag(
            "li",
            tag("a", one.name, href=f"#{_panel(one).anchor}"),
            tag("progress", value=one.done, max=one.total, aria_label=f"{one.name} done"),
            tag("span", f"{one.done} of {one.total}"),
        )
        for one in found
    ]
    return Panel("Progress", tag("ul", *lines, class_="progress"))


def _panel(one: Progressed) -> Panel:
    done = [line for line in one.compared if _state(line) is None]
    undone = [line for line in one.compared if _state(line) is not None]
    parts: list[Html | None] = [_curves(one) or _scatter(one), _table(one, done)]
    if undone:
        summary = tag("summary", f"{counted(len(undone), 'line')} without a number")
        parts.append(tag("details", summary, _table(one, undone)))
    parts += [tag("p", note, class_="remark") for note in one.experiment.notes]
    missing = [tag("li", sentence) for sentence in reasons(one.compared)]
    missing += [
        tag("li", f"{dataset}: {counted(count, 'line')} not run")
        for dataset, count in one.untouched.items()
    ]
    parts.append(tag("ul", *missing, class_="remark") if missing else None)
    counts = size(one.protocol.graphs, one.protocol.runs)
    quick = "Quick smoke run, no results. " if one.protocol.quick else ""
    title = f"{one.name}: {one.experiment.title}"
    cells = f"; {counts} per cell" if one.experiment.drawn else ""
    lead = f"{quick}{one.done} of {counted(one.total, 'line')} done{cells}."
    return Panel(
        title, joined(*parts), lead, short=f"{one.name} {one.protocol.graphs}x{one.protocol.runs}"
    )


def _table(one: Progressed, lines: Sequence[Compared]) -> Html:
    headings, rows = text_table(lines)
    # Bars are in points of accuracy.
    bars = one.experiment.drawn
    sides = ["n" if name in NUMERIC else None for name in headings]
    head = [tag("th", h, scope="col", class_=s) for h, s in zip(headings, sides, strict=True)]
    body = []
    for row, line in zip(rows, lines, strict=True):
        cells = [tag("td", cell, class_=s) for cell, s in zip(row, sides, strict=True)]
        fair = line.without_leak if line.without_leak is not None else line.ours
        bar = tag("td", _bar(fair), class_="gap") if bars else None
        body.append(tag("tr", *cells, bar, class_=_state(line)))
    last = tag("th", "to the published", scope="col") if bars else None
    said = f"; bars: difference without leak, up to ±{FULL_BAR:g} points" if bars else ""
    table = tag(
        "table",
        tag("caption", f"{one.experiment.title}{said}"),
        tag("thead", tag("tr", *head, last)),
        tag("tbody", *body),
    )
    label = f"Table {one.name}"
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=label)


def _state(line: Compared) -> str | None:
    return None if any(number.state == "done" for number in line.numbers) else "undone"


def _bar(number: Number) -> Html | None:
    if number.difference is None:
        return None
    share = min(50.0, 50 * abs(number.difference) / FULL_BAR)
    left = 50.0 if number.difference >= 0 else 50 - share
    kind = "up" if number.difference >= 0 else "down"
    return tag("i", class_=kind, style=f"left:{left:.1f}%;width:{max(share, 0.8):.1f}%")


def _scatter(one: Progressed) -> Html | None:
    if not one.experiment.drawn:
        return None
    dots = [
        Dot(line.line.published, number.mean, _named(line), kind)
        for line in one.compared
        for kind, number in zip(("first", "second"), line.numbers, strict=False)
        if number.mean is not None and line.line.published is not None
    ]
    return (
        scatter(dots, {"first": "ours", "second": "ours, without leak"})
        if len(dots) >= FEWEST_DOTS
        else None
    )


def _named(line: Compared) -> str:
    nodes = "" if line.line.nodes is None else f" {line.line.nodes}"
    return f"{line.line.dataset}{nodes}, {line.line.label}"


def _curves(one: Progressed) -> Html | None:
    axis = one.experiment.axis
    if axis is None:
        return None
    charts = []
    for dataset in dict.fromkeys(each.line.dataset for each in one.compared):
        lines = [each for each in one.compared if each.line.dataset == dataset]
        values = sorted({each.line.x or 0.0 for each in lines})
        drawn = list(_series(lines, values, axis.even))
        if any(series.points for series in drawn):
            names = [f"{value:g}" for value in values] if axis.even else []
            kept = [series for series in drawn if series.points]
            described = f"{one.experiment.title} on {dataset}; the table has the numbers"
            charts.append(
                line_chart(
                    kept, x=axis.label, y=f"{dataset}, accuracy %", described=described, names=names
                )
            )
    return tag("div", *charts, class_="charts")


def _series(lines: Sequence[Compared], values: Sequence[float], even: bool) -> Iterator[Series]:
    groups = dict.fromkeys(each.line.series for each in lines)
    kinds = ("first", "second", "third", "fourth", "fifth")

    def points(members: Sequence[Compared], which: str) -> list[tuple[float, float]]:
        found = []
        for each in members:
            number = each.ours if which == "ours" else each.without_leak
            mean = None if number is None else number.mean
            if which == "published":
                mean = each.line.published
            x = each.line.x or 0.0
            if mean is not None:
                found.append((float(values.index(x)) if even else x, mean))
        return sorted(found)

    for place, name in enumerate(groups):
        members = [each for each in lines if each.line.series == name]
        several = len(groups) > 1
        if not several:
            yield Series("published", points(members, "published"), "published", marked=True)
            yield Series("without leak", points(members, "fair"), "second", marked=True)
        label = name if several else "ours"
        yield Series(label, points(members, "ours"), kinds[place % len(kinds)], marked=True)
