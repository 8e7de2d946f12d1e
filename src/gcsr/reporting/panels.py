"""The panels of the page of one result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from gcsr.analysis.analysis import ordered_matrices
from gcsr.analysis.privacy import COLUMNS, STATEMENT
from gcsr.analysis.statistics import GraphStatistics
from gcsr.data.condensed import stored_matrix_bytes
from gcsr.evaluation.cost import RANDOM, SMALL, WHOLE, verdict
from gcsr.evaluation.intervals import compare
from gcsr.reporting.candidates import is_chosen, objects, ranked, rounds_of, scores_of
from gcsr.reporting.drawing import graph_data, heat_data, map_data, similarity_data
from gcsr.reporting.page import (
    SMOOTHED_FROM,
    Panel,
    Series,
    heat_table,
    html,
    joined,
    line_chart,
    smoothed,
    strips,
)
from gcsr.reporting.results import (
    LABELS,
    NOTHING,
    Result,
    Score,
    command,
    curve,
    decimal,
    number,
    pairs,
    percent,
    seconds,
    text,
    written,
)
from gcsr.utils.formatting import byte_count, counted
from gcsr.utils.safe_io import part

# A similarity matrix of more classes is drawn, not written as a table.
MOST_WRITTEN = 12
# The automatic mode has some ten candidates and two rounds; other files may have any number.
MOST_SHOWN, DIGITS = 100, 4

# -- the loss, and the scores that chose the iterate -------------------------------------------------

LOSSES = {"real_loss": "Real loss", "matching_loss": "Matching loss"}
SELECTS = "it selects real nodes and learns nothing"
CENTERS = "its nodes are centers of real ones, which are computed and not learned"
LEARNS_NOTHING = {
    "random": SELECTS,
    "herding": SELECTS,
    "kcenter": SELECTS,
    "bonsai": SELECTS,
    "coarsening": "it merges real nodes and learns nothing",
    **dict.fromkeys(("cgc-x", "cgc", "gecc", "clusters"), CENTERS),
}


def training(found: Result) -> Panel:
    """The recorded curves, or why there are none."""
    made = found.small.provenance
    losses, choices = list(_loss(made)), list(_choices(made))
    if not losses:
        losses = [html.absent(_without_a_loss(made))]
    elif not choices:
        choices = [html.absent("No validation curve: the last iterate was kept.")]
    body = joined(*losses, *choices)
    return Panel("Loss and validation", body, half=True, short="Training")


def _without_a_loss(made: dict[str, Any]) -> str:
    chosen = part(part(made, "automatic"), "chosen")
    name = text(chosen or made, "method")
    why = LEARNS_NOTHING.get(name, "its file holds no loss curve")
    if name == "bilevel" and number(part(chosen or made, "settings"), "iterations") == 0:
        why = "it is a start, without outer steps"
    who = f"The automatic mode chose {name}, which" if chosen else name
    return f"{who} recorded no loss: {why}."


def _loss(made: dict[str, Any]) -> Iterator[Markup]:
    unit = "epoch" if "epochs" in part(made, "settings") else "iteration"
    for name, title in LOSSES.items():
        loss = curve(made, name)
        if not loss:
            continue
        lines = [Series(title.lower(), loss)]
        if len(loss) >= SMOOTHED_FROM:
            recorded = Series("as recorded", loss, "faint")
            lines = [recorded, Series("running median", smoothed(loss))]
        described = f"{title} from {loss[0][1]:.4g} to {loss[-1][1]:.4g}"
        yield line_chart(lines, x=unit, y=title, described=described)


def _choices(made: dict[str, Any]) -> Iterator[Markup]:
    for name, title, scale, best in (
        ("validation", "Validation accuracy, %", 100, max),
        ("kernel_error", "Kernel's validation error", 1, min),
    ):
        points = [(place, scale * value) for place, value in curve(made, name)]
        if not points:
            continue
        # The first of equals is the one that was kept.
        kept = best(points, key=lambda point: point[1])
        chosen = number(part(made, name), "chosen")
        if chosen is not None:
            # Points may have been left out of a long curve.
            kept = min(points, key=lambda point: abs(point[0] - chosen))
        words = f"kept: {kept[1]:.4g} at {kept[0] if chosen is None else chosen:g}"
        line = Series(title, points, "second", marked=True, highlighted=kept[0])
        yield line_chart([line], x=words, y=title, described=f"{title}; {words}")


# -- candidates of the automatic mode ----------------------------------------------------------------


def candidates(found: Result) -> Panel:
    """Every candidate by round, the plan and what was left out."""
    automatic = part(found.small.provenance, "automatic")
    chosen, compared = part(automatic, "chosen"), ranked(automatic)
    rounds = rounds_of(compared)
    rows = []
    for one in compared[:MOST_SHOWN]:
        mark = " (chosen)" if is_chosen(one, chosen) else ""
        scores = [percent(scores_of(one).get(name)) for name in rounds]
        rows.append((text(one, "method") + mark, *scores, pairs(part(one, "settings"), DIGITS)))
    names = ("candidate", *rounds, "settings")
    numeric = range(1, 1 + len(rounds))
    table = html.data_table(names, rows, "Validation accuracy by round", numeric)
    lead = (
        f"The automatic mode compared {counted(len(compared), 'candidate')} by networks trained on"
        f" each and chose {_named(chosen)}. No test label is read."
    )
    lines = []
    if plan := part(automatic, "plan"):
        lines.append(f"Plan: {pairs(plan, DIGITS)}.")
    if len(compared) > MOST_SHOWN:
        lines.append(f"{counted(len(compared) - MOST_SHOWN, 'candidate')} more are in the file.")
    for one in objects(automatic, "left_out")[:MOST_SHOWN]:
        lines.append(f"Left out: {_named(one)} ({text(one, 'reason')}).")
    return Panel("How it was chosen", joined(table, *map(html.remark, lines)), lead)


def _named(one: dict[str, Any]) -> str:
    settings = part(one, "settings")
    return f"{text(one, 'method')} ({pairs(settings, DIGITS)})" if settings else text(one, "method")


# -- accuracy, the graph, statistics -----------------------------------------------------------------


def accuracy(scores: Sequence[Score], untested: str) -> Panel:
    """Accuracies of networks trained on the result and on what it is compared with."""
    if not scores:
        return Panel("Accuracy", html.absent(untested or "Nothing was trained."))
    first = scores[0].evaluation
    lead = (
        f"Networks ({first.model}) trained on each and tested on the real {first.dataset}. A dot is"
        " one network, the line their mean, the band (±) its 95 % interval: over graphs or, of one"
        " graph, over runs."
    )
    return Panel("Accuracy", joined(strips(scores), *map(html.remark, _comparisons(scores))), lead)


def _comparisons(scores: Sequence[Score]) -> Iterator[str]:
    """The result, or the one that validates best, against every other row; and all deviations."""
    fair = [one for one in scores if one.kind == SMALL and not one.evaluation.leaks_test_labels]
    first = max(fair or scores, key=lambda one: one.validation)
    own = first.evaluation.accuracy
    if own.interval is None:
        return
    trained = [one for one in scores if one.kind != LABELS]
    less = [
        (one.name, compare(own, one.evaluation.accuracy)) for one in trained if one is not first
    ]
    compared = "; ".join(f"{name}: {found.direction} ({found})" for name, found in less)
    yield (
        f"{first.name} less each other row, in points with the 95 % interval of the difference:"
        f" {compared}."
    )
    stds = ", ".join(f"{one.name} {one.evaluation.std:.1f}" for one in trained)
    yield f"Standard deviation over all runs, which papers report: {stds}."


def graph(found: Result) -> Panel:
    """The condensed graph, drawn."""
    data = graph_data(found.small, found.analysis)
    lead = "Nodes that A' joins strongly lie near each other. Point at a node, or use arrow keys."
    if not data["edges_in_all"]:
        lead = (
            "A' has no edges between nodes (no structure). Nodes with similar features are drawn near"
            " each other. Move over a node, or step with arrow keys."
        )
    body = html.graph_view(data, found.absent)
    return Panel("Condensed graph", body, lead, short="Graph", data={"graph": data})


def beside(found: Result) -> Panel:
    """Statistics of both graphs."""
    analysis = found.analysis
    sides = [] if analysis is None else [analysis.original]
    names = ["original", "condensed"][-len(sides) - 1 :]
    rows = [(name, *cells) for name, cells in _statistics([*sides, found.condensed])]
    body = html.data_table(("", *names), rows, "Structure", (1, 2))
    if analysis is None:
        return Panel("The graph in numbers", body, half=True, short="Numbers")
    near = analysis.nearest
    remark = html.remark(
        f"{percent(near.agreement)} of the condensed nodes have the same class as the training node"
        f" with the most similar features. These are {near.distinct} different training nodes."
    )
    return Panel("Beside the real graph", joined(body, remark), half=True, short="Numbers")


def _statistics(sides: list[GraphStatistics]) -> Iterator[tuple[str, list[str]]]:
    above = sides[-1].threshold
    yield "nodes", [f"{one.nodes:,}" for one in sides]
    yield "edges", [f"{one.entries // 2:,}" for one in sides]
    counts = [f"{s.weights.count // 2:,}" if s.threshold == above else NOTHING for s in sides]
    yield f"edges above {above:g}", counts
    yield "density", [percent(one.density, 2) for one in sides]
    yield f"mean degree ({above:g})", [decimal(one.degrees.mean, 1) for one in sides]
    yield "edge homophily", [decimal(one.edge_homophily) for one in sides]
    yield "… by weight", [decimal(one.weighted_edge_homophily) for one in sides]
    yield "node homophily", [decimal(one.node_homophily) for one in sides]
    yield "without a label", [f"{one.balance.unlabeled:,}" for one in sides]


def classes(found: Result) -> Panel:
    """How many nodes every class has."""
    own = found.condensed.balance.shares
    analysis = found.analysis
    lead = "Shares of the classes; those of the training nodes are not known."
    trained, name = np.zeros_like(own), ""
    if analysis is not None:
        lead = f"Shares of the classes; total variation {decimal(analysis.class_distance)}."
        trained, name = analysis.training_balance.shares, "training nodes"
    rows = [(f"class {c}", *both) for c, both in enumerate(np.stack([trained, own], 1).tolist())]
    most = max(trained.max(), own.max()) or 1.0
    return Panel("Classes", html.shares(rows, name, "condensed", most), lead, half=True)


def similarity(found: Result) -> Panel:
    """CCNS of the original and of the condensed graph."""
    sides = [("condensed", found.condensed.ccns)]
    lead = "Cross-class neighborhood similarity: how alike two classes' neighborhoods are, 0 to 1."
    if found.analysis is not None:
        sides.insert(0, ("original", found.analysis.original.ccns))
        apart = found.analysis.ccns_distance
        lead += (
            " The condensed graph has no edges, and so none of it."
            if apart.frobenius is None
            else f" Distance (Frobenius) {decimal(apart.frobenius, 2)}, correlation off the diagonal"
            f" {decimal(apart.off_diagonal_correlation, 2)}, over {apart.classes} classes."
        )
    # A graph without edges has no similarities.
    sides = [(name, values) for name, values in sides if np.isfinite(values).any()]
    if found.small.num_classes <= MOST_WRITTEN:
        tables = [heat_table(values, f"CCNS, {name}") for name, values in sides]
        return Panel("CCNS", side_by_side(tables, found), lead, half=True)
    views = [html.heat_view(f"ccns-{name}", f"CCNS, {name}", _within(v)) for name, v in sides]
    data = {f"ccns-{name}": similarity_data(values) for name, values in sides}
    return Panel("CCNS", html.pair(views), lead, half=True, data=data)


def side_by_side(tables: list[Markup], found: Result) -> Markup:
    """Similarity tables next to each other where they fit."""
    return html.pair(tables, least=31 * found.small.num_classes + 24)


def _within(values: np.ndarray) -> str:
    own = np.diag(values)
    mean = np.nanmean(own).item() if np.isfinite(own).any() else None
    return f"Mean within classes {decimal(mean, 2)}."


def matrices(found: Result) -> Panel:
    """Heat maps of A' and X'X'ᵀ."""
    ordered = ordered_matrices(found.small) if found.analysis is None else found.analysis.matrices
    data = heat_data(ordered)
    lead = "Rows and columns class by class."
    if data["adjacency"]["size"] < data["nodes"]:
        lead += f" Every pixel is the mean of several of the {data['nodes']:,} rows and columns."
    words = [_contrast(m, ordered.classes) for m in (ordered.adjacency, ordered.gram)]
    views = [html.heat_view("gram", "X'X'ᵀ, products of features", words[1])]
    if found.condensed.entries:
        scale = " The scale ends at the largest entry off the diagonal."
        views.insert(0, html.heat_view("adjacency", "A', edge weights", words[0] + scale))
    else:
        lead += " A' has no edges, and so no map."
    return Panel("Heat maps", html.pair(views), lead, data={"heat": data})


