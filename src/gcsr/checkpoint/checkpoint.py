"""Where a run writes down how far it is, and how often."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gcsr.errors import require

SUFFIX = ".part"
RUN = "run.json"
LOCK = "lock"
STAGE = "result"


@dataclass(frozen=True)
class Checkpoint:
    """A folder with the state of a run; who runs the same again continues there.

    Args:
        path: the folder, made where it is not there. The folder around it must exist.
        every: seconds between two writings of a state at least; by default as many as keep the time
            spent writing at one hundredth. It changes no result.
        fresh: begin anew, whatever lies there.
        keep: leave the folder when the run is finished, for a caller who has something to do before
            the result is safe and calls :meth:`discard` then.
    """

    path: Path
    every: float | None = None
    fresh: bool = False
    keep: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        fine = self.every is None or (
            isinstance(self.every, int | float) and 0 <= self.every < math.inf
        )
        require(fine, f"checkpoint: every {self.every!r} is not accepted; seconds >= 0 are.")

    @classmethod
    def of(cls, given: Checkpoint | str | os.PathLike[str] | None) -> Checkpoint | None:
        """A path stands for a checkpoint with nothing else said."""
        if given is None or isinstance(given, Checkpoint):
            return given
        fine = isinstance(given, str | os.PathLike)
        require(fine, f"checkpoint: the name of a folder is needed, not {type(given).__name__}.")
        return cls(Path(given))

    @property
    def stage(self) -> Path:
        """A folder in which a caller may prepare the files of a result; it goes with the rest."""
        return self.path / STAGE

    @property
    def exists(self) -> bool:
        """Whether a state lies there."""
        return any(True for _ in self.parts())

    def parts(self) -> Iterator[Path]:
        """Files that hold a state."""
        yield from self.path.glob(f"*{SUFFIX}")

    def discard(self) -> None:
        """Remove what belongs to the checkpoint, and the folder if that was all."""
        with suppress(OSError):
            for path in list(self.path.iterdir()):
                if is_ours(path):
                    remove(path)
            self.path.rmdir()


def is_ours(path: Path) -> bool:
    """Whether a file in the folder was written by us; a killed writer leaves a hidden one."""
    name = path.name
    whole = name in (RUN, LOCK, STAGE) or name.endswith(SUFFIX)
    return whole or (name.startswith(".") and (f"{SUFFIX}." in name or f".{RUN}." in name))


def remove(path: Path) -> None:
    """Remove what is ours."""
    if path.name == STAGE:
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
