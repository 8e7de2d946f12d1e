"""Progress of long work: a bar with the remaining time on a terminal, silence in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gcsr.progress import Progress, silent

if TYPE_CHECKING:
    from rich import progress as rich_progress


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
