"""Which entries of A' become edges for layers that ignore edge weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gcsr.engines.iterates import QuickScore
from gcsr.models.registry import testing_model
from gcsr.training.fit import TrainingRecipe, fit, topology_of

# Mean numbers of neighbors that are tried, beside none and all.
NEIGHBORS = (1, 2, 4, 8, 16)
# Fewer edges are kept where they cost at most this validation accuracy: sums over many neighbors (GIN)
# suffer from superfluous edges more than the GCN that compares them.
TOLERANCE = 0.005
NETWORKS, HIDDEN_CHANNELS = 2, 64
RECIPE = TrainingRecipe(epochs=100, validate_every=10)
# Numbers in the adjacency matrices that are compared together.
AT_ONCE = 2**25


def choose_edges(
    x: Tensor, adjacency: Tensor, targets: Tensor, quick: QuickScore, seed: int
) -> dict[str, Any]:
    """The threshold above which entries of A' are edges, and the validation accuracies behind it.

    An unweighted GCN is trained on each candidate. The threshold is ``None`` for no edges.
    """
    edges = adjacency - adjacency.diag().diag()
    weights = edges[edges > 0].sort(descending=True).values
    n = int(x.shape[0])
    kept = [n * k for k in NEIGHBORS if n * k < weights.numel()]
    # Of equal weights all or none are edges.
    below = [weights[weights < weights[count - 1]] for count in kept]
    thresholds = [float(weights[0]), *(float(one[0]) if one.numel() else 0.0 for one in below), 0.0]
    candidates = {int((edges > value).sum()): value for value in thresholds}
    counts = sorted(candidates)
    each = max(1, AT_ONCE // (n * n * NETWORKS))
    scores = []
    for first in range(0, len(counts), each):
        binary = torch.stack(
            [(edges > candidates[count]).float() for count in counts[first : first + each]]
        )
        scores += _scores(x, binary, targets, quick, seed)
    chosen = next(i for i, score in enumerate(scores) if score >= max(scores) - TOLERANCE)
    tried = [
        {"edges": count, "validation": score} for count, score in zip(counts, scores, strict=True)
    ]
    threshold = candidates[counts[chosen]] if counts[chosen] else None
    return {"threshold": threshold, "tried": tried}


def _scores(
    x: Tensor, adjacency: Tensor, targets: Tensor, quick: QuickScore, seed: int
) -> list[float]:
    """Mean validation accuracy on every graph of a batch, with the same initial weights for all."""
    model, batch = testing_model("gcn", HIDDEN_CHANNELS), adjacency.shape[0]
    repeated = adjacency.repeat_interleave(NETWORKS, 0)
    prepared = model.prepare(x.float().expand(len(repeated), -1, -1), topology_of(repeated))
    fitted = fit(
        model,
        prepared,
        targets.float().expand(len(repeated), -1, -1),
        quick.validate,
        quick.labels,
        features=quick.features,
        recipe=RECIPE,
        networks=list(range(NETWORKS)) * batch,
        seed=seed,
    )
    return [float(score) for score in fitted.validation.view(batch, NETWORKS).mean(1)]
