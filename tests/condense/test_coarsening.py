"""Coarsening against the formulas written plainly, and the rules around it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import torch

from gcsr import Coarsening, Graph, InputError, View
from gcsr.engines.coarsening import (
    Rules,
    Variation,
    coarsen,
    coarsen_graph,
    contract_edges,
    contract_neighborhoods,
    laplacian,
    projected,
    rescaled,
    residual,
    shares,
    smooth_directions,
    super_labels,
)
from gcsr.utils.devices import make_generator
from gcsr.utils.progress import silent
from helpers import planted_graph, random_adjacency


def connected(n: int, *, density: float = 0.1, seed: int = 0) -> np.ndarray:
    """A random weighted graph with a path through all of it."""
    w = random_adjacency(n, density=density, seed=seed).numpy()
    path = np.arange(n - 1)
    w[path, path + 1] = w[path + 1, path] = 0.5
    return w


def plain_laplacian(w: np.ndarray) -> np.ndarray:
    return np.diag(w.sum(1)) - w


def plain_cost(w: np.ndarray, a: np.ndarray, members: list[int]) -> float:
    """Section 2 of the method as it stands, with explicit matrices."""
    s = len(members)
    inside = w[np.ix_(members, members)]
    b = (np.eye(s) - np.ones((s, s)) / s) @ a[members]
    ones = np.ones(s)
    local = np.diag(2 * w.sum(1)[members] - inside @ ones) - inside
    return float(np.linalg.norm(b.T @ local @ b, "fro") / (s - 1))


def plain_level(w: np.ndarray, a: np.ndarray, budget: int) -> set[frozenset[int]]:
    """The greedy contraction with a sorted list and every price computed when it is needed."""
    n = len(w)
    sets = [[*np.flatnonzero(w[v]).tolist(), v] for v in range(n)]
    queue = [(plain_cost(w, a, members), v, members) for v, members in enumerate(sets)]
    marked: set[int] = set()
    groups = []
    while queue and budget > 0:
        queue.sort(key=lambda entry: (entry[0], entry[1]))
        _, v, members = queue.pop(0)
        free = [i for i in members if i not in marked]
        if free == members:
            if len(members) - 1 <= budget:
                groups.append(frozenset(members))
                marked |= set(members)
                budget -= len(members) - 1
        elif len(free) >= 2:
            queue.append((plain_cost(w, a, free), v, free))
    return {*groups, *(frozenset([i]) for i in range(n) if i not in marked)}


def as_sets(groups: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(groups == g).tolist()) for g in range(groups.max() + 1)}


# -- prices and contraction --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_cost_is_the_formula(seed):
    w = connected(30, density=0.3, seed=seed)
    a = np.random.default_rng(seed).normal(size=(30, 4))
    variation = Variation(sp.csr_array(w), a)
    for size in (2, 2, 3, 5, 12, 30):
        members = np.random.default_rng(size + seed).permutation(30)[:size]
        expected = plain_cost(w, a, members.tolist())
        assert variation.cost(members) == pytest.approx(expected, rel=1e-10)


def test_cost_keeps_its_digits_where_directions_hardly_differ():
    """Sums of squares minus squares of sums would be rounding error here."""
    w = connected(12, density=0.4)
    a = np.random.default_rng(0).normal(size=(12, 3))
    near = Variation(sp.csr_array(w), 1e6 + 1e-3 * a).cost(np.arange(5))
    assert near == pytest.approx(1e-6 * plain_cost(w, a, [0, 1, 2, 3, 4]), rel=1e-5)


@pytest.mark.parametrize("budget", [3, 10, 25, 39])
@pytest.mark.parametrize("seed", range(3))
def test_contraction_is_the_plain_greedy(seed, budget):
    w = connected(40, density=0.08, seed=seed)
    weights = sp.csr_array(w)
    a = smooth_directions(weights, 6, make_generator(0, "start"))
    groups = contract_neighborhoods(weights, Variation(weights, a), budget)
    assert as_sets(groups) == plain_level(w, a, budget)
    assert 40 - (groups.max() + 1) <= budget


def test_edges_are_a_cheap_matching():
    w = connected(20, density=0.2)
    weights = sp.csr_array(w)
    a = smooth_directions(weights, 5, make_generator(0, "start"))
    groups = contract_edges(weights, Variation(weights, a), 1)
    pairs = [(i, j) for i in range(20) for j in range(i) if w[i, j] > 0]
    cheapest = min(pairs, key=lambda pair: plain_cost(w, a, list(pair)))
    assert max(as_sets(groups), key=len) == frozenset(cheapest)
    many = contract_edges(weights, Variation(weights, a), 19)
    assert {len(group) for group in as_sets(many)} <= {1, 2}
    assert all(w[tuple(group)] > 0 for group in as_sets(many) if len(group) == 2)


# -- directions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [60, 400])
def test_directions_are_the_smallest_eigenpairs(n):
    """Below and above the size from which they are found by iteration."""
    w = connected(n, density=4 / n)
    values, vectors = np.linalg.eigh(plain_laplacian(w))
    expected = (vectors[:, 1:6] / values[1:6]) @ vectors[:, 1:6].T
    found = smooth_directions(sp.csr_array(w), 6, make_generator(0, "start"))
    assert found.shape == (n, 5)
    # Signs are free and so are rotations among equals: the sum of outer products is neither.
    size = np.abs(expected).max()
    np.testing.assert_allclose(found @ found.T / size, expected / size, atol=1e-4)


def clusters_in_a_row(count: int, size: int) -> sp.csr_array:
    """Cliques joined like a chain: many small eigenvalues close to each other, as in real graphs."""
    block = np.ones((size, size)) - np.eye(size)
    w = np.kron(np.eye(count), block)
    for i in range(1, count):
        w[i * size, i * size - 1] = w[i * size - 1, i * size] = 1
    return sp.csr_array(w)


def test_directions_are_settled_and_do_not_depend_on_the_start():
    weights = clusters_in_a_row(60, 8)
    ours, theirs = (smooth_directions(weights, 10, make_generator(s, "start")) for s in (0, 1))
    assert residual(weights, ours) < 1e-5
    assert residual(weights, np.roll(ours, 1, axis=0)) > 1e-3
    a, b = (contract_neighborhoods(weights, Variation(weights, d), 300) for d in (ours, theirs))
    assert as_sets(a) == as_sets(b)


def test_nearly_separate_parts_have_finite_directions():
    w = clusters_in_a_row(2, 12).toarray()
    w[w == 1] = 1.0
    w[12, 11] = w[11, 12] = 1e-16
    assert np.isfinite(smooth_directions(sp.csr_array(w), 6, make_generator(0, "start"))).all()


def test_rescaling_is_by_the_symmetric_root():
    w = connected(25, density=0.2)
    basis = np.random.default_rng(0).normal(size=(25, 4))
    energy = basis.T @ plain_laplacian(w) @ basis
    expected = basis @ np.linalg.inv(scipy.linalg.sqrtm(energy))
    found = rescaled(basis, sp.csr_array(w))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.T @ (laplacian(sp.csr_array(w)) @ found), np.eye(4), atol=1e-9)


def test_rescaling_leaves_out_what_has_no_energy():
    w = connected(25, density=0.2)
    basis = np.random.default_rng(0).normal(size=(25, 3))
    basis[:, 2] = 1.0  # the constant has none
    found = rescaled(basis, sp.csr_array(w))
    assert np.isfinite(found).all()
    energy = found.T @ plain_laplacian(w) @ found
    np.testing.assert_allclose(np.linalg.eigvalsh(energy), [0, 1, 1], atol=1e-8)


# -- levels ------------------------------------------------------------------------------------------


def test_levels_multiply_to_c():
    w = connected(80, density=0.05)
    made = coarsen(
        sp.csr_array(w), 6, Rules(directions=5), make_generator(0, "start"), lambda gone: None
    )
    assert made.sizes[0] == 80
    assert made.sizes[-1] == 6
    assert len(made.sizes) >= 3
    # The first level again, plainly; then what is known of every product of levels.
    a = smooth_directions(sp.csr_array(w), 5, make_generator(0, "start"))
    first = as_sets(contract_neighborhoods(sp.csr_array(w), Variation(sp.csr_array(w), a), 74))
    assert len(first) == made.sizes[1]
    c = made.matrix.toarray()
    groups = as_sets(c.argmax(0))
    assert all(any(small <= group for group in groups) for small in first)
    np.testing.assert_allclose(c @ c.T, np.eye(6), atol=1e-12)
    s = (c > 0).astype(float)
    expected = s @ w @ s.T
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(made.weights.toarray(), expected, atol=1e-12)


def test_one_level_has_one_over_root_size():
    w = connected(30, density=0.1)
    made = coarsen(sp.csr_array(w), 20, Rules(), make_generator(0, "start"), lambda gone: None)
    assert len(made.sizes) == 2
    c = made.matrix.toarray()
    sizes = (c > 0).sum(1, keepdims=True)
    np.testing.assert_allclose(c, (c > 0) / np.sqrt(sizes))


SHAPES = {
    "clique": np.ones((14, 14)) - np.eye(14),
    "star": np.pad(np.ones((1, 13)), ((0, 13), (1, 0))),
    "path": np.eye(14, k=1),
    "pair of cliques": np.kron(np.eye(2), np.ones((7, 7))) + np.eye(14, k=1),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("target", [1, 2, 3, 7, 13, 14])
def test_count_is_exact(shape, target):
    w = SHAPES[shape]
    w = ((w + w.T) > 0) & ~np.eye(14, dtype=bool)
    made = coarsen(
        sp.csr_array(w * 1.0), target, Rules(), make_generator(0, "x"), lambda gone: None
    )
    c = made.matrix.toarray()
    assert c.shape[0] == target and (c > 0).any(1).all() and ((c > 0).sum(0) == 1).all()
    assert made.weights.shape == (target, target)


def test_no_neighborhood_fits_then_edges_do():
    """All closed neighborhoods of a clique are the clique, which is too much to remove."""
    w = sp.csr_array(np.ones((14, 14)) - np.eye(14))
    made = coarsen(w, 3, Rules(), make_generator(0, "x"), lambda gone: None)
    assert made.edges == 11
    assert made.sizes == (14, 7, 4, 3)


def test_levels_are_bounded_and_edges_do_the_rest():
    w = sp.csr_array(connected(60, density=0.05))
    free = coarsen(w, 4, Rules(), make_generator(0, "x"), lambda gone: None)
    bounded = coarsen(w, 4, Rules(levels=1), make_generator(0, "x"), lambda gone: None)
    assert free.sizes[1] == bounded.sizes[1]
    assert bounded.edges == bounded.sizes[1] - 4
    slow = coarsen(w, 4, Rules(reduction=0.1), make_generator(0, "x"), lambda gone: None)
    assert slow.sizes[1] >= 54


# -- components --------------------------------------------------------------------------------------


def blocks(*sizes: int) -> sp.csr_array:
    return sp.csr_array(sp.block_diag([np.ones((n, n)) - np.eye(n) for n in sizes]))


def targets(sizes: list[int], target: int, train: list[int], validation: list[int]) -> dict:
    found = shares(blocks(*sizes), target, np.array(train), np.array(validation, dtype=int))
    assert sum(count for _, count in found) == target
    return {int(nodes[0]): count for nodes, count in found}


def test_components_get_their_share():
    # Nodes 0-39, 40-59, 60-62, 63-64: the last is small and holds nothing.
    sizes = [40, 20, 3, 2]
    assert targets(sizes, 21, [0, 45, 61], []) == {0: 13, 40: 7, 60: 1}
    # Of 6 x (40, 20, 3) / 63 = (3.8, 1.9, .29): one left goes to the largest remainder ...
    assert targets(sizes, 5, [0, 45, 61], []) == {0: 3, 40: 2}
    # ... unless only the other holds training nodes.
    assert targets(sizes, 5, [61], []) == {0: 3, 40: 1, 60: 1}
    # A validation node makes a small component count.
    assert targets(sizes, 65, [0, 45, 61], [64]) == {0: 40, 40: 20, 60: 3, 63: 2}
    assert targets(sizes, 60, [0, 45, 61], [64])[63] == 1
    assert 63 not in targets(sizes, 60, [0, 45, 61], [])


def test_small_component_without_known_nodes_is_dropped_unless_needed():
    sizes = [40, 2]
    assert targets(sizes, 40, [0], []) == {0: 40}
    assert targets(sizes, 42, [0], []) == {0: 40, 40: 2}


def test_whole_graph_is_its_components():
    weights = blocks(12, 5)
    whole = coarsen_graph(
        weights, 4, np.array([0, 13]), np.array([], int), Rules(), make_generator(0, "x"), silent
    )
    c = whole.matrix.toarray()
    assert c.shape == (4, 17)
    np.testing.assert_allclose(c @ c.T, np.eye(4), atol=1e-12)
    assert not ((c[:, :12] != 0).any(1) & (c[:, 12:] != 0).any(1)).any()
    assert whole.weights.shape == (4, 4)


# -- what super-nodes carry --------------------------------------------------------------------------

C = sp.csr_array(np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 2**0.5]]) / 2**0.5)


def test_projection():
    x = np.array([[0.5, 0.5], [1, 0], [0, 1], [0, 1], [0, 0]])
    expected = [[0.75, 0.25], [0, 1], [0, 0]]
    np.testing.assert_allclose(projected(x, C, "sum"), expected)
    np.testing.assert_allclose(projected(x, C, "auto"), expected)
    np.testing.assert_allclose(projected(x, C, "mean"), expected)
    # Rows that are not shares keep their scale.
    np.testing.assert_allclose(projected(3 * x, C, "auto"), 3 * np.array(expected))
    np.testing.assert_allclose(projected(3 * x, C, "sum"), expected)
    np.testing.assert_allclose(projected(x - 1, C, "auto"), np.array(expected) - 1)


def test_labels_of_super_nodes():
    labels = np.array([0, -1, 2, 1, -1])
    assert super_labels(C, labels, 3, "pure").tolist() == [0, -1, -1]
    assert super_labels(C, labels, 3, "majority").tolist() == [0, 1, -1]


# -- the method --------------------------------------------------------------------------------------


@pytest.mark.parametrize("inductive", [False, True])
@pytest.mark.parametrize("nodes", [5, 12, 20])
def test_method_has_the_size_and_unweighted_edges(nodes, inductive):
    graph = planted_graph(inductive=inductive, seed=1)
    small = Coarsening(nodes=nodes).condense(graph, device="cpu")
    assert small.num_nodes == nodes
    assert set(small.adjacency.unique().tolist()) <= {0.0, 1.0}
    assert small.adjacency.diagonal().sum() == 0
    assert small.provenance["eigen_residual"] < 1e-6
    more = Coarsening(nodes=nodes, labels="majority").condense(graph, device="cpu")
    assert more.labeled.sum() >= small.labeled.sum()
    heavy = Coarsening(nodes=nodes, weights=True).condense(graph, device="cpu")
    assert torch.equal(heavy.adjacency > 0, small.adjacency > 0)
    if not inductive:
        assert heavy.adjacency.max() > 1


def test_all_nodes_kept_is_the_graph_itself():
    graph = planted_graph(isolated=0)
    small = Coarsening(nodes=graph.num_nodes).condense(graph, device="cpu")
    labels = View(graph).condensing().visible.labels
    order = torch.argsort(torch.where(labels < 0, 3, labels), stable=True)
    assert torch.equal(small.y, labels[order])
    torch.testing.assert_close(small.x, graph.x[order])
    assert small.adjacency.sum() == graph.adjacency.sum()


def test_what_is_missing_is_said():
    graph = planted_graph()
    notes = Coarsening(nodes=5).condense(graph, device="cpu").provenance["notes"]
    assert any("super-nodes have no label" in note for note in notes)
    assert any("2 of 66 nodes were dropped" in note for note in notes)


def mixed() -> Graph:
    """A clique whose two classes alternate: half of it is never pure."""
    y = np.arange(16) % 2
    w = sp.csr_array((np.ones((16, 16)) - np.eye(16)).astype(np.float32))
    split = {"train": np.arange(12), "val": np.array([12, 13]), "test": np.array([14, 15])}
    return Graph.from_arrays(np.eye(16, dtype=np.float32)[:, :4], w, y, **split)


def test_no_label_at_all_is_refused_with_a_way_out():
    graph = mixed()
    with pytest.raises(InputError, match="labels must be 'majority' for nodes=2, got 'pure'"):
        Coarsening(nodes=2).condense(graph, device="cpu")
    assert Coarsening(nodes=2, labels="majority").condense(graph, device="cpu").num_nodes == 2


def test_validation_labels_have_no_say():
    graph = planted_graph()
    y = graph.y.clone()
    y[graph.val] = (y[graph.val] + 1) % 3
    ours, theirs = (
        Coarsening(nodes=9).condense(g, device="cpu") for g in (graph, replace(graph, y=y))
    )
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.y, theirs.y)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"directions": 1}, "directions must be an integer >= 2, got 1"),
        ({"levels": -1}, "levels must be .*, got -1"),
        ({"reduction": 0.0}, "reduction must be a number > 0 and <= 1, got 0.0"),
        ({"projection": "max"}, "projection must be one of auto, sum, mean"),
        ({"labels": "soft"}, "labels must be one of pure, majority"),
        ({"weights": "yes"}, "weights must be true or false, got 'yes'"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        Coarsening(nodes=5, **settings)
