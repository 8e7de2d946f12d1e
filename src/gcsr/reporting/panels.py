"""The parts of a result's page: each gives a panel and what its script draws."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gcsr.analysis.statistics import Portrait
from gcsr.reporting.charts import (
    SMOOTHED_FROM,
    Series,
    Strip,
    data_table,
    heat_table,
    line_chart,
    shares,
    smoothed,
    strips,
)
from gcsr.reporting.drawing import (
    graph_data,
    graph_view,
    heat_data,
    heat_view,
    map_data,
    map_view,
    similarity_data,
)
from gcsr.reporting.evidence import LABELS, Evidence, Scored, cost_sheet
from gcsr.reporting.html import Html, joined, tag
from gcsr.reporting.page import Panel
from gcsr.reporting.text import (
    NOTHING,
    class_name,
    command,
    curve,
    decimal,
    number,
    part,
    percent,
    text,
)
from gcsr.utils.formatting import ROUNDS, counted

# -- How condensing went: the loss, and what chose the iterate ---------------------------------------


TITLE = "Loss and validation"
LOSSES = {"real_loss": "Real loss", "matching_loss": "Matching loss"}
SELECTS = "it selects real nodes and learns nothing"
LEARNS_NOTHING = {
    "random": SELECTS,
    "herding": SELECTS,
    "kcenter": SELECTS,
    "coarsening": "it merges real nodes and learns nothing",
    "clusters": "its nodes are centers of real ones, which are computed and not learned",
}


def training(found: Evidence) -> CondensationResult:
    """The recorded curves, or why there are none."""
    made = found.small.provenance
    loss, choices = list(_loss(made)), list(_choices(made))
    if not loss:
        loss = [absence(_without_a_loss(made))]
    elif not choices:
        choices = [absence("No validation curve: the last iterate was kept.")]
    return Panel(TITLE, joined(*loss, *choices), half=True, short="Training"), {}


def _without_a_loss(made: dict[str, Any]) -> str:
    """Who recorded no loss, and why there is none."""
    chosen = part(part(made, "automatic"), "chosen")
    name = text(chosen or made, "method")
    why = LEARNS_NOTHING.get(name, "its file holds no loss curve")
    if name == "bilevel" and number(part(chosen or made, "settings"), "iterations") == 0:
        why = "it is a start, without outer steps"
    if chosen:
        return f"The automatic mode chose {name}, which recorded no loss: {why}."
    return f"{name} recorded no loss: {why}."


def _loss(made: dict[str, Any]) -> Iterator[Html]:
    unit = "epoch" if "epochs" in part(made, "settings") else "iteration"
    for name, title in LOSSES.items():
        loss = curve(made, name)
        if not loss:
            continue
        lines = [Series(title.lower(), loss, "first")]
        if len(loss) >= SMOOTHED_FROM:
            lines = [
                Series("as recorded", loss, "faint"),
                Series("running median", smoothed(loss), "first"),
            ]
        described = f"{title} from {loss[0][1]:.4g} to {loss[-1][1]:.4g}"
        yield line_chart(lines, x=unit, y=title, described=described)


def _choices(made: dict[str, Any]) -> Iterator[Html]:
    for name, said, scale, best in (
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
        line = Series(said, points, "second", marked=True, highlighted=kept[0])
        yield line_chart([line], x=words, y=said, described=f"{said}; {words}")


# -- How the automatic mode chose: its candidates, how they validated, and its plan ------------------


# There are some ten candidates and two rounds; a file of unknown origin may claim any number.
MOST_SHOWN, MOST_ROUNDS = 100, 8


def candidates(found: Evidence) -> CondensationResult:
    """Every candidate by round, the plan and what was left out."""
    automatic = part(found.small.provenance, "automatic")
    chosen, compared = part(automatic, "chosen"), ranked(automatic)
    rounds = rounds_of(compared)
    table = data_table(
        ("candidate", *rounds, "settings"),
        [_row(one, rounds, chosen) for one in compared[:MOST_SHOWN]],
        numeric=range(1, 1 + len(rounds)),
        caption="Validation accuracy by round",
    )
    lead = (
        f"The automatic mode compared {counted(len(compared), 'candidate')} by networks trained on"
        f" each and chose {_named(chosen)}. No test label is read."
    )
    lines = (*_plan(part(automatic, "plan")), *_left(automatic, len(compared)))
    remarks = (tag("p", line, class_="remark") for line in lines)
    return Panel("How it was chosen", joined(table, *remarks), lead), {}


def ranked(automatic: dict[str, Any]) -> list[dict[str, Any]]:
    """Candidates: the chosen one, then those with scores of later rounds, then by score."""
    # Older files call them a race.
    found = _objects(automatic, "candidates") or _objects(automatic, "race")
    chosen, rounds = part(automatic, "chosen"), rounds_of(found)
    return sorted(
        found, key=lambda one: (is_chosen(one, chosen), standing(one, rounds)), reverse=True
    )


def rounds_of(compared: Sequence[dict[str, Any]]) -> list[str]:
    """Rounds that occur: known ones in their order, then others as they first occur."""
    found = {
        name: None
        for one in compared
        for name, score in scores_of(one).items()
        if score is not None
    }
    # Files sort their keys, so that the order of known rounds is not in them.
    known = [name for name in ROUNDS if name in found]
    return [*known, *(name for name in found if name not in ROUNDS)][:MOST_ROUNDS]


def scores_of(one: dict[str, Any]) -> dict[str, float | None]:
    """Validation accuracies of a candidate by round; ``None`` for what is not a number."""
    scores = part(one, "validation")
    return {name: number(scores, name) for name in scores}


def standing(one: dict[str, Any], rounds: Sequence[str]) -> tuple[float, ...]:
    """Scores from the last round to the first; what has none is below what has any."""
    scores = (scores_of(one).get(name) for name in reversed(rounds))
    return tuple(-math.inf if score is None else score for score in scores)


def is_chosen(one: dict[str, Any], chosen: dict[str, Any]) -> bool:
    """Whether a candidate is the chosen one."""
    return bool(chosen) and all(one.get(key) == chosen.get(key) for key in ("method", "settings"))


def _row(one: dict[str, Any], rounds: Sequence[str], chosen: dict[str, Any]) -> tuple[str, ...]:
    name = f"{text(one, 'method')} (chosen)" if is_chosen(one, chosen) else text(one, "method")
    scores = scores_of(one)
    return name, *(percent(scores.get(each)) for each in rounds), _pairs(part(one, "settings"))


def _plan(plan: dict[str, Any]) -> Iterator[str]:
    if plan:
        yield f"Plan: {_pairs(plan)}."


def _left(automatic: dict[str, Any], compared: int) -> Iterator[str]:
    if compared > MOST_SHOWN:
        yield f"{counted(compared - MOST_SHOWN, 'candidate')} more are in the file."
    for one in _objects(automatic, "left_out")[:MOST_SHOWN]:
        yield f"Left out: {_named(one)} ({text(one, 'reason')})."


def _named(one: dict[str, Any]) -> str:
    settings = part(one, "settings")
    return f"{text(one, 'method')} ({_pairs(settings)})" if settings else text(one, "method")


def _pairs(values: dict[str, Any]) -> str:
    shown = (f"{key}={written(_rounded(value))}" for key, value in values.items())
    return ", ".join(shown)


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _objects(values: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = values.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


CondensationResult = tuple[Panel, dict[str, Any]]
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


def accuracy(found: Evidence) -> CondensationResult:
    """Small, random and whole side by side."""
    if not found.scores:
        return Panel("Accuracy", absence(found.untested or "Nothing was trained.")), {}
    tested = found.scores[0].evaluation
    lead = (
        f"Networks ({tested.model}) trained on each and tested on the real {tested.dataset}. A dot is"
        " one network, the line their mean, the band one standard deviation."
    )
    return Panel("Accuracy", strips([strip(one) for one in found.scores]), lead), {}


def graph(found: Evidence) -> CondensationResult:
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


def beside(found: Evidence) -> CondensationResult:
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


def classes(found: Evidence) -> CondensationResult:
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
    yield "without a label", [f"{one.balance.unlabeled:,}" for one in sides]


def _above(one: Portrait, threshold: float) -> str:
    return f"{one.weights.count // 2:,}" if one.threshold == threshold else NOTHING


def similarity(found: Evidence) -> CondensationResult:
    """CCNS original against condensed."""
    written = found.small.num_classes <= MOST_WRITTEN
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


def matrices(found: Evidence) -> CondensationResult:
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


def node_map(found: Evidence) -> CondensationResult:
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


def cost(found: Evidence) -> CondensationResult:
    """Seconds, memory, bytes."""
    sheet = cost_sheet(found)
    rows = [(name, *cells) for name, cells in sheet.rows]
    table = data_table(("", *sheet.columns), rows, numeric=(1, 2, 3), caption="Cost sheet")
    remarks = (tag("p", remark, class_="remark") for remark in sheet.remarks)
    return Panel("Cost", joined(table, *remarks), half=True), {}


def settings(found: Evidence) -> CondensationResult:
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
