"""Training nodes as a trained GCN sees them, for methods that choose among them."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gcsr.models import SparseTopology
from gcsr.models.gcn import GCN
from gcsr.progress import Progress, silent
from gcsr.training import TrainingRecipe, fit
from gcsr.views import CondensingView

Layer = Literal["scores", "hidden"]


def embed_training_nodes(
    view: CondensingView,
    *,
    layer: Layer,
    seed: int,
    device: torch.device,
    weight_decay: float = 5e-4,
    epochs: int = 600,
    hidden: int = 256,
    progress: Progress = silent,
) -> Tensor:
    """One row per training node, in the order of ``view.visible.train``.

    A two-layer GCN (dropout 0.5, Adam at 0.01, from the middle on at a tenth of it) is trained on the
    visible graph and kept as it was when it validated best. Rows are its log-softmax ``scores`` or
    the activations of its ``hidden`` layer, without dropout.
    """
    visible, validation = view.visible, view.validation
    model = GCN(hidden=hidden)
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
        if layer == "hidden":
            (outer,) = train.outer
            return outer.pick(model.activations(fitted.params, train))[0]
        return model.logits(fitted.params, train)[0].log_softmax(-1)
