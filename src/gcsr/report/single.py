"""The page of one result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gcsr.evaluate.origin import PSEUDO_LABELS_NOTE, used_pseudo_labels
from gcsr.report import panels
from gcsr.report.candidates import candidates
from gcsr.report.evidence import RANDOM, WHOLE, Evidence
from gcsr.report.learning import training
from gcsr.report.page import Banner, Page, Panel, Tile
from gcsr.report.said import byte_count, maker, notes, number, part, seconds, text
from gcsr.wording import counted, deviation

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
        tiles=list(_tiles(found)),
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


def _tiles(found: Evidence) -> Iterator[Tile]:
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
