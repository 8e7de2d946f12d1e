"""The kernel against explicit sums over neighbors, entry by entry."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from gcsr.equations.gntk import (
    KernelTarget,
    cross_kernel,
    kernel_error,
    ridge_prediction,
    support_kernel,
)
from helpers import random_adjacency

FLOOR = 1e-150


def neighbors(a: Tensor, i: int) -> list[tuple[int, float]]:
    """A node's neighbors and itself, with weights that sum to one."""
    looped = [(j, float(a[i, j]) + (i == j)) for j in range(a.shape[0])]
    total = sum(weight for _, weight in looped)
    return [(j, weight / total) for j, weight in looped if weight]


def aggregated(k: list[list[float]], a: Tensor, b: Tensor) -> list[list[float]]:
    return [
        [
            sum(v * w * k[p][q] for p, v in neighbors(a, i) for q, w in neighbors(b, j))
            for j in range(b.shape[0])
        ]
        for i in range(a.shape[0])
    ]


def naive(x: Tensor, a: Tensor, y: Tensor, b: Tensor) -> list[list[float]]:
    """Theta between two graphs, written over the whole of both for every sigma."""
    both = {"xy": (x, a, y, b), "xx": (x, a, x, a), "yy": (y, b, y, b)}
    sigma = {
        name: aggregated([[float(p @ q) for q in right] for p in left], first, second)
        for name, (left, first, right, second) in both.items()
    }
    theta = [row[:] for row in sigma["xy"]]
    for block in range(2):
        for _ in range(2):
            ones = [max(math.sqrt(sigma["xx"][i][i]), FLOOR) for i in range(len(x))]
            twos = [max(math.sqrt(sigma["yy"][j][j]), FLOOR) for j in range(len(y))]
            sides = {"xy": (ones, twos), "xx": (ones, ones), "yy": (twos, twos)}
            for name, (left, right) in sides.items():
                for i, s in enumerate(left):
                    for j, t in enumerate(right):
                        rho = min(1.0, max(-1.0, sigma[name][i][j] / (s * t)))
                        angle = math.pi - math.acos(rho)
                        new = s * t * (rho * angle + math.sqrt(1 - rho * rho)) / math.pi
                        sigma[name][i][j] = new
                        if name == "xy":
                            theta[i][j] = theta[i][j] * angle / math.pi + new
        if block == 0:
            theta = aggregated(theta, a, b)
            sigma = {
                name: aggregated(sigma[name], first, second)
                for name, (_, first, _, second) in both.items()
            }
    return theta


@pytest.fixture
def pieces() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(7, 4, generator=generator, dtype=torch.float64)
    support = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
    # Nodes without features or neighbors, and a copy of a target node.
    x[0] = 0
    support[1, 0] = 0
    support[0, 1] = x[4]
    return x, random_adjacency(7, isolated=1), support


def target_of(x: Tensor, a: Tensor) -> KernelTarget:
    looped = a + torch.eye(a.shape[0], dtype=a.dtype)
    mean = looped / looped.sum(1, keepdim=True)
    return KernelTarget.of(x, lambda signal: mean @ signal)


def test_kernels_are_the_explicit_sums(pieces):
    x, a, support = pieces
    found_ts, found_ss = cross_kernel(target_of(x, a), support), support_kernel(support)
    none = torch.zeros(3, 3, dtype=torch.float64)
    for g in range(2):
        for loops in (none, torch.eye(3, dtype=torch.float64)):
            # A' = 0 and A' = I are the same: a node aggregates itself only.
            expected = torch.tensor(naive(x, a, support[g], loops), dtype=torch.float64)
            torch.testing.assert_close(found_ts[g], expected, rtol=1e-6, atol=1e-8)
            expected = torch.tensor(naive(support[g], loops, support[g], loops))
            torch.testing.assert_close(found_ss[g].float(), expected, rtol=1e-5, atol=1e-6)


def test_the_score_is_half_the_error_of_ridge_regression(pieces):
    x, a, support = pieces
    labels = torch.tensor([0, 1, 1, 0, 1, 0, 0])
    theirs = torch.nn.functional.one_hot(labels, 2).double()
    ours = torch.nn.functional.one_hot(torch.tensor([0, 1, 1]), 2).double().repeat(2, 1, 1)
    found = kernel_error(target_of(x, a), theirs, support, ours, 0.3)
    for g in range(2):
        none = torch.zeros(3, 3, dtype=torch.float64)
        ts = torch.tensor(naive(x, a, support[g], none), dtype=torch.float64)
        ss = torch.tensor(naive(support[g], none, support[g], none), dtype=torch.float64)
        inverse = torch.linalg.inv(ss + 0.3 * ss.trace() / 3 * torch.eye(3, dtype=torch.float64))
        missed = ts @ inverse @ (ours[g] - 0.5) - (theirs - 0.5)
        assert found[g].item() == pytest.approx(0.5 * missed.square().mean().item(), rel=1e-6)


def test_features_without_any_entry_are_no_trouble(pieces):
    x, a, support = pieces
    for dtype in (torch.float32, torch.float64):
        blank = target_of(torch.zeros_like(x, dtype=dtype), a.to(dtype))
        for kernel in (cross_kernel(blank, support.to(dtype)), support_kernel(0 * support)):
            assert torch.isfinite(kernel).all()
            assert kernel.abs().max() < 1e-15


def test_an_isolated_target_node_is_like_a_support_node(pieces):
    x, _, support = pieces
    alone = target_of(x[4:5], torch.zeros(1, 1, dtype=torch.float64))
    # Row 1 of the first support is that very node.
    torch.testing.assert_close(
        cross_kernel(alone, support[0])[0], support_kernel(support[0])[1], rtol=1e-6, atol=1e-8
    )


def test_without_a_ridge_the_support_predicts_itself(pieces):
    _, _, support = pieces
    own = support_kernel(support[0])
    targets = torch.eye(3, dtype=torch.float64)
    predicted = ridge_prediction(own, own, targets, 1e-12)
    torch.testing.assert_close(predicted, targets, rtol=1e-6, atol=1e-6)
