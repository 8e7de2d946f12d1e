"""Progress callbacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


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
