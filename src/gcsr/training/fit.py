"""The training loop of the paper's test protocol, for a batch of networks at once.

Adam at ``lr``; from the middle on a fresh Adam at a tenth of it. After every epoch the networks
are scored on validation nodes and each keeps the weights of its best epoch (the first one, if
several are equally good). Networks of a batch are independent: a batch of ten is ten runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from gcsr.data.views import CondensingView, trained_places, validation_part
from gcsr.models.base import Dropout, Model, Params, Prepared, init_batch
from gcsr.models.topology import DenseTopology, EmptyTopology, Topology
from gcsr.outofcore.real import RealGraph, real_graph
from gcsr.training.adam import fused_adam
from gcsr.training.classification import (
    over_labeled,
    predicted,
    score_of,
    targets_of,
    training_loss,
)
from gcsr.utils.devices import make_generator, record, warm_up
from gcsr.utils.errors import Bounds, Count, NamedSettings, Rate, Weight, check_fields
from gcsr.utils.renamed import RECORDED_MODELS


def logits_of(
    model: Model, params: Params, prepared: Prepared, *, at_once: int
) -> Iterator[Tensor]:
    """Class scores ``(at_once, n, C)`` of the networks, ``at_once`` at a time to bound memory."""
    # Some kernels prepare for a gradient wherever a weight could have one.
    weights = tuple(p.detach() for p in params)
    for i in range(0, weights[0].shape[0], at_once):
        with torch.no_grad():
            yield model.logits(tuple(p[i : i + at_once] for p in weights), prepared)


def scores_of(
    model: Model, params: Params, prepared: Prepared, labels: Tensor, *, at_once: int
) -> Tensor:
    """Accuracy or micro-F1 of every network, ``at_once`` at a time to bound memory."""
    parts = logits_of(model, params, prepared, at_once=at_once)
    return torch.cat([score_of(predicted(part, labels.ndim == 2), labels) for part in parts])


# Epochs that are run before one is recorded on CUDA, and how many make recording worth its while.
WARM_EPOCHS, RECORDED_EPOCHS = 2, 20
DropoutShare = Annotated[float, Bounds(most=1.0, below=True)]
# Hidden activations of the networks scored or trained at once stay below this many numbers.
ACTIVATION_BUDGET = {"cpu": 2**26, "cuda": 2**30}


@dataclass(frozen=True)
class TrainingRecipe(NamedSettings):
    """How a test network is trained (defaults: the paper's protocol).

    Args:
        epochs: full-batch steps of Adam; from the middle on a fresh Adam at a tenth of the rate.
        lr: Adam's learning rate.
        weight_decay: its weight decay.
        dropout: share of hidden units that are dropped (the paper: 0.5 on Reddit, else 0).
        validate_every: epochs between two validations.
    """

    epochs: Count = 600
    lr: Rate = 0.01
    weight_decay: Weight = 5e-4
    dropout: DropoutShare = 0.0
    validate_every: Count = 1

    def __post_init__(self) -> None:
        check_fields(self)


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
    networks: Sequence[int],
    seed: int,
    purpose: Literal["select", "test"] = "select",
    on_epoch: Callable[[int], None] | None = None,
) -> Fitted:
    """Train a batch of networks on ``train`` and keep each one's best validation epoch.

    On CUDA an epoch is recorded after the first ones and replayed.

    ``networks`` numbers them: a number, a seed and a purpose determine a network's initial weights, in
    whatever batch it is trained. Networks that test never share weights with networks that select
    iterates, starts or settings. ``targets`` are class shares, ``(n, C)`` or ``(batch, n, C)``, zeros
    for a node without a label, which the loss leaves out; networks with different training graphs
    share the validation graph. Where ``validation_labels`` are a 0/1 matrix the networks are
    multi-label, and ``targets`` are those of every label.
    """
    multi_label = validation_labels.ndim == 2
    targets = targets if multi_label else over_labeled(targets)
    device = train.inputs.device
    # Under an older name the same numbers are drawn as ever.
    weights = f"weights of {RECORDED_MODELS.get(model.name, model.name)}"
    stream = "" if purpose == "test" else f"{purpose}: "
    streams = [make_generator(seed, f"{stream}{weights} {i}") for i in networks]
    initial = init_batch(model, features, targets.shape[-1], streams)
    dropout = None
    if recipe.dropout:
        generator = torch.Generator(device).manual_seed(
            make_generator(seed, f"{stream}dropout {networks[0]}").initial_seed()
        )
        dropout = Dropout(recipe.dropout, generator)
    captured = device.type == "cuda" and recipe.epochs > RECORDED_EPOCHS
    generators = [] if dropout is None else [dropout.generator]
    at_once = networks_at_once(model, validate)
    return train_batch(
        tuple(p.to(device, train.inputs.dtype).requires_grad_() for p in initial),
        recipe,
        lambda params: training_loss(
            model.logits(params, train, dropout), targets, multi_label
        ).sum(),
        lambda params: scores_of(model, params, validate, validation_labels, at_once=at_once),
        on_epoch,
        recorded=generators if captured else None,
    )


def fit_on_real(
    model: Model,
    real: RealGraph,
    view: CondensingView,
    *,
    recipe: TrainingRecipe,
    networks: Sequence[int],
    seed: int,
    on_epoch: Callable[[int], None],
) -> tuple[Fitted, Prepared]:
    """Train a batch of networks on the graph that is condensed, and what they were trained on.

    Of very many training or validation nodes a random part is used (:mod:`gcsr.data.views`).
    """
    visible, validation = view.visible, validation_part(view.validation)
    nodes, device = visible.train[trained_places(visible)], real.device
    train = real.prepared(model, nodes)
    fitted = fit(
        model,
        train,
        targets_of(visible.labels[nodes], visible.num_classes).to(device),
        real_graph(validation, device).prepared(model, validation.nodes),
        validation.labels.to(device),
        features=int(visible.x.shape[1]),
        recipe=recipe,
        networks=networks,
        seed=seed,
        on_epoch=on_epoch,
    )
    return fitted, train


def train_batch(
    params: Params,
    recipe: TrainingRecipe,
    loss: Callable[[Params], Tensor],
    score: Callable[[Params], Tensor],
    on_epoch: Callable[[int], None] | None = None,
    *,
    restart: bool = True,
    recorded: list[torch.Generator] | None = None,
) -> Fitted:
    """Train a batch of networks in place, and keep each one's best validation epoch.

    ``loss`` is the sum of the networks' losses, ``score`` how well each of them validates. ``restart``:
    from the middle on with a fresh Adam at a tenth of the rate. Where generators are given, an epoch is
    ``recorded`` as a CUDA graph after the first ones, and replayed.
    """
    device, epochs, every = params[0].device, recipe.epochs, recipe.validate_every
    batch = params[0].shape[0]
    best = Fitted(
        tuple(p.detach().clone() for p in params),
        torch.full((batch,), -1.0, dtype=torch.float64, device=device),
        torch.zeros(batch, dtype=torch.long, device=device),
    )
    current = torch.full((1,), -1, dtype=torch.long, device=device)
    cuda = device.type == "cuda"
    # A recorded epoch reads its rate from the device.
    lr = torch.tensor(recipe.lr, device=device) if cuda else recipe.lr
    first, second = (
        [torch.zeros_like(p, memory_format=torch.preserve_format) for p in params] for _ in range(2)
    )
    steps = [torch.zeros((), dtype=torch.float32, device=device) for _ in params]

    def step() -> None:
        gradients = torch.autograd.grad(loss(params), params)
        with torch.no_grad():
            torch._foreach_add_(steps, 1.0)
            contiguous = [gradient.contiguous() for gradient in gradients]
            fused_adam(
                list(params),
                contiguous,
                first,
                second,
                steps,
                lr=lr,
                weight_decay=recipe.weight_decay,
            )
        current.add_(1)

    def validate() -> None:
        scores = score(params)
        better = scores > best.validation
        # On CUDA asking whether any improved would make the device wait.
        if not cuda and not bool(better.any()):
            return
        best.validation.copy_(torch.where(better, scores, best.validation))
        best.epoch.copy_(torch.where(better, current, best.epoch))
        for p, kept in zip(params, best.params, strict=True):
            kept.copy_(torch.where(better.view(-1, *[1] * (p.ndim - 1)), p.detach(), kept))

    train, check = step, validate
    for epoch in range(epochs):
        if epoch == WARM_EPOCHS and recorded is not None:
            train = record(step, recorded)
            check = record(validate) if every <= WARM_EPOCHS else validate
        if restart and epoch == epochs // 2 and epoch > 0:
            for tensor in (*first, *second, *steps):
                tensor.zero_()
            if isinstance(lr, Tensor):
                lr.mul_(0.1)
            else:
                lr /= 10
        due = epoch % every == every - 1 or epoch == epochs - 1
        for work in (train, check) if due else (train,):
            if epoch < WARM_EPOCHS and recorded is not None:
                warm_up(work, 1)
            else:
                work()
        if on_epoch is not None:
            on_epoch(epoch + 1)
    return best


def networks_at_once(model: Model, prepared: Prepared) -> int:
    """How many networks can be scored together within the budget."""
    hidden = getattr(model, "hidden_channels", 256)
    per_network = prepared.inputs.shape[-2] * hidden
    if prepared.edges is not None:
        # Attention keeps a message per edge.
        per_network = prepared.edges[0][0].numel() * hidden
    return max(1, ACTIVATION_BUDGET[prepared.inputs.device.type] // max(1, per_network))
