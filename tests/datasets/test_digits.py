from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

from gcsr import datasets


def test_digits_is_the_bundled_set_with_a_seeded_split():
    graph = datasets.load("digits")
    images, labels = load_digits(return_X_y=True)
    assert np.array_equal(graph.x.numpy(), (images / 16).astype(np.float32))
    assert np.array_equal(graph.y.numpy(), labels)
    assert torch.bincount(graph.y[graph.train]).tolist() == [20] * 10
    assert torch.bincount(graph.y[graph.val]).tolist() == [30] * 10
    assert len(graph.test) == 1797 - 500
    assert (graph.name, graph.feature_scaling, graph.inductive) == ("digits", "keep", False)
    assert datasets.load("digits").content_hash == graph.content_hash


def test_every_node_has_its_ten_nearest_neighbors_and_no_edge_is_one_sided():
    graph = datasets.load("digits")
    adjacency = graph.adjacency
    assert (adjacency != adjacency.T).nnz == 0
    assert np.diff(adjacency.indptr).min() >= 10
    search = NearestNeighbors(n_neighbors=11).fit(graph.x.numpy())
    tenth = search.kneighbors(graph.x.numpy())[0][:, 10]
    coo = adjacency.tocoo()
    length = np.linalg.norm(graph.x.numpy()[coo.row] - graph.x.numpy()[coo.col], axis=1)
    # Every edge is among the ten shortest of at least one of its ends.
    assert (length <= np.maximum(tenth[coo.row], tenth[coo.col]) + 1e-5).all()
    assert adjacency.nnz == 24678


def test_the_split_does_not_depend_on_the_machine():
    graph = datasets.load("digits")
    assert graph.train[:8].tolist() == [14, 16, 17, 19, 23, 24, 38, 48]
