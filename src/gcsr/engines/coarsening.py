"""Coarsening of a graph: neighborhoods become super-nodes, component by component."""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, lobpcg

from gcsr.utils.errors import Bounds, PositiveShare, Whole
from gcsr.utils.progress import Progress

STAGE = "contracting"
# Smaller components count only if they hold a training or validation node.
SMALL_COMPONENT = 10


def shares(
    weights: sp.csr_array, target: int, train: np.ndarray, validation: np.ndarray
) -> list[tuple[np.ndarray, int]]:
    """The nodes of every component and its share of ``target`` super-nodes, proportional to its size.

    Whole parts first; what is left goes, one each, to components with training nodes, those with the
    largest remainder first, then to the others. A component without a super-node is dropped, and so
    is a small one that holds neither training nor validation nodes, unless every node is needed.
    """
    count, component = connected_components(weights, directed=False)
    sizes = np.bincount(component, minlength=count)
    trains = np.bincount(component[train], minlength=count) > 0
    validates = np.bincount(component[validation], minlength=count) > 0
    counts = (sizes > SMALL_COMPONENT) | trains | validates
    if sizes[counts].sum() < target:
        counts[:] = True
    exact = np.where(counts, target * sizes / sizes[counts].sum(), 0.0)
    whole = np.floor(exact).astype(np.int64)
    # The last key is the first to sort by.
    order = np.lexsort((-sizes, whole - exact, ~trains, ~counts))
    while (left := target - int(whole.sum())) > 0:
        whole[order[(whole < sizes)[order] & counts[order]][:left]] += 1
    by_component = np.split(np.argsort(component, kind="stable"), np.cumsum(sizes)[:-1])
    return [(by_component[c], int(whole[c])) for c in np.flatnonzero(whole)]


# Up to this many nodes all eigenpairs are computed: exact, and no slower.
DENSE_NODES = 200
# An iterative solver stops at this residual, or after this many rounds; on a large graph a round takes
# a fifth of a second.
RESIDUAL = 1e-6
ROUNDS, LARGE, LARGE_ROUNDS = 1000, 50_000, 100
# What is smaller, relative to the largest, is taken for zero.
ZERO = 1e-10


def laplacian(weights: sp.csr_array) -> sp.csr_array:
    """L = D - W."""
    return sp.csr_array(sp.diags_array(weights.sum(1)) - weights)


def smooth_directions(weights: sp.csr_array, count: int, generator: torch.Generator) -> np.ndarray:
    r""":math:`U \Lambda^{-1/2}` for the ``count`` smallest eigenpairs of L, ``(n, count - 1)``.

    The graph is connected: its one zero mode is the constant, which counts among the pairs and whose
    column, zero by definition, is left out. The Laplacian of a large graph has its small eigenvalues
    crowded at :math:`10^{-6}` of its largest, where Lanczos on a shifted Laplacian does not get; with
    degrees as preconditioner and the constant projected out, LOBPCG does.
    """
    n = weights.shape[0]
    matrix = laplacian(weights)
    wanted = min(count, n) - 1
    if n <= max(DENSE_NODES, 5 * count):
        values, vectors = np.linalg.eigh(matrix.toarray())
        values, vectors = values[1 : wanted + 1], vectors[:, 1 : wanted + 1]
    else:
        values, vectors = _smallest(matrix, wanted, generator)
    directions: np.ndarray = vectors * _inverse_roots(values)
    return directions


def _inverse_roots(values: np.ndarray) -> np.ndarray:
    """One over the roots of eigenvalues; zero where an eigenvalue is."""
    kept = values > ZERO * max(values.max(initial=0.0), 0.0)
    return np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)


def residual(weights: sp.csr_array, directions: np.ndarray) -> float:
    r"""The largest :math:`|L u - \lambda u|` of directions :math:`u / \sqrt\lambda`."""
    sizes = np.linalg.norm(directions, axis=0)
    u = directions[:, sizes > 0] / sizes[sizes > 0]
    off = laplacian(weights) @ u - u / sizes[sizes > 0] ** 2
    return float(np.linalg.norm(off, axis=0).max(initial=0.0))


