"""The reference of the command line, from the program itself; a test holds the page against it.

python benchmarks/cli_page.py > docs/cli.md
"""

from __future__ import annotations

import inspect
import types
import typing
from typing import Any

from typer.models import ArgumentInfo, CommandInfo

from gcsr.cli.app import app

HEAD = """# Command line

Every command with its options. Made from the program by `python benchmarks/cli_page.py`;
`gcsr COMMAND --help` shows the same. Results go to stdout, progress to stderr and only on a terminal.
Every command has `--quiet` (`-q`: results and errors, no progress or warnings) and `--verbose` (`-v`:
what is done, and its seconds, on stderr). `gcsr --install-completion` completes commands and options in
your shell.

A dataset that you name (as `DATA`, with `--data` or `--dataset`, in the FILE of `gcsr benchmark`, or by
a table of `gcsr reproduce`) is downloaded if its files are not in the folder of datasets, unless
`--no-download` is given. The dataset that a condensed graph was made from is not downloaded.

| exit code | |
|---|---|
| 0 | done |
| 1 | `gcsr benchmark`, `gcsr reproduce`: a cell failed; the reader of a pipe left |
| 2 | something given cannot be used: one sentence on stderr, nothing written |
| 130 | Ctrl-C; what was written is named |
"""
COLUMNS = "| option | value | default | |\n|---|---|---|---|"
KINDS = {int: "number", float: "number", str: "text"}


def page() -> str:
    return "\n".join([HEAD, *(_command(command) for command in app.registered_commands)])


def _command(command: CommandInfo) -> str:
    assert command.callback is not None
    text = " ".join((inspect.getdoc(command.callback) or "").split())
    hints = typing.get_type_hints(command.callback, include_extras=True)
    parameters = inspect.signature(command.callback).parameters.values()
    own = (p for p in parameters if p.name not in ("quiet", "verbose"))
    # Arguments come first, as they are typed.
    described = sorted(
        ((p, *typing.get_args(hints[p.name])) for p in own),
        key=lambda one: not isinstance(one[2], ArgumentInfo),
    )
    rows = "\n".join(_row(parameter, kind, info) for parameter, kind, info in described)
    return f"## gcsr {command.name}\n\n{text}\n\n{COLUMNS}\n{rows}\n"


def _row(parameter: inspect.Parameter, kind: Any, info: Any) -> str:
    cells = (
        ", ".join(f"`{name}`" for name in _names(parameter.name, info)),
        _value(kind, info),
        _default(parameter.default),
        " ".join((info.help or "").split()).replace("|", "\\|"),
    )
    return f"| {' | '.join(cells)} |"


def _names(name: str, info: Any) -> list[str]:
    if isinstance(info, ArgumentInfo):
        return [info.metavar or name.upper()]
    # In an annotation the first name takes the place of the default.
    first = [info.default] if isinstance(info.default, str) else []
    declared = [part for given in (*first, *(info.param_decls or ())) for part in given.split("/")]
    return declared or [f"--{name.replace('_', '-')}"]


def _value(kind: Any, info: Any) -> str:
    plain = [one for one in _choices(kind) if one is not types.NoneType]
    (one,) = plain
    several = typing.get_origin(one) is list
    if several:
        (one,) = typing.get_args(one)
    if one is bool or isinstance(info, ArgumentInfo):
        return ""
    shown = info.metavar or KINDS.get(one, "path")
    least = "" if info.min is None else f" ≥ {info.min}"
    return f"{shown}{least}{', repeatable' if several else ''}"


def _choices(kind: Any) -> tuple[Any, ...]:
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if union else (kind,)


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "needed"
    return "" if value is None or value is False else f"`{value}`"


if __name__ == "__main__":
    print(page(), end="")
