from __future__ import annotations

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gcsr.equations.prior import cross_class_similarity
from helpers import random_adjacency

R = math.sqrt(0.5)


def one_hot(y: list[int], classes: int) -> Tensor:
    """Zeros for class -1."""
    return torch.tensor([[float(label == c) for c in range(classes)] for label in y]).double()


def by_pairs(a: Tensor, y: list[int], classes: int) -> Tensor:
    """Definition 2 as written: a mean of cosines over all pairs."""

    def histogram(i: int) -> list[float]:
        return [sum(float(a[i, j]) for j in range(len(y)) if y[j] == c) for c in range(classes)]

    def cosine(i: int, j: int) -> float:
        d, e = histogram(i), histogram(j)
        size = math.hypot(*d) * math.hypot(*e)
        return sum(p * q for p, q in zip(d, e, strict=True)) / size if size else 0.0

    result = torch.full((classes, classes), math.nan, dtype=torch.float64)
    for c in range(classes):
        for other in range(classes):
            first = [i for i, label in enumerate(y) if label == c]
            second = [i for i, label in enumerate(y) if label == other]
            if first and second:
                cosines = [cosine(i, j) for i in first for j in second]
                result[c, other] = sum(cosines) / len(cosines)
    return result


def test_a_path_by_hand():
    # 1 - 0 - 2 - 3 with classes 0 0 1 1. Histograms: node 0 (1, 1), 1 (1, 0), 2 (1, 1), 3 (0, 1);
    # as unit vectors (r, r), (1, 0), (r, r), (0, 1) with r = 1/√2.
    # Class means ((r + 1)/2, r/2) and (r/2, (r + 1)/2), so
    # s(0, 0) = ((r + 1)² + r²)/4 = (2 + √2)/4 and s(0, 1) = 2 r (r + 1)/4 = (1 + √2)/4.
    histograms = torch.tensor([[1.0, 1], [1, 0], [1, 1], [0, 1]]).double()
    found = cross_class_similarity(histograms, one_hot([0, 0, 1, 1], 2))
    own, cross = (2 + math.sqrt(2)) / 4, (1 + math.sqrt(2)) / 4
    expected = torch.tensor([[own, cross], [cross, own]], dtype=torch.float64)
    torch.testing.assert_close(found, expected)


def test_an_isolated_node_counts_as_a_member():
    # The same path and a fifth node of class 0 without edges: its class mean shrinks by 2/3.
    histograms = torch.tensor([[1.0, 1], [1, 0], [1, 1], [0, 1], [0, 0]]).double()
    found = cross_class_similarity(histograms, one_hot([0, 0, 1, 1, 0], 2))
    own, cross = (2 + math.sqrt(2)) / 4, (1 + math.sqrt(2)) / 4
    expected = torch.tensor(
        [[own * 4 / 9, cross * 2 / 3], [cross * 2 / 3, own]], dtype=torch.float64
    )
    torch.testing.assert_close(found, expected)


def test_class_shares_by_hand():
    # Two nodes with shares (1, 0) and (.5, .5), joined by weight 2: histograms (1, 1) and (2, 0).
    # Class 0 has 1.5 members: mean ((r, r) + .5 (1, 0))/1.5. Class 1 is half a node with mean (1, 0).
    histograms = torch.tensor([[1.0, 1.0], [2.0, 0.0]]).double()
    found = cross_class_similarity(histograms, torch.tensor([[1.0, 0.0], [0.5, 0.5]]).double())
    own, cross = ((R + 0.5) ** 2 + R**2) / 2.25, (R + 0.5) / 1.5
    expected = torch.tensor([[own, cross], [cross, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(found, expected)


def test_tiny_weights_keep_their_direction():
    found = cross_class_similarity(torch.full((1, 2), 1e-200, dtype=torch.float64), one_hot([0], 2))
    torch.testing.assert_close(found[0, 0], torch.tensor(1.0, dtype=torch.float64))


@given(
    n=st.integers(2, 12),
    classes=st.integers(2, 4),
    seed=st.integers(0, 10_000),
    density=st.sampled_from([0.1, 0.5, 1.0]),
)
@settings(deadline=None, max_examples=50)
def test_mean_of_cosines_over_all_pairs(n, classes, seed, density):
    a = random_adjacency(n, density=density, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(-1, classes, (n,), generator=generator).tolist()
    shares = one_hot(y, classes)
    found = cross_class_similarity(a @ shares, shares)
    expected = by_pairs(a, y, classes)
    torch.testing.assert_close(found, expected, equal_nan=True, rtol=1e-10, atol=1e-12)
    there = found[~found.isnan()]
    assert ((there >= 0) & (there <= 1)).all()
    torch.testing.assert_close(found, found.T, equal_nan=True, rtol=0, atol=0)
    # Neither the order of nodes nor the scale of weights matters.
    order = torch.randperm(n, generator=generator)
    moved = 3 * a[order][:, order] @ shares[order]
    again = cross_class_similarity(moved, shares[order])
    torch.testing.assert_close(found, again, equal_nan=True, rtol=1e-10, atol=1e-12)
    # Renamed classes rename rows and columns.
    names = torch.randperm(classes, generator=generator)
    renamed = cross_class_similarity((a @ shares)[:, names], shares[:, names])
    torch.testing.assert_close(renamed, found[names][:, names], equal_nan=True)
