"""The README's picture: real nodes, and the condensed ones that replace them as the images they are.

python benchmarks/picture.py --out docs/images/digits.png

The graph is that of the README's first example, and so is the accuracy: copy the printed one there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from sklearn.manifold import TSNE

import gcsr
from gcsr.starts.sample import propagated_features

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap

# Ten colors of equal weight that stay apart for most eyes.
COLOURS = np.array(
    [
        *("#4363d8", "#e6194b", "#3cb44b", "#f58231", "#911eb4"),
        *("#9a6324", "#f032e6", "#808000", "#5a6474", "#17a2b8"),
    ]
)
SIDE = 8  # pixels of a digit
TILE = 0.075  # width of a condensed node, in widths of the map


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--nodes", type=int, default=50)
    arguments = parser.parse_args()
    graph = gcsr.load("digits")
    small = gcsr.condense(graph, nodes=arguments.nodes, budget=20)
    ours = gcsr.evaluate(small, graph, runs=3)
    whole = gcsr.evaluate_full(graph, runs=3)
    seen = propagated_features(gcsr.View(graph).condensing().visible, 2, torch.device("cpu"))
    places = layout(np.concatenate([seen.numpy(), small.x.numpy()]))
    real, synthetic = places[: graph.num_nodes], spread(places[graph.num_nodes :])

    plt.rcParams["font.family"] = "DejaVu Sans"
    figure, (left, right) = plt.subplots(
        1, 2, gridspec_kw={"wspace": 0.06}, figsize=(11, 5.8), dpi=160
    )
    draw_real(left, graph, real)
    draw_condensed(right, small, synthetic)
    titles = (
        (left, f"{graph.num_nodes:,} real nodes", whole.mean),
        (right, f"{small.num_nodes} condensed nodes", ours.mean),
    )
    for axis, what, mean in titles:
        axis.set_title(what, fontsize=15, fontweight="bold", pad=24)
        caption = f"a GCN trained on them: {mean:.1f} % on the test nodes"
        axis.text(
            0.5, 1.015, caption, transform=axis.transAxes, ha="center", color="0.35", fontsize=10
        )
        axis.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), xticks=[], yticks=[], aspect="equal")
        axis.spines[:].set_visible(False)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(
        arguments.out, bbox_inches="tight", pad_inches=0.15, metadata={"Description": str(ours)}
    )
    print(ours, whole, arguments.out, sep="\n")


def layout(rows: np.ndarray) -> np.ndarray:
    """Places in the unit square."""
    places = TSNE(random_state=0, init="pca", perplexity=30).fit_transform(rows)
    low, high = places.min(0), places.max(0)
    return (places - low) / (high - low)


def spread(places: np.ndarray) -> np.ndarray:
    """Tiles that overlap push each other aside, no further than needed."""
    places = places.astype(float).copy()
    for _ in range(600):
        apart = places[:, None] - places[None]
        distance = np.abs(apart).max(-1) + np.eye(len(places))
        close = np.clip(1.12 * TILE - distance, 0, None)
        way = apart / np.maximum(np.linalg.norm(apart, axis=-1, keepdims=True), 1e-9)
        places += 0.25 * (close[..., None] * way).sum(1)
        places = np.clip(places, 0, 1)
    return places


def draw_real(axis: Axes, graph: gcsr.Graph, places: np.ndarray) -> None:
    coo = graph.adjacency.tocoo()
    once = coo.row < coo.col
    lines = np.stack([places[coo.row[once]], places[coo.col[once]]], 1)
    axis.add_collection(LineCollection(lines, colors="0.55", linewidths=0.25, alpha=0.25, zorder=0))
    axis.scatter(*places.T, c=COLOURS[graph.y.numpy()], s=7, linewidths=0, alpha=0.9)
    for label in range(graph.num_classes):
        x, y = np.median(places[graph.y.numpy() == label], axis=0)
        axis.text(x, y, label, fontsize=15, fontweight="bold", ha="center", va="center").set_bbox(
            {"boxstyle": "circle,pad=0.18", "fc": "white", "ec": COLOURS[label], "alpha": 0.9}
        )


def draw_condensed(axis: Axes, small: gcsr.CondensedGraph, places: np.ndarray) -> None:
    weights = np.triu(small.adjacency.numpy(), 1)
    strong = weights > np.quantile(weights[weights > 0], 0.85) if weights.any() else weights > 0
    rows, columns = np.nonzero(strong)
    shares = weights[strong] / weights.max()
    lines = np.stack([places[rows], places[columns]], 1)
    widths = 0.4 + 2.6 * shares
    shades = [(0.3, 0.3, 0.35, 0.25 + 0.6 * share) for share in shares]
    axis.add_collection(LineCollection(lines, colors=shades, linewidths=widths, zorder=0))
    half = TILE / 2
    for place, row, label in zip(places, small.x.numpy(), small.classes.tolist(), strict=True):
        x, y = place
        box = (x - half, x + half, y - half, y + half)
        ink = LinearSegmentedColormap.from_list("ink", ["white", COLOURS[label], "black"])
        image = row.reshape(SIDE, SIDE)
        axis.imshow(image, cmap=ink, extent=box, interpolation="bicubic", zorder=2, vmin=0)
        frame = plt.Rectangle(
            (x - half, y - half), TILE, TILE, fill=False, ec=COLOURS[label], lw=1.8
        )
        axis.add_patch(frame).set_zorder(3)


if __name__ == "__main__":
    main()
