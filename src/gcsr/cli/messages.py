"""Messages of the library in the words of the command line: ``--nodes`` for ``nodes``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

# The field that a sentence begins with, or several of them.
_FIELDS = re.compile(
    r"^(?:exactly one of )?(?P<names>\w+(?:(?:, | and | or )\w+)*)(?= must| is | are | cannot|: )"
)
_WORD = re.compile(r"\w+")
# An argument with its value, such as undirected=True or features='keep'; not a part of a path or of
# text that a message quotes.
_CALL = re.compile(
    r"(?<![\w/\\.'\"=-])(?P<name>\w+)=(?P<value>'[^']*'|\w+|\.{3})(?![\w/\\=:-]|\.\w)"
)
# Names that the library has for the opposite of an option.
_OTHERS = {"check_origin": "any_graph", "checkpoint": "no_checkpoint"}


def in_options(sentence: str, options: Mapping[str, str], settings: Collection[str] = ()) -> str:
    """The sentence with options for arguments.

    Args:
        sentence: of the library.
        options: how the command spells its parameters, such as ``--out`` or ``--tune/--no-tune``.
        settings: names that were given by ``--set``; they are no options.
    """

    def option(name: str) -> str | None:
        found = options.get(name) or options.get(name.removesuffix("s"))
        return None if found is None or name in settings else found

    def spelled(found: re.Match[str]) -> str:
        text = option(found[0])
        return found[0] if text is None else text.partition("/")[0]

    def called(found: re.Match[str]) -> str:
        name, value = found["name"], found["value"]
        text = option(_OTHERS.get(name, name))
        if text is None:
            return found[0]
        on, _, off = text.partition("/")
        if value == "True" or name in _OTHERS:
            return on
        if value == "False":
            return off or f"no {on}"
        return f"{on} {value.strip(chr(39))}"

    if first := _FIELDS.match(sentence):
        start, end = first.span("names")
        sentence = sentence[:start] + _WORD.sub(spelled, first["names"]) + sentence[end:]
    return _CALL.sub(called, sentence)
