"""Results on stdout: tables for people, JSON for programs."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gcsr.utils.progress import Progress, silent

if TYPE_CHECKING:
    from rich import progress as rich_progress
import json
import re
import unicodedata
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# -- Ctrl-C: files are written whole or not at all, and the last message is true ---------------------


_written: list[Path] = []
_unfinished: list[Path] = []


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and a polite kill wait until the block is done."""
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
    """These files are complete, whatever comes next."""
    _written.extend(paths)


def remember_unfinished(folder: Path) -> None:
    """The state of the run is here, once there is one."""
    _unfinished.append(folder)


def forget_written() -> None:
    """A new command begins."""
    _written.clear()
    _unfinished.clear()


def interrupted() -> str:
    """What Ctrl-C left behind."""
    # States; the room that knows their names is behind a second of imports.
    left = [folder for folder in _unfinished if any(folder.glob("*.part"))]
    if left and not _written:
        return f"interrupted; the same command continues from {left[0]}"
    if not _written:
        return "interrupted; nothing was written"
    return f"interrupted; written before that: {', '.join(map(str, _written))}"


# -- Progress of long work: a bar with the remaining time on a terminal, silence in a pipe -----------


class Stages:
    """One bar per stage; a stage that starts again starts its bar and its clock again."""

    def __init__(self, bars: rich_progress.Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, rich_progress.TaskID] = {}
        self._done: dict[str, int] = {}

    def describe(self, stage: str, text: str) -> None:
        """Show ``text`` in place of the stage's name."""
        if stage not in self._tasks:
            self(stage, 0, 0)
        self._bars.update(self._tasks[stage], description=text)

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report; a total of zero means that nobody knows."""
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=None)
        elif done < self._done[stage]:
            self._bars.reset(self._tasks[stage])
        self._done[stage] = done
        self._bars.update(self._tasks[stage], completed=done, total=total or None)


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """What to hand to the library as ``progress``."""
    if not sys.stderr.isatty():
        yield silent
        return
    from rich import progress as bars  # noqa: PLC0415 - not needed in a pipe
    from rich.console import Console  # noqa: PLC0415

    columns = (
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TextColumn("remaining"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        yield Stages(shown)


def prefixed(progress: Progress, what: str) -> Progress:
    """The same progress with every stage under another name, to tell repetitions apart."""

    def report(stage: str, done: int, total: int) -> None:
        progress(f"{what}: {stage}", done, total)

    return report


# -- Documents of classes as plain text, for people who read them in a terminal ----------------------


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


LEAK = "leaks test labels: the class prior counts every label (paper's Eq. 5); not a fair score"
# Nobody resizes a pipe: wide enough that no row is folded.
PIPE_WIDTH = 160


def console(pipe_width: int = PIPE_WIDTH) -> Console:
    """Stdout; never reads ``[...]`` in a value as markup."""
    from rich.console import Console  # noqa: PLC0415 - not needed for JSON

    width = None if sys.stdout.isatty() else pipe_width
    return Console(width=width, markup=False, highlight=False)


def table(*columns: str, numbers: tuple[str, ...] = (), title: str | None = None) -> Table:
    """A table without frames; the columns in ``numbers`` are flush right."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    made = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return made


def print_json(value: Any) -> None:
    """One JSON value, and nothing else, on stdout."""
    print(json.dumps(value, indent=2))


def print_leak() -> None:
    """Say that a result is not a fair one."""
    console().print(f"warning: {LEAK}", style="bold yellow", soft_wrap=True)


def byte_count(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def printable(value: object) -> str:
    """Text of a file that may come from anywhere, without control characters."""
    return "".join(c if c.isprintable() else "?" for c in str(value))
