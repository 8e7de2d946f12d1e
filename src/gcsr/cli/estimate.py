"""What a condensation would take, for people and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcsr.cli.output import byte_count, print_json

if TYPE_CHECKING:
    from gcsr.blocks import Estimate


def tell_estimate(found: Estimate, *, as_json: bool) -> None:
    """Print an estimate."""
    if as_json:
        print_json(found.to_dict())
        return
    where = "in blocks" if found.in_blocks else "in memory"
    print(
        f"{where}: about {_duration(found.seconds)} on one core (an order of magnitude),"
        f" {byte_count(found.memory_bytes)} of memory, {byte_count(found.disk_bytes)} of disk"
    )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{max(1.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
