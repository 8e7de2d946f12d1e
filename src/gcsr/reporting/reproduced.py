"""The page of a folder that ``gcsr reproduce`` wrote: its tables beside the published numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from markupsafe import Markup

from gcsr.benchmarking.cells import Protocol
from gcsr.benchmarking.measurement import Outcome, recalled
from gcsr.benchmarking.store import Row, Store
from gcsr.paper.experiments import EXPERIMENTS, Axis, Experiment
from gcsr.paper.figures import rows_file
from gcsr.paper.tables import NUMERIC, SPREAD, Compared, compare, reasons, size, text_table
from gcsr.reporting.page import KINDS, Banner, Page, Panel, Series, Tile, html, line_chart, scatter
from gcsr.utils.errors import require
from gcsr.utils.formatting import counted

# The difference in points that fills half of a cell.
FULL_BAR = 10.0
# A chart with fewer dots is left out.
FEWEST_DOTS = 4


@dataclass(frozen=True)
class ReproducedTable:
    """One experiment of the folder under one protocol, with the lines of datasets that were begun."""

    experiment: Experiment
    protocol: Protocol
    compared: list[Compared]
    untouched: Mapping[str, int]
    keys: frozenset[str]

    @property
    def done(self) -> int:
        """Lines that have our number."""
        return sum(one.ours.state == "done" for one in self.compared)

    @property
    def name(self) -> str:
        """The name of the experiment, marked if it is a smoke run."""
        return f"{self.experiment.name}{' (quick)' if self.protocol.quick else ''}"


def reproduced_page(folder: Path) -> Page:
    """The tables that the rows of a folder belong to."""
    rows: dict[str, Row] = {}
    found = []
    for quick in (False, True):
        path = rows_file(folder, Protocol(quick=quick))
        if path.is_file():
            store = Store(path)
            rows |= {row["key"]: row for row in store}
            found += list(_tables(store))
    require(
        bool(found),
        f"{folder}: its {counted(len(rows), 'row')} belong to no table of this version.",
    )
    shown = frozenset().union(*(one.keys for one in found))
    gaps = [
        line.ours.difference
        for one in found
        if not one.protocol.quick
        for line in one.compared
        if line.ours.difference is not None and line.line.published_std is not None
    ]
    panels = [_panel(one) for one in found]
    progress = [
        (one.name, panel.anchor, one.done, len(one.experiment.lines))
        for one, panel in zip(found, panels, strict=True)
    ]
    return Page(
        title=f"Reproduced tables: {folder.resolve().name}",
        lead="Ours beside the published numbers. † leaks test labels, as the paper's own prior does.",
        banners=list(_banners(found, len(rows.keys() - shown))),
        tiles=list(_tiles(found, gaps)),
        panels=[Panel("Progress", html.progress(progress)), *panels],
    )


def _tables(store: Store) -> Iterator[ReproducedTable]:
    """Tables with at least one finished number, once per protocol."""
    measured = {
        (row["method"], row["dataset"], row.get("nodes"))
        for row in store
        if isinstance(row.get("method"), str) and isinstance(row.get("dataset"), str)
    }
    for experiment in EXPERIMENTS.values():
        # A key takes a moment to compute; most cells of a large table are not in the file.
        possible = {
            cell for cell in experiment.cells if (cell.method, cell.dataset, cell.nodes) in measured
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
                untouched = Counter(o.line.dataset for o in lines if o.line.dataset not in begun)
                keys = frozenset(found.row["key"] for found in outcomes.values() if found.row)
                yield ReproducedTable(experiment, protocol, kept, untouched, keys)


def _protocols(store: Store) -> list[Protocol]:
    """Numbers of graphs and runs with which the cells of a file were measured."""
    quick = store.path == rows_file(store.path.parent, Protocol(quick=True))
    condensed: set[tuple[int, int]] = set()
    whole: set[int] = set()
    for row in store:
        graphs, runs = row.get("graphs"), row.get("runs")
        if isinstance(graphs, int) and isinstance(runs, int) and min(graphs, runs) >= 1:
            if "nodes" in row:
                condensed.add((graphs, runs))
            else:
                whole.add(runs)
    # Cells of the whole graph have no number of condensed graphs, statistics no runs either.
    usual = Protocol()
    alone = {(usual.graphs, runs) for runs in whole - {runs for _, runs in condensed}}
    found = condensed | alone or {(usual.graphs, usual.runs)}
    return [Protocol(graphs, runs, quick) for graphs, runs in sorted(found, reverse=True)]


def _banners(found: Sequence[ReproducedTable], unknown: int) -> Iterator[Banner]:
    quick = [one.name for one in found if one.protocol.quick]
    if quick:
        runs = f"{', '.join(quick)}: one graph, few iterations and epochs."
        yield "warn", "Quick smoke runs.", f"{runs} These numbers are no results."
    if any(number.leaks for one in found for c in one.compared for number in c.numbers):
        marked = "Rows marked † use the paper's prior, which counts every label"
        beside = "beside them stands the same without the leak."
        yield "bad", "Some rows leak test labels.", f"{marked}; {beside}"
    if unknown:
        rows = f"{counted(unknown, 'row')} of other settings or versions"
        yield ("note", "Not shown.", f"{rows} belong to no table of this version.")


def _tiles(found: Sequence[ReproducedTable], gaps: Sequence[float]) -> Iterator[Tile]:
    done = sum(one.done for one in found)
    total = sum(len(one.experiment.lines) for one in found)
    yield ("Lines done", f"{done:,}", f"of {total:,} in {counted(len(found), 'table')}")
    if gaps:
        yield ("Mean difference", f"{fmean(gaps):+.2f}", "points, ours minus published")
        distance = f"{fmean(map(abs, gaps)):.2f}"
        yield ("Mean distance", distance, f"points, {counted(len(gaps), 'number')}")


def _panel(one: ReproducedTable) -> Panel:
    done = [line for line in one.compared if not _undone(line)]
    undone = [line for line in one.compared if _undone(line)]
    tables = [_table(one, done)]
    if undone:
        summary = f"{counted(len(undone), 'line')} without a number"
        tables.append(html.details(summary, _table(one, undone)))
    not_run = [f"{name}: {counted(count, 'line')} not run" for name, count in one.untouched.items()]
    charts = None if one.experiment.axis is None else list(_curves(one, one.experiment.axis))
    body = html.experiment(
        charts=charts,
        chart=_scatter(one),
        tables=tables,
        notes=(SPREAD, *one.experiment.notes),
        missing=[*reasons(one.compared), *not_run],
    )
    graphs, runs, quick = one.protocol.graphs, one.protocol.runs, one.protocol.quick
    cells = f"; {size(graphs, runs)} per cell" if one.experiment.drawn else ""
    warning = "Quick smoke run, no results. " if quick else ""
    lead = f"{warning}{one.done} of {counted(len(one.experiment.lines), 'line')} done{cells}."
    title = f"{one.name}: {one.experiment.title}"
    return Panel(title, body, lead, short=f"{one.name} {graphs}x{runs}")


def _table(one: ReproducedTable, lines: Sequence[Compared]) -> Markup:
    names, cells = text_table(lines)
    bars = one.experiment.drawn  # in points of accuracy
    about = f"; bars: difference without leak, up to ±{FULL_BAR:g} points" if bars else ""
    rows = []
    for row, line in zip(cells, lines, strict=True):
        gap = (line.without_leak or line.ours).difference
        share = None if gap is None else min(max(50 * gap / FULL_BAR, -50.0), 50.0)
        rows.append((row, share, _undone(line)))
    numeric = [place for place, name in enumerate(names) if name in NUMERIC]
    caption = f"{one.experiment.title}{about}"
    return html.compared_table(f"Table {one.name}", caption, names, rows, numeric, bars)


def _undone(line: Compared) -> bool:
    return all(number.state != "done" for number in line.numbers)


def _scatter(one: ReproducedTable) -> Markup | None:
    if not one.experiment.drawn:
        return None
    dots = []
    for line in one.compared:
        where, published = line.line, line.line.published
        nodes = "" if where.nodes is None else f" {where.nodes}"
        for kind, number in zip(KINDS, line.numbers, strict=False):
            if number.mean is not None and published is not None:
                name = f"{where.dataset}{nodes}, {where.label}"
                dots.append(Series(name, [(published, number.mean)], kind, marked=True))
    if len(dots) < FEWEST_DOTS:
        return None
    names = {"first": "ours", "second": "ours, without leak"}
    return scatter(dots, names, x="published, %", y="Ours over published accuracy, %")


def _curves(one: ReproducedTable, axis: Axis) -> Iterator[Markup]:
    for dataset in dict.fromkeys(each.line.dataset for each in one.compared):
        lines = [each for each in one.compared if each.line.dataset == dataset]
        values = sorted({each.line.x or 0.0 for each in lines})
        drawn = [series for series in _series(lines, values, axis.even) if series.points]
        if drawn:
            yield line_chart(
                drawn,
                x=axis.label,
                y=f"{dataset}, accuracy %",
                described=f"{one.experiment.title} on {dataset}; the table has the numbers",
                names=[f"{value:g}" for value in values] if axis.even else [],
            )


def _series(lines: Sequence[Compared], values: Sequence[float], even: bool) -> Iterator[Series]:
    def points(found: Iterable[tuple[Compared, float | None]]) -> list[tuple[float, float]]:
        places = [(each.line.x or 0.0, mean) for each, mean in found if mean is not None]
        return sorted((float(values.index(x)) if even else x, mean) for x, mean in places)

    groups = dict.fromkeys(each.line.series for each in lines)
    if len(groups) == 1:
        published = points((each, each.line.published) for each in lines)
        yield Series("published", published, "published", marked=True)
        fair = points((each, each.without_leak.mean) for each in lines if each.without_leak)
        yield Series("without leak", fair, "second", marked=True)
    for place, name in enumerate(groups):
        ours = points((each, each.ours.mean) for each in lines if each.line.series == name)
        label = name if len(groups) > 1 else "ours"
        yield Series(label, ours, KINDS[place % len(KINDS)], marked=True)
