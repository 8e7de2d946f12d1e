"""A graph file with many labels: 60 % of the labeled nodes train, 20 % validate, 20 % test.

    python benchmarks/label_rich.py facebook-pagepage.npz --out facebook-pagepage-rich.npz

The permutation is ``numpy.random.default_rng(0).permutation`` of the labeled nodes.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import gcsr


def label_rich(graph: gcsr.Graph) -> gcsr.Graph:
    """The same graph with another split."""
    labeled = np.nonzero(graph.y.numpy() >= 0)[0]
    order = labeled[np.random.default_rng(0).permutation(labeled.size)]
    parts = np.split(order, [int(0.6 * order.size), int(0.8 * order.size)])
    train, val, test = (torch.from_numpy(np.sort(part)) for part in parts)
    return replace(graph, train=train, val=val, test=test, name=f"{graph.name}-rich")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    print(label_rich(gcsr.load(str(arguments.graph))).to_npz(arguments.out))


if __name__ == "__main__":
    main()
