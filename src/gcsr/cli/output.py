"""Results on stdout: tables or JSON; progress bars on stderr; what Ctrl-C leaves behind."""

from __future__ import annotations

import inspect
import json
import logging
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo

from gcsr.cli import options
from gcsr.cli.messages import in_options
from gcsr.utils.errors import InputError, InputWarning, require
from gcsr.utils.formatting import printable
from gcsr.utils.progress import Progress, shown

if TYPE_CHECKING:
    from rich.console import Console

LEAK = "leaks test labels: the class prior counts every label (paper's Eq. 5); not a fair score"
# Wide enough that no row of a table is folded.
PIPE_WIDTH = 160
# Commands that take less print no lines of progress in a pipe.
QUIET_SECONDS = 10.0
# Parameters with the words of --set.
SETTINGS = ("assignments", "set_")
_written: list[Path] = []
_unfinished: list[Path] = []
_warned: list[str] = []
# Its level is that of --quiet (errors only) and of --verbose (everything) while a command runs.
_log = logging.getLogger("gcsr")


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay SIGINT and SIGTERM until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread
        return
    arrived: list[int] = []
    previous = {
        number: signal.signal(number, lambda got, _: arrived.append(got))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    for late in arrived:
        signal.raise_signal(late)


def remember_written(paths: Iterable[Path]) -> None:
    """These files are complete; the message after Ctrl-C names them."""
    _written.extend(paths)


def remember_unfinished(folder: Path) -> None:
    """The checkpoint of the run is in this folder, once there is one."""
    _unfinished.append(folder)


def forget_written() -> None:
    """A new command begins."""
    _written.clear()
    _unfinished.clear()
    _warned.clear()


def show_warning(
    usual: Callable[..., None], message: Warning | str, category: type[Warning], *place: Any
) -> None:
    """Print a warning about the input as one sentence on stderr; show any other as usual."""
    if not issubclass(category, InputWarning):
        usual(message, category, *place)
    elif _log.isEnabledFor(logging.WARNING):
        _warned.append(str(message))
        print("warning:", printable(message), file=sys.stderr)


def new_notes(notes: Iterable[str]) -> list[str]:
    """Those that were not printed as warnings."""
    return [note for note in notes if f"{note}." not in _warned]


def interrupted() -> str:
    """The message after Ctrl-C."""
    if _written:
        return f"interrupted; written before that: {', '.join(map(str, _written))}"
    for folder in _unfinished:
        if any(folder.glob("*.part")):
            return f"interrupted; the same command continues from {folder}"
    return "interrupted; nothing was written"


def _lines(runs: int) -> Progress:
    """One line on stderr per finished run, once a command takes longer than ``QUIET_SECONDS``."""
    began, before = time.monotonic(), 0

    def report(stage: str, done: int, total: int) -> None:
        nonlocal before
        if stage.startswith("training") and total:
            finished, seconds = done * runs // total, time.monotonic() - began
            if finished > before and seconds >= QUIET_SECONDS:
                print(f"{stage}: {finished} of {runs} runs, {seconds:.0f} s", file=sys.stderr)
            before = finished

    return report


@contextmanager
def progress_bars(runs: int = 0) -> Iterator[Progress]:
    """A progress callback: bars on a terminal; in a pipe one line for each of ``runs``, or nothing.

    Nothing with ``--quiet``, and none with ``--verbose``, which logs every stage.
    """
    option: Progress | bool = False
    if _log.isEnabledFor(logging.WARNING) and not _log.isEnabledFor(logging.DEBUG):
        option = sys.stderr.isatty() or (_lines(runs) if runs else False)
    with shown(option) as progress:
        yield progress


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer needs it, with ``--quiet`` and ``--verbose``.

    Every parameter is an option, but for those that are declared as arguments. One that is a
    dataclass becomes an option per field. ``Args`` of their docstrings are the help of options.
    """
    helps: dict[str, str] = {}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {}
    added: list[tuple[str, Any, Any]] = []
    for one in signature.parameters.values():
        if is_dataclass(one.annotation):
            groups[one.name] = one.annotation
            helps |= _helps(one.annotation)
            hints = get_type_hints(one.annotation, include_extras=True)
            added += [(name, value, hints[name]) for name, value in vars(one.default).items()]
        else:
            added.append((one.name, one.default, one.annotation))
    helps |= _helps(command)
    added += [("quiet", False, options.Quiet), ("verbose", False, options.Verbose)]
    parameters = [
        inspect.Parameter(
            name, kind, default=default, annotation=_declared(name, default, hint, helps.get(name))
        )
        for name, default, hint in added
    ]

    spelling = {one.name: _spelling(one.name, one.annotation) for one in parameters}
    # The library may have the option's name where the command has another.
    spelling |= {word.strip("-").replace("-", "_"): word for word in spelling.values()}

    @wraps(command)
    def run(*args: Any, quiet: bool, verbose: bool, **given: Any) -> None:
        require(not (quiet and verbose), "--quiet cannot be used with --verbose.")
        handler, level = logging.StreamHandler(), _log.level
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        if quiet or verbose:
            _log.setLevel(logging.ERROR if quiet else logging.DEBUG)
            _log.addHandler(handler)
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        settings = [one for name in SETTINGS for one in given.get(name) or ()]
        try:
            command(*args, **given)
        except InputError as error:
            from gcsr.methods.registry import setting_name

            named = {setting_name(one.partition("=")[0].strip()) for one in settings}
            raise InputError(in_options(str(error), spelling, named)) from None
        finally:
            _log.removeHandler(handler)
            _log.setLevel(level)

    run.__doc__ = (inspect.getdoc(command) or "").partition("Args:\n")[0].rstrip()
    vars(run)["__signature__"] = signature.replace(parameters=parameters)
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _spelling(name: str, annotation: Any) -> str:
    """An option as it is written, or the name of an argument in the help."""
    info = get_args(annotation)[1]
    if isinstance(info, ArgumentInfo):
        return (info.metavar or name.upper()).strip("[].")
    # In annotations the first declaration is where a default value would be.
    declared = (info.default, *(info.param_decls or ()), f"--{name.replace('_', '-')}")
    return next(word for word in declared if isinstance(word, str) and word.startswith("-"))


# A name, or several, and its text of several lines in the ``Args`` of a docstring.
ENTRY = re.compile(r"^ {4}(\w+(?:, \w+)*): (.+(?:\n {8}.+)*)\n?", re.MULTILINE)


def _helps(documented: object) -> dict[str, str]:
    _, _, entries = (inspect.getdoc(documented) or "").partition("Args:\n")
    return {name: " ".join(text.split()) for name, text in ENTRY.findall(entries)}


def _declared(name: str, default: Any, hint: Any, text: str | None) -> Any:
    """The annotation of an option; a truth value that is false by default has no --no-... form."""
    declared = get_origin(hint) is Annotated
    plain, info = get_args(hint) if declared else (hint, typer.Option())
    if not declared and bool in (plain, *get_args(plain)):
        word = name.replace("_", "-")
        info = typer.Option(f"--{word}" if default is False else f"--{word}/--no-{word}")
    info = copy(info)
    info.help = text or info.help
    return Annotated[plain, info]


def console(pipe_width: int = PIPE_WIDTH) -> Console:
    """Stdout; never reads ``[...]`` in a value as markup."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else pipe_width
    return Console(width=width, markup=False, highlight=False)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Iterable[object]],
    numbers: Sequence[str] = (),
    title: str | None = None,
) -> None:
    """Print a table without frames; the columns in ``numbers`` are flush right."""
    from rich import box
    from rich.table import Table

    shown = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for column in columns:
        shown.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        shown.add_row(*map(str, row))
    console().print(shown)


def print_json(value: Any) -> None:
    """One JSON value, and nothing else, on stdout."""
    print(json.dumps(value, indent=2))


def print_leak() -> None:
    """Warn that a result is not a fair one."""
    console().print(f"warning: {LEAK}", style="bold yellow", soft_wrap=True)
