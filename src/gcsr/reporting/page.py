"""The page as one file: assets and data inlined, nothing fetched, nothing but its own script runs."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from gcsr.reporting.html import Html, joined, tag
from gcsr.reporting.text import stem
from gcsr.version import __version__

STYLES = ("page.css", "charts.css")
SCRIPTS = ("base.js", "marks.js", "plane.js", "graph.js", "map.js", "heat.js", "start.js")


@dataclass(frozen=True)
class Panel:
    """A part of the page with a heading; ``half`` ones stand side by side where there is room."""

    title: str
    body: Html
    lead: str = ""
    half: bool = False
    short: str = ""

    @property
    def anchor(self) -> str:
        """Where links go."""
        return stem(self.short or self.title)


@dataclass(frozen=True)
class Banner:
    """Something that must not be overlooked; ``kind`` is ``bad``, ``warn`` or ``note``."""

    kind: str
    heading: str
    sentence: str


@dataclass(frozen=True)
class Tile:
    """A number that sums up."""

    name: str
    value: str
    detail: str = ""


@dataclass(frozen=True)
class Page:
    """All that a page holds; ``data`` is what its script draws."""

    title: str
    lead: str
    banners: Sequence[Banner] = ()
    tiles: Sequence[Tile] = ()
    panels: Sequence[Panel] = ()
    data: dict[str, Any] = field(default_factory=dict)

    def render(self) -> str:
        """One HTML file; equal pages are equal bytes."""
        style = "\n".join(_asset(name) for name in STYLES)
        parts = "\n".join(_asset(name) for name in SCRIPTS)
        script = f'(() => {{\n"use strict";\n{parts}\n}})();'
        body = joined(
            tag("a", "Skip to the content", href="#main", class_="skip"),
            self._header(),
            self._navigation(),
            tag("main", *map(_banner, self.banners), self._tiles(), *self._sections(), id="main"),
            tag(
                "footer",
                f"Made by gcsr {__version__}. This file loads nothing and sends nothing.",
            ),
        )
        return (
            "<!doctype html>\n"
            + tag(
                "html",
                tag("head", *self._head(script), tag("style", Html(style))),
                tag(
                    "body",
                    body,
                    tag("script", as_json(self.data), type="application/json", id="data"),
                    tag("script", Html(script)),
                ),
                lang="en",
            )
            + "\n"
        )

    def _head(self, script: str) -> list[Html]:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        # Only the script of this hash runs, whatever else a name may smuggle into the page.
        policy = (
            f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline';"
            " img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'"
        )
        return [
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=policy),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="referrer", content="no-referrer"),
            tag("title", f"{self.title} · gcsr report"),
        ]

    def _header(self) -> Html:
        toggle = tag(
            "button", "Dark", type="button", id="theme", aria_pressed="false", class_="ghost"
        )
        return tag(
            "header",
            tag("div", tag("span", "gcsr report", class_="eyebrow"), toggle, class_="top"),
            tag("h1", self.title),
            tag("p", self.lead, class_="lead") if self.lead else None,
        )

    def _navigation(self) -> Html:
        links = (tag("li", tag("a", p.short or p.title, href=f"#{p.anchor}")) for p in self.panels)
        return tag("nav", tag("ul", *links), aria_label="Parts of this page")

    def _tiles(self) -> Html | None:
        if not self.tiles:
            return None
        shown = (
            tag("div", tag("dt", t.name), tag("dd", tag("b", t.value), tag("span", t.detail)))
            for t in self.tiles
        )
        return tag("dl", *shown, class_="tiles")

    def _sections(self) -> list[Html]:
        return [
            tag(
                "section",
                tag("h2", panel.title, id=f"{panel.anchor}-title"),
                tag("p", panel.lead, class_="lead") if panel.lead else None,
                panel.body,
                id=panel.anchor,
                class_="half" if panel.half else None,
                aria_labeledby=f"{panel.anchor}-title",
            )
            for panel in self.panels
        ]


def as_json(data: dict[str, Any]) -> Html:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Html(text)


def _banner(banner: Banner) -> Html:
    return tag(
        "div",
        tag("strong", banner.heading),
        " ",
        banner.sentence,
        class_=f"banner {banner.kind}",
        role="alert" if banner.kind == "bad" else "note",
    )


def _asset(name: str) -> str:
    return (files("gcsr.reporting") / "assets" / name).read_text(encoding="utf-8").strip()
