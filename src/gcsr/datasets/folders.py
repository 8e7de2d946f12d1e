"""Where raw files may lie under the data folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gcsr.datasets.raw import RawGraph
from gcsr.untrusted import expanded, is_file

DATA_VARIABLE = "GCSR_DATA"


def data_root(root: str | Path | None) -> Path:
    """``root``, else ``$GCSR_DATA``, else ``gcsr`` in the user's cache folder."""
    chosen = root or os.environ.get(DATA_VARIABLE)
    if chosen:
        return expanded(chosen)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "gcsr"


def spellings(*names: str, families: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Folders to try: every name, alone or under a family's folder, with its ``raw`` folder first.

    The first one is where a download goes.
    """
    bases = ("", *(f"{family}/" for family in families))
    return tuple(f"{base}{name}{raw}" for raw in ("/raw", "") for base in bases for name in names)


@dataclass(frozen=True)
class Layout:
    """Files that together hold a dataset, the folders they may lie in, and how to read them."""

    folders: tuple[str, ...]
    files: tuple[str, ...]
    read: Callable[[Path], RawGraph]
    urls: Callable[[], Mapping[str, str]] | None = None

    def find(self, root: Path) -> Path | None:
        """The first folder that holds every file."""
        for folder in self._candidates(root):
            if all(is_file(folder / file) for file in self.files):
                return folder
        return None

    def target(self, root: Path) -> Path:
        """Where missing files belong: beside those that are there, else in the first folder."""
        for folder in self._candidates(root):
            if any(is_file(folder / file) for file in self.files):
                return folder
        return root / self.folders[0]

    def _candidates(self, root: Path) -> list[Path]:
        return [root / folder for folder in self.folders]
