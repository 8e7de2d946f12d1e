"""The frames that the page's script fills: controls, canvases, places for words."""

from __future__ import annotations

from typing import Any

from gcsr.report.html import Html, tag

STEPS = 1000


def graph_view(data: dict[str, Any], classes: int, left_out: int, absent: str) -> Html:
    """The graph, its slider, its legend and the words about one node."""
    slider = tag(
        "label",
        tag("span", "Edges drawn: weight at least"),
        tag(
            "input",
            type="range",
            id="threshold",
            min=0,
            max=STEPS,
            value=STEPS,
            disabled=not data["edges"],
            aria_describedby="drawn",
        ),
        class_="slider",
    )
    omitted = (
        tag(
            "p",
            f"{left_out:,} weaker edges are not in this page and cannot be drawn.",
            class_="remark",
        )
        if left_out
        else None
    )
    canvas = tag(
        "canvas",
        id="graph-canvas",
        tabindex=0,
        role="application",
        aria_label=f"Condensed graph with {data['nodes']} nodes and {data['edges_in_all']} edges",
        aria_describedby="graph-help",
    )
    zoom = tag(
        "div",
        tag("button", "+", type="button", id="zoom-in", aria_label="Zoom in"),
        tag("button", "−", type="button", id="zoom-out", aria_label="Zoom out"),
        tag("button", "Reset", type="button", id="zoom-reset", aria_label="Reset the view"),
        class_="zoom",
    )
    why = (
        ""
        if data["nearest"] is not None
        else f" Nearest real nodes are not known. {absent}".rstrip()
    )
    aside = tag(
        "div",
        tag("h3", "No node chosen", id="node-title"),
        tag("div", tag("p", f"Point at a node or step through them.{why}"), id="node-facts"),
        id="node",
        aria_live="polite",
        aria_atomic="true",
    )
    keys = tag(
        "p",
        "Keyboard: ",
        tag("kbd", "←"),
        tag("kbd", "→"),
        " node by node, ",
        tag("kbd", "Enter"),
        " its strongest neighbour, ",
        tag("kbd", "+"),
        tag("kbd", "−"),
        tag("kbd", "0"),
        " zoom, ",
        tag("kbd", "Esc"),
        " none.",
        id="graph-help",
        class_="remark",
    )
    return tag(
        "div",
        tag("div", slider, tag("output", id="drawn", for_="threshold"), class_="controls"),
        tag("div", id="legend", class_="legend", role="group", aria_label="Classes"),
        tag(
            "div",
            tag("div", canvas, zoom, tag("div", class_="tip", hidden=True), class_="stage"),
            aside,
            class_="explorer",
        ),
        keys,
        omitted,
    )


def heat_view(name: str, title: str, words: str) -> Html:
    """A matrix with its scale and what is under the pointer."""
    return tag(
        "figure",
        tag("figcaption", title),
        tag(
            "canvas",
            class_="heat-canvas",
            data_heat=name,
            role="img",
            aria_label=f"{title}. {words}",
        ),
        tag("div", tag("span"), tag("i"), tag("span"), class_="ramp", aria_hidden="true"),
        tag("p", words, class_="remark", data_words=words),
        class_="heat-map",
    )


def map_view(real: int, condensed: int) -> Html:
    """The t-SNE map."""
    boxes = (
        tag(
            "label",
            tag("input", type="checkbox", id=f"show-{name}", checked=True),
            f" {said} ({count:,})",
        )
        for name, said, count in (("real", "real", real), ("condensed", "condensed", condensed))
    )
    canvas = tag(
        "canvas",
        id="map-canvas",
        tabindex=0,
        role="img",
        aria_label=f"t-SNE map of {real} real and {condensed} condensed nodes",
    )
    return tag(
        "div",
        tag("div", *boxes, class_="controls"),
        tag("div", canvas, tag("div", class_="tip", hidden=True), class_="stage square"),
        tag(
            "p",
            "Colours as in the graph above; arrow keys step through condensed nodes.",
            class_="remark",
        ),
        tag("p", id="map-words", class_="remark", aria_live="polite"),
    )
