r"""Bonsai: a real subgraph whose nodes represent the training nodes (Gupta et al., 2025).

1. Rows :math:`r = D^{-1}(A + I)D^{-1}X` of the training nodes, D the degrees of A + I, in the columns
   that a decision tree of their classes uses.
2. A training node represents itself and every training node that has it among its k nearest. Greedy
   maximum coverage puts the training nodes in an order.
3. In this order, nodes with their neighbors are taken, some times more than are wanted. The nodes with
   the highest personalized PageRank from the chosen training nodes stay. It walks on the edges within
   the neighborhood of a chosen node, and each chosen node has a self-loop.
4. Training nodes are exchanged until their classes have the shares that they have in the real graph.

Nothing is learned. Nodes without a training label are context: their rows are in the result, their
labels are not.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.data.condensed import CondensedGraph
from gcsr.data.features import csr_matrix, dense, is_sparse, propagated, take_columns, take_rows
from gcsr.data.views import VisibleGraph
from gcsr.engines.result import CondensationResult, Context
from gcsr.methods.base import Condenser
from gcsr.models.sparse import SparseOperator
from gcsr.outofcore.estimate import Work
from gcsr.starts.sample import class_budget
from gcsr.utils.errors import Bounds, Count, Whole, require
from gcsr.utils.progress import Progress

# Distances that are in memory at a time.
BLOCK = 2**24
DAMPING, PAGERANK_STEPS = 0.85, 50


@dataclass(frozen=True, kw_only=True)
class Bonsai(Condenser):
    """Real nodes with their real edges: representative training nodes and what is near them.

    Every row is a row of the real graph, that of an unlabeled node too, so the result is not private.

    Args:
        bytes: of the stored features, edges and labels; as many nodes are kept as fit, and ``nodes``
            is the largest number. By default ``nodes`` are kept.
        neighbors: k, the nearest training nodes that may represent a training node.
        depth: of the decision tree that chooses columns; 0 uses all columns.
        overselect: how many times more nodes are taken before PageRank removes some.
    """

    name = "bonsai"
    revision = 2
    summary = "a real subgraph of representative training nodes and their neighbors"
    reference = (
        'Gupta et al., "Bonsai: Gradient-free Graph Condensation for Node Classification", '
        "ICLR 2025"
    )
    # Nodes near the chosen ones have no label.
    exact_class_budget = False
    # As many as fit within ``bytes``.
    may_have_fewer_nodes = True
    seed_matters = False
    # Of two nodes that are equally near either may be found first.
    same_on_every_device = False

    bytes: Count | None = None
    neighbors: Count = 5
    depth: Whole = 50
    overselect: Annotated[float, Bounds(least=1.0)] = 10.0

    def _work(self, nodes: int) -> Work:
        return Work(nodes, hops=1)

    def run(self, ctx: Context) -> list[CondensationResult]:
        """The same condensed graph for every seed."""
        visible, progress = ctx.view.visible, ctx.progress
        class_budget(visible.train_labels, visible.num_classes, ctx.nodes)
        rows = _representations(visible, ctx.device)
        columns = _tree_columns(rows, visible.train_labels, self.depth)
        if columns is not None:
            rows = take_columns(rows, torch.from_numpy(columns))
        order = coverage_order(
            nearest_neighbors(dense(rows, self.name).to(ctx.device), self.neighbors, progress)
        )
        nodes, small = self._fitting(visible, visible.train.numpy()[order], ctx.nodes)
        details = {
            "real_nodes": nodes.tolist(),
            "columns": None if columns is None else columns.tolist(),
        }
        unlabeled = int((small.y < 0).sum())
        notes = (
            f"{unlabeled} of {len(nodes)} nodes have no label: they are rows of unlabeled real nodes,"
            " and context only",
        )
        result = CondensationResult(
            small.x, small.adjacency, small.y, notes if unlabeled else (), details
        )
        return [result for _ in ctx.seeds]

    def _fitting(
        self, visible: VisibleGraph, order: np.ndarray, nodes: int
    ) -> tuple[np.ndarray, CondensedGraph]:
        """The subgraph of the given number of nodes or, within ``bytes``, of the most that fit."""
        most = subgraph(visible, order, nodes, self.overselect)
        if self.bytes is None or most[1].stored_bytes <= self.bytes:
            return most
        least, above = int(visible.train_labels.unique().numel()), nodes
        best = subgraph(visible, order, least, self.overselect)
        smallest = best[1].stored_bytes
        require(
            smallest <= self.bytes,
            f"bytes must be >= {smallest}, which {least} nodes take, got {self.bytes}.",
        )
        while above - least > 1:
            middle = (least + above) // 2
            found = subgraph(visible, order, middle, self.overselect)
            if found[1].stored_bytes <= self.bytes:
                best, least = found, middle
            else:
                above = middle
        return best


def _representations(visible: VisibleGraph, device: torch.device) -> Tensor:
    """Step 1, all columns: one row per training node."""
    looped = sp.csr_array(visible.adjacency + sp.eye_array(visible.num_nodes, format="csr"))
    scale = 1 / np.asarray(looped.sum(1), dtype=np.float64).ravel()
    train = visible.train.numpy()
    reached = sp.diags_array(scale[train]) @ looped[train] @ sp.diags_array(scale)
    x = visible.x if is_sparse(visible.x) else visible.x.to(device)
    return propagated(SparseOperator(sp.csr_array(reached), device), x)


def _tree_columns(rows: Tensor, labels: Tensor, depth: int) -> np.ndarray | None:
    """The columns that a decision tree uses; ``None`` where it uses none or is not wanted."""
    if not depth:
        return None
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 - takes a second to import

    tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
    given = csr_matrix(rows) if is_sparse(rows) else rows.cpu().numpy()
    used = tree.fit(given, labels.numpy()).tree_.feature
    columns = np.unique(used[used >= 0])
    return columns if columns.size else None


def nearest_neighbors(rows: Tensor, k: int, progress: Progress) -> np.ndarray:
    """The k nearest other rows of every row (all where there are fewer), by exact distances."""
    count = len(rows)
    # Distances are differences of large squares unless the rows lie around zero.
    rows = rows.double() - rows.double().mean(0)
    squares = rows.square().sum(1)
    size, found = max(1, BLOCK // count), []
    for first in range(0, count, size):
        block = rows[first : first + size]
        apart = squares - 2 * block @ rows.T
        own = torch.arange(len(block), device=rows.device)
        apart[own, first + own] = torch.inf
        found.append(apart.topk(min(k, count - 1), largest=False).indices.cpu())
        progress("nearest training nodes", first + len(block), count)
    return torch.cat(found).numpy()


def coverage_order(nearest: np.ndarray) -> np.ndarray:
    """Rows in the order of greedy maximum coverage: a row covers itself and who lists it.

    Gains only shrink, so a row whose gain is still the largest after it was updated is the best one.
    Of equals the first row comes first.
    """
    covers = [[row] for row in range(len(nearest))]
    for row, others in enumerate(nearest.tolist()):
        for other in others:
            covers[other].append(row)
    left = np.ones(len(nearest), dtype=bool)
    heap = [(-len(rows), row) for row, rows in enumerate(covers)]
    heapq.heapify(heap)
    order = []
    while heap:
        gain, row = heapq.heappop(heap)
        now = -int(left[covers[row]].sum())
        if now != gain:
            heapq.heappush(heap, (now, row))
            continue
        order.append(row)
        left[covers[row]] = False
    return np.array(order)


def subgraph(
    visible: VisibleGraph, order: np.ndarray, count: int, overselect: float
) -> tuple[np.ndarray, CondensedGraph]:
    """Steps 3 and 4: real nodes, and the graph that they are; training nodes come in ``order``."""
    taken, seeds = ego_nodes(visible.adjacency, order, count, overselect)
    rank = np.full(visible.num_nodes, -1.0)
    chosen = np.isin(taken, seeds)
    rank[taken] = pagerank(ego_edges(visible.adjacency[taken][:, taken], chosen), chosen)
    # Of equals, that with the smaller number stays.
    kept = np.argsort(-rank, kind="stable")[:count]
    kept = balanced(kept, order, visible)
    labels = visible.labels.numpy()[kept]
    kept = kept[np.lexsort((kept, np.where(labels < 0, visible.num_classes, labels)))]
    nodes = torch.from_numpy(kept)
    adjacency = torch.from_numpy(visible.among(nodes).toarray()).float()
    x = take_rows(visible.x, nodes)
    return kept, CondensedGraph(x, adjacency, visible.labels[nodes], visible.num_classes)


def ego_nodes(
    adjacency: sp.csr_array, order: np.ndarray, count: int, overselect: float
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes in order with their neighbors, ``overselect`` times ``count``; and which were chosen."""
    inside = np.zeros(adjacency.shape[0], dtype=bool)
    wanted, total, chosen = overselect * count, 0, 0
    pointers, indices = adjacency.indptr, adjacency.indices
    for node in order:
        if total >= wanted:
            break
        ego = np.append(indices[pointers[node] : pointers[node + 1]], node)
        total += int(np.count_nonzero(~inside[np.unique(ego)]))
        inside[ego] = True
        chosen += 1
    # Where training nodes and their neighbors are too few: the neighbors of these, then any.
    while total < count:
        reached = inside | (adjacency @ inside.astype(np.float32) > 0)
        if reached.sum() == total:
            reached[np.flatnonzero(~reached)[: count - total]] = True
        inside, total = reached, int(reached.sum())
    return np.flatnonzero(inside), order[:chosen]


