"""Real and condensed nodes in one map of the plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gcsr.devices import stream

PERPLEXITY = 30.0


@dataclass(frozen=True, eq=False)
class NodeMap:
    """Places of sampled real nodes and of all condensed nodes; class -1 where there is no label.

    Attributes:
        real_nodes: ids of the sampled nodes in the real graph, in order.
        real: their places, ``(sampled, 2)``.
        real_classes: their classes.
        condensed: places of the condensed nodes, ``(n', 2)``.
        condensed_classes: their (most likely) classes.
    """

    real_nodes: np.ndarray
    real: np.ndarray
    real_classes: np.ndarray
    condensed: np.ndarray
    condensed_classes: np.ndarray


def sample_nodes(nodes: int, most: int, seed: int) -> Tensor:
    """At most ``most`` of ``nodes`` node ids, drawn without replacement, in order."""
    if most >= nodes:
        return torch.arange(nodes)
    drawn = torch.randperm(nodes, generator=stream(seed, "analysis sample"))[:most]
    return drawn.sort().values


def tsne(rows: np.ndarray, seed: int = 0) -> np.ndarray:
    """t-SNE (van der Maaten and Hinton, 2008) from principal components; ``(n, 2)``.

    The perplexity is 30, or a third of the other rows where there are fewer than 91.
    """
    from sklearn.manifold import TSNE  # noqa: PLC0415 - takes a second to import

    rows = rows.astype(np.float32)
    # Principal components need two columns and rows that differ.
    varied = min(rows.shape) >= 2 and bool(np.ptp(rows, axis=0).any())
    state = int(torch.randint(2**31, (), generator=stream(seed, "t-SNE")))
    method = TSNE(
        init="pca" if varied else "random",
        perplexity=min(PERPLEXITY, (rows.shape[0] - 1) / 3),
        random_state=state,
    )
    return np.asarray(method.fit_transform(rows), dtype=np.float64)
