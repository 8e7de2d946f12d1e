"""The page of several results of one dataset, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gcsr.data.condensed import CondensedGraph
from gcsr.evaluation.origin import PSEUDO_LABELS_NOTE, used_pseudo_labels
from gcsr.reporting import panels
from gcsr.reporting.charts import data_table, heat_table, strips
from gcsr.reporting.evidence import RANDOM, SMALL, WHOLE, Evidence, Scored
from gcsr.reporting.html import Html, joined, tag
from gcsr.reporting.page import Banner, Page, Panel, Tile
from gcsr.reporting.panels import (
    MOST_WRITTEN,
    beside_each_other,
    candidates,
    strip,
    training,
    written,
)
from gcsr.reporting.text import (
    NOTHING,
    byte_count,
    command,
    decimal,
    maker,
    notes,
    number,
    part,
    seconds,
    text,
)
from gcsr.utils.errors import require
from gcsr.utils.formatting import counted, deviation

# -- The page of one result --------------------------------------------------------------------------


FEW_RUNS = 5
LEAK = (
    "Test labels went into this graph: its class prior counts every label (the paper's Eq. 5)."
    " Its accuracy is not a fair score."
)


def single_page(found: Evidence, *, full_epochs: int) -> Page:
    """Everything about one result; ``full_epochs`` is how long the protocol trains networks."""
    small, made = found.small, found.small.provenance
    source = part(made, "dataset")
    name = text(source, "name", "an unnamed graph")
    shown: list[Panel] = []
    data: dict[str, Any] = {"classes": small.num_classes}
    for add in (
        panels.accuracy,
        panels.graph,
        panels.beside,
        panels.similarity,
        panels.matrices,
        panels.node_map,
        training,
        panels.classes,
        panels.cost,
        *([candidates] if part(made, "automatic") else []),
        panels.settings,
    ):
        panel, drawn = add(found)
        shown.append(panel)
        data |= drawn
    return Page(
        title=f"{name} in {counted(small.num_nodes, 'node')}",
        lead=_lead(found),
        banners=list(banners(found, full_epochs)),
        tiles=list(_result_tiles(found)),
        panels=shown,
        data=data,
    )


def banners(found: Evidence, full_epochs: int) -> Iterator[Banner]:
    """What must be known before a number is read."""
    if found.small.leaks_test_labels:
        yield Banner("bad", "Leaks test labels.", LEAK)
    if used_pseudo_labels(found.small):
        yield Banner("note", "Pseudo-labels.", PSEUDO_LABELS_NOTE)
    own = found.own
    if own is not None:
        epochs = own.evaluation.recipe["epochs"]
        if epochs < full_epochs:
            yield Banner(
                "warn",
                "Quick test.",
                f"Networks were trained for {epochs} epochs instead of {full_epochs}: these"
                " accuracies are no results.",
            )
        elif own.evaluation.runs < FEW_RUNS:
            yield Banner(
                "warn",
                "Few runs.",
                f"Accuracies are of {counted(own.evaluation.runs, 'run')} each; differences of a"
                " point or two mean nothing.",
            )
    if found.absent:
        yield Banner("note", "Without the real graph.", found.absent)
    elif found.untested:
        yield Banner("note", "Not tested.", found.untested)
    for note in notes(found.small.provenance):
        yield Banner("note", "Note.", note)


def _lead(found: Evidence) -> str:
    small, made = found.small, found.small.provenance
    source = part(made, "dataset")
    nodes = number(source, "num_nodes")
    ratio = number(made, "ratio")
    share = "" if ratio is None else f" ({100 * ratio:.2f} % of what was condensed)"
    of = "" if nodes is None else f" of {nodes:,.0f}"
    return (
        f"Condensed by {maker(made)}: {small.num_nodes:,}{of} nodes{share},"
        f" {small.x.shape[1]:,} features, {small.num_classes} classes."
        f" File: {found.name}, seed {made.get('seed', '?')}."
    )


def _result_tiles(found: Evidence) -> Iterator[Tile]:
    made = found.small.provenance
    own, random, whole = found.own, found.rivals(RANDOM), found.rivals(WHOLE)
    if own is not None and random is not None and whole is not None:
        accuracy = own.evaluation
        spread = f"{deviation(accuracy.std, len(accuracy.scores))} · {accuracy.model}, {own.size}"
        tested = spread.removeprefix(" · ")
        yield Tile("Test accuracy", f"{accuracy.mean:.1f} %", tested)
        reached = 100 * accuracy.mean / whole.evaluation.mean if whole.evaluation.mean else 0.0
        yield Tile(
            "Of the whole graph's", f"{reached:.1f} %", f"{whole.evaluation.mean:.1f} % whole"
        )
        ahead = accuracy.mean - random.evaluation.mean
        yield Tile("Over random nodes", f"{ahead:+.1f}", f"points · {random.evaluation.mean:.1f} %")
    original = number(part(made, "bytes"), "original")
    smaller = f"of {byte_count(original)}" if original else ""
    yield Tile("Bytes", byte_count(found.small.stored_bytes), smaller)
    spent = number(part(made, "measured"), "seconds")
    yield Tile("Condensing", seconds(spent), f"on {text(made, 'device')}")


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
        tiles=list(_compared_tiles(scores)),
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


def _compared_tiles(scores: Sequence[Scored]) -> Iterator[Tile]:
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