def _contrast(matrix: np.ndarray, classes: np.ndarray) -> str:
    same = (classes[:, None] == classes) & (classes[:, None] >= 0)
    off = ~np.eye(classes.size, dtype=bool)
    entries = (matrix[same & off], matrix[~same & off])
    means = [f"{some.mean():.3g}" if some.size else NOTHING for some in entries]
    return f"Mean within classes {means[0]}, between {means[1]}."


def node_map(found: Result) -> Panel:
    """t-SNE of real and condensed nodes."""
    places = None if found.analysis is None else found.analysis.map
    if places is None:
        why = "The map needs the features of the real nodes."
        why = why if found.analysis is None else "No map was asked for."
        return Panel("t-SNE map", html.absent(why), half=True, short="t-SNE")
    count = places.real_nodes.size
    lead = (
        f"{counted(count, 'real node')} (small) and every condensed one (large), by their features."
        " Distances in such a map are only hints."
    )
    body = html.map_view(count, found.small.num_nodes)
    data = {"map": map_data(places)}
    return Panel("t-SNE map", body, lead, half=True, short="t-SNE", data=data)


# -- cost and settings -------------------------------------------------------------------------------


def cost(found: Result) -> Panel:
    """Seconds, memory, bytes."""
    names = ("", "condensed", "random subset", "whole graph")
    table = html.data_table(names, list(cost_rows(found)), "Cost sheet", (1, 2, 3))
    remarks = map(html.remark, _cost_remarks(found))
    return Panel("Cost", joined(table, *remarks), half=True)


