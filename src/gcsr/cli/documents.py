"""Documents of classes as plain text, for people who read them in a terminal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

MATHS = re.compile(r":math:`([^`]*)`")
ROLE = re.compile(r":[a-z:]+:`~?([^`]*)`")
LITERAL = re.compile(r"``([^`]*)``")
HAT = re.compile(r"\\hat\s*(?:\{(\w)\}|(\w))")
COMMAND = re.compile(r"\\([A-Za-z]+)")
SPACE = re.compile(r"\\[,;! ]")
ENTRY = re.compile(r" {4}(?P<names>\w+(?:, \w+)*): ")


def plain_text(document: str, settable: Collection[str]) -> str:
    """A docstring without markup, its arguments as settings, those alone that can be set."""
    text = MATHS.sub(lambda found: _formula(found[1]), document)
    text = ROLE.sub(lambda found: found[1].rsplit(".", 1)[-1], text)
    text = LITERAL.sub(r"'\1'", text)
    head, arguments, entries = text.partition("Args:\n")
    if not arguments:
        return text
    kept = list(_settable(entries.splitlines(), settable))
    return "\n".join([f"{head}Settings:", *kept]) if kept else head.rstrip()


def _settable(lines: list[str], settable: Collection[str]) -> list[str]:
    """Entries of a list of arguments, each with the lines that belong to it."""
    kept: list[str] = []
    wanted = True
    for line in lines:
        entry = ENTRY.match(line)
        if entry is not None:
            wanted = any(name in settable for name in entry["names"].split(", "))
        elif not line.startswith(" "):
            wanted = True  # the list has ended
        if wanted:
            kept.append(line)
    return kept


def _formula(text: str) -> str:
    """A formula as one would type it: letters keep their hats, commands lose their backslash."""
    hatted = HAT.sub(lambda found: _hatted(found[1] or found[2]), text)
    spaced = SPACE.sub(" ", hatted)
    return COMMAND.sub(lambda found: {"dots": "..."}.get(found[1], found[1]), spaced)


def _hatted(letter: str) -> str:
    return unicodedata.normalize("NFC", f"{letter}\N{COMBINING CIRCUMFLEX ACCENT}")
