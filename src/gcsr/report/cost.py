"""What a result cost and what it saves: seconds, memory, bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gcsr.report.evidence import RANDOM, WHOLE, Evidence
from gcsr.report.said import NOTHING, byte_count, number, part, seconds

COLUMNS = ("condensed", "random subset", "whole graph")


@dataclass(frozen=True)
class CostSheet:
    """Rows of a label and one text per column, and remarks below them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    remarks: tuple[str, ...] = ()


def cost_sheet(found: Evidence) -> CostSheet:
    """Everything known about the cost of one result."""
    return CostSheet(COLUMNS, tuple(_rows(found)), tuple(_remarks(found)))


def _rows(found: Evidence) -> Iterator[tuple[str, tuple[str, ...]]]:
    small, made = found.small, found.small.provenance
    measured = part(made, "measured")
    own, random, whole = found.own, found.rivals(RANDOM), found.rivals(WHOLE)
    original = number(part(made, "bytes"), "original")
    if original is None and whole is not None:
        original = whole.nbytes
    yield "condensing, once", (seconds(number(measured, "seconds")), "none", "none")
    memory = byte_count(number(measured, "peak_memory_bytes"))
    yield "peak memory while condensing", (memory, NOTHING, NOTHING)
    if own is not None and random is not None and whole is not None:
        each = tuple(seconds(one.seconds_each) for one in (own, random, whole))
        yield "training one network", each
    stored = byte_count(small.nbytes)
    yield "bytes stored", (stored, stored, byte_count(original))
    yield "… features", (byte_count(small.x.nbytes),) * 2 + (NOTHING,)
    yield "… dense A'", (byte_count(small.adjacency.nbytes),) * 2 + (NOTHING,)
    yield "… labels", (byte_count(small.y.nbytes),) * 2 + (NOTHING,)


def _remarks(found: Evidence) -> Iterator[str]:
    measured = part(found.small.provenance, "measured")
    together = number(measured, "graphs_together")
    if together is not None and together > 1:
        yield f"{together:.0f} graphs were condensed together; seconds are per graph."
    experts = part(measured, "experts")
    if experts.get("cached") is True:
        yield "The experts were trained before and are not part of the seconds."
    own, whole = found.own, found.rivals(WHOLE)
    spent = number(measured, "seconds")
    if own is None or whole is None:
        return
    yield (
        "Training includes validation on the real graph after every epoch, which costs the same"
        " whatever was trained on. Seconds are of the machine that made this page."
    )
    saved = whole.seconds_each - own.seconds_each
    if spent is not None and saved > 0:
        yield f"Condensing pays for itself after about {max(1, round(spent / saved)):,} trainings."
