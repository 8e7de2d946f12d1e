"""The parts of a result's page: each gives a panel and what its script draws."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from gcsr.analyse import Portrait
from gcsr.report.charts import (
    Strip,
    data_table,
    heat_table,
    shares,
    strips,
)
from gcsr.report.cost import cost_sheet
from gcsr.report.drawing import graph_data, heat_data, map_data, similarity_data
from gcsr.report.evidence import LABELS, Evidence, Scored
from gcsr.report.html import Html, joined, tag
from gcsr.report.interactive import graph_view, heat_view, map_view
from gcsr.report.page import Panel
from gcsr.report.remake import command
from gcsr.report.said import (
    NOTHING,
    class_name,
    decimal,
    part,
    percent,
)
from gcsr.wording import counted

Made = tuple[Panel, dict[str, Any]]
# A similarity matrix of more classes is drawn, not written.
MOST_WRITTEN = 12


def strip(one: Scored) -> Strip:
    """Accuracies of one thing that was trained on."""
    tested = one.evaluation
    detail = f"{counted(tested.nodes, 'node')} · {one.size}"
    if one.kind == LABELS:
        detail = "most likely class of each test node"
    flag = "leaks" if tested.leaks_test_labels else ""
    return Strip(one.name, detail, tested.scores, tested.mean, tested.std, one.kind, flag)


def accuracy(found: Evidence) -> Made:
    """Small, random and whole side by side."""
    if not found.scores:
        return Panel("Accuracy", absence(found.untested or "Nothing was trained.")), {}
    tested = found.scores[0].evaluation
    lead = (
        f"Networks ({tested.model}) trained on each and tested on the real {tested.dataset}. A dot is"
        " one network, the line their mean, the band one standard deviation."
    )
    return Panel("Accuracy", strips([strip(one) for one in found.scores]), lead), {}


def graph(found: Evidence) -> Made:
    """The condensed graph, drawn."""
    data = graph_data(found.small, found.analysis)
    lead = "Nodes that A' joins strongly lie near each other. Point at a node, or use arrow keys."
    if not data["edges_in_all"]:
        lead = (
            "A' has no edges between nodes (no structure). Nodes with similar features are drawn near"
            " each other. Move over a node, or step with arrow keys."
        )
    left_out = data["edges_in_all"] - data["edges"]
    body = graph_view(data, found.small.num_classes, left_out, found.absent)
    return Panel("Condensed graph", body, lead, short="Graph"), {"graph": data}


def beside(found: Evidence) -> Made:
    """Numbers of both graphs."""
    sides = (
        [found.condensed] if found.analysis is None else [found.analysis.original, found.condensed]
    )
    names = ["condensed"] if found.analysis is None else ["original", "condensed"]
    rows = [(name, *cells) for name, cells in _statistics(sides)]
    body = [data_table(("", *names), rows, numeric=(1, 2)[: len(names)], caption="Structure")]
    if found.analysis is not None:
        near = found.analysis.nearest
        body.append(
            tag(
                "p",
                f"{percent(near.agreement)} of the condensed nodes have the class of the training node"
                f" they are nearest to; {near.distinct} different training nodes are nearest to one.",
                class_="remark",
            )
        )
    title = "The graph in numbers" if found.analysis is None else "Beside the real graph"
    return Panel(title, joined(*body), half=True, short="Numbers"), {}


def classes(found: Evidence) -> Made:
    """How many nodes every class has."""
    kept = found.condensed.balance.shares
    trained = kept if found.analysis is None else found.analysis.training_balance.shares
    rows = [
        (class_name(c), float(trained[c]), float(kept[c])) for c in range(found.small.num_classes)
    ]
    if found.analysis is None:
        lead = "Shares of the classes; those of the training nodes are not known."
        body = shares([(name, 0.0, own) for name, _, own in rows], "", "condensed")
    else:
        apart = found.analysis.class_distance
        lead = f"Shares of the classes; total variation {decimal(apart)}."
        body = shares(rows, "training nodes", "condensed")
    return Panel("Classes", body, lead, half=True), {}


def _statistics(sides: list[Portrait]) -> Iterator[tuple[str, list[str]]]:
    yield "nodes", [f"{one.nodes:,}" for one in sides]
    yield "edges", [f"{one.entries // 2:,}" for one in sides]
    above = sides[-1].threshold
    yield f"edges above {above:g}", [_above(one, above) for one in sides]
    yield "density", [percent(one.density, 2) for one in sides]
    yield f"mean degree ({above:g})", [decimal(one.degrees.mean, 1) for one in sides]
    yield "edge homophily", [decimal(one.edge_homophily) for one in sides]
    yield "… by weight", [decimal(one.weighted_edge_homophily) for one in sides]
    yield "node homophily", [decimal(one.node_homophily) for one in sides]
    yield "without a label", [f"{one.balance.unlabelled:,}" for one in sides]


def _above(one: Portrait, threshold: float) -> str:
    return f"{one.weights.count // 2:,}" if one.threshold == threshold else NOTHING


def similarity(found: Evidence) -> Made:
    """CCNS original against condensed."""
    written = found.small.num_classes <= MOST_WRITTEN
    sides = [("condensed", found.condensed.ccns)]
    lead = (
        "Cross-class neighbourhood similarity: how alike two classes' neighbourhoods are, 0 to 1."
    )
    if found.analysis is not None:
        sides.insert(0, ("original", found.analysis.original.ccns))
        apart = found.analysis.ccns_distance
        lead += (
            " The condensed graph has no edges, and so none of it."
            if apart.frobenius is None
            else f" Distance (Frobenius) {decimal(apart.frobenius, 2)}, correlation off the diagonal"
            f" {decimal(apart.off_diagonal_correlation, 2)}, over {apart.classes} classes."
        )
    # Of a graph without edges there is nothing to show.
    sides = [(name, values) for name, values in sides if np.isfinite(values).any()]
    if written:
        views = [heat_table(values, f"CCNS, {name}") for name, values in sides]
        return Panel("CCNS", beside_each_other(views, found), lead, half=True), {}
    views = [heat_view(f"ccns-{name}", f"CCNS, {name}", _within(v)) for name, v in sides]
    data = {f"ccns-{name}": similarity_data(values) for name, values in sides}
    return Panel("CCNS", tag("div", *views, class_="pair"), lead, half=True), data


def beside_each_other(tables: list[Html], found: Evidence) -> Html:
    """Similarity tables next to each other where they fit."""
    least = 31 * found.small.num_classes + 24
    return tag("div", *tables, class_="pair", style=f"--least:{least}px")


def _within(values: np.ndarray) -> str:
    own = np.nanmean(np.diag(values)) if np.isfinite(np.diag(values)).any() else np.nan
    return f"Mean within classes {decimal(float(own), 2)}."


def matrices(found: Evidence) -> Made:
    """Heat maps of A' and X'X'ᵀ."""
    ordered = found.matrices
    data = heat_data(ordered)
    rows = data["adjacency"]["size"]
    lead = "Rows and columns class by class."
    if rows < data["nodes"]:
        lead += f" Every pixel is the mean of several of the {data['nodes']:,} rows and columns."
    a = heat_view(
        "adjacency",
        "A', edge weights",
        f"{_contrast(ordered.adjacency, ordered.classes)} The scale ends at the largest entry off the"
        " diagonal.",
    )
    gram = heat_view(
        "gram", "X'X'ᵀ, products of features", _contrast(ordered.gram, ordered.classes)
    )
    return Panel("Heat maps", tag("div", a, gram, class_="pair"), lead), {"heat": data}


