"""What experts depend on, as one name: equal names, equal weights."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import torch

from gcsr.devices import arithmetic
from gcsr.experts.recipe import ExpertRecipe
from gcsr.models import Model
from gcsr.version import __version__
from gcsr.views import VisibleGraph


def expert_key(
    model: Model,
    visible: VisibleGraph,
    recipe: ExpertRecipe,
    device: torch.device,
    dtype: torch.dtype,
) -> str:
    """SHA-256 over the visible graph, the model, the recipe and the machine's arithmetic.

    How many epochs are kept is left out: a longer run holds every shorter one with the same gap.
    Labels other than the training nodes' do not reach experts and are left out too.
    """
    kind = type(model)
    head = {
        "model": [f"{kind.__module__}.{kind.__qualname__}", repr(sorted(vars(model).items()))],
        "recipe": {
            name: getattr(recipe, name)
            for name in (
                "count",
                "epochs",
                "rate",
                "weight_decay",
                "seed",
                "snapshot_every",
                "optimiser",
                "restart",
                "unread",
            )
        },
        "classes": visible.num_classes,
        "dtype": str(dtype),
        "versions": [__version__, torch.__version__],
        "arithmetic": arithmetic(device),
    }
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    if visible.disk is not None:
        # The content of the whole graph stands for what is too large to be read again.
        digest.update(visible.disk.content_hash.encode())
        real = []
    else:
        adjacency = visible.adjacency
        real = [visible.x.cpu().numpy(), adjacency.indptr, adjacency.indices, adjacency.data]
    for array in (*real, visible.train.cpu().numpy(), visible.train_labels.cpu().numpy()):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
