from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from gcsr.equations.self_expression import momentum_update
from gcsr.equations.trajectory import trajectory_distance
from gcsr.training.classification import cross_entropy, over_labeled


def test_distance_counts_all_parameters_together():
    start = (torch.zeros(2, 2, 1), torch.zeros(2, 1, 1))
    goal = (torch.ones(2, 2, 1), 2 * torch.ones(2, 1, 1))
    student = (torch.ones(2, 2, 1), torch.tensor([0.0, 2.0]).view(2, 1, 1))
    # First network: 0 of the weights and 4 of the bias are missed, of 2 + 4; the second arrives.
    expected = torch.tensor([4 / 6, 0.0])
    torch.testing.assert_close(trajectory_distance(student, start, goal), expected)
    torch.testing.assert_close(trajectory_distance(start, start, goal), torch.ones(2))


def test_cross_entropy_of_one_hot_rows_is_torchs():
    logits, y = torch.randn(3, 5, 4, dtype=torch.float64), torch.tensor([0, 1, 2, 3, 1])
    targets = torch.nn.functional.one_hot(y, 4).double()
    expected = [torch.nn.functional.cross_entropy(part, y) for part in logits]
    torch.testing.assert_close(cross_entropy(logits, targets), torch.stack(expected))


def test_cross_entropy_of_shares_is_torchs():
    logits = torch.randn(6, 4, dtype=torch.float64)
    shares = torch.rand(6, 4, dtype=torch.float64).softmax(1)
    expected = torch.nn.functional.cross_entropy(logits, shares)
    torch.testing.assert_close(cross_entropy(logits, shares), expected)


def test_nodes_without_a_label_do_not_count():
    logits, y = torch.randn(2, 5, 4, dtype=torch.float64), torch.tensor([0, -1, 2, -1, 1])
    targets = torch.nn.functional.one_hot(y.clamp_min(0), 4).double() * (y >= 0)[:, None]
    both = torch.stack([targets, torch.nn.functional.one_hot(y.clamp_min(0), 4).double()])
    expected = [
        torch.nn.functional.cross_entropy(logits[0], y, ignore_index=-1),
        torch.nn.functional.cross_entropy(logits[1], y.clamp_min(0)),
    ]
    torch.testing.assert_close(cross_entropy(logits, over_labeled(both)), torch.stack(expected))
    # Not one bit of a fully labeled graph changes.
    assert torch.equal(over_labeled(both)[1], both[1])


@given(keep=st.floats(0, 1))
def test_momentum_keeps_a_share(keep):
    p, a = torch.tensor([[1.0, 4.0]]), torch.tensor([[3.0, 0.0]])
    expected = torch.tensor([[keep * 1 + (1 - keep) * 3, keep * 4]])
    torch.testing.assert_close(momentum_update(p, a, keep), expected)
