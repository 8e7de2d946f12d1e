"""How experts are trained, and a key of everything that their weights depend on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import torch

from gcsr.data.features import row_blocks
from gcsr.data.views import VisibleGraph
from gcsr.equations.curriculum import Curriculum
from gcsr.models.base import Model
from gcsr.utils.devices import arithmetic
from gcsr.version import __version__

Optimizer = Literal["adam", "sgd"]
# Names of fields in the keys of stored experts.
STORED_NAMES = {"optimizer": "optimiser", "lr": "rate"}


@dataclass(frozen=True)
class ExpertRecipe:
    """Coupled weight decay; by default a fresh Adam at a tenth of the rate from the middle on.

    Weights are looked up by *snapshot*: snapshot i is the state after ``i * snapshot_every`` epochs.

    Attributes:
        count: number of experts.
        epochs: length of the training schedule.
        trained_epochs: how much of it is run; predictions want all of it.
        kept_epochs: the last epoch that can be looked up later.
        seed: experts depend on this seed and the graph only, so that condensed graphs of different
            seeds learn from the same experts, as in the paper.
        snapshot_every: epochs from one snapshot to the next.
        optimizer: ``adam``, or plain ``sgd``.
        restart: whether the rate drops to a tenth, with fresh moments, in the middle.
        curriculum: which training nodes take part in an epoch; ``None``: all.
        final: whether the last snapshot of the schedule is kept too; all of it must be trained.
        unread: snapshots from the first of these up to, not including, the second are never looked
            up and not kept.
    """

    count: int
    epochs: int
    trained_epochs: int
    kept_epochs: int
    lr: float
    weight_decay: float
    seed: int
    snapshot_every: int = 1
    optimizer: Optimizer = "adam"
    restart: bool = True
    unread: tuple[int, int] = (0, 0)
    curriculum: Curriculum | None = None
    final: bool = False

    @property
    def last_snapshot(self) -> int:
        """The last snapshot that can be looked up."""
        return self.kept_epochs // self.snapshot_every

    @property
    def rows(self) -> int:
        """How many snapshots of an expert are kept."""
        return self.last_snapshot + 1 - (self.unread[1] - self.unread[0]) + self.final

    @property
    def final_snapshot(self) -> int:
        """The last snapshot of the schedule."""
        return self.epochs // self.snapshot_every

    @property
    def snapshots(self) -> int:
        """Snapshots up to the last one that can be looked up, kept or not."""
        return 1 + max(self.last_snapshot, self.final_snapshot if self.final else 0)

    def row(self, snapshot: int) -> int | None:
        """Where a snapshot lies among the kept ones of its expert; ``None`` if it is not kept."""
        first, end = self.unread
        if self.final and snapshot == self.final_snapshot:
            return 0  # before the others, of which a longer run has more
        if snapshot > self.last_snapshot or first <= snapshot < end:
            return None
        return self.final + (snapshot if snapshot < first else snapshot - (end - first))


@dataclass(frozen=True, eq=False)
class ExpertRequest:
    """Which experts a method needs, and the memory and disk space that their trajectories may take.

    ``predictions`` asks for their mean prediction.
    """

    model: Model
    recipe: ExpertRecipe
    dtype: torch.dtype = torch.float32
    predictions: bool = False
    memory_bytes: int | None = None
    disk_bytes: int = 0


def expert_key(request: ExpertRequest, visible: VisibleGraph, device: torch.device) -> str:
    """SHA-256 over the visible graph, the model, the recipe and the machine's arithmetic.

    The number of kept epochs is not part of it: a longer run contains every shorter one with the same
    gap. Neither are labels of other nodes than training nodes, which experts never see.
    """
    model, recipe = request.model, request.recipe
    kind = type(model)
    head = {
        "model": [f"{kind.__module__}.{kind.__qualname__}", repr(sorted(vars(model).items()))],
        "recipe": {
            STORED_NAMES.get(name, name): value
            for name, value in asdict(recipe).items()
            if name not in ("trained_epochs", "kept_epochs")
            and (value or name not in ("curriculum", "final"))
        },
        "classes": visible.num_classes,
        "dtype": str(request.dtype),
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
        digest.update(f"<f4{tuple(visible.x.shape)}".encode())
        for block in row_blocks(visible.x):
            digest.update(block.data)
        real = [adjacency.indptr, adjacency.indices, adjacency.data]
    for array in (*real, visible.train.cpu().numpy(), visible.train_labels.cpu().numpy()):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
