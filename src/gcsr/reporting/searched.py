"""The page of an architecture search: its winner, how far its ranking holds, and what it took."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from gcsr.evaluation.cost import RANDOM, SMALL, WHOLE
from gcsr.reporting.page import KINDS, Page, Panel, Series, Tile, html, joined, line_chart, scatter
from gcsr.reporting.results import NOTHING, decimal, pairs, seconds, written
from gcsr.tuning.architecture import Ranking, SearchResult
from gcsr.utils.formatting import byte_count, counted

# Of the settings that are shown.
DIGITS = 3
NAMES = {SMALL: "condensed graph", RANDOM: "random subset", WHOLE: "whole graph"}
LEAK = ("bad", "Leaks test labels.", "Test labels went into the condensed graph.")


def search_page(found: SearchResult) -> Page:
    """Everything about a search."""
    count = len(found.configurations)
    epochs = found.recipe["epochs"]
    return Page(
        title=f"{found.dataset}: architecture search",
        lead=f"{counted(count, 'configuration')} ({found.sampler}, seed {found.seed}),"
        f" {counted(found.runs, 'network')} each, {counted(epochs, 'epoch')}, on {found.machine}."
        f" {found.verdict[0].upper()}{found.verdict[1:]}.",
        banners=[LEAK] if found.leaks_test_labels else [],
        tiles=list(_tiles(found)),
        panels=[_clock(found), *_agreement(found), _course(found), _configurations(found)],
    )


def _tiles(found: SearchResult) -> Iterator[Tile]:
    small = found.small
    detail = f"configuration {small.winner}, trained on the whole graph"
    yield "Winner, validation", f"{small.finalists[small.winner]:.1f} %", detail
    if small.test is not None:
        yield "Winner, test", f"{small.test:.1f} %", "read once, for the winner"
    yield "Search", seconds(small.total_seconds), "with condensing and the finalists"
    if small.tau is not None and small.tau_interval is not None:
        low, high = small.tau_interval
        yield "Kendall's tau", f"{small.tau:.2f}", f"95 % interval {low:.2f} to {high:.2f}"
        yield "Regret", f"{small.regret:.2f}", "points of validation accuracy"


def _clock(found: SearchResult) -> Panel:
    rows = [(NAMES[name], *clock_row(one)) for name, one in found.rankings.items()]
    names = ("searched on", *CLOCK)
    table = html.data_table(names, rows, "Time, operations and outcome", range(1, len(names)))
    lead = (
        "All seconds of a search: condensing, all configurations, and the best ones trained on the"
        " whole graph. Regret and rank correlation are those of validation accuracy against the"
        " search on the whole graph."
    )
    return Panel("What it took", table, lead, short="Clock")


CLOCK = (
    "nodes",
    "bytes",
    "condensing",
    "configurations",
    "finalists",
    "all",
    "operations",
    "tau [95 %]",
    "regret, points",
    "test, %",
)


def clock_row(one: Ranking) -> tuple[str, ...]:
    """The cells of a search in the order of :data:`CLOCK`."""
    tau = NOTHING
    if one.tau is not None and one.tau_interval is not None:
        tau = f"{one.tau:.2f} [{one.tau_interval[0]:.2f}, {one.tau_interval[1]:.2f}]"
    condensing = NOTHING if one.trained_on != SMALL else seconds(one.condense_seconds)
    return (
        f"{one.nodes:,}",
        byte_count(one.bytes),
        condensing,
        seconds(sum(one.seconds)),
        seconds(one.final_seconds),
        seconds(one.total_seconds),
        f"{one.total_operations:.2g}",
        tau,
        decimal(one.regret, 2),
        decimal(one.test, 1),
    )


def _agreement(found: SearchResult) -> Iterator[Panel]:
    whole = found.rankings.get(WHOLE)
    if whole is None:
        return
    for name, kind in ((SMALL, "first"), (RANDOM, "second")):
        scores = zip(whole.validation, found.rankings[name].validation, strict=True)
        names = [pairs(one, DIGITS) for one in found.configurations]
        dots = [
            Series(each, [at], kind, marked=True) for each, at in zip(names, scores, strict=True)
        ]
        x, y = "validation on the whole graph, %", f"Validation, trained on the {NAMES[name]}, %"
        chart = scatter(dots, {kind: "configuration"}, x=x, y=y)
        lead = "Configurations that are in the same order on both are ranked alike."
        yield Panel(f"Ranking on the {NAMES[name]}", chart, lead, half=True)


def _course(found: SearchResult) -> Panel:
    lines = []
    for (name, one), kind in zip(found.rankings.items(), KINDS, strict=False):
        clock = itertools.accumulate(one.seconds, initial=one.condense_seconds or 0.0)
        best = itertools.accumulate(one.validation, max)
        lines.append(Series(NAMES[name], list(zip(list(clock)[1:], best, strict=True)), kind, True))
    chart = line_chart(
        lines,
        x="seconds since the beginning, with condensing",
        y="Best validation accuracy so far, %",
        described="Best validation accuracy over time; the table has the numbers",
    )
    lead = "Scores are those of the graph that was searched on, before the finalists."
    return Panel("Best so far", chart, lead, short="Course")


def _configurations(found: SearchResult) -> Panel:
    names = list(dict.fromkeys(key for one in found.configurations for key in one))
    rankings = list(found.rankings.values())
    small = found.small
    order = sorted(range(len(small.validation)), key=lambda i: -small.validation[i])
    rows = []
    for i in order:
        mark = " (winner)" if i == small.winner else " (finalist)" if i in small.finalists else ""
        values = [written(found.configurations[i].get(key, NOTHING), DIGITS) for key in names]
        scores = [f"{one.validation[i]:.1f}" for one in rankings]
        took = [f"{one.seconds[i]:.2g}" for one in rankings]
        rows.append((f"{i}{mark}", *values, *scores, *took))
    columns = [f"{NAMES[name]}, {unit}" for unit in "%s" for name in found.rankings]
    heads = ("configuration", *names, *columns)
    table = html.data_table(heads, rows, "Configurations", range(1 + len(names), len(heads)))
    remark = html.remark("Validation accuracy and seconds of all runs, by the graph trained on.")
    return Panel("Configurations", joined(table, remark))