def cost_rows(found: Result) -> Iterator[tuple[str, str, str, str]]:
    """A name, and the cost of the result, of a random subset and of the whole graph."""
    small, made = found.small, found.small.provenance
    measured = part(made, "measured")
    trained = [found.score(kind) for kind in (SMALL, RANDOM, WHOLE)]
    yield "condensing, once", seconds(number(measured, "seconds")), "none", "none"
    memory = byte_count(number(measured, "peak_memory_bytes"))
    yield "peak memory until it was done", memory, NOTHING, NOTHING
    if all(trained):
        own, random, all_nodes = (seconds(one.seconds_each) for one in trained if one)
        yield "training one network", own, random, all_nodes
    sizes = byte_count(small.stored_bytes), NOTHING, byte_count(found.original_bytes)
    yield "bytes in the file", *sizes
    for name, itemsize in (("float32", 4), ("float16", 2)):
        features = stored_matrix_bytes(small.x, itemsize, small.y.nbytes)
        dense = small.adjacency.numel() * itemsize
        sparse = stored_matrix_bytes(small.adjacency, itemsize, features + small.y.nbytes)
        yield f"… features, {name}", byte_count(features), NOTHING, NOTHING
        yield f"… A' dense, {name}", byte_count(dense), NOTHING, NOTHING
        yield f"… A' without its zeros, {name}", byte_count(sparse), NOTHING, NOTHING


