"""What a result cost and what it saves: seconds, memory, bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gcsr.evaluate.sheet import verdict
from gcsr.report.evidence import RANDOM, WHOLE, Evidence
from gcsr.report.said import NOTHING, byte_count, number, part, seconds
from gcsr.stored import stored_adjacency_bytes

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
    yield "peak memory until it was done", (memory, NOTHING, NOTHING)
    if own is not None and random is not None and whole is not None:
        each = tuple(seconds(one.seconds_each) for one in (own, random, whole))
        yield "training one network", each
    yield "bytes in the file", (byte_count(small.stored_bytes), NOTHING, byte_count(original))
    for name, itemsize in (("float32", 4), ("float16", 2)):
        features = small.x.numel() * itemsize
        dense = small.adjacency.numel() * itemsize
        sparse = stored_adjacency_bytes(small.adjacency, itemsize, features + small.y.nbytes)
        yield f"… features, {name}", (byte_count(features), NOTHING, NOTHING)
        yield f"… A' dense, {name}", (byte_count(dense), NOTHING, NOTHING)
        yield f"… A' without its zeros, {name}", (byte_count(sparse), NOTHING, NOTHING)


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
    yield verdict(spent, own.seconds_each, whole.seconds_each)
    yield (
        "`gcsr cost` measures more: a random subset of the same bytes, sparsified and half precision"
        " forms with their accuracy, and training without validation."
    )