def _smallest(
    matrix: sp.csr_array, wanted: int, generator: torch.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The smallest eigenpairs of a Laplacian but the constant."""
    n = matrix.shape[0]
    degrees = matrix.diagonal()[:, None]
    start = torch.randn((n, wanted), generator=generator, dtype=torch.float64).numpy()
    inverse = LinearOperator(
        (n, n),
        matvec=lambda x: (x.reshape(n, -1) / degrees).reshape(x.shape),
        matmat=lambda x: x / degrees,
        dtype=np.float64,
    )
    with warnings.catch_warnings():
        # The residual is part of the result.
        warnings.simplefilter("ignore", UserWarning)
        values, vectors = lobpcg(
            matrix,
            start,
            M=inverse,
            Y=np.ones((n, 1)),
            tol=RESIDUAL,
            maxiter=ROUNDS if n <= LARGE else LARGE_ROUNDS,
            largest=False,
        )
    return values, vectors


def rescaled(basis: np.ndarray, weights: sp.csr_array) -> np.ndarray:
    r""":math:`B (B^\top L B)^{-1/2}`, the pseudo-inverse root: :math:`V d^{-1/2} V^\top`."""
    energy = basis.T @ (laplacian(weights) @ basis)
    values, vectors = np.linalg.eigh((energy + energy.T) / 2)
    result: np.ndarray = basis @ (vectors * _inverse_roots(values)) @ vectors.T
    return result


class Variation:
    r"""Costs of contracting sets of nodes, given the directions A to keep.

    .. math:: \|B_S^\top L_S B_S\|_F / (s - 1), \qquad B_S = (I - 11^\top/s) A_S, \qquad
              L_S = \mathrm{diag}(2 d_S - W_{SS} 1) - W_{SS}

    (Loukas 2019). As :math:`\mathrm{diag}(W_{SS}1) - W_{SS}` is the Laplacian of the induced graph,
    the matrix in the norm is a sum over nodes and one over the edges inside S:

    .. math:: \sum_{i \in S} 2 (d_i - w_i) b_i b_i^\top
              + \sum_{ij \in E(S)} W_{ij} (b_i - b_j)(b_i - b_j)^\top

    with :math:`w = W_{SS} 1`, in which nothing cancels and no matrix of s x s is needed.
    """

    def __init__(self, weights: sp.csr_array, directions: np.ndarray) -> None:
        self.directions = directions
        self.degrees = np.asarray(weights.sum(1), dtype=np.float64)
        upward = _towards_hubs(weights)
        self._starts = upward.indptr.astype(np.int64)
        self._neighbors, self._values = upward.indices, upward.data
        # Where a node lies within the set at hand; everywhere else -1.
        self._place = np.full(weights.shape[0], -1, dtype=np.int64)

    def cost(self, members: np.ndarray) -> float:
        """What contracting these nodes costs."""
        size = members.size
        if size == 2:
            return float(self.of_pairs(members[:1], members[1:])[0])
        rows = self.directions[members]
        rows = rows - rows.sum(0) / size
        first, second, values = self._edges_inside(members)
        inside = np.bincount(first, values, size) + np.bincount(second, values, size)
        ends = 2 * (self.degrees[members] - inside)
        steps = rows[first] - rows[second]
        energy = (rows.T * ends) @ rows + (steps.T * values) @ steps
        return float(np.sqrt(np.vdot(energy, energy))) / (size - 1)

    def of_pairs(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Costs of many pairs: for s = 2 the formula is (d_i + d_j) |a_i - a_j|^2 / 2."""
        steps = self.directions[first] - self.directions[second]
        squares = np.einsum("pk,pk->p", steps, steps)
        costs: np.ndarray = (self.degrees[first] + self.degrees[second]) / 2 * squares
        return costs

    def _edges_inside(self, members: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Edges among the members, each once, as places within the set, and their weights."""
        starts = self._starts[members]
        lengths = self._starts[members + 1] - starts
        ends = lengths.cumsum()
        flat = np.arange(ends[-1]) + (starts - ends + lengths).repeat(lengths)
        own = np.arange(members.size).repeat(lengths)
        self._place[members] = np.arange(members.size)
        other = self._place[self._neighbors[flat]]
        self._place[members] = -1
        inside = (other >= 0).nonzero()[0]
        return own[inside], other[inside], self._values[flat[inside]]


def _towards_hubs(weights: sp.csr_array) -> sp.csr_array:
    """Every edge once, from the node with fewer neighbors to the one with more.

    So the edges inside a set are found without the long list of a hub: no row has more entries than
    the square root of twice the edges.
    """
    neighbors = np.diff(weights.indptr)
    rank = np.empty(neighbors.size, dtype=np.int64)
    rank[np.argsort(neighbors, kind="stable")] = np.arange(neighbors.size)
    coo = sp.coo_array(weights)
    rows, columns = coo.row, coo.col
    kept = rank[rows] < rank[columns]
    return sp.csr_array((coo.data[kept], (rows[kept], columns[kept])), shape=weights.shape)


def contract_neighborhoods(weights: sp.csr_array, variation: Variation, budget: int) -> np.ndarray:
    """The new number of every node after contracting closed neighborhoods, cheapest first.

    A set of s nodes takes s - 1 of the ``budget``. A set that no longer fits is discarded; one that
    lost nodes to a cheaper set is priced again without them. Prices are only renewed when a set
    comes up: one that was not touched since is still right.
    """
    n = weights.shape[0]
    neighbors = np.split(weights.indices, weights.indptr[1:-1])
    sets = {v: np.append(near, v) for v, near in enumerate(neighbors) if near.size}
    heap = [(variation.cost(members), v) for v, members in sets.items()]
    heapq.heapify(heap)
    taken = np.zeros(n, dtype=bool)
    leader = np.arange(n)
    left = budget
    while heap and left > 0:
        _, v = heapq.heappop(heap)
        members = sets[v]
        free = members[~taken[members]]
        if free.size == members.size:
            if free.size - 1 <= left:
                taken[free] = True
                leader[free] = free.min()
                left -= free.size - 1
        elif free.size > 1:
            sets[v] = free
            heapq.heappush(heap, (variation.cost(free), v))
    return numbered(leader)


def contract_edges(weights: sp.csr_array, variation: Variation, budget: int) -> np.ndarray:
    """The same with pairs of neighbors as the only sets: at least one always fits."""
    upper = sp.triu(weights, 1).tocoo()
    first, second = upper.row, upper.col
    order = np.argsort(variation.of_pairs(first, second), kind="stable")
    leader = np.arange(weights.shape[0])
    taken = np.zeros(weights.shape[0], dtype=bool)
    left = budget
    for i, j in zip(first[order].tolist(), second[order].tolist(), strict=True):
        if left == 0:
            break
        if not taken[i] and not taken[j]:
            taken[i] = taken[j] = True
            leader[j] = i
            left -= 1
    return numbered(leader)


def numbered(leader: np.ndarray) -> np.ndarray:
    """Groups counted from zero, in the order of their leaders."""
    groups: np.ndarray = np.unique(leader, return_inverse=True)[1]
    return groups


def coarse_weights(weights: sp.csr_array, groups: np.ndarray) -> sp.csr_array:
    """W_c = S'WS without its diagonal, S the 0/1 assignment to groups."""
    count = int(groups.max()) + 1
    assignment = sp.csr_array(
        (np.ones(groups.size), (np.arange(groups.size), groups)), shape=(groups.size, count)
    )
    return without_loops(assignment.T @ weights @ assignment)


# A level that removes no more nodes than this is the last that contracts neighborhoods.
STALLED = 2


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How far and by what a graph is contracted; see :class:`gcsr.Coarsening`."""

    directions: Annotated[int, Bounds(least=2)] = 10
    levels: Whole = 10
    reduction: PositiveShare = 0.99


@dataclass(frozen=True, eq=False)
class Coarse:
    r"""A coarse graph and the matrix C that made it.

    Attributes:
        matrix: C, a row per super-node. A column has one entry, the product of :math:`1/\sqrt{s}` over
            levels; columns of dropped nodes are empty.
        weights: :math:`S^\top W S` without its diagonal.
        sizes: nodes after every level, the original graph first; of the largest component.
        edges: how many nodes went by contracting single edges, at the end.
        residual: how far the first directions are from eigenvectors; the largest over components.
    """

    matrix: sp.csr_array
    weights: sp.csr_array
    sizes: tuple[int, ...]
    edges: int
    residual: float


def coarsen(
    weights: sp.csr_array,
    target: int,
    rules: Rules,
    generator: torch.Generator,
    report: Callable[[int], None],
) -> Coarse:
    """Contract a connected graph to exactly ``target`` nodes.

    ``report`` is called with the number of nodes removed.

    Neighborhoods alone may not get there: those left can all be larger than what remains to be
    removed. Then, or when the levels are used up, single edges are contracted, of which a connected
    graph always has one.
    """
    n = weights.shape[0]
    groups, shares, sizes = np.arange(n), np.ones(n), [n]
    edges, stalled, off = 0, False, 0.0
    report(0)
    if n > target:
        basis = directions = smooth_directions(weights, rules.directions, generator)
        off = residual(weights, directions)
    while sizes[-1] > target:
        now = sizes[-1]
        variation = Variation(weights, directions)
        budget = min(now - target, max(1, int(rules.reduction * now)))
        if stalled or len(sizes) > rules.levels:
            step = contract_edges(weights, variation, budget)
            edges += now - int(step.max()) - 1
        else:
            step = contract_neighborhoods(weights, variation, budget)
        members = np.bincount(step)
        stalled = stalled or now - members.size <= STALLED
        if members.size == now:
            continue
        share = 1 / np.sqrt(members)
        shares *= share[step[groups]]
        groups = step[groups]
        weights = coarse_weights(weights, step)
        # C of this level: a row per super-node, 1/sqrt(s) at its members.
        basis = sp.csr_array((share[step], (step, np.arange(step.size)))) @ basis
        directions = rescaled(basis, weights)
        sizes.append(members.size)
        report(n - members.size)
    matrix = sp.csr_array((shares, (groups, np.arange(n))), shape=(sizes[-1], n))
    return Coarse(matrix, weights, tuple(sizes), edges, off)


Projection = Literal["auto", "sum", "mean"]
Labels = Literal["pure", "majority"]
# How far from one the sum of a row that was scaled to one may be.
ROUNDING = 1e-3


def projected(
    features: np.ndarray | sp.csr_array, matrix: sp.csr_array, projection: Projection
) -> np.ndarray:
    r"""``sum``: :math:`C X` with rows scaled to one; ``mean``: :math:`(C \circ C) X`.

    Squared, the rows of C sum to one. ``auto`` is ``sum`` where rows are shares of words (non-negative,
    summing to one or nothing): scaled to one, the rows of super-nodes are then what a network meets on
    the real graph. Any other features keep their scale only as means.
    """
    mean = projection == "mean"
    if projection == "auto":
        sums = features.sum(1)
        shares = (np.abs(sums - 1) < ROUNDING) | (sums == 0)
        mean = not (features.min() >= 0 and shares.all())
    product = (matrix * matrix if mean else matrix) @ features
    result: np.ndarray = product.toarray() if isinstance(product, sp.csr_array) else product
    if not mean:
        sizes = np.abs(result).sum(1, keepdims=True)
        result = result / np.where(sizes > 0, sizes, 1)
    return result


def super_labels(
    matrix: sp.csr_array, labels: np.ndarray, num_classes: int, rule: Labels
) -> np.ndarray:
    """The class of every super-node, -1 where there is none.

    ``labels`` are those of nodes, -1 but on training nodes. ``pure``: the class that all training
    nodes of a super-node share; ``majority``: the most frequent one, the smaller number where two
    are equally so.
    """
    known = np.flatnonzero(labels >= 0)
    one_hot = sp.csr_array(
        (np.ones(known.size), (known, labels[known])), shape=(labels.size, num_classes)
    )
    members = sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), matrix.shape)
    votes = (members @ one_hot).toarray()
    classes = (votes > 0).sum(1)
    decided = classes == 1 if rule == "pure" else classes > 0
    return np.where(decided, votes.argmax(1), -1)


def coarsen_graph(
    adjacency: sp.csr_array,
    target: int,
    train: np.ndarray,
    validation: np.ndarray,
    rules: Rules,
    generator: torch.Generator,
    progress: Progress,
) -> Coarse:
    """Exactly ``target`` super-nodes; components get their share of them."""
    weights = without_loops(adjacency)
    parts = shares(weights, target, train, validation)
    total = sum(nodes.size - count for nodes, count in parts)
    made: list[Coarse] = []
    before = 0
    for nodes, count in parts:

        def report(gone: int, before: int = before) -> None:
            # What comes after the last contraction is the last step.
            progress(STAGE, before + gone, total + 1)

        inside = sp.csr_array(weights[nodes][:, nodes])
        made.append(coarsen(inside, count, rules, generator, report))
        before += nodes.size - count
    progress(STAGE, total + 1, total + 1)
    columns = np.concatenate([nodes for nodes, _ in parts])
    blocks = sp.coo_array(sp.block_diag([one.matrix for one in made]))
    places = (blocks.row, columns[blocks.col])
    return Coarse(
        matrix=sp.csr_array((blocks.data, places), shape=(target, weights.shape[0])),
        weights=sp.csr_array(sp.block_diag([one.weights for one in made])),
        sizes=max((one.sizes for one in made), key=lambda sizes: sizes[0]),
        edges=sum(one.edges for one in made),
        residual=max(one.residual for one in made),
    )


def without_loops(adjacency: sp.csr_array) -> sp.csr_array:
    """The same weights in double precision, without a diagonal."""
    coo = sp.coo_array(adjacency)
    rows, columns = coo.row, coo.col
    off = rows != columns
    data = coo.data[off].astype(np.float64)
    return sp.csr_array((data, (rows[off], columns[off])), shape=adjacency.shape)
