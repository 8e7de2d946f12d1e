"""How condensing went: the loss, and what chose the iterate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gcsr.report.charts import SMOOTHED_FROM, Series, line_chart, smoothed
from gcsr.report.evidence import Evidence
from gcsr.report.html import Html, joined
from gcsr.report.page import Panel
from gcsr.report.panels import Made, absence
from gcsr.report.said import curve, number, part, text

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


def training(found: Evidence) -> Made:
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
