"""Condensed nodes beside real ones: nearest training nodes, and a t-SNE map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gcsr.data.condensed import CondensedGraph
from gcsr.data.features import propagated, take_rows
from gcsr.data.views import VisibleGraph
from gcsr.equations.propagation import normalized_adjacency, propagate
from gcsr.models.sparse import SparseTopology
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import require_integer, require_one_of
from gcsr.utils.progress import Progress, silent

Space = Literal["features", "propagated", "start"]
SPACES: tuple[Space, ...] = ("features", "propagated", "start")


@dataclass(frozen=True)
class FeatureSpace:
    r"""Features in which real and condensed nodes are compared.

    - ``features``: X and X', as they are.
    - ``propagated``: :math:`\hat A^k X` and :math:`\hat A'^k X'`: what a network of k hops sees.
    - ``start``: :math:`\hat A^k X` and X': where condensed features of GCSR begin (Eq. 3-4).
    """

    name: Space = "features"
    hops: int = 2

    def __post_init__(self) -> None:
        require_one_of("space", self.name, SPACES)
        require_integer("hops", self.hops)

    def real(self, visible: VisibleGraph) -> Tensor:
        """The rows of the real nodes, ``(N, d)``, sparse where few of their entries are not zero."""
        x = visible.x
        if self.name == "features" or self.hops == 0:
            return x
        operator = SparseTopology(visible.adjacency, torch.device("cpu")).normalized
        for _ in range(self.hops):
            x = propagated(operator, x)
        return x

    def condensed(self, small: CondensedGraph) -> Tensor:
        """The rows of the condensed nodes, ``(n', d)``."""
        x = small.x.detach().cpu()
        if self.name != "propagated":
            return x
        adjacency = small.adjacency.detach().cpu().to(x.dtype)
        return propagate(normalized_adjacency(adjacency), x, self.hops)


BLOCK_BYTES = 64 * 2**20


@dataclass(frozen=True, eq=False)
class Nearest:
    """For every condensed node its ``k`` nearest training nodes, nearest first.

    Attributes:
        nodes: ids in the real graph, ``(n', k)``; of equally near nodes the lower id.
        distances: Euclidean, ``(n', k)``.
        classes: their classes, ``(n', k)``.
        agreement: share of the labeled condensed nodes whose nearest node has their class.
        distinct: how many different training nodes are nearest to some condensed node.
    """

    nodes: np.ndarray
    distances: np.ndarray
    classes: np.ndarray
    agreement: float
    distinct: int


def nearest_rows(
    queries: Tensor,
    rows: Tensor,
    k: int = 1,
    *,
    block_bytes: int = BLOCK_BYTES,
    progress: Progress = silent,
) -> tuple[Tensor, Tensor]:
    """Places and Euclidean distances of the ``k`` nearest ``rows`` of every query, nearest first.

    Rows are visited in blocks of at most ``block_bytes``. Differences are squared one by one in
    float64: a query that is one of the rows is at distance zero exactly. Equal distances: first row.
    """
    require_integer("nearest", k, 1, most=rows.shape[0])
    queries = queries.double()
    size = max(1, block_bytes // (8 * (queries.shape[0] + rows.shape[1])))
    distances = queries.new_zeros(queries.shape[0], 0)
    places = torch.zeros(queries.shape[0], 0, dtype=torch.int64)
    for first in range(0, rows.shape[0], size):
        block = take_rows(rows, torch.arange(first, min(first + size, rows.shape[0]))).double()
        new = torch.cdist(queries, block, compute_mode="donot_use_mm_for_euclid_dist")
        here = torch.arange(first, first + block.shape[0]).expand(queries.shape[0], -1)
        distances, places = torch.cat([distances, new], 1), torch.cat([places, here], 1)
        # Stable: the first of equal distances stays the first (topk does not promise that).
        chosen = distances.argsort(dim=1, stable=True)[:, :k]
        distances, places = distances.gather(1, chosen), places.gather(1, chosen)
        progress("nearest training nodes", first + block.shape[0], rows.shape[0])
    return places, distances


def nearest_training_nodes(
    queries: Tensor,
    classes: Tensor,
    rows: Tensor,
    row_classes: Tensor,
    ids: Tensor,
    k: int = 1,
    *,
    progress: Progress = silent,
) -> Nearest:
    """Compare condensed rows with those of training nodes, whose ids in the real graph are ``ids``."""
    places, distances = nearest_rows(queries, rows, k, progress=progress)
    found = row_classes[places]
    known = classes >= 0
    return Nearest(
        nodes=ids[places].numpy(),
        distances=distances.numpy(),
        classes=found.numpy(),
        agreement=float((found[known, 0] == classes[known]).double().mean()),
        distinct=int(places[:, 0].unique().numel()),
    )


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
    drawn = torch.randperm(nodes, generator=make_generator(seed, "analysis sample"))[:most]
    return drawn.sort().values


def tsne(rows: np.ndarray, seed: int = 0) -> np.ndarray:
    """t-SNE (van der Maaten and Hinton, 2008) from principal components; ``(n, 2)``.

    The perplexity is 30, or a third of the other rows where there are fewer than 91. On one thread:
    sums have one order, and threads that wait for each other on a busy machine take ten times as long.
    """
    from sklearn.manifold import TSNE  # noqa: PLC0415 - takes a second to import
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - used by few commands

    rows = rows.astype(np.float32)
    # Principal components need two columns and rows that differ.
    varied = min(rows.shape) >= 2 and bool(np.ptp(rows, axis=0).any())
    state = int(torch.randint(2**31, (), generator=make_generator(seed, "t-SNE")))
    method = TSNE(
        init="pca" if varied else "random",
        perplexity=min(PERPLEXITY, (rows.shape[0] - 1) / 3),
        random_state=state,
    )
    with threadpool_limits(1):
        return np.asarray(method.fit_transform(rows), dtype=np.float64)
