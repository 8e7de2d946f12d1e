"""The training loop of the paper's test protocol, for a batch of networks at once.

Adam at ``rate``; from the middle on a fresh Adam at a tenth of it. After every epoch the networks
are scored on validation nodes and each keeps the weights of its best epoch (the first one, if
several are equally good). Networks of a batch are independent: a batch of ten is ten runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.devices import stream
from gcsr.equations import cross_entropy, over_labelled
from gcsr.errors import require
from gcsr.models import (
    DenseTopology,
    Dropout,
    EmptyTopology,
    Model,
    Params,
    Prepared,
    Topology,
    init_batch,
)
from gcsr.training.score import accuracy

# Hidden activations of the networks scored or trained at once stay below this many numbers.
ACTIVATION_BUDGET = {"cpu": 2**26, "cuda": 2**30}


@dataclass(frozen=True)
class TrainingRecipe:
    """How a test network is trained (defaults: the paper's protocol)."""

    epochs: int = 600
    rate: float = 0.01
    weight_decay: float = 5e-4
    dropout: float = 0.0
    validate_every: int = 1

    def __post_init__(self) -> None:
        for name in ("epochs", "validate_every"):
            value = getattr(self, name)
            fine = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            require(fine, f"{name}: {value!r} is not accepted; a whole number >= 1 is.")
        require(self.rate > 0, f"rate: {self.rate!r} is not accepted; a number > 0 is.")
        require(
            self.weight_decay >= 0,
            f"weight_decay: {self.weight_decay!r} is not accepted; a number >= 0 is.",
        )
        require(
            0 <= self.dropout < 1,
            f"dropout: {self.dropout!r} is not accepted; a number >= 0 and < 1 is.",
        )


def paper_recipe(dataset: str) -> TrainingRecipe:
    """The paper's protocol, which drops half of the hidden units on Reddit and none elsewhere."""
    return TrainingRecipe(dropout=0.5 if dataset == "reddit" else 0.0)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Weights of every network at its best validation epoch."""

    params: Params
    validation: Tensor
    epoch: Tensor


def topology_of(adjacency: Tensor) -> Topology:
    """The topology of a condensed graph; an identity needs no products."""
    n = adjacency.shape[-1]
    if torch.equal(adjacency, torch.eye(n, dtype=adjacency.dtype, device=adjacency.device)):
        return EmptyTopology(n, adjacency.device)
    return DenseTopology(adjacency)


def fit(
    model: Model,
    train: Prepared,
    targets: Tensor,
    validate: Prepared,
    validation_labels: Tensor,
    *,
    features: int,
    recipe: TrainingRecipe,
    networks: range,
    seed: int,
    on_epoch: Callable[[int], None] | None = None,
) -> Fitted:
    """Train a batch of networks on ``train`` and keep each one's best validation epoch.

    ``networks`` numbers them: a number and a seed determine a network's initial weights, in
    whatever batch it is trained. ``targets`` are class shares, ``(n, C)`` or ``(batch, n, C)``, zeros
    for a node without a label, which the loss leaves out; networks with different training graphs
    share the validation graph.
    """
    targets = over_labelled(targets)
    batch = len(networks)
    device = train.inputs.device
    purpose = f"weights of {model.name}"
    initial = init_batch(
        model, features, targets.shape[-1], [stream(seed, f"{purpose} {i}") for i in networks]
    )
    params = tuple(p.to(device, train.inputs.dtype).requires_grad_() for p in initial)
    dropout = None
    if recipe.dropout:
        generator = torch.Generator(device).manual_seed(
            stream(seed, f"dropout {networks.start}").initial_seed()
        )
        dropout = Dropout(recipe.dropout, generator)
    at_once = networks_at_once(model, validate)
    best = tuple(p.detach().clone() for p in params)
    best_accuracy = torch.full((batch,), -1.0, dtype=torch.float64, device=device)
    best_epoch = torch.zeros(batch, dtype=torch.long, device=device)
    optimiser = torch.optim.Adam(params, lr=recipe.rate, weight_decay=recipe.weight_decay)
    for epoch in range(recipe.epochs):
        if epoch == recipe.epochs // 2 and epoch > 0:
            optimiser = torch.optim.Adam(
                params, lr=recipe.rate / 10, weight_decay=recipe.weight_decay
            )
        optimiser.zero_grad(set_to_none=True)
        cross_entropy(model.logits(params, train, dropout), targets).sum().backward()
        optimiser.step()
        last = epoch == recipe.epochs - 1
        if epoch % recipe.validate_every == recipe.validate_every - 1 or last:
            score = accuracy(model, params, validate, validation_labels, at_once=at_once)
            better = score > best_accuracy
            # On CUDA asking whether any improved would make the device wait.
            if device.type == "cuda" or bool(better.any()):
                best_accuracy = torch.where(better, score, best_accuracy)
                best_epoch = torch.where(better, epoch, best_epoch)
                best = tuple(
                    torch.where(better.view(-1, *[1] * (p.ndim - 1)), p.detach(), kept)
                    for p, kept in zip(params, best, strict=True)
                )
        if on_epoch is not None:
            on_epoch(epoch + 1)
    return Fitted(best, best_accuracy, best_epoch)


def networks_at_once(model: Model, prepared: Prepared) -> int:
    """How many networks can be scored together within the budget."""
    hidden = getattr(model, "hidden", 256)
    per_network = prepared.inputs.shape[-2] * hidden
    if prepared.edges is not None:
        # Attention keeps a message per edge.
        per_network = prepared.edges[0].numel() * hidden
    return max(1, ACTIVATION_BUDGET[prepared.inputs.device.type] // max(1, per_network))
