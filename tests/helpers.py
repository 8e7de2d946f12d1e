"""Small graphs, and the formulas of the paper written as plainly as possible (dense, float64)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr import Graph
from gcsr.data.features import from_csr
from gcsr.methods.registry import methods

torch.set_num_threads(1)
CPU = torch.device("cpu")
# Small values for settings that cost time.
TINY: dict[str, Any] = {
    "iterations": 6,
    "experts": 2,
    "hidden_channels": 8,
    "student_steps": 2,
    "max_start": 4,
    "expert_epochs": 8,
    "epochs": 4,
    "outer": 2,
    "inner": 2,
    "embedding_epochs": 4,
    "score_every": 2,
    "budget": 0.001,
}


def tiny(method: str, **changes: Any) -> dict[str, Any]:
    """Small values, or others in their place, for the settings that a method has."""
    known = {field.name for field in fields(methods()[method])}
    return {name: value for name, value in (TINY | changes).items() if name in known}


def planted_graph(
    *,
    classes: int = 3,
    per_class: int = 22,
    features: int = 12,
    train_per_class: int = 7,
    val_per_class: int = 6,
    isolated: int = 2,
    noise: float = 1.0,
    weighted: bool = False,
    inductive: bool = False,
    seed: int = 0,
) -> Graph:
    """A planted partition: classes that are dense inside, sparse between, with noisy features."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(classes), per_class)
    same = y[:, None] == y[None, :]
    upper = np.triu(rng.random(same.shape) < np.where(same, 0.3, 0.04), 1)
    upper[:isolated] = upper[:, :isolated] = False
    weights = rng.uniform(0.5, 2.0, same.shape) if weighted else np.ones(same.shape)
    adjacency = np.where(upper | upper.T, np.triu(weights) + np.triu(weights, 1).T, 0.0)
    x = rng.normal(size=(classes, features))[y] + noise * rng.normal(size=(y.size, features))
    place = np.concatenate([rng.permutation(per_class) for _ in range(classes)])
    val_end = train_per_class + val_per_class
    return Graph.from_arrays(
        x.astype(np.float32),
        sp.csr_array(adjacency.astype(np.float32)),
        y,
        train=place < train_per_class,
        val=(place >= train_per_class) & (place < val_end),
        test=place >= val_end,
        weighted=weighted,
        name="planted",
        inductive=inductive,
    )


def with_other_test_labels(graph: Graph) -> Graph:
    """The same graph with every test label changed."""
    y = graph.y.clone()
    y[graph.test] = (y[graph.test] + 1) % graph.num_classes
    return replace(graph, y=y)


def dense(adjacency: sp.csr_array, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.from_numpy(adjacency.toarray()).to(dtype)


def random_adjacency(n: int, *, density: float = 0.4, isolated: int = 0, seed: int = 0) -> Tensor:
    """Symmetric, non-negative, weighted, zero diagonal; float64."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.rand(n, n, generator=generator, dtype=torch.float64)
    kept = torch.rand(n, n, generator=generator) < density
    upper = torch.triu(values * kept, 1)
    upper[:isolated] = 0
    upper[:, :isolated] = 0
    return upper + upper.T


# -- the paper, plainly ------------------------------------------------------------------------------


def plain_norm(a: Tensor) -> Tensor:
    """Eq. 2 with explicit diagonal matrices."""
    looped = a + torch.eye(a.shape[0], dtype=a.dtype)
    root = torch.diag(1 / looped.sum(1).sqrt())
    return root @ looped @ root


def plain_adjacency(x: Tensor, p: Tensor, zh: Tensor, alpha: float, beta: float) -> Tensor:
    """Eq. 9 with an inverse, then Eq. 10."""
    eye = torch.eye(x.shape[0], dtype=x.dtype)
    inverse = torch.linalg.inv(x @ x.T + alpha * eye + beta * eye)
    z = inverse @ (x @ x.T + alpha * p + beta * zh)
    return (z.abs() + z.abs().T) / 2


def plain_logits(name: str, params: Sequence[Tensor], x: Tensor, a: Tensor) -> Tensor:
    """The formula of every model, with dense matrices."""
    w1, b1, w2, b2 = params
    p = plain_norm(a)
    if name == "mlp":
        return (x @ w1 + b1).relu() @ w2 + b2
    if name == "sgc-linear":
        return p @ (p @ ((x @ w1 + b1) @ w2 + b2))
    if name == "sgc":
        return p @ (p @ ((x @ w1 + b1).relu() @ w2 + b2))
    if name in ("gcn", "sage-paper"):
        return p @ (p @ x @ w1 + b1).relu() @ w2 + b2
    if name in ("gcn-linear", "sage-paper-linear"):
        return p @ (p @ x @ w1 + b1) @ w2 + b2
    if name in ("appnp", "appnp-linear"):
        h = x @ w1 + b1
        h = (h.relu() if name == "appnp" else h) @ w2 + b2
        z = h
        for _ in range(2):
            z = 0.9 * (p @ z) + 0.1 * h
        return z
    if name == "cheby-paper":
        hidden = ((x + p @ x) @ w1 + b1).relu()
        return (hidden + p @ hidden) @ w2 + b2
    if name == "sage":
        sums = a.sum(1, keepdim=True)
        mean = torch.where(sums > 0, a / sums.clamp_min(1e-300), torch.zeros_like(a))
        return _pair(params, x, mean)
    if name == "cheby":
        sums = a.sum(1)
        root = torch.diag(torch.where(sums > 0, sums.clamp_min(1e-300) ** -0.5, 0.0))
        return _pair(params, x, -root @ a @ root)
    raise KeyError(name)


def _pair(params: Sequence[Tensor], x: Tensor, t: Tensor) -> Tensor:
    w1, b1, w2, b2 = params
    d, c = x.shape[1], b2.shape[-1]
    hidden = (x @ w1[:d] + t @ x @ w1[d:] + b1).relu()
    return hidden @ w2[:, :c] + t @ hidden @ w2[:, c:] + b2


def plain_matching(
    name: str,
    x: Tensor,
    a: Tensor,
    y: Tensor,
    start: Sequence[Tensor],
    goal: Sequence[Tensor],
    *,
    steps: int,
    rate: float,
) -> Tensor:
    """Lines 6-11 of Algorithm 1: N steps, everything computed anew at each, gradients kept."""
    student = [p.clone().requires_grad_() for p in start]
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(plain_logits(name, student, x, a), y)
        gradients = torch.autograd.grad(loss, student, create_graph=True)
        student = [p - rate * g for p, g in zip(student, gradients, strict=True)]
    missed = sum(((p - q) ** 2).sum() for p, q in zip(student, goal, strict=True))
    gone = sum(((p - q) ** 2).sum() for p, q in zip(start, goal, strict=True))
    return missed / gone


def one_network(params: Sequence[Tensor], i: int = 0) -> list[Tensor]:
    """Network ``i`` of a batch, in float64."""
    return [p[i].double() for p in params]


def sparse_graph() -> Graph:
    """Sparse features that one and two hops leave sparse, and three do not."""
    x = sp.csr_array(sp.random(1000, 4000, density=0.005, random_state=0, dtype=np.float32))
    edges = np.random.default_rng(0).integers(0, 1000, (2, 2000))
    split = {"train": np.arange(500), "val": np.arange(500, 1000)}
    y = np.arange(1000) % 2
    graph = Graph.from_arrays(x.toarray()[:, :1], edges, y, undirected=True, **split)
    return replace(graph, x=from_csr(x))
