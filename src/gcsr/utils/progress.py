"""How long work reports where it is; nothing here knows about terminals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Progress(Protocol):
    """Called with what is being done, how much of it is done and how much there is."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report ``done`` of ``total`` steps of ``stage``."""
        ...


class Watch(Protocol):
    """Called with how the iterates of a condensation validate, while it runs; may raise to end it."""

    def __call__(self, iteration: int, scores: Mapping[int, float]) -> None:
        """Hear the validation accuracy of an iterate, by the seed of its graph.

        Graphs that are made together may be told of one by one and from several threads; the
        iterations of each come in order.
        """
        ...


def silent(stage: str, done: int, total: int) -> None:
    """Report to nobody."""


def prefixed(progress: Progress, what: str) -> Progress:
    """The same progress with ``what`` before every stage."""

    def report(stage: str, done: int, total: int) -> None:
        progress(f"{what}: {stage}", done, total)

    return report
