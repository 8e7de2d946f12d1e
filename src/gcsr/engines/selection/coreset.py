"""Selection of training nodes by their embeddings: herding and K-Center."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gcsr.data.views import CondensingView
from gcsr.models.gcn import GCN
from gcsr.models.sparse import SparseTopology
from gcsr.training.fit import TrainingRecipe, fit
from gcsr.utils.progress import Progress, silent

Layer = Literal["scores", "hidden_channels"]


def embed_training_nodes(
    view: CondensingView,
    *,
    layer: Layer,
    seed: int,
    device: torch.device,
    weight_decay: float = 5e-4,
    epochs: int = 600,
    hidden_channels: int = 256,
    progress: Progress = silent,
) -> Tensor:
    """One row per training node, in the order of ``view.visible.train``.

    A two-layer GCN (dropout 0.5, Adam at 0.01, from the middle on at a tenth of it) is trained on the
    visible graph and kept as it was when it validated best. Rows are its log-softmax ``scores`` or
    the activations of its ``hidden`` layer, without dropout.
    """
    visible, validation = view.visible, view.validation
    model = GCN(hidden_channels=hidden_channels)
    topology = SparseTopology(visible.adjacency, device)
    train = model.prepare(visible.x.to(device), topology, visible.train)
    same_graph = validation.adjacency is visible.adjacency
    validate = model.prepare(
        validation.x.to(device),
        topology if same_graph else SparseTopology(validation.adjacency, device),
        validation.nodes,
    )
    targets = torch.nn.functional.one_hot(visible.train_labels, visible.num_classes)
    fitted = fit(
        model,
        train,
        targets.to(device, torch.float32),
        validate,
        validation.labels.to(device),
        features=int(visible.x.shape[1]),
        recipe=TrainingRecipe(epochs=epochs, weight_decay=weight_decay, dropout=0.5),
        networks=range(1),
        seed=seed,
        on_epoch=lambda epoch: progress("training the embedding", epoch, epochs),
    )
    with torch.no_grad():
        if layer == "hidden_channels":
            (outer,) = train.outer
            return outer.pick(model.activations(fitted.params, train))[0]
        return model.logits(fitted.params, train)[0].log_softmax(-1)


def herd(embeddings: Tensor, count: int) -> Tensor:
    r"""Indices of ``count`` rows whose running mean stays near the mean of all (Welling, 2009).

    The i-th choice, i = 1, 2, ..., is the unused row e that minimizes
    :math:`\| i \mu - \sum_{chosen} e' - e \|_2`, where :math:`\mu` is the mean of all rows. Ties go
    to the first row.
    """
    if count > embeddings.shape[0]:
        raise ValueError(f"{count} rows cannot be chosen from {embeddings.shape[0]}")
    rows = embeddings.double()
    mean = rows.mean(0)
    used = torch.zeros(rows.shape[0], dtype=torch.bool, device=rows.device)
    missing = mean.clone()
    chosen: list[int] = []
    for _ in range(count):
        distance = (missing - rows).square().sum(1).masked_fill(used, torch.inf)
        newest = int(distance.argmin())
        chosen.append(newest)
        used[newest] = True
        missing = missing + mean - rows[newest]
    return torch.tensor(chosen, dtype=torch.long)


def k_center(embeddings: Tensor, count: int) -> Tensor:
    """Indices of ``count`` rows such that no row is far from all of them (Sener and Savarese, 2018).

    The first is the row nearest the mean; each further one is the row whose distance to the nearest
    chosen row is largest. Ties go to the first row; no row is chosen twice.
    """
    if count > embeddings.shape[0]:
        raise ValueError(f"{count} rows cannot be chosen from {embeddings.shape[0]}")
    rows = embeddings.double()
    distance = torch.full((rows.shape[0],), torch.inf, dtype=rows.dtype, device=rows.device)
    chosen: list[int] = []
    newest = int(_squared_distances(rows, rows.mean(0)).argmin()) if count else -1
    while len(chosen) < count:
        chosen.append(newest)
        distance = torch.minimum(distance, _squared_distances(rows, rows[newest]))
        # Rows that tie with a chosen one also have distance zero; below zero is never the largest.
        distance[newest] = -1.0
        newest = int(distance.argmax())
    return torch.tensor(chosen, dtype=torch.long)


def _squared_distances(rows: Tensor, point: Tensor) -> Tensor:
    return (rows - point).square().sum(1)
