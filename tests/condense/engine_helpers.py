"""Condensed graphs with everything that an iteration of trajectory matching needs."""

from __future__ import annotations

import torch
from torch import Tensor

from gcsr.engines.structure import SelfExpressiveStructure
from gcsr.engines.trajectory.engine import Matching, Step
from gcsr.models.base import Params, init_batch
from gcsr.models.registry import condensing_model
from helpers import one_network, plain_adjacency, plain_matching

C, H, STEPS, RATE = 4, 32, 5, 0.01
WIDE, TALL = (20, 50), (40, 12)  # n' <= d as on Cora, n' > d as on ogbn-arxiv


class Problem:
    """Several condensed graphs with everything an iteration needs, float64."""

    def __init__(self, shape: tuple[int, int], graphs: int = 2, model: str = "sgc") -> None:
        n, self.d = shape
        self.n, self.graphs = n, graphs
        generator = torch.Generator().manual_seed(0)

        def normal(*size: int) -> Tensor:
            return torch.randn(*size, generator=generator, dtype=torch.float64)

        self.y = torch.arange(n) * C // n
        centers = normal(graphs, C, self.d)
        self.x = 0.3 * (centers[:, self.y] + normal(graphs, n, self.d))
        blocks = (self.y[:, None] == self.y[None, :]).double()
        self.prior = (0.8 * blocks + 0.05 + 0.01 * normal(graphs, n, n).abs()).clone()
        self.history = torch.eye(n, dtype=torch.float64) + 0.1 * normal(graphs, n, n).abs()
        self.alpha = torch.linspace(0.5, 2, graphs, dtype=torch.float64).view(-1, 1, 1)
        self.beta = torch.linspace(1, 0.2, graphs, dtype=torch.float64).view(-1, 1, 1)
        self.targets = torch.nn.functional.one_hot(self.y, C).double().expand(graphs, -1, -1)
        self.model = condensing_model(model, H)
        seeds = [torch.Generator().manual_seed(s) for s in range(graphs)]
        start = init_batch(self.model, self.d, C, seeds)
        self.start: Params = tuple(p.double() for p in start)
        self.goal: Params = tuple(p + 0.02 * normal(*p.shape) for p in self.start)

    def structure(self, dtype: torch.dtype = torch.float64) -> SelfExpressiveStructure:
        return SelfExpressiveStructure(self.alpha.to(dtype), self.beta.to(dtype), 0.9, 0.5)

    def state(self, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
        return self.prior.to(dtype, copy=True), self.history.to(dtype, copy=True)

    def engine(self, student, dtype: torch.dtype, which: slice = slice(None)):
        """Loss and gradient of the library."""
        structure = SelfExpressiveStructure(
            self.alpha[which].to(dtype), self.beta[which].to(dtype), 0.9, 0.5
        )
        state = tuple(s[which] for s in self.state(dtype))
        step = Step(
            self.x[which].to(dtype),
            state,
            self.targets[which].to(dtype),
            structure,
            student,
            Matching(1, STEPS, RATE, expert_steps=2, max_start=1),
            torch.ones(()),
        )
        start, goal = (
            tuple(p[which].to(dtype) for p in params) for params in (self.start, self.goal)
        )
        loss, (gradient,), _ = step.loss_and_gradients(start, goal)
        return loss, gradient

    def plain(self, name: str, g: int) -> tuple[Tensor, Tensor]:
        """Loss and gradient by the reference."""
        x = self.x[g].clone().requires_grad_()
        alpha, beta = float(self.alpha[g]), float(self.beta[g])
        a = plain_adjacency(x, self.prior[g], self.history[g], alpha, beta)
        ends = one_network(self.start, g), one_network(self.goal, g)
        loss = plain_matching(name, x, a, self.y, *ends, steps=STEPS, rate=RATE)
        (gradient,) = torch.autograd.grad(loss, x)
        return loss.detach(), gradient


def error(found: Tensor, expected: Tensor) -> float:
    return float((found.double() - expected).norm() / expected.norm())
