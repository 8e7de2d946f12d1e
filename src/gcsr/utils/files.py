"""Files that are either complete or absent."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

from gcsr.utils.errors import InputError

_UMASK = threading.Lock()


def write_atomically(path: Path, blob: bytes) -> None:
    """Write a file that is either complete or absent, whatever happens meanwhile."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}).") from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(blob)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o666 & ~current_umask())
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}).") from None
    finally:
        temporary.unlink(missing_ok=True)


def current_umask() -> int:
    """The file mode mask of this process."""
    # It can only be read by changing it, and threads write too.
    with _UMASK:
        current = os.umask(0)
        os.umask(current)
    return current
