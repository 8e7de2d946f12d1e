"""The page as one HTML file with its styles, script and data; it loads nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Protocol, cast

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from gcsr.utils.formatting import printable
from gcsr.version import __version__

STYLES = ("page.css", "charts.css")
SCRIPTS = ("base.js", "marks.js", "plane.js", "graph.js", "map.js", "heat.js", "start.js")


def _asset(name: str) -> str:
    return (files("gcsr.reporting") / "assets" / name).read_text(encoding="utf-8").strip()


def _text(value: object) -> object:
    return value if isinstance(value, Markup) else printable(value)


_ENVIRONMENT = Environment(
    loader=DictLoader({name: _asset(name) for name in ("page.html", "parts.html")}),
    autoescape=True,
    finalize=_text,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.policies["json.dumps_kwargs"] = {
    "sort_keys": True,
    "separators": (",", ":"),
    "allow_nan": False,
}


class _Macros(Protocol):
    def __getattr__(self, name: str) -> Callable[..., Markup]: ...


# The macros of parts.html.
html = cast("_Macros", _ENVIRONMENT.get_template("parts.html").module)


def joined(*parts: str) -> Markup:
    """Parts one after the other; text among them is escaped."""
    return Markup("").join(parts)


@dataclass(frozen=True)
class Panel:
    """A part of the page with a heading.

    ``half`` ones stand side by side where there is room. ``data`` is drawn by the page's script.
    """

    title: str
    body: Markup
    lead: str = ""
    half: bool = False
    short: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def anchor(self) -> str:
        """The id of the section."""
        name = (self.short or self.title).lower()
        return re.sub(r"[^a-z0-9]+", "-", name).strip("-") or "part"


# A warning or note at the top: ``bad``, ``warn`` or ``note``, a heading and a sentence.
Banner = tuple[str, str, str]
# A number with a name: the name, the number and a detail.
Tile = tuple[str, str, str]


@dataclass(frozen=True)
class Page:
    """The content of a page; ``data`` is drawn by its script, with that of the panels."""

    title: str
    lead: str
    banners: Sequence[Banner] = ()
    tiles: Sequence[Tile] = ()
    panels: Sequence[Panel] = ()
    data: dict[str, Any] = field(default_factory=dict)

    def render(self) -> str:
        """One HTML file; equal pages are equal bytes."""
        parts = "\n".join(map(_asset, SCRIPTS))
        script = f'(() => {{\n"use strict";\n{parts}\n}})();'
        digest = hashlib.sha256(script.encode()).digest()
        return _ENVIRONMENT.get_template("page.html").render(
            page=self,
            data=dict(ChainMap(self.data, *(panel.data for panel in self.panels))),
            style=Markup("\n".join(map(_asset, STYLES))),  # noqa: S704 - our own files
            script=Markup(script),  # noqa: S704
            script_hash=base64.b64encode(digest).decode(),
            version=__version__,
        )
