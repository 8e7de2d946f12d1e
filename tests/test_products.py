"""Rows of a sparse product in blocks: the bytes of the whole, whether blocks touch few rows or many."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcsr.utils.products import PartialSums, RowBlock


def rows_of(share: float) -> RowBlock:
    rng = np.random.default_rng(3)
    matrix = np.where(rng.random((300, 90)) < share, rng.standard_normal((300, 90)), 0)
    matrix[[0, 150, 299]] = 0
    return RowBlock.of(sp.csr_array(matrix))


@pytest.mark.parametrize("share", [0.01, 0.1, 0.6])
@pytest.mark.parametrize("columns", [4, 30, 90])
@pytest.mark.parametrize("together", [64, 2**15])
def test_sums_that_go_on(share: float, columns: int, together: int) -> None:
    """Compacted or not, in one cut or several, where most rows have an entry and where few do."""
    rows = rows_of(share)
    x = torch.randn((90, 7), generator=torch.Generator().manual_seed(0))
    whole = rows.times(x)
    for compact in (False, True):
        table, sums = PartialSums(4, 7, together), torch.zeros((300, 7))
        for start in range(0, 90, columns):
            part, dense = rows.between(start, start + columns), x[start : start + columns]
            assert bool(part.columns.size) == rows.touches(start, start + columns)
            if compact:
                used, part = part.compacted()
                dense = dense[torch.from_numpy(used)]
            table.place(dense.shape[0]).copy_(dense)
            table.add_to(sums, part)
        assert sums.numpy().tobytes() == whole.numpy().tobytes()


def test_sums_are_the_product_with_ones() -> None:
    rows = rows_of(0.2)
    assert torch.equal(rows.sums(), rows.times(torch.ones((90, 1))))
    assert rows.sums().abs().max() > 1
