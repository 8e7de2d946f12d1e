"""Condensed graphs kept on disk, so that cells of other tables need not condense them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gcsr.condensed import CondensedGraph
from gcsr.errors import InputError


@dataclass(frozen=True)
class Shelf:
    """Graphs by what they were made of; whoever uses a name holds its claim."""

    folder: Path

    def load(self, name: str, seeds: Sequence[int]) -> list[CondensedGraph] | None:
        """The graphs of these seeds; ``None`` unless every one is there and can be read."""
        try:
            found = [CondensedGraph.load(path) for path in self._paths(name, seeds)]
        except InputError:
            return None
        return found if all(map(_tells_its_cost, found)) else None

    def save(self, name: str, seeds: Sequence[int], graphs: Sequence[CondensedGraph]) -> None:
        """Keep the graphs of these seeds."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be made ({error.strerror}).") from None
        for path, graph in zip(self._paths(name, seeds), graphs, strict=True):
            for unfinished in self.folder.glob(f".{path.name}.*"):  # of a process that was killed
                unfinished.unlink(missing_ok=True)
            graph.save(path)

    def _paths(self, name: str, seeds: Sequence[int]) -> list[Path]:
        return [self.folder / f"{name}-{seed}.safetensors" for seed in seeds]


def _tells_its_cost(graph: CondensedGraph) -> bool:
    """Whether the file says what a row says of its graphs; ours do."""
    made = graph.provenance
    measured = made.get("measured")
    seconds = measured.get("seconds") if isinstance(measured, dict) else None
    return (
        isinstance(made.get("versions"), dict)
        and isinstance(made.get("notes"), list)
        and isinstance(seconds, float)
    )