def _contrast(matrix: np.ndarray, classes: np.ndarray) -> str:
    same = (classes[:, None] == classes) & (classes[:, None] >= 0)
    off = ~np.eye(classes.size, dtype=bool)
    within, between = matrix[same & off], matrix[~same & off]
    means = [f"{part.mean():.3g}" if part.size else NOTHING for part in (within, between)]
    return f"Mean within classes {means[0]}, between {means[1]}."


def node_map(found: Evidence) -> Made:
    """t-SNE of real and condensed nodes."""
    title = "t-SNE map"
    if found.analysis is None:
        why = "The map needs the features of the real nodes."
        return Panel(title, absence(why), half=True, short="t-SNE"), {}
    if found.analysis.map is None:
        return Panel(title, absence("No map was asked for."), half=True, short="t-SNE"), {}
    data = map_data(found.analysis.map)
    count = found.analysis.map.real_nodes.size
    lead = (
        f"{counted(count, 'real node')} (small) and every condensed one (large), by their features."
        " Distances in such a map are only hints."
    )
    return Panel(title, map_view(count, found.small.num_nodes), lead, half=True, short="t-SNE"), {
        "map": data
    }


def cost(found: Evidence) -> Made:
    """Seconds, memory, bytes."""
    sheet = cost_sheet(found)
    rows = [(name, *cells) for name, cells in sheet.rows]
    table = data_table(("", *sheet.columns), rows, numeric=(1, 2, 3), caption="Cost sheet")
    remarks = (tag("p", remark, class_="remark") for remark in sheet.remarks)
    return Panel("Cost", joined(table, *remarks), half=True), {}


def settings(found: Evidence) -> Made:
    """Every setting, and how to make it again."""
    made = found.small.provenance
    groups = {
        "Settings": part(made, "settings"),
        "Data": part(made, "dataset"),
        "Versions": part(made, "versions"),
        "Measured": flat(part(made, "measured")),
    }
    single = [
        "method",
        "revision",
        "preset",
        "seed",
        "nodes",
        "ratio",
        "device",
        "leaks_test_labels",
    ]
    groups["Result"] = {key: made[key] for key in single if key in made}
    lists = [
        tag("div", tag("h3", name), pairs(values), class_="group")
        for name, values in groups.items()
        if values
    ]
    line = tag("code", command(found.small, found.name), id="command", tabindex=0)
    copy = tag("button", "Copy", type="button", data_copies="command", class_="ghost")
    again = tag("div", line, copy, class_="command")
    body = joined(tag("h3", "To make it again"), again, tag("div", *lists, class_="groups"))
    return Panel("Settings and command", body, short="Settings"), {}


def pairs(values: dict[str, Any]) -> Html:
    """Names and values."""
    return tag(
        "dl",
        *(joined(tag("dt", key), tag("dd", written(value))) for key, value in values.items()),
        class_="pairs",
    )


def written(value: Any) -> str:
    """A value of the provenance."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def flat(values: dict[str, Any]) -> dict[str, Any]:
    """Objects inside an object in line with the rest, and measurements to six digits."""
    plain: dict[str, Any] = {}
    for key, value in values.items():
        inner = (
            {f"{key} {name}": one for name, one in value.items()} if isinstance(value, dict) else {}
        )
        plain |= inner or {key: value}
    return {
        key: f"{value:.6g}" if isinstance(value, float) else value for key, value in plain.items()
    }


def absence(sentence: str) -> Html:
    """A sentence in place of what is not there."""
    return tag("p", sentence, class_="absent")