def _cost_remarks(found: Result) -> Iterator[str]:
    measured = part(found.small.provenance, "measured")
    together = number(measured, "graphs_together")
    if together is not None and together > 1:
        yield f"{together:.0f} graphs were condensed together; seconds are per graph."
    if part(measured, "experts").get("cached") is True:
        yield "The experts were trained before and are not part of the seconds."
    own, whole = found.score(SMALL), found.score(WHOLE)
    if own is None or whole is None:
        return
    yield (
        "Training includes validation on the real graph after every epoch, which costs the same"
        " whatever was trained on. Seconds are of the machine that made this page."
    )
    yield verdict(number(measured, "seconds"), own.seconds_each, whole.seconds_each)
    yield (
        "`gcsr cost` measures more: a random subset of the same bytes, sparsified and half precision"
        " forms with their accuracy, and training without validation."
    )


def privacy(found: Result) -> Panel:
    """Membership inference and memorized rows, if they were measured; and what is not promised."""
    measured = found.privacy
    if measured is None:
        body = html.absent("Not measured for this page; `gcsr report --privacy` measures it.")
    else:
        names = ("trained on", *COLUMNS)
        table = html.data_table(names, measured.rows, "Membership inference", range(1, len(names)))
        remarks = (*measured.sentences, measured.distances)
        body = joined(table, *(html.remark(f"{one[0].upper()}{one[1:]}.") for one in remarks))
    return Panel("What the file discloses", body, STATEMENT, short="Privacy")


RESULT = ("method", "revision", "preset", "seed", "nodes", "ratio", "device", "leaks_test_labels")


def settings(found: Result) -> Panel:
    """Every setting, and the command that makes the result again."""
    made = found.small.provenance
    groups = {
        "Settings": part(made, "settings"),
        "Data": part(made, "dataset"),
        "Versions": part(made, "versions"),
        "Measured": _flat(part(made, "measured")),
        "Result": {key: made[key] for key in RESULT if key in made},
    }
    shown = {
        group: {key: written(value) for key, value in values.items()}
        for group, values in groups.items()
    }
    body = html.settings(command(found.small, found.name), shown)
    return Panel("Settings and command", body, short="Settings")


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    """Objects inside an object in line with the rest, and measurements to six digits."""
    plain: dict[str, Any] = {}
    for key, value in values.items():
        inner = value if isinstance(value, dict) else {}
        plain |= {f"{key} {name}": one for name, one in inner.items()} or {key: value}
    return {
        key: f"{value:.6g}" if isinstance(value, float) else value for key, value in plain.items()
    }
