"""GECC: its groups against their conditions."""

from __future__ import annotations

import pytest
import torch

from gcsr import GECC
from gcsr.methods.gecc import best_groups
from helpers import dense, plain_norm, planted_graph


def test_one_group_is_the_mean_of_the_weighted_hops():
    graph = planted_graph()
    small = GECC(nodes=3, gamma=-0.3, alpha=0.5, beta=0.9).condense(graph, device="cpu")
    hop, x = plain_norm(dense(graph.adjacency)), graph.x.double()
    rows = (-0.3 * x + 0.5 * hop @ x + 0.9 * hop @ hop @ x)[graph.train]
    y = graph.y[graph.train]
    wanted = torch.stack([rows[y == c].mean(0) for c in range(3)])
    torch.testing.assert_close(small.x.double(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fuzziness", [1.0, 1.3, 2.0])
def test_centers_are_a_fixed_point(fuzziness):
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 50
    generator = torch.Generator().manual_seed(1)
    centers, groups = best_groups(x, 4, generator, fuzziness=fuzziness, restarts=3, balance=0.0)
    apart = torch.cdist(x, centers)
    assert torch.equal(groups, apart.argmin(1))
    if fuzziness == 1:
        weights = torch.nn.functional.one_hot(groups, 4).double()
    else:
        shares = [
            [1 / sum((a / b) ** (2 / (fuzziness - 1)) for b in row) for a in row]
            for row in apart.tolist()
        ]
        weights = torch.tensor(shares, dtype=torch.float64) ** fuzziness
    wanted = weights.T @ x / weights.sum(0)[:, None]
    torch.testing.assert_close(centers, wanted, rtol=0, atol=1e-3)


def test_restarts_and_balance_decide():
    """One row far away: alone it leaves the least objective, and groups of one and nine rows."""
    x = torch.cat([torch.linspace(0, 1, 9), torch.tensor([2.0])]).double()[:, None]

    def sizes(**settings) -> list[int]:
        generator = torch.Generator().manual_seed(0)
        _, groups = best_groups(x, 2, generator, fuzziness=1.0, restarts=30, **settings)
        return sorted(torch.bincount(groups, minlength=2).tolist())

    assert sizes(balance=0.0) == [1, 9]
    assert sizes(balance=100.0) != [1, 9]