def ego_edges(adjacency: sp.csr_array, seeds: np.ndarray) -> sp.csr_array:
    """Edges with both ends among a seed and its neighbors, and a self-loop of every seed."""
    rows, columns = [np.empty(0, int)], [np.empty(0, int)]
    for seed in np.flatnonzero(seeds):
        ego = np.append(
            adjacency.indices[adjacency.indptr[seed] : adjacency.indptr[seed + 1]], seed
        )
        near = adjacency[ego][:, ego].tocoo()
        rows.append(ego[near.row])
        columns.append(ego[near.col])
    ends = np.concatenate(rows), np.concatenate(columns)
    inside = sp.csr_array((np.ones(len(ends[0])), ends), adjacency.shape) > 0
    return sp.csr_array(adjacency.multiply(inside) + sp.diags_array(seeds.astype(np.float64)))


def pagerank(adjacency: sp.csr_array, seeds: np.ndarray) -> np.ndarray:
    """Personalized PageRank from the nodes where ``seeds`` is true; isolated nodes return to them."""
    degree = np.asarray(adjacency.sum(1), dtype=np.float64).ravel()
    step = sp.csr_array(adjacency.T) @ sp.diags_array(1 / np.where(degree > 0, degree, 1))
    start = seeds / seeds.sum()
    rank: np.ndarray = start
    for _ in range(PAGERANK_STEPS):
        lost = rank[degree == 0].sum()
        rank = DAMPING * (step @ rank + lost * start) + (1 - DAMPING) * start
    return rank


def balanced(kept: np.ndarray, order: np.ndarray, visible: VisibleGraph) -> np.ndarray:
    """As many nodes, whose training nodes have the class shares of all; ``kept`` is best first.

    The last of a class that has too many leave, and the first in ``order`` of one that has too few
    come. Where there are fewer training nodes than classes, unlabeled ones leave for them.
    """
    labels, classes = visible.labels.numpy(), visible.num_classes
    counts = np.bincount(visible.train_labels, minlength=classes)
    have = np.bincount(labels[kept][labels[kept] >= 0], minlength=classes)
    size = max(int(have.sum()), int((counts > 0).sum()))
    want = class_budget(visible.train_labels, classes, size).numpy()
    own = labels[kept]
    leaving = [kept[own == c][want[c] :] for c in range(classes)]
    missing = size - int(have.sum())
    leaving.append(kept[own < 0][::-1][:missing])
    absent = order[~np.isin(order, kept)]
    coming = [absent[labels[absent] == c][: max(0, want[c] - have[c])] for c in range(classes)]
    stay = kept[~np.isin(kept, np.concatenate(leaving))]
    return np.concatenate([stay, *coming])
