"""The real graph of a case where it is at hand, else one of the same size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.speed.cases import Case
from gcsr.data.graph import Graph
from gcsr.datasets.loading import load
from gcsr.datasets.registry import catalogue
from gcsr.utils.errors import require

# Only these are looked for; the large graphs are always generated, so that rows can be compared.
REAL = ("cora", "citeseer")
HOMOPHILY = 0.8
WORDS_PER_NODE = 25


def graph_of(shape: Case, root: Path | None = None) -> tuple[Graph, str]:
    """A graph for a case, and a word on where it is from; nothing is downloaded."""
    if shape.dataset in REAL:
        here = {info.name for info in catalogue(root) if info.available}
        if shape.dataset in here:
            return load(shape.dataset, root), f"real {shape.dataset}"
    return standin(shape), f"generated stand-in for {shape.dataset}"


def standin(shape: Case, seed: int = 0) -> Graph:
    """A planted partition with a case's counts of nodes, edges, features, classes and split.

    Time and memory grow with the edges and the features, never with pairs of nodes.
    """
    rng = np.random.default_rng(seed)
    nodes = shape.graph_nodes
    y = np.arange(nodes) % shape.classes
    rng.shuffle(y)
    order = rng.permutation(nodes)
    train, val, test = np.split(
        order[: shape.train + shape.val + shape.test], [shape.train, shape.train + shape.val]
    )
    return Graph.from_arrays(
        _words(y, shape, rng) if shape.words else _dense(y, shape, rng),
        _edges(y, shape, rng),
        y,
        train=train,
        val=val,
        test=test,
        num_classes=shape.classes,
        inductive=shape.inductive,
        name=shape.dataset,
        features="rows" if shape.words else "keep",
    )


def _edges(y: np.ndarray, shape: Case, rng: np.random.Generator) -> np.ndarray:
    """Both directions of distinct pairs; most pairs lie within a class."""
    wanted = shape.graph_edges // 2
    nodes = np.int64(shape.graph_nodes)
    # Distinct pairs are drawn until there are enough: they must be a small share of all.
    most = int(nodes) ** 2 // (4 * shape.classes)
    require(wanted <= most, f"edges: {wanted} pairs are too many for {nodes} nodes ({most}).")
    by_class = np.argsort(y, kind="stable")
    sizes = np.bincount(y, minlength=shape.classes)
    firsts = np.cumsum(sizes) - sizes
    keys = np.empty(0, np.int64)
    while keys.size < wanted:
        # Some pairs repeat or are loops: draw a few more than are missing.
        draw = int(1.2 * (wanted - keys.size)) + 16
        sources = rng.integers(nodes, size=draw)
        inside = by_class[firsts[y[sources]] + rng.integers(sizes[y[sources]])]
        targets = np.where(rng.random(draw) < HOMOPHILY, inside, rng.integers(nodes, size=draw))
        low, high = np.minimum(sources, targets), np.maximum(sources, targets)
        keys = np.unique(np.concatenate([keys, (low * nodes + high)[low != high]]))
    keys = rng.permutation(keys)[:wanted]
    low, high = keys // nodes, keys % nodes
    return np.stack([np.concatenate([low, high]), np.concatenate([high, low])])


def _words(y: np.ndarray, shape: Case, rng: np.random.Generator) -> sp.csr_array:
    """Ones at a few words per node, half of them from the class's own part of the vocabulary."""
    rows = np.repeat(np.arange(y.size), WORDS_PER_NODE)
    part = max(1, shape.features // shape.classes)
    own = y[rows] * part + rng.integers(part, size=rows.size)
    anywhere = rng.integers(shape.features, size=rows.size)
    columns = np.where(rng.random(rows.size) < 0.5, own, anywhere) % shape.features
    counts = sp.csr_array(
        (np.ones(rows.size, np.float32), (rows, columns)), shape=(y.size, shape.features)
    )
    counts.sum_duplicates()
    counts.data = np.ones_like(counts.data)
    return counts


def _dense(y: np.ndarray, shape: Case, rng: np.random.Generator) -> np.ndarray:
    """A center per class and noise, of about unit deviation; float32, so that Reddit's fit."""
    x = rng.standard_normal((y.size, shape.features), dtype=np.float32)
    centers = rng.standard_normal((shape.classes, shape.features), dtype=np.float32)
    for label, center in enumerate(centers):
        x[y == label] += 0.3 * center
    return x
