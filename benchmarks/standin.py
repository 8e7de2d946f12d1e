"""A graph with a real structure and stand-in features, for measuring scale.

    python benchmarks/standin.py ogbn-arxiv.structure.npz --width 128 --out ogbn-arxiv-standin.npz

Features are a random center per class plus noise, with a fixed seed. Accuracies on such a graph say
nothing about the real dataset and must not be set beside published ones.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gcsr import Graph
from gcsr.data.npz import load_arrays


def standin(structure: Path, width: int, *, noise: float, seed: int) -> Graph:
    arrays = load_arrays(structure)
    y = arrays["y"].astype(np.int64)
    random = np.random.default_rng(seed)
    centers = random.standard_normal((int(y.max()) + 2, width), dtype=np.float32)
    x = centers[y] + noise * random.standard_normal((y.size, width), dtype=np.float32)
    indices = arrays["adj_indices"]
    adjacency = sp.csr_array(
        (np.ones(indices.size, np.float32), indices, arrays["adj_indptr"]), shape=(y.size, y.size)
    )
    return Graph.from_arrays(
        x,
        adjacency,
        y,
        train=arrays["train"],
        val=arrays["val"],
        test=arrays["test"],
        undirected=True,
        name="standin",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("structure", type=Path)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--noise", type=float, default=6.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    graph = standin(
        arguments.structure, arguments.width, noise=arguments.noise, seed=arguments.seed
    )
    print(graph.to_npz(arguments.out), graph)


if __name__ == "__main__":
    main()
