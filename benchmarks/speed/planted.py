"""Planted partitions of any size, written to disk in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gcsr.data.array_file import ArrayWriter
from gcsr.data.edges import EdgeBlocks
from gcsr.data.folder import new_folder, seal, write_list
from gcsr.utils.progress import Progress, silent

NODES_AT_ONCE = 2**15


@dataclass(frozen=True)
class Planted:
    """A graph with classes that are dense inside and sparse between, and noisy features.

    ``edges`` are stored entries of the symmetric adjacency per node, as everywhere: half as many
    pairs are drawn, and the few that repeat count once. One node in a thousand trains, at least 20 per
    class, half as many again validate, and all others test. Of a ``rich`` graph half of the nodes
    train, as many validate, and all others test.
    """

    nodes: int
    edges: int = 10
    features: int = 64
    classes: int = 20
    homophily: float = 0.8
    signal: float = 0.1
    seed: int = 0
    rich: bool = False

    @property
    def train_per_class(self) -> int:
        """Training nodes of a class."""
        return max(20, self.nodes // (1000 * self.classes))

    def write(self, out: Path, progress: Progress = silent) -> Path:
        """The graph as a folder; the same bytes whatever the machine's memory."""
        labels = np.arange(self.nodes) % self.classes
        with new_folder(out) as folder:
            blocks = EdgeBlocks(folder, self.nodes)
            centers = self._generator("centers").standard_normal(
                (self.classes, self.features), dtype=np.float32
            )
            with ArrayWriter(folder / "features.npy", "<f4", self.features) as writer:
                for start in range(0, self.nodes, NODES_AT_ONCE):
                    stop = min(self.nodes, start + NODES_AT_ONCE)
                    rng = self._generator(f"nodes {start}")
                    x = rng.standard_normal((stop - start, self.features), dtype=np.float32)
                    x += self.signal * centers[labels[start:stop]]
                    writer.append(x)
                    blocks.add(*self._pairs(rng, start, stop))
                    progress("generating", stop, self.nodes)
                writer.finish(sync=False)
            blocks.finish(undirected=True)
            write_list(folder, "labels", labels)
            order = self._generator("split").permutation(self.nodes // self.classes)
            train = self.nodes // self.classes // 2 if self.rich else self.train_per_class
            val = train + min(self.train_per_class * 3 // 2, (order.size - train) // 2)
            for name, places in (
                ("train", order[:train]),
                ("val", order[train:val]),
                ("test", order[val:]),
            ):
                ids = places[:, None] * self.classes + np.arange(self.classes)
                write_list(folder, name, np.sort(ids.reshape(-1)))
            seal(
                folder,
                name=f"planted-{self.nodes}",
                num_classes=self.classes,
                width=self.features,
                inductive=False,
                scaling="keep",
            )
        return out

    def _pairs(
        self, rng: np.random.Generator, start: int, stop: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs that begin in some nodes; most end in the same class."""
        sources = np.repeat(np.arange(start, stop), self.edges // 2)
        per_class = self.nodes // self.classes
        inside = rng.integers(per_class, size=sources.size) * self.classes + sources % self.classes
        anywhere = rng.integers(self.nodes, size=sources.size)
        return sources, np.where(rng.random(sources.size) < self.homophily, inside, anywhere)

    def _generator(self, purpose: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, *purpose.encode()])
