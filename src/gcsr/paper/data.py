"""The datasets of a run: read when they are needed, at most one in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from gcsr.datasets import catalogue, load
from gcsr.errors import InputError
from gcsr.graph import Graph

NOT_ASKED_FOR = "{name}: not in the data folder, and a download was not asked for (--download)."


@dataclass
class Data:
    """Datasets under ``root``; what is not there is downloaded if ``download``, else absent."""

    root: Path | None = None
    download: bool = True
    absent: dict[str, str] = field(default_factory=dict)
    _loaded: tuple[str, Graph] | None = None

    def graph(self, name: str) -> Graph | str:
        """The dataset, or the sentence that says why it is absent."""
        if name in self.absent:
            return self.absent[name]
        if self._loaded is None or self._loaded[0] != name:
            self._loaded = None  # the previous one goes before the next one comes
            try:
                if not (self.download or available(name, self.root)):
                    raise InputError(NOT_ASKED_FOR.format(name=name))
                self._loaded = name, load(name, self.root)
            except InputError as error:
                self.absent[name] = str(error)
                return str(error)
        return self._loaded[1]

    def fetched(self, names: Iterable[str]) -> Data:
        """The same for other processes, after every download that may be needed."""
        for name in names:
            if not available(name, self.root):
                self.graph(name)
        return Data(self.root, download=False, absent=dict(self.absent))


def available(name: str, root: Path | None) -> bool:
    """Whether a dataset can be read without a download."""
    return any(info.available for info in catalogue(root) if info.name == name)
