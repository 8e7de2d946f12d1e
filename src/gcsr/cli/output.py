"""Tables and JSON on stdout; messages and progress bars on stderr; what Ctrl-C leaves behind."""

from __future__ import annotations

import json
import logging
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcsr.utils.errors import InputWarning
from gcsr.utils.formatting import counted, printable
from gcsr.utils.progress import Progress, shown

if TYPE_CHECKING:
    from rich.console import Console

LEAK = "leaks test labels: the paper's class prior counts every label; not a fair score"
# Wide enough that no row of a table is folded.
PIPE_WIDTH = 160
# Commands that take less print no lines of progress in a pipe.
QUIET_SECONDS = 10.0
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
# What reasons in rows may name.
ROOT_OPTION = {"root": "--root"}
# Names that the library has for the opposite of an option.
_OTHERS = {"check_origin": "any_graph", "checkpoint": "no_checkpoint"}
_written: list[Path] = []
_unfinished: list[Path] = []
_warned: list[str] = []
_rows: list[tuple[Path, int]] = []
# Its level is that of --quiet (errors only) and of --verbose (everything) while a command runs.
log = logging.getLogger("gcsr")


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


def remember_rows(path: Path, count: int) -> None:
    """So many rows are in this file, from which the same command continues."""
    _rows.append((path, count))


def forget_written() -> None:
    """A new command begins."""
    _rows.clear()
    _written.clear()
    _unfinished.clear()
    _warned.clear()


def show_warning(
    usual: Callable[..., None], message: Warning | str, category: type[Warning], *place: Any
) -> None:
    """Print a warning about the input as one sentence on stderr; show any other as usual."""
    if not issubclass(category, InputWarning):
        usual(message, category, *place)
    elif log.isEnabledFor(logging.WARNING):
        _warned.append(str(message))
        print("warning:", printable(message), file=sys.stderr)


class LogHandler(logging.Handler):
    """Prints on the stderr of the moment, which bars replace; notes are not printed again."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        _warned.append(record.getMessage())
        print(self.format(record), file=sys.stderr)


def new_notes(notes: Iterable[str]) -> list[str]:
    """Those that were not printed on stderr."""
    return [note for note in notes if f"{note}." not in _warned]


def interrupted() -> str:
    """The message after Ctrl-C."""
    for path, count in _rows:
        if not count:
            return "interrupted; no row was finished; the same command begins again"
        rows = f"{counted(count, 'row')} {'is' if count == 1 else 'are'} kept in {path}"
        return f"interrupted; {rows}; the same command continues"
    if _written:
        return f"interrupted; written before that: {', '.join(map(str, _written))}"
    for folder in _unfinished:
        if any(folder.glob("*.part")):
            return f"interrupted; the same command continues from {folder}"
        return "interrupted; nothing was written; the same command starts from the beginning"
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
    if log.isEnabledFor(logging.WARNING) and not log.isEnabledFor(logging.DEBUG):
        option = sys.stderr.isatty() or (_lines(runs) if runs else False)
    with shown(option) as progress:
        yield progress


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
