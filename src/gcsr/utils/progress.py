"""Progress callbacks, and the bars that public functions show."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from gcsr.utils.errors import plain_number, require, require_arguments

if TYPE_CHECKING:
    from rich import progress as rich_progress

P = ParamSpec("P")
T = TypeVar("T")
# The argument ``progress`` of public functions: a callback, True (a bar), False (nothing), or None: a
# bar on a terminal or in a notebook. `shows_progress` makes a callback of it.
ProgressOption = Any
logger = logging.getLogger("gcsr")
# Open calls with a setting of progress: calls inside them show no progress of their own.
_open_calls = 0
_BAR, _SECONDS = 20, 0.1


class Progress(Protocol):
    """Called with the stage, the steps done and their number."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report ``done`` of ``total`` steps of ``stage``."""
        ...


class Watch(Protocol):
    """Called with validation accuracies while a condensation runs; may raise to end it."""

    def __call__(self, iteration: int, scores: Mapping[int, float]) -> None:
        """Validation accuracy of an iterate, by the seed of its graph.

        Graphs that are condensed together may be reported one by one and from several threads; the
        iterations of each come in order.
        """
        ...


def silent(stage: str, done: int, total: int) -> None:
    """Ignore the report."""


def prefixed(progress: Progress, what: str) -> Progress:
    """The same progress with ``what`` before every stage."""

    def report(stage: str, done: int, total: int) -> None:
        progress(f"{what}: {stage}", done, total)

    return report


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
        """Update a bar; a total of zero means that it is not known."""
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=None)
        elif done < self._done[stage]:
            self._bars.reset(self._tasks[stage])
        self._done[stage] = done
        self._bars.update(self._tasks[stage], completed=done, total=total or None)


class TextBar:
    """One line that is written over, for notebooks and files, which have no cursor."""

    def __init__(self) -> None:
        self._began, self._shown, self._width = time.monotonic(), 0.0, 0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Write the line again, at most ten times a second."""
        now = time.monotonic()
        if now - self._shown < _SECONDS and done < total:
            return
        bar = f" [{'#' * (_BAR * done // total):<{_BAR}}]" if total else ""
        of = f"/{total}" if total else ""
        line = f"{stage}: {done}{of}{bar} {now - self._began:.0f} s"
        print(f"\r{line:<{self._width}}", end="", file=sys.stderr, flush=True)
        self._shown, self._width = now, len(line)

    def close(self) -> None:
        """End the line."""
        if self._width:
            print(file=sys.stderr)


def _logged(progress: Progress) -> Progress:
    """The same progress; stages that are done are logged with their seconds."""
    starts: dict[str, float] = {}

    def report(stage: str, done: int, total: int) -> None:
        began = starts.setdefault(stage, time.monotonic())
        if done >= total > 0:
            logger.info("%s: %d of %d, %.1f s", stage, done, total, time.monotonic() - began)
            del starts[stage]
        progress(stage, done, total)

    return report


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


@contextmanager
def shown(progress: ProgressOption) -> Iterator[Progress]:
    """The callback of an argument ``progress``; its bars end with the block."""
    global _open_calls  # noqa: PLW0603 - threads share one terminal
    require(
        progress is None or isinstance(progress, bool) or callable(progress),
        f"progress must be True, False, None or a function, got {progress!r}.",
    )
    outermost = not _open_calls
    # A program without a console has no stderr.
    wanted = sys.stderr is not None and (
        progress is True
        or (progress is None and outermost and (sys.stderr.isatty() or in_notebook()))
    )
    _open_calls += 1
    try:
        given = progress if callable(progress) else silent
        with _bars() if wanted else nullcontext(given) as report:
            log = outermost and logger.isEnabledFor(logging.INFO)
            yield _logged(report) if log else report
    finally:
        _open_calls -= 1


@contextmanager
def _bars() -> Iterator[Progress]:
    """Bars on a terminal, otherwise a line of text."""
    if not sys.stderr.isatty() or in_notebook():
        line = TextBar()
        try:
            yield line
        finally:
            line.close()
        return
    from rich import progress as bars  # noqa: PLC0415 - the first of a process is not free
    from rich.console import Console  # noqa: PLC0415

    columns = (
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TextColumn("remaining"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as screen:
        yield Stages(screen)


def shows_progress(function: Callable[P, T]) -> Callable[P, T]:
    """A function whose argument ``progress`` may be any of ``ProgressOption``; it gets a callback.

    Numbers among its keywords may be scalars of NumPy. Arguments that it does not have are refused.
    """

    @wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> T:
        require_arguments(function, args, given)
        with shown(given.get("progress")) as progress:
            given.update({name: plain_number(value) for name, value in given.items()})
            given["progress"] = progress
            return function(*args, **given)

    return call
