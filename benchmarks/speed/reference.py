"""The published loops, written plainly: what the engines are measured against.

Propagation at every student step, autograd through autograd, a matrix inverse, one graph and one
network at a time, the whole graph at every validation. Nothing here is used outside benchmarks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.speed.row import synchronize
from gcsr.data.views import Target, VisibleGraph
from gcsr.models.base import Params
from gcsr.training.expert_recipe import ExpertRecipe
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.products import csr_tensor


def normalize(adjacency: Tensor) -> Tensor:
    """Self-connections, then symmetric normalization."""
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
    signs: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Matching loss of one graph and its A', by autograd through every step.

    ``signs`` are those of Z where another arithmetic decided them: see :func:`bench_step`.
    """
    identity = torch.eye(x.shape[0]).to(x)
    gram = x @ x.T
    inverse = torch.linalg.inv(gram + alpha * identity + beta * identity)
    z = inverse @ (gram + alpha * prior + beta * history)
    magnitude = z.abs() if signs is None else signs * z
    adjacency = (magnitude + magnitude.T) / 2
    operator = normalize(adjacency)
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
        feature_lr: float,
        steps: int,
        rate: float,
        signs: Tensor | None = None,
    ) -> None:
        self.x = nn.Parameter(x.clone())
        self.labels, self.prior, self.history = labels, prior.clone(), history.clone()
        self.alpha, self.beta, self.tau, self.gamma = alpha, beta, tau, gamma
        self.steps, self.rate, self.signs = steps, rate, signs
        self.optimiser = torch.optim.Adam([self.x], lr=feature_lr)

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
            signs=self.signs,
        )
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        adjacency = adjacency.detach()
        self.prior = self.tau * self.prior + (1 - self.tau) * adjacency
        self.history = self.gamma * self.history + (1 - self.gamma) * adjacency
        return loss.detach()


def normalized_sparse(adjacency: sp.csr_array, device: torch.device) -> Tensor:
    """Self-connections and symmetric normalization of a large graph, as a CSR tensor."""
    looped = sp.csr_array(adjacency + sp.eye_array(adjacency.shape[0], format="csr"))
    scale = sp.diags_array(1 / np.sqrt(np.asarray(looped.sum(1), dtype=np.float64)))
    return csr_tensor(sp.csr_array(scale @ looped @ scale), device, torch.float32)


class TwoLayerModule(nn.Module):
    """Weights of a two-layer network as the published modules hold them."""

    def __init__(self, params: Params) -> None:
        super().__init__()
        w1, b1, w2, b2 = (p.detach().clone() for p in params)
        self.w1, self.b1 = nn.Parameter(w1), nn.Parameter(b1)
        self.w2, self.b2 = nn.Parameter(w2), nn.Parameter(b2)

    def snapshot(self) -> Params:
        """A copy of the weights."""
        return tuple(p.detach().clone() for p in self.parameters())


class SGC2(TwoLayerModule):
    """The linear SGC on the whole graph: two sparse propagations at every call."""

    def forward(self, x: Tensor, operator: Tensor) -> Tensor:
        """Class scores of every node."""
        scores = (x @ self.w1 + self.b1) @ self.w2 + self.b2
        for _ in range(2):
            scores = torch.sparse.mm(operator, scores)
        return scores


class GCN2(TwoLayerModule):
    """A GCN that multiplies first and propagates the hidden width, dense or sparse."""

    def forward(self, x: Tensor, operator: Tensor) -> Tensor:
        """Class scores of every node."""
        hidden = torch.relu(operator @ (x @ self.w1) + self.b1)
        return operator @ (hidden @ self.w2) + self.b2


@dataclass(frozen=True, eq=False)
class ReferenceExpert:
    """One expert: its weights after every epoch, and what each epoch took."""

    snapshots: list[Params]
    epoch_ms: list[float]


def train_expert(
    visible: VisibleGraph, initial: Params, recipe: ExpertRecipe, device: torch.device
) -> ReferenceExpert:
    """One expert on the whole graph, a copy of its weights kept after every epoch."""
    x, labels, train = (t.to(device) for t in (visible.x, visible.train_labels, visible.train))
    operator = normalized_sparse(visible.adjacency, device)
    model = SGC2(initial).to(device)
    snapshots, times = [model.snapshot()], []
    rate = recipe.lr
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=recipe.weight_decay)
    for epoch in range(recipe.trained_epochs):
        synchronize(device)
        began = time.perf_counter()
        if epoch == recipe.epochs // 2:
            optimiser = torch.optim.Adam(
                model.parameters(), lr=rate / 10, weight_decay=recipe.weight_decay
            )
        scores = functional.log_softmax(model(x, operator), dim=1)
        loss = functional.nll_loss(scores[train], labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        snapshots.append(model.snapshot())
        synchronize(device)
        times.append(1e3 * (time.perf_counter() - began))
    return ReferenceExpert(snapshots, times)


def expert_loss(visible: VisibleGraph, params: Params, device: torch.device) -> Tensor:
    """Training loss of an expert's weights."""
    operator = normalized_sparse(visible.adjacency, device)
    with torch.no_grad():
        scores = SGC2(params).to(device)(visible.x.to(device), operator)
        return functional.cross_entropy(
            scores[visible.train.to(device)], visible.train_labels.to(device)
        )


@dataclass(frozen=True, eq=False)
class ReferenceRun:
    """One test network: predicted test classes, and what each epoch took."""

    predicted: Tensor
    epoch_ms: list[float]


def train_and_test(
    x: Tensor,
    adjacency: Tensor,
    labels: Tensor,
    validation: Target,
    test: Target,
    initial: Params,
    recipe: TrainingRecipe,
) -> ReferenceRun:
    """One GCN: trained on the condensed graph, validated on the whole graph at every epoch."""
    device = x.device
    model = GCN2(initial).to(device)
    operator = normalize(adjacency)
    val_operator = normalized_sparse(validation.adjacency, device)
    val_x, val_nodes, val_labels = (
        t.to(device) for t in (validation.x, validation.nodes, validation.labels)
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay)
    best, best_score, times = model.snapshot(), -1.0, []
    for epoch in range(recipe.epochs):
        synchronize(device)
        began = time.perf_counter()
        if epoch == recipe.epochs // 2:
            optimiser = torch.optim.Adam(
                model.parameters(), lr=recipe.lr / 10, weight_decay=recipe.weight_decay
            )
        optimiser.zero_grad()
        functional.cross_entropy(model(x, operator), labels).backward()
        optimiser.step()
        with torch.no_grad():
            guesses = model(val_x, val_operator)[val_nodes].argmax(1)
        score = float((guesses == val_labels).double().mean())
        if score > best_score:
            best, best_score = model.snapshot(), score
        times.append(1e3 * (time.perf_counter() - began))
    test_operator = normalized_sparse(test.adjacency, device)
    with torch.no_grad():
        scores = GCN2(best).to(device)(test.x.to(device), test_operator)
    return ReferenceRun(scores[test.nodes.to(device)].argmax(1), times)
