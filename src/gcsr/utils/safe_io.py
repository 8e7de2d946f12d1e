"""Limits for untrusted files.

The memory that a reader allocates is bounded by the size of the file: a header may claim anything, and
a few bytes may stand for many (compression, sparse matrices, repeated references).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gcsr.utils.errors import InputError, require

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")
# Any file may unfold to this much, a larger one to so many times its bytes: a little more than the
# best that deflate does, so that no array which was merely compressed is ever refused.
ALWAYS_BYTES = 64 * 2**20
UNFOLDING = 1100
_LONGEST_REASON = 200


@contextmanager
def parsing(refusal: str) -> Iterator[None]:
    """Turn whatever a cut, corrupt or hostile file makes its reader raise into one sentence.

    It is ``refusal`` and the reason; sentences of this library stay as they are.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{refusal} ({reason(error)}).") from None


@contextmanager
def accessing(refusal: str, advice: str = "") -> Iterator[None]:
    """Turn what the system refuses into one sentence: ``refusal``, its reason and ``advice``."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{refusal} ({error.strerror}){advice}.") from None


@contextmanager
def naming(place: object) -> Iterator[None]:
    """Begin the sentences of errors with the file that they are about."""
    try:
        yield
    except InputError as error:
        error.args = (f"{place}: {error}",)  # the same error: its traceback ends where the check is
        raise


def allowed_bytes(file_bytes: int) -> int:
    """How many bytes a file of that size may become in memory."""
    return ALWAYS_BYTES + UNFOLDING * file_bytes


def require_unfoldable(what: str, needed: int, file_bytes: int) -> None:
    """Refuse to make ``needed`` bytes out of ``file_bytes`` where that is out of proportion."""
    allowed = allowed_bytes(file_bytes)
    require(
        needed <= allowed,
        f"{what} would take {needed:,} bytes, and a file of {file_bytes:,} bytes may unfold to at most"
        f" {allowed:,}.",
    )


def is_file(path: Path) -> bool:
    """Whether there is such a file; a name that the system refuses names none."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises for names that are too long


def expanded(path: str | Path) -> Path:
    """The path with ``~`` replaced by a home folder where there is one."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises for ~nobody


def user_folder(chosen: str | Path | None) -> Path:
    """``chosen``, else ``gcsr`` in the user's cache folder."""
    if chosen:
        return expanded(chosen)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "gcsr"


def is_number(value: object) -> bool:
    """A finite number that a float can hold: JSON has whole numbers of any length."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def known(values: Mapping[str, Any], name: str, kind: type[T]) -> T | None:
    """A value of an object of a file, if it is there and of that kind."""
    found = values.get(name)
    return found if isinstance(found, kind) else None


def part(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object inside an object of a file; empty where there is none."""
    return known(values, name, dict) or {}


def reason(error: object) -> str:
    """The text of an error or of anything else, shortened, as a part of a sentence."""
    words = " ".join(str(error).split()) or type(error).__name__
    plain = "".join(c if c.isprintable() else "?" for c in words)
    return plain if len(plain) <= _LONGEST_REASON else f"{plain[:_LONGEST_REASON]}…"


def never_falls(values: np.ndarray) -> bool:
    """Whether no number is below the one before it; differences of huge numbers would wrap around."""
    return bool((values[1:] >= values[:-1]).all())
