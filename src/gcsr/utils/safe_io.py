"""Files that are complete or absent, locks on files, and limits for untrusted files.

The memory that a reader allocates is bounded by the size of the file: a header may claim anything, and
a few bytes may stand for many (compression, sparse matrices, repeated references).

Locks are those of POSIX; the system drops them when a process ends. They are written here rather than
taken from a library, because a study is locked in its own file, a benchmark locks single bytes, and a
checkpoint's folder may be removed meanwhile. Where there are none (Windows), taking one raises
``OSError``.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from gcsr.utils.errors import InputError, require

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")
# Any file may unfold to this much, a larger one to so many times its bytes: a little more than the
# best that deflate does, so that no array which was merely compressed is ever refused.
ALWAYS_BYTES = 64 * 2**20
UNFOLDING = 1100
_LONGEST_REASON = 200
_UMASK = threading.Lock()


@contextmanager
def parsing(refusal: str, advice: str = "") -> Iterator[None]:
    """Turn whatever a cut, corrupt or hostile file makes its reader raise into one sentence.

    It is ``refusal``, the reason and ``advice``; sentences of this library stay as they are.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{refusal} ({reason(error)}){advice}.") from None


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


def require_path(path: object) -> None:
    """Refuse what is no path of a file or folder."""
    require(
        isinstance(path, str | os.PathLike),
        f"path must be the name of a file or folder, got {type(path).__name__}.",
    )


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


# -- Writing and locking ------------------------------------------------------------------------------


def write_atomically(path: Path, blob: bytes) -> None:
    """Write a file that is either complete or absent, whatever happens meanwhile."""
    with accessing(f"{path}: cannot be written"):
        try:
            with replacing(path) as stream:
                stream.write(blob)
        except FileNotFoundError:
            raise InputError(f"{path}: the folder {path.parent} does not exist.") from None


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` when the block ends without an error."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o666 & ~current_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def current_umask() -> int:
    """The file mode mask of this process."""
    # It can only be read by changing it, and threads write too.
    with _UMASK:
        current = os.umask(0)
        os.umask(current)
    return current


def lock_file(handle: int, *, wait: bool) -> None:
    """Lock an open file until it is closed; ``BlockingIOError`` where another has it.

    Not the kind of lock that SQLite takes, nor that of :func:`lock_byte`: they do not meet.
    """
    fcntl = _fcntl()
    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_byte(handle: int, place: int, *, wait: bool) -> None:
    """Lock one byte of an open file, there or not; ``BlockingIOError`` where another process has it.

    Closing the file anywhere in this process drops every such lock of the process.
    """
    fcntl = _fcntl()
    fcntl.lockf(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)


def unlock_byte(handle: int, place: int) -> None:
    """Let go of one byte."""
    fcntl = _fcntl()
    fcntl.lockf(handle, fcntl.LOCK_UN, 1, place)


def _fcntl() -> Any:
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:
        raise OSError(errno.ENOTSUP, "this system has no POSIX file locks") from None
    return fcntl
