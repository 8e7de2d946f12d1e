"""Results on stdout: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

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
