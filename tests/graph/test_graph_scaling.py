from __future__ import annotations

import numpy as np
import pytest
import torch

from gcsr.utils.errors import InputError

X = np.array(
    [[1, 3, 5], [3, 1, 5], [0, 0, 0], [-2, 2, 4], [100, 0, 0], [7, 7, 7]], dtype=np.float32
)


def test_keep_changes_nothing(make):
    graph = make(x=X)
    assert graph.scaled("keep") is graph


def test_rows_divides_by_the_absolute_sum(make):
    graph = make(x=X, features="rows")
    sums = graph.x.abs().sum(1)
    assert torch.allclose(sums[[0, 1, 3, 4, 5]], torch.ones(5))
    assert graph.x[2].tolist() == [0, 0, 0]
    assert graph.x[3].tolist() == [-0.25, 0.25, 0.5]
    assert graph.feature_scaling == "rows"


def test_standardize_is_fitted_on_training_rows_only(make):
    graph = make(x=X, features="standardize")
    train = graph.x[graph.train].double()
    assert torch.allclose(train.mean(0), torch.zeros(3).double(), atol=1e-6)
    assert torch.allclose(train.std(0, correction=0), torch.ones(3).double(), atol=1e-6)
    other = X.copy()
    other[3:] *= 50
    changed = make(x=other, features="standardize")
    assert torch.equal(changed.x[graph.train], graph.x[graph.train])
    rows = X[:3].astype(np.float64)
    expected = (X - rows.mean(0)) / rows.std(0)
    np.testing.assert_allclose(graph.x.numpy(), expected, rtol=1e-5)


def test_constant_column_is_only_centered(make):
    x = X.copy()
    x[:3, 2] = 5
    graph = make(x=x, features="standardize")
    assert graph.x[:, 2].tolist() == [0, 0, 0, -1, -5, 2]


def test_scaling_twice_is_refused(make):
    with pytest.raises(InputError, match="x is scaled by 'rows' already"):
        make(x=X, features="rows").scaled("standardize")


def test_the_original_is_left_as_it_was(make):
    graph = make(x=X)
    graph.scaled("rows")
    graph.scaled("standardize")
    assert np.array_equal(graph.x.numpy(), X)
    assert graph.feature_scaling == "keep"
