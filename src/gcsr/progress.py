"""How long work reports where it is; nothing here knows about terminals."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called with what is being done, how much of it is done and how much there is."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report ``done`` of ``total`` steps of ``stage``."""
        ...


def silent(stage: str, done: int, total: int) -> None:
    """Report to nobody."""
