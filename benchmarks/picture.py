"""The README's picture: real nodes and the condensed ones that replace them, in one t-SNE map.

python benchmarks/picture.py --out docs/images/digits.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from sklearn.manifold import TSNE

import gcsr
from gcsr.condense.initialise import propagated_features

mpl.use("Agg")
from matplotlib import pyplot as plt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--nodes", type=int, default=50)
    arguments = parser.parse_args()
    graph = gcsr.load("digits")
    small = gcsr.condense(graph, nodes=arguments.nodes)
    ours = gcsr.evaluate(small, graph, runs=10)
    whole = gcsr.evaluate_full(graph, runs=10)
    seen = propagated_features(gcsr.View(graph).condensing().visible, 2, torch.device("cpu"))
    both = np.concatenate([seen.numpy(), small.x.numpy()])
    places = TSNE(random_state=0, init="pca", perplexity=30).fit_transform(both)
    real, synthetic = places[: graph.num_nodes], places[graph.num_nodes :]
    colours = plt.get_cmap("tab10")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), dpi=130)
    coo = graph.adjacency.tocoo()
    every = slice(None, None, 4)
    left.plot(
        *[np.stack([real[coo.row[every], i], real[coo.col[every], i]]) for i in (0, 1)],
        color="0.75",
        linewidth=0.15,
        zorder=0,
    )
    left.scatter(*real.T, c=colours(graph.y.numpy()), s=5, linewidths=0)
    left.set_title(f"{graph.num_nodes:,} nodes: {whole.mean:.1f} % test accuracy")
    a = small.adjacency.numpy().copy()
    np.fill_diagonal(a, 0)
    rows, columns = np.nonzero(np.triu(a) > np.quantile(a, 0.9))
    for i, j in zip(rows, columns, strict=True):
        right.plot(*synthetic[[i, j]].T, color="0.4", linewidth=2.5 * a[i, j] / a.max(), zorder=0)
    right.scatter(*synthetic.T, c=colours(small.y.numpy()), s=60, edgecolors="white")
    right.set_title(f"{small.num_nodes} condensed nodes: {ours.mean:.1f} %")
    right.set_xlim(left.get_xlim())
    right.set_ylim(left.get_ylim())
    for axis in (left, right):
        axis.set_xticks([])
        axis.set_yticks([])
        axis.spines[:].set_visible(False)
    figure.tight_layout()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(arguments.out)
    print(ours, whole, arguments.out, sep="\n")


if __name__ == "__main__":
    main()
