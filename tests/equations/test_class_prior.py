from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gcsr.equations.prior import class_correlation, class_prior
from helpers import random_adjacency


def counted(a: Tensor, y: Tensor, classes: int) -> Tensor:
    """Eq. 5 as loops over classes, nodes and nodes."""
    result = torch.zeros(classes, classes, dtype=torch.float64)
    labeled = [int(label) for label in y if label >= 0]
    for c in range(classes):
        for i in range(len(y)):
            for j in range(len(y)):
                if y[i] == c and y[j] >= 0:
                    result[c, y[j]] += a[i, j]
        if result[c].sum() > 0:
            result[c] /= result[c].sum()
        else:
            for other in range(classes):
                result[c, other] = labeled.count(other) / len(labeled)
    return result


@given(
    n=st.integers(2, 14),
    classes=st.integers(2, 4),
    seed=st.integers(0, 10_000),
    density=st.sampled_from([0.1, 0.5, 1.0]),
)
@settings(deadline=None, max_examples=60)
def test_counts_every_labeled_pair(n, classes, seed, density):
    a = random_adjacency(n, density=density, seed=seed)
    y = torch.randint(-1, classes, (n,), generator=torch.Generator().manual_seed(seed))
    y[0] = 0
    found = class_correlation(a.to_sparse_csr(), y, classes)
    torch.testing.assert_close(found, counted(a, y, classes), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found.sum(1), torch.ones(classes, dtype=torch.float64))


def test_rows_not_columns_sum_to_one():
    # Class 0 has one node with three neighbors in class 1, which also know each other.
    a = torch.zeros(4, 4, dtype=torch.float64)
    for i, j in ((0, 1), (0, 2), (0, 3), (1, 2)):
        a[i, j] = a[j, i] = 1
    found = class_correlation(a.to_sparse_csr(), torch.tensor([0, 1, 1, 1]), 2)
    torch.testing.assert_close(found, torch.tensor([[0, 1], [0.6, 0.4]], dtype=torch.float64))


def test_weights_count():
    a = torch.tensor([[0.0, 3.0, 1.0], [3.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    found = class_correlation(a.to_sparse_csr(), torch.tensor([0, 0, 1]), 2)
    expected = torch.tensor([[6 / 7, 1 / 7], [1.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(found, expected)


def test_class_without_counts_gets_class_shares():
    a = torch.zeros(5, 5)
    a[0, 1] = a[1, 0] = a[2, 3] = a[3, 2] = 1
    y = torch.tensor([0, 0, 1, -1, 0])
    found = class_correlation(a.to_sparse_csr(), y, 3)
    shares = torch.tensor([0.75, 0.25, 0.0], dtype=torch.float64)
    torch.testing.assert_close(found[0], torch.tensor([1.0, 0, 0], dtype=torch.float64))
    torch.testing.assert_close(found[1], shares)  # its only neighbor has no label
    torch.testing.assert_close(found[2], shares)  # nobody is in it


def test_prior_looks_up_row_then_column():
    correlation = torch.tensor([[0.1, 0.9], [0.3, 0.7]])
    y = torch.tensor([1, 0, 1])
    p = class_prior(correlation, y)
    for i in range(3):
        for j in range(3):
            assert p[i, j] == correlation[y[i], y[j]]
