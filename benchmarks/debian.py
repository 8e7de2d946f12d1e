"""Graphs of Debian's packages, on which nothing in this library was chosen.

    apt-cache dumpavail | python benchmarks/debian.py --out FOLDER

Nodes are packages, edges are dependencies without direction, features are the words of the one-line
descriptions, and classes are the sections of the archive with at least 100 packages. ``debian.npz``
has a random split of 50, 25 and 25 %; ``debian-few.npz`` has 20 training and 30 validation nodes per
class, and the rest for testing.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer

from gcsr import Graph

LEAST_PACKAGES, LEAST_DESCRIPTIONS = 100, 10
RELATIONS = ("Pre-Depends", "Depends", "Recommends", "Suggests")


def packages(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """The fields of each package; continued lines are left out."""
    found: dict[str, str] = {}
    for line in lines:
        if not line.strip():
            if found:
                yield found
            found = {}
        elif not line.startswith(" "):
            name, _, value = line.partition(":")
            found[name] = value.strip()
    if found:
        yield found


def debian(lines: Iterable[str]) -> Graph:
    """The graph with its random split."""
    known: dict[str, dict[str, str]] = {}
    for package in packages(lines):
        known.setdefault(package["Package"], package)
    places = {name: place for place, name in enumerate(known)}
    edges = [
        (place, places[target])
        for place, package in enumerate(known.values())
        for relation in RELATIONS
        for target in re.findall(r"(?:^|[,|])\s*([a-z0-9][a-z0-9+.-]+)", package.get(relation, ""))
        if target in places and places[target] != place
    ]
    words = CountVectorizer(
        stop_words="english", min_df=LEAST_DESCRIPTIONS, binary=True, dtype=np.float32
    )
    x = words.fit_transform([package.get("Description", "") for package in known.values()])
    sections = np.array(
        [package.get("Section", "").rpartition("/")[2] for package in known.values()]
    )
    names, counts = np.unique(sections, return_counts=True)
    kept = [
        name for name, count in zip(names, counts, strict=True) if name and count >= LEAST_PACKAGES
    ]
    y = np.array([kept.index(name) if name in kept else -1 for name in sections])
    order = np.random.default_rng(0).permutation(np.nonzero(y >= 0)[0])
    train, val, test = np.split(order, [order.size // 2, order.size * 3 // 4])
    return Graph.from_arrays(
        x, np.array(edges).T, y, train=train, val=val, test=test, undirected=True, name="debian"
    )


def with_few_labels(graph: Graph) -> Graph:
    """20 training and 30 validation nodes per class."""
    y, random = graph.y.numpy(), np.random.default_rng(0)
    parts = [
        np.split(random.permutation(np.nonzero(y == c)[0]), [20, 50])
        for c in range(graph.num_classes)
    ]
    train, val, test = (
        torch.from_numpy(np.sort(np.concatenate(part))) for part in zip(*parts, strict=True)
    )
    return replace(graph, train=train, val=val, test=test, name="debian-few")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path())
    folder = parser.parse_args().out
    graph = debian(sys.stdin)
    print(graph, graph.to_npz(folder / "debian.npz"))
    few = with_few_labels(graph)
    print(few, few.to_npz(folder / "debian-few.npz"))


if __name__ == "__main__":
    main()
