"""HTML as values: text is escaped unless it is HTML already."""

from __future__ import annotations

import html as escaping


class Html(str):
    """Text that is HTML; anything else is escaped before it becomes part of a page."""

    __slots__ = ()


Child = str | int | None
Attribute = str | int | float | bool | None
VOID = ("input", "meta")
DRAWN = ("line", "polyline")


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """An element. ``class_`` is class, ``data_id`` is data-id; ``None`` and ``False`` are left out."""
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{name}{said}>")
    if name in DRAWN:
        return Html(f"<{name}{said}/>")
    return Html(f"<{name}{said}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Html:
    """Children one after the other; text among them is escaped."""
    return Html("".join(escaped(child) for child in children if child is not None))


def escaped(child: str | int) -> Html:
    """HTML as it is, everything else as text."""
    return child if isinstance(child, Html) else Html(escaping.escape(printable(child)))


def printable(value: object) -> str:
    """Text of a file that may come from anywhere, without control characters."""
    return "".join(
        c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}"
        for c in str(value)
    )


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escaping.escape(printable(value))}"'
