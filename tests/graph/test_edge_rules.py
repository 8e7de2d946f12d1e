"""The edge rules against a dense reference that follows them one entry at a time."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gcsr.data.edges import EdgeBlocks, adjacency_from_edges, clean_adjacency
from gcsr.utils.errors import InputError

NODES = 6
PAIRS = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=25)
# Quarters are exact in float32, so sums do not depend on their order.
WEIGHTS = st.integers(0, 40).map(lambda quarters: quarters / 4)
WEIGHTED = st.lists(
    st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), WEIGHTS), max_size=25
)


def _reference(edges, *, weighted: bool, undirected: bool) -> np.ndarray | None:
    """The adjacency by the rules, densely; None where the graph is directed."""
    dense = np.zeros((NODES, NODES))
    for source, target, weight in edges:
        if source != target and weight > 0:
            dense[source, target] = dense[source, target] + weight if weighted else 1.0
    if undirected:
        return np.maximum(dense, dense.T)
    return dense if (dense == dense.T).all() else None


def _check(edges, *, weighted: bool, undirected: bool) -> None:
    sources = [edge[0] for edge in edges]
    targets = [edge[1] for edge in edges]
    weights = [edge[2] for edge in edges] if weighted else None
    expected = _reference(edges, weighted=weighted, undirected=undirected)
    if expected is None:
        with pytest.raises(InputError, match="undirected=True"):
            adjacency_from_edges(sources, targets, NODES, weights, undirected=undirected)
        return
    built = adjacency_from_edges(sources, targets, NODES, weights, undirected=undirected)
    np.testing.assert_array_equal(built.toarray(), expected)
    assert built.nnz == np.count_nonzero(expected)
    assert built.has_sorted_indices
    assert built.dtype == np.float32
    again = clean_adjacency(built, weighted=weighted)
    assert (again != built).nnz == 0


@given(pairs=PAIRS, undirected=st.booleans(), both=st.booleans())
@settings(deadline=None, max_examples=150)
def test_unweighted_edges_follow_the_rules(pairs, undirected, both):
    edges = [(a, b, 1.0) for a, b in pairs]
    if both:
        edges += [(b, a, 1.0) for a, b in pairs]
    _check(edges, weighted=False, undirected=undirected)


@given(edges=WEIGHTED, undirected=st.booleans(), both=st.booleans())
@settings(deadline=None, max_examples=150)
def test_weighted_edges_follow_the_rules(edges, undirected, both):
    if both:
        edges = edges + [(b, a, weight) for a, b, weight in edges]
    _check(edges, weighted=True, undirected=undirected)


@given(edges=WEIGHTED, order=st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=50)
def test_order_of_the_edges_does_not_matter(edges, order):
    shuffled = list(edges)
    order.shuffle(shuffled)
    first, second = (
        adjacency_from_edges(
            [e[0] for e in some], [e[1] for e in some], NODES, [e[2] for e in some], undirected=True
        )
        for some in (edges, shuffled)
    )
    np.testing.assert_array_equal(first.toarray(), second.toarray())


def test_self_loops_are_dropped_and_duplicates_count_once():
    built = adjacency_from_edges([0, 0, 1, 1, 2], [1, 1, 0, 0, 2], 3)
    np.testing.assert_array_equal(built.toarray(), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])


def test_weights_of_a_repeated_edge_are_summed():
    built = adjacency_from_edges([0, 0, 1], [1, 1, 0], 2, [0.5, 1.0, 1.5])
    np.testing.assert_array_equal(built.toarray(), [[0, 1.5], [1.5, 0]])


def test_larger_weight_is_kept_for_both_directions():
    built = adjacency_from_edges([0, 1, 1], [1, 0, 2], 3, [2.0, 5.0, 1.0], undirected=True)
    np.testing.assert_array_equal(built.toarray(), [[0, 5, 0], [5, 0, 1], [0, 1, 0]])


def test_zero_weights_are_no_edges():
    assert adjacency_from_edges([0, 1], [1, 0], 2, [0.0, 0.0]).nnz == 0
    assert adjacency_from_edges([0, 1], [1, 0], 2, [1e-300, 1e-300]).nnz == 0


def test_directed_graph_says_how_many_entries_differ():
    with pytest.raises(
        InputError, match=r"undirected, got 2 of 4 entries that differ.*undirected=True"
    ):
        adjacency_from_edges([0, 1, 1, 2], [1, 0, 2, 0], 3)


DIFFERING = r"^edge_weights must be equal in both directions, got 1 of 2 edges .*undirected=True"


@pytest.mark.parametrize(
    ("sources", "targets", "weights", "message"),
    [
        ([0, 1, 1, 2], [1, 0, 2, 1], [1.0, 2.0, 3.0, 3.0], DIFFERING),
        ([0, 1, 0], [1, 0, 2], [1.0, 2.0, 3.0], r"^edges must be undirected, got 2 of 3 entries"),
    ],
)
def test_weights_that_differ_by_direction_are_directed(
    tmp_path, sources, targets, weights, message
):
    with pytest.raises(InputError, match=message):
        adjacency_from_edges(sources, targets, 3, weights)
    blocks = EdgeBlocks(tmp_path, 3)
    blocks.add(np.array(sources), np.array(targets), np.array(weights))
    with pytest.raises(InputError, match=message):
        blocks.finish(undirected=False)


def test_rounding_of_summed_weights_is_not_a_direction():
    thirds = [0.1] * 7
    adjacency_from_edges([0] * 7 + [1], [1] * 7 + [0], 2, [*thirds, 0.7])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -1.0], r"must be >= 0, got -1\.0"),
        ([1.0, np.nan], "NaN"),
        ([1.0, np.inf], "must be finite .*, got inf; numpy.nan_to_num"),
        ([1e300, 1e300], r"at most 3\.4e38"),
        ([1.0], r"one number per edge \(2\), got shape \(1,\)"),
        (["a", "b"], "must be numbers"),
        ([1j, 1j], "must be numbers"),
    ],
)
def test_impossible_weights_are_one_sentence(weights, message):
    with pytest.raises(InputError, match=message):
        adjacency_from_edges([0, 1], [1, 0], 2, weights)


def test_weights_whose_sum_overflows_are_refused():
    with pytest.raises(InputError, match=r"at most 3\.4e38"):
        adjacency_from_edges([0, 0, 1, 1], [1, 1, 0, 0], 2, [3e38] * 4)


@pytest.mark.parametrize(
    ("sources", "targets", "message"),
    [
        ([0], [2], r"node ids 0\.\.1, got 2"),
        ([-1], [0], r"node ids 0\.\.1, got -1"),
        ([0.0], [1.0], "must be integers"),
        ([0, 1], [1], "equal length"),
    ],
)
def test_impossible_node_ids_are_one_sentence(sources, targets, message):
    with pytest.raises(InputError, match=message):
        adjacency_from_edges(sources, targets, 2)


def test_matrix_must_be_square():
    with pytest.raises(InputError, match=r"square matrix, got shape \(2, 3\)"):
        clean_adjacency(sp.csr_array(np.ones((2, 3))), weighted=False)


def test_cleaning_leaves_its_input_unchanged():
    matrix = sp.csr_array(np.array([[1.0, 2.0], [3.0, 0.0]]))
    clean_adjacency(matrix, weighted=True, undirected=True)
    np.testing.assert_array_equal(matrix.toarray(), [[1, 2], [3, 0]])


def test_unweighted_cleaning_ignores_values_but_not_stored_zeros():
    matrix = sp.csr_array(np.array([[0.0, 7.0, 1.0], [7.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    matrix.data[matrix.data == 1] = 0
    built = clean_adjacency(matrix, weighted=False)
    np.testing.assert_array_equal(built.toarray(), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])


def test_adjacency_arrays_cannot_be_changed():
    built = adjacency_from_edges([0, 1], [1, 0], 2)
    for array in (built.data, built.indices, built.indptr):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_graph_without_edges():
    assert adjacency_from_edges([], [], 3).shape == (3, 3)
    assert adjacency_from_edges([], [], 3, []).nnz == 0
