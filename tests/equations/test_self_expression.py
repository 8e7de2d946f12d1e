from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gcsr.equations.self_expression import (
    self_expression,
    self_expression_objective,
    symmetric_adjacency,
)
from helpers import plain_adjacency


def problem(n: int, d: int, seed: int = 0, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = scale * torch.randn(n, d, generator=generator, dtype=torch.float64)
    p = torch.rand(n, n, generator=generator, dtype=torch.float64)
    h = torch.rand(n, n, generator=generator, dtype=torch.float64)
    return x, p / p.sum(1, keepdim=True), h


@given(
    n=st.integers(1, 12),
    d=st.integers(1, 20),
    alpha=st.floats(1e-3, 1e3),
    beta=st.floats(0, 1e3),
    seed=st.integers(0, 1000),
)
@settings(deadline=None, max_examples=60)
def test_gradient_of_eq_8_vanishes_at_eq_9(n, d, alpha, beta, seed):
    x, p, h = problem(n, d, seed)
    z = self_expression(x, p, h, alpha, beta).requires_grad_()
    (gradient,) = torch.autograd.grad(self_expression_objective(z, x, p, h, alpha, beta), z)
    # The size of the terms that cancel, not of their sum.
    size = (x @ x.T).norm() + alpha * p.norm() + beta * h.norm() + (alpha + beta) * z.norm()
    assert gradient.norm() / size < 1e-10


def test_objective_is_eq_8_written_out():
    x, p, h = problem(4, 3)
    z = torch.randn(4, 4, dtype=torch.float64)
    expected = 0.0
    rebuilt = x.T @ z
    for i in range(3):
        for j in range(4):
            expected += float(x[j, i] - rebuilt[i, j]) ** 2
    for i in range(4):
        for j in range(4):
            expected += 0.7 * float(z[i, j] - p[i, j]) ** 2 + 0.2 * float(z[i, j] - h[i, j]) ** 2
    assert float(self_expression_objective(z, x, p, h, 0.7, 0.2)) == pytest.approx(expected, 1e-12)


@given(seed=st.integers(0, 1000), n=st.integers(2, 10), d=st.integers(1, 15))
@settings(deadline=None, max_examples=40)
def test_no_other_z_is_better(seed, n, d):
    x, p, h = problem(n, d, seed)
    z = self_expression(x, p, h, 0.5, 0.3)
    best = self_expression_objective(z, x, p, h, 0.5, 0.3)
    generator = torch.Generator().manual_seed(seed)
    other = z + 0.01 * torch.randn(n, n, generator=generator, dtype=torch.float64)
    assert self_expression_objective(other, x, p, h, 0.5, 0.3) > best


@pytest.mark.parametrize(("n", "d"), [(20, 50), (50, 20), (1, 1)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.0, 2.0), (3.0, 0.0), (1e-3, 1e-3)])
def test_equals_the_inverse_of_the_paper(n, d, alpha, beta):
    x, p, h = problem(n, d)
    eye = torch.eye(n, dtype=torch.float64)
    inverse = torch.linalg.inv(x @ x.T + alpha * eye + beta * eye)
    expected = inverse @ (x @ x.T + alpha * p + beta * h)
    torch.testing.assert_close(
        self_expression(x, p, h, alpha, beta), expected, rtol=1e-8, atol=1e-9
    )


@given(seed=st.integers(0, 1000), n=st.integers(1, 10))
@settings(deadline=None, max_examples=40)
def test_adjacency_is_symmetric_and_not_negative(seed, n):
    a = symmetric_adjacency(self_expression(*problem(n, 6, seed), 0.4, 0.6))
    assert torch.equal(a, a.T)
    assert (a >= 0).all()


def test_eq_10_takes_magnitudes_before_the_mean():
    z = torch.tensor([[1.0, -3.0], [1.0, -2.0]])
    assert symmetric_adjacency(z).tolist() == [[1.0, 2.0], [2.0, 2.0]]


def test_graphs_of_a_batch_have_weights_of_their_own():
    problems = [problem(8, 5, seed, scale) for seed, scale in ((0, 1.0), (1, 0.1), (2, 5.0))]
    x, p, h = (torch.stack(parts) for parts in zip(*problems, strict=True))
    alpha = torch.tensor([1.0, 0.01, 30.0], dtype=torch.float64).view(3, 1, 1)
    beta = torch.tensor([0.5, 0.0, 2.0], dtype=torch.float64).view(3, 1, 1)
    together = symmetric_adjacency(self_expression(x, p, h, alpha, beta))
    for g in range(3):
        alone = plain_adjacency(x[g], p[g], h[g], float(alpha[g]), float(beta[g]))
        torch.testing.assert_close(together[g], alone, rtol=1e-9, atol=1e-10)


def test_derivative_in_x_is_right():
    x, p, h = problem(5, 4)
    assert torch.autograd.gradcheck(
        lambda x: self_expression(x, p, h, 0.8, 0.5), (x.requires_grad_(),)
    )


def test_float32_keeps_five_digits_on_features_that_are_small():
    x, p, h = problem(30, 40, scale=1e-2)
    exact = self_expression(x, p, h, 1.0, 1.0)
    rough = self_expression(x.float(), p.float(), h.float(), 1.0, 1.0)
    assert (rough - exact).norm() / exact.norm() < 1e-5
