"""SFGC's start: the K-Center coreset of every class."""

from __future__ import annotations

import torch
from torch import Tensor

from gcsr.condense.initialise import Start, start_at
from gcsr.condense.selection.kcenter import k_center
from gcsr.views import VisibleGraph


def k_center_rows(
    features: Tensor,
    embeddings: Tensor,
    visible: VisibleGraph,
    labels: Tensor,
    generator: torch.Generator,
) -> Start:
    """For every condensed node a training node of its class, chosen by K-Center.

    ``features`` have a row per visible node, ``embeddings`` one per training node. Beyond the size of
    a class its nodes repeat, drawn at random.
    """
    chosen, repeated = [], []
    for label in labels.unique().tolist():
        wanted = int((labels == label).sum())
        places = (visible.train_labels == label).nonzero().flatten()
        own = k_center(embeddings[places.to(embeddings.device)], min(wanted, places.numel()))
        extra = torch.randint(places.numel(), (wanted - own.numel(),), generator=generator)
        chosen.append(visible.train[places[torch.cat([own, extra])]])
        repeated.append(torch.arange(wanted) >= places.numel())
    return start_at(torch.cat(chosen), torch.cat(repeated), features, generator)
