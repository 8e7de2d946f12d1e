"""The page of several results of one dataset, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gcsr.condensed import CondensedGraph
from gcsr.errors import require
from gcsr.evaluate.origin import used_pseudo_labels
from gcsr.report.charts import data_table, heat_table, strips
from gcsr.report.evidence import RANDOM, SMALL, WHOLE, Evidence, Scored
from gcsr.report.html import Html, joined, tag
from gcsr.report.page import Banner, Page, Panel, Tile
from gcsr.report.panels import MOST_WRITTEN, beside_each_other, strip, written
from gcsr.report.remake import command
from gcsr.report.said import NOTHING, byte_count, decimal, number, part, seconds, text
from gcsr.report.single import FEW_RUNS
from gcsr.wording import counted, deviation

SETTINGS_OF_RESULT = ("method", "preset", "seed", "device")


def require_one_dataset(results: Sequence[tuple[str, CondensedGraph]]) -> None:
    """Refuse results of different data: their accuracies are not comparable."""
    sources = [part(small.provenance, "dataset") for _, small in results]
    known = {
        (text(source, "name"), str(source.get("content_hash"))[:12]) for source in sources if source
    }
    said = ", ".join(f"{name} ({digest})" for name, digest in sorted(known))
    require(
        len(known) <= 1,
        f"compare: the results are of different data ({said}); give results of one dataset.",
    )


def comparison_page(found: Sequence[Evidence], scores: Sequence[Scored], full_epochs: int) -> Page:
    """Accuracy, structure, cost and settings of several results."""
    name = text(part(found[0].small.provenance, "dataset"), "name", "an unnamed graph")
    shown = [_accuracy(found[0], scores), _table(found, scores), _settings(found), _commands(found)]
    if found[0].analysis is not None and found[0].small.num_classes <= MOST_WRITTEN:
        shown.insert(2, _similarity(found))
    return Page(
        title=f"{name}: {len(found)} results compared",
        lead=", ".join(one.name for one in found),
        banners=list(_banners(found, scores, full_epochs)),
        tiles=list(_tiles(scores)),
        panels=shown,
        data={"classes": found[0].small.num_classes},
    )


def _banners(
    found: Sequence[Evidence], scores: Sequence[Scored], full_epochs: int
) -> Iterator[Banner]:
    leaking = [one.name for one in found if one.small.leaks_test_labels]
    if leaking:
        sentence = f"Test labels went into {', '.join(leaking)}: not a fair score."
        yield Banner("bad", "Leaks test labels.", sentence)
    helped = [one.name for one in found if used_pseudo_labels(one.small)]
    if helped:
        sentence = (
            f"Condensed with pseudo-labels of unlabeled nodes: {', '.join(helped)}. Such a graph can"
            " beat a GNN trained on the training labels alone; the fair references are the"
            " pseudo-labels themselves and the same GNN trained with them on the whole graph."
        )
        yield Banner("note", "Pseudo-labels.", sentence)
    if scores and scores[0].evaluation.recipe["epochs"] < full_epochs:
        sentence = "Networks were trained for fewer epochs than the protocol's: no results."
        yield Banner("warn", "Quick test.", sentence)
    elif scores and scores[0].evaluation.runs < FEW_RUNS:
        runs = counted(scores[0].evaluation.runs, "run")
        sentence = f"{runs} per graph; small differences mean nothing."
        yield Banner("warn", "Few runs.", sentence)
    if found[0].absent:
        yield Banner("note", "Without the real graph.", found[0].absent)
    elif found[0].untested:
        yield Banner("note", "Not tested.", found[0].untested)


def _tiles(scores: Sequence[Scored]) -> Iterator[Tile]:
    for heading, kind in (
        ("Best without a leak", SMALL),
        ("Random nodes", RANDOM),
        ("Whole graph", WHOLE),
    ):
        of_kind = [s for s in scores if s.kind == kind and not s.evaluation.leaks_test_labels]
        if of_kind:
            best = max(of_kind, key=lambda one: one.evaluation.mean)
            spread = deviation(best.evaluation.std, len(best.evaluation.scores))
            detail = f"{spread} · {best.name}".removeprefix(" · ")
            yield Tile(heading, f"{best.evaluation.mean:.1f} %", detail)


def _accuracy(first: Evidence, scores: Sequence[Scored]) -> Panel:
    if not scores:
        return Panel("Accuracy", tag("p", first.untested or first.absent, class_="absent"))
    tested = scores[0].evaluation
    lead = (
        f"Networks ({tested.model}) trained on each and tested on the real {tested.dataset}. A dot is"
        " one network, the line their mean, the band one standard deviation."
    )
    return Panel("Accuracy", strips([strip(one) for one in scores]), lead)


def _table(found: Sequence[Evidence], scores: Sequence[Scored]) -> Panel:
    own = dict(
        zip([one.name for one in found], (s for s in scores if s.kind == SMALL), strict=False)
    )
    rows = []
    for one in found:
        made, analysis = one.small.provenance, one.analysis
        score = own.get(one.name)
        rows.append(
            (
                one.name,
                text(made, "method") + (" (leaks)" if one.small.leaks_test_labels else ""),
                f"{one.small.num_nodes:,}",
                NOTHING
                if score is None
                else f"{score.evaluation.mean:.1f}"
                f" {deviation(score.evaluation.std, len(score.evaluation.scores))}".rstrip(),
                NOTHING if analysis is None else decimal(analysis.ccns_distance.frobenius, 2),
                decimal(one.condensed.weighted_edge_homophily, 2),
                NOTHING if analysis is None else decimal(analysis.silhouette, 2),
                byte_count(one.small.stored_bytes),
                seconds(number(part(made, "measured"), "seconds")),
                NOTHING if score is None else seconds(score.seconds_each),
            )
        )
    headings = (
        "result",
        "method",
        "nodes",
        "accuracy, %",
        "CCNS distance",
        "homophily",
        "silhouette",
        "bytes",
        "condensing",
        "training",
    )
    table = data_table(headings, rows, numeric=range(2, 10), caption="Results side by side")
    lead = "Homophily is that of the weights of A'; training is the time of one network."
    return Panel("Side by side", table, lead)


def _similarity(found: Sequence[Evidence]) -> Panel:
    first = found[0].analysis
    views = [] if first is None else [heat_table(first.original.ccns, "CCNS, original")]
    views += [heat_table(one.condensed.ccns, one.name) for one in found]
    return Panel("CCNS", beside_each_other(views, found[0]))


def _settings(found: Sequence[Evidence]) -> Panel:
    told = [
        {key: one.small.provenance.get(key) for key in SETTINGS_OF_RESULT}
        | part(one.small.provenance, "settings")
        for one in found
    ]
    names = list(dict.fromkeys(key for each in told for key in each))
    rows = [
        (key, [written(each[key]) if key in each else NOTHING for each in told]) for key in names
    ]
    shared = [(key, values) for key, values in rows if values.count(NOTHING) < len(told) - 1]
    own = [row for row in rows if row not in shared]
    differing = [row for row in shared if len(set(row[1]) - {NOTHING}) > 1]
    same = [row for row in shared if row not in differing]
    headings = ("setting", *(one.name for one in found))

    def table(kept: list[tuple[str, list[str]]], caption: str) -> Html:
        return data_table(headings, [(name, *values) for name, values in kept], caption=caption)

    body = []
    if differing:
        body.append(tag("div", table(differing, "Settings that differ"), class_="differing"))
    else:
        body.append(tag("p", "No setting differs.", class_="absent"))
    for kept, said in ((same, "the same wherever they exist"), (own, "of one result alone")):
        if kept:
            summary = tag("summary", f"{counted(len(kept), 'setting')} {said}")
            body.append(tag("details", summary, table(kept, f"Settings {said}")))
    return Panel("Settings", joined(*body))


def _commands(found: Sequence[Evidence]) -> Panel:
    lines = [
        joined(
            tag("h3", one.name),
            tag(
                "div",
                tag("code", command(one.small, one.name), id=f"command-{i}", tabindex=0),
                tag("button", "Copy", type="button", data_copies=f"command-{i}", class_="ghost"),
                class_="command",
            ),
        )
        for i, one in enumerate(found)
    ]
    return Panel("To make them again", joined(*lines), short="Commands")
