"""The published loops, written plainly: what the engines are measured against.

Propagation at every student step, autograd through autograd, a matrix inverse, one graph and one
network at a time, the whole graph at every validation. Nothing here is used outside benchmarks.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from gcsr.models import Params


def normalise(adjacency: Tensor) -> Tensor:
    """Self-connections, then symmetric normalisation."""
    looped = adjacency + torch.eye(adjacency.shape[0]).to(adjacency)
    scale = torch.diag(looped.sum(1) ** -0.5)
    return scale @ looped @ scale


def sgc_scores(params: Params, x: Tensor, operator: Tensor) -> Tensor:
    """Two linear layers, then two hops."""
    w1, b1, w2, b2 = params
    return operator @ (operator @ ((x @ w1 + b1) @ w2 + b2))


def condensing_loss(
    x: Tensor,
    labels: Tensor,
    prior: Tensor,
    history: Tensor,
    start: Params,
    goal: Params,
    *,
    alpha: float,
    beta: float,
    steps: int,
    rate: float,
) -> tuple[Tensor, Tensor]:
    """Matching loss of one graph and its A', by autograd through every step."""
    identity = torch.eye(x.shape[0]).to(x)
    gram = x @ x.T
    inverse = torch.linalg.inv(gram + alpha * identity + beta * identity)
    z = inverse @ (gram + alpha * prior + beta * history)
    adjacency = (z.abs() + z.abs().T) / 2
    operator = normalise(adjacency)
    params = tuple(p.detach().clone().requires_grad_() for p in start)
    for _ in range(steps):
        scores = functional.log_softmax(sgc_scores(params, x, operator), dim=1)
        gradients = torch.autograd.grad(
            functional.nll_loss(scores, labels), params, create_graph=True
        )
        params = tuple(p - rate * g for p, g in zip(params, gradients, strict=True))
    reached = torch.cat([p.reshape(-1) for p in params])
    begun = torch.cat([p.reshape(-1) for p in start])
    wanted = torch.cat([p.reshape(-1) for p in goal])
    distance = functional.mse_loss(reached, wanted, reduction="sum")
    return distance / functional.mse_loss(begun, wanted, reduction="sum"), adjacency


class ReferenceStep:
    """One iteration of the published loop on one graph, optimiser and momentum included."""

    def __init__(
        self,
        x: Tensor,
        labels: Tensor,
        prior: Tensor,
        history: Tensor,
        *,
        alpha: float,
        beta: float,
        tau: float,
        gamma: float,
        feature_rate: float,
        steps: int,
        rate: float,
    ) -> None:
        self.x = nn.Parameter(x.clone())
        self.labels, self.prior, self.history = labels, prior.clone(), history.clone()
        self.alpha, self.beta, self.tau, self.gamma = alpha, beta, tau, gamma
        self.steps, self.rate = steps, rate
        self.optimiser = torch.optim.Adam([self.x], lr=feature_rate)

    def __call__(self, start: Params, goal: Params) -> Tensor:
        """Advance by one iteration and return the loss."""
        loss, adjacency = condensing_loss(
            self.x,
            self.labels,
            self.prior,
            self.history,
            start,
            goal,
            alpha=self.alpha,
            beta=self.beta,
            steps=self.steps,
            rate=self.rate,
        )
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        adjacency = adjacency.detach()
        self.prior = self.tau * self.prior + (1 - self.tau) * adjacency
        self.history = self.gamma * self.history + (1 - self.gamma) * adjacency
        return loss.detach()
