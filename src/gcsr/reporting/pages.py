"""The pages of one result and of several results of one dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gcsr.data.condensed import CondensedGraph, size_note
from gcsr.evaluation.cost import RANDOM, SMALL, WHOLE
from gcsr.evaluation.intervals import compare
from gcsr.evaluation.origin import PSEUDO_LABELS_NOTE, used_pseudo_labels
from gcsr.reporting import panels
from gcsr.reporting.page import Banner, Page, Panel, Tile, heat_table, html
from gcsr.reporting.results import (
    NOTHING,
    Result,
    Score,
    command,
    decimal,
    number,
    seconds,
    text,
    written,
)
from gcsr.utils.errors import require
from gcsr.utils.formatting import byte_count, counted
from gcsr.utils.safe_io import part

FEW_RUNS = 5


def single_page(found: Result, full_epochs: int) -> Page:
    """Everything about one result; ``full_epochs`` is how long the protocol trains networks."""
    small, made = found.small, found.small.provenance
    nodes = number(part(made, "dataset"), "num_nodes")
    ratio = number(made, "ratio")
    share = "" if ratio is None else f" ({100 * ratio:.2f} % of what was condensed)"
    of = "" if nodes is None else f" of {nodes:,.0f}"
    chosen = part(part(made, "automatic"), "chosen")
    by = f", which chose {text(chosen, 'method')}" if chosen else ""
    return Page(
        title=f"{found.dataset} in {counted(small.num_nodes, 'node')}",
        lead=f"Condensed by {text(made, 'method')}{by}: {small.num_nodes:,}{of} nodes{share},"
        f" {small.x.shape[1]:,} features, {small.num_classes} classes."
        f" File: {found.name}, seed {made.get('seed', '?')}.",
        banners=list(_banners([found], found.scores, full_epochs)),
        tiles=list(_single_tiles(found)),
        panels=[
            panels.accuracy(found.scores, found.untested),
            panels.graph(found),
            panels.beside(found),
            panels.similarity(found),
            panels.matrices(found),
            panels.node_map(found),
            panels.training(found),
            panels.classes(found),
            panels.cost(found),
            *([panels.candidates(found)] if part(made, "automatic") else []),
            panels.privacy(found),
            panels.settings(found),
        ],
        data={"classes": small.num_classes},
    )


def _single_tiles(found: Result) -> Iterator[Tile]:
    made = found.small.provenance
    own, random, whole = (found.score(kind) for kind in (SMALL, RANDOM, WHOLE))
    if own is not None and random is not None and whole is not None:
        mean, of_whole = own.evaluation.mean, whole.evaluation.mean
        detail = f"{own.plus_minus} · {own.evaluation.model}, {own.size}".removeprefix(" · ")
        yield ("Test accuracy", f"{mean:.1f} %", detail)
        reached = 100 * mean / of_whole if of_whole else 0.0
        yield ("Of the whole graph's", f"{reached:.1f} %", f"{of_whole:.1f} % whole")
        against = compare(own.evaluation.accuracy, random.evaluation.accuracy)
        detail = f"points · {against.direction} · {random.evaluation.mean:.1f} %"
        yield ("Less random nodes", f"{against.mean:+.1f}", detail)
    original = found.original_bytes
    smaller = f"of {byte_count(original)}" if original else ""
    yield ("Bytes", byte_count(found.small.stored_bytes), smaller)
    spent = number(part(made, "measured"), "seconds")
    yield ("Condensing", seconds(spent), f"on {text(made, 'device')}")


# -- several results ---------------------------------------------------------------------------------


def _banners(
    found: Sequence[Result], scores: Sequence[Score], full_epochs: int
) -> Iterator[Banner]:
    leaking = ", ".join(one.name for one in found if one.small.leaks_test_labels)
    if leaking:
        sentence = (
            f"Test labels went into {leaking}: the paper's class prior counts every label."
            " The accuracy is not a fair score."
        )
        yield "bad", "Leaks test labels.", sentence
    helped = ", ".join(one.name for one in found if used_pseudo_labels(one.small))
    if helped:
        yield "note", "Pseudo-labels.", f"{helped}: {PSEUDO_LABELS_NOTE}"
    epochs, runs = full_epochs, FEW_RUNS
    if scores:
        epochs, runs = scores[0].evaluation.recipe["epochs"], scores[0].evaluation.runs
    if epochs < full_epochs:
        sentence = (
            f"Networks were trained for {epochs} epochs instead of {full_epochs}: these accuracies"
            " are no results."
        )
        yield "warn", "Quick test.", sentence
    elif runs < FEW_RUNS:
        sentence = f"Accuracies are of {counted(runs, 'run')} each; small differences mean nothing."
        yield "warn", "Few runs.", sentence
    if found[0].absent:
        yield "note", "Without the real graph.", found[0].absent
    elif found[0].untested:
        yield "note", "Not tested.", found[0].untested
    for one in found:
        for note in size_note(one.small.stored_bytes, one.original_bytes):
            yield "warn", "Larger than the original.", f"{one.name}: {note}."
    notes = found[0].small.provenance.get("notes") if len(found) == 1 else None
    for note in notes if isinstance(notes, list) else ():
        yield "note", "Note.", str(note)


def require_one_dataset(results: Sequence[tuple[str, CondensedGraph]]) -> None:
    """Refuse results of different data: their accuracies are not comparable."""
    sources = [part(small.provenance, "dataset") for _, small in results]
    known = {
        (text(source, "name"), str(source.get("content_hash"))[:12]) for source in sources if source
    }
    names = ", ".join(f"{name} ({digest})" for name, digest in sorted(known))
    require(len(known) <= 1, f"results must be of one dataset, got different data ({names}).")


def comparison_page(found: Sequence[Result], scores: Sequence[Score], full_epochs: int) -> Page:
    """Accuracy, structure, cost and settings of several results."""
    first = found[0]
    accuracy = panels.accuracy(scores, first.untested or first.absent)
    commands = html.commands([(one.name, command(one.small, one.name)) for one in found])
    again = Panel("To make them again", commands, short="Commands")
    shown = [accuracy, _table(found), _settings(found), again]
    if first.analysis is not None and first.small.num_classes <= panels.MOST_WRITTEN:
        tables = [heat_table(first.analysis.original.ccns, "CCNS, original")]
        joined = [one for one in found if one.condensed.entries]
        tables += [heat_table(one.condensed.ccns, one.name) for one in joined]
        alone = ", ".join(one.name for one in found if not one.condensed.entries)
        lead = f"Without edges, and so without similarities: {alone}." if alone else ""
        shown.insert(2, Panel("CCNS", panels.side_by_side(tables, first), lead))
    return Page(
        title=f"{first.dataset}: {len(found)} results compared",
        lead=", ".join(one.name for one in found),
        banners=list(_banners(found, scores, full_epochs)),
        tiles=list(_compared_tiles(scores)),
        panels=shown,
        data={"classes": first.small.num_classes},
    )


def _compared_tiles(scores: Sequence[Score]) -> Iterator[Tile]:
    for heading, kind in (
        ("Best by validation, without a leak", SMALL),
        ("Random nodes", RANDOM),
        ("Whole graph", WHOLE),
    ):
        of_kind = [s for s in scores if s.kind == kind and not s.evaluation.leaks_test_labels]
        if of_kind:
            best = max(of_kind, key=lambda one: one.validation)
            detail = f"{best.plus_minus} · {best.name}".removeprefix(" · ")
            yield (heading, f"{best.evaluation.mean:.1f} %", detail)


COLUMNS = (
    "result",
    "method",
    "nodes",
    "validation, %",
    "accuracy, %",
    "CCNS distance",
    "homophily",
    "silhouette",
    "bytes",
    "condensing",
    "training",
)


def _table(found: Sequence[Result]) -> Panel:
    rows = []
    for one in found:
        made, analysis, score = one.small.provenance, one.analysis, one.score(SMALL)
        accuracy, validation = NOTHING, NOTHING
        trained, distance, silhouette = None, None, None
        if score is not None:
            accuracy = f"{score.evaluation.mean:.1f} {score.plus_minus}".rstrip()
            validation, trained = f"{score.validation:.1f}", score.seconds_each
        if analysis is not None:
            distance, silhouette = analysis.ccns_distance.frobenius, analysis.silhouette
        rows.append(
            (
                one.name,
                text(made, "method") + (" (leaks)" if one.small.leaks_test_labels else ""),
                f"{one.small.num_nodes:,}",
                validation,
                accuracy,
                decimal(distance, 2),
                decimal(one.condensed.weighted_edge_homophily, 2),
                decimal(silhouette, 2),
                byte_count(one.small.stored_bytes),
                seconds(number(part(made, "measured"), "seconds")),
                seconds(trained),
            )
        )
    table = html.data_table(COLUMNS, rows, "Results side by side", range(2, 11))
    lead = (
        "Rows are sorted by validation accuracy or, if nothing was trained, by size and name. Homophily"
        " is that of the weights of A'; training is the time of one network."
    )
    return Panel("Side by side", table, lead)


def _settings(found: Sequence[Result]) -> Panel:
    """Settings that differ, those that are equal, and those of one result alone."""
    given = [
        {key: one.small.provenance.get(key) for key in ("method", "preset", "seed", "device")}
        | part(one.small.provenance, "settings")
        for one in found
    ]
    rows: dict[str, list[tuple[str, ...]]] = {"differing": [], "same": [], "own": []}
    for key in dict.fromkeys(key for each in given for key in each):
        values = [written(each[key]) if key in each else NOTHING for each in given]
        kind = "differing" if len(set(values) - {NOTHING}) > 1 else "same"
        kind = "own" if values.count(NOTHING) >= len(given) - 1 else kind
        rows[kind].append((key, *values))
    others = [
        (f"{counted(len(rows[kind]), 'setting')} {words}", f"Settings {words}", rows[kind])
        for kind, words in (
            ("same", "the same wherever they exist"),
            ("own", "of one result alone"),
        )
    ]
    names = ("setting", *(one.name for one in found))
    return Panel("Settings", html.compared_settings(names, rows["differing"], others))
