"""What is fuzzed: a reader, files that it accepts, and what may come of any other file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz.containers import Container
from gcsr import InputError

LONGEST_SENTENCE = 1000
_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "Unable to allocate")


class FindingError(Exception):
    """Something that must not happen to anybody who opens a file."""


@dataclass(frozen=True)
class Target:
    """One reader.

    Args:
        name: what it is called on the command line.
        reads: what it reads, for people.
        seeds: inputs that are accepted, small.
        attempt: writes the input under an empty folder and reads it; must return or raise
            ``InputError``.
        container: how inputs are taken apart, so that parts are changed and the whole stays readable.
        words: what is worth inserting.
    """

    name: str
    reads: str
    seeds: Callable[[], Sequence[bytes]]
    attempt: Callable[[bytes, Path], object]
    container: Container | None = None
    words: tuple[bytes, ...] = ()


def survives(target: Target, data: bytes) -> bool:
    """Whether the input is accepted; ``False``: refused in one sentence. Anything else raises."""
    with tempfile.TemporaryDirectory(prefix="gcsr-fuzz-", dir=_scratch()) as folder:
        try:
            target.attempt(data, Path(folder))
        except InputError as error:
            _check_refusal(error, len(data))
            return False
    return True


def _scratch() -> str | None:
    memory = Path("/dev/shm")  # noqa: S108 - files of a few kilobytes, thousands of times
    return str(memory) if memory.is_dir() else None


def _check_refusal(error: InputError, size: int) -> None:
    sentence = str(error)
    # A long value that was typed may be shown as it is.
    too_long = len(sentence) > LONGEST_SENTENCE + 4 * size
    if "\n" in sentence or too_long or sentence[-1:] not in (".", "?"):
        raise FindingError(f"not one sentence: {sentence[:2000]!r}") from error
    cause: BaseException | None = error
    while cause is not None:
        words = str(cause)
        if isinstance(cause, MemoryError) or any(said in words for said in _OUT_OF_MEMORY):
            raise FindingError(f"an outsized allocation was tried: {words[:500]}") from error
        cause = cause.__context__
