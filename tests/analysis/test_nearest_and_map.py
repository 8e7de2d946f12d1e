from __future__ import annotations

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from gcsr import CondensedGraph, InputError
from gcsr.analysis.nearest import (
    FeatureSpace,
    nearest_rows,
    nearest_training_nodes,
    sample_nodes,
    tsne,
)
from gcsr.data.views import View
from helpers import dense, plain_norm, planted_graph


def test_nearest_by_hand():
    # On a line: rows at 0, 4, 5, 4; queries at 4 (two rows there: the first), 1 and 7.
    rows = torch.tensor([[0.0], [4.0], [5.0], [4.0]])
    queries = torch.tensor([[4.0], [1.0], [7.0]])
    places, distances = nearest_rows(queries, rows, 2)
    assert places.tolist() == [[1, 3], [0, 1], [2, 1]]
    assert distances.tolist() == [[0, 0], [1, 3], [2, 3]]
    found = nearest_training_nodes(
        queries,
        classes=torch.tensor([1, 0, -1]),
        rows=rows,
        row_classes=torch.tensor([0, 0, 1, 1]),
        ids=torch.tensor([10, 20, 30, 40]),
    )
    assert found.nodes.tolist() == [[20], [10], [30]]
    assert found.classes.tolist() == [[0], [0], [1]]
    # Of the two labeled queries one agrees; three different rows are nearest.
    assert (found.agreement, found.distinct) == (0.5, 3)


def test_blocks_do_not_change_the_answer():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(0, 3, (57, 4), generator=generator).float()  # many equal distances
    queries = torch.randint(0, 3, (9, 4), generator=generator).float()
    plain = (queries.double()[:, None] - rows.double()[None]).square().sum(2).sqrt()
    expected = plain.sort(dim=1, stable=True)
    seen: list[tuple[int, int]] = []
    for size in (1, 1000, 2**20):
        places, distances = nearest_rows(
            queries,
            rows,
            5,
            block_bytes=size,
            progress=lambda _, done, total: seen.append((done, total)),
        )
        torch.testing.assert_close(distances, expected.values[:, :5])
        assert torch.equal(places, expected.indices[:, :5])
        assert seen[-1] == (57, 57)


@pytest.mark.parametrize("k", [0, 3, True, 1.5])
def test_impossible_counts_of_neighbors(k):
    with pytest.raises(InputError, match=r"^nearest must be an integer >= 1 and <= 2, got"):
        nearest_rows(torch.zeros(1, 1), torch.zeros(2, 1), k)


def test_spaces():
    graph = planted_graph()
    visible = View(graph).condensing().visible
    a = torch.tensor([[0.0, 1.0], [1.0, 3.0]])
    small = CondensedGraph(torch.tensor([[1.0], [2.0]]), a, torch.tensor([0, 1]), 3)
    passed = plain_norm(dense(graph.adjacency))
    both = (passed @ passed @ graph.x.double()).float()
    small_passed = plain_norm(a)
    small_both = small_passed @ small_passed @ small.x
    cases = {
        "features": (graph.x, small.x),
        "propagated": (both, small_both),
        "start": (both, small.x),
    }
    for name, (real, condensed) in cases.items():
        space = FeatureSpace(name, hops=2)
        torch.testing.assert_close(space.real(visible), real)
        torch.testing.assert_close(space.condensed(small), condensed)
    with pytest.raises(InputError, match="space must be one of"):
        FeatureSpace("latent")
    with pytest.raises(InputError, match=r"hops must be .*, got -1"):
        FeatureSpace("start", hops=-1)


def test_a_sample_is_a_sample():
    drawn = sample_nodes(50, 20, seed=3)
    assert drawn.unique().numel() == 20 and drawn.max() < 50
    assert torch.equal(drawn, drawn.sort().values)
    assert torch.equal(drawn, sample_nodes(50, 20, seed=3))
    assert not torch.equal(drawn, sample_nodes(50, 20, seed=4))
    assert sample_nodes(5, 20, seed=3).tolist() == [0, 1, 2, 3, 4]


def test_a_map_keeps_neighbors_and_the_global_random_state():
    rng = np.random.default_rng(0)
    far = np.repeat(np.eye(2, 5) * 50, 20, axis=0) + rng.normal(size=(40, 5))
    states = np.random.get_state()[1].tolist(), torch.get_rng_state()  # noqa: NPY002
    places = tsne(far, seed=1)
    assert np.random.get_state()[1].tolist() == states[0]  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), states[1])
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    assert ((gaps.argmin(1) < 20) == (np.arange(40) < 20)).all()
    np.testing.assert_array_equal(places, tsne(far, seed=1))


def test_a_map_is_made_on_one_thread(monkeypatch):
    from sklearn.manifold import TSNE

    threads = []

    def fit_transform(self, rows):
        threads.extend(one["num_threads"] for one in threadpool_info())
        return rows[:, :2]

    monkeypatch.setattr(TSNE, "fit_transform", fit_transform)
    with threadpool_limits(2):
        tsne(np.eye(4))
    assert set(threads) == {1}


@pytest.mark.parametrize("shape", [(2, 3), (3, 1), (12, 4)])
def test_degenerate_maps_are_finite(shape):
    assert np.isfinite(tsne(np.ones(shape))).all()
