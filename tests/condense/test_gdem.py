"""GDEM: its terms, its eigenpairs and its adjacency against plain forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity, mse_loss, normalize, one_hot

from gcsr import GDEM, InputError
from gcsr.data.views import View
from gcsr.methods.gdem import RealBasis, eigenpairs, matching_terms, spectral_adjacency
from gcsr.methods.presets import preset_settings
from gcsr.models.sparse import SparseTopology
from helpers import CPU, plain_norm, planted_graph, random_adjacency


def test_the_terms_are_those_of_explicit_matrices():
    generator = torch.Generator().manual_seed(0)
    x, u = (torch.randn(2, 9, width, generator=generator, dtype=torch.float64) for width in (5, 4))
    graph = planted_graph(features=5)
    real = RealBasis.of(View(graph).condensing().visible, 4, 0.5, CPU)
    y = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2])
    shares = one_hot(y, 3).double()
    apart, agree, orthogonal = matching_terms(x, u, real, shares, real.means)
    for g in range(2):
        found, wanted = normalize(u[g].T @ x[g], dim=1), real.directions
        gap = found[:, :, None] * found[:, None] - wanted[:, :, None] * wanted[:, None]
        assert apart[g] == pytest.approx(float(gap.square().sum((1, 2)).mean()))
        hidden = u[g] @ torch.diag(1 - real.values) @ u[g].T @ x[g]
        means = torch.stack([hidden[y == c].mean(0) for c in range(3)])
        cosines = cosine_similarity(real.means[:, None], means[None], dim=2)
        assert agree[g] == pytest.approx(float(mse_loss(cosines, torch.eye(3).double())))
        eye = torch.eye(4, dtype=torch.float64)
        assert orthogonal[g] == pytest.approx(float(mse_loss(u[g].T @ u[g], eye)))


@pytest.mark.parametrize("low", [1.0, 0.5, 0.0])
def test_eigenpairs_are_the_smallest_and_the_largest(low):
    hop = SparseTopology(planted_graph(isolated=0).adjacency, CPU).normalized.matrix
    values, vectors = eigenpairs(hop, 6, low)
    every = np.linalg.eigvalsh(np.eye(hop.shape[0]) - hop.toarray())
    kept = round(6 * low)
    np.testing.assert_allclose(values, [*every[:kept], *every[len(every) - 6 + kept :]], atol=1e-9)
    np.testing.assert_allclose(hop @ vectors, vectors * (1 - values), atol=1e-8)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-8)
    small = hop[:5][:, :5]
    np.testing.assert_allclose(eigenpairs(small, 5, low)[0], np.linalg.eigvalsh(np.eye(5) - small))


def test_the_adjacency_of_a_whole_basis_is_the_graph():
    adjacency = random_adjacency(8)
    values, vectors = torch.linalg.eigh(torch.eye(8).double() - plain_norm(adjacency))
    torch.testing.assert_close(spectral_adjacency(vectors, values), adjacency)


def test_labels_outside_the_component_and_of_others_do_not_count():
    """The authors replace training nodes outside the component by others with their true labels."""
    graph = planted_graph(isolated=2)
    view = View(graph).condensing().visible
    lone = np.flatnonzero(np.asarray(graph.adjacency.sum(1)) == 0)
    assert set(lone) & set(graph.train.tolist())
    real = RealBasis.of(view, 5, 1.0, CPU)
    assert real.nodes == graph.num_nodes - len(lone)
    labels = view.labels.clone()
    labels[torch.from_numpy(lone)] = -1
    again = RealBasis.of(replace(view, labels=labels), 5, 1.0, CPU)
    torch.testing.assert_close(real.means, again.means, rtol=0, atol=0)


def test_the_loss_falls_and_turns_alternate():
    graph = planted_graph()
    settings = {"nodes": 9, "iterations": 40, "iterate": "last"}
    small = GDEM(**settings).condense(graph, device="cpu")
    losses = small.provenance["matching_loss"]["values"]
    assert losses[-1] < 0.7 * losses[0]
    # Steps on U' alone leave the features as they were sampled.
    first = GDEM(nodes=9, iterations=5, iterate="last").condense(graph, device="cpu")
    assert all(any(torch.equal(row, one) for one in graph.x[graph.train]) for row in first.x)
    assert not any(any(torch.equal(row, one) for one in graph.x[graph.train]) for row in small.x)


def test_unpublished_settings_are_refused():
    settings, cell = preset_settings("paper", "gdem", "citeseer", 60)
    assert settings["alpha"] == 0.05 and cell == "paper (citeseer, 60 nodes)"
    GDEM(nodes=60, **settings)
    with pytest.raises(InputError, match=r"dataset must be one of citeseer, .* got 'cora'"):
        preset_settings("paper", "gdem", "cora", 70)
