"""The shapes of the paper's middle ratios."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gcsr.methods.presets import paper_settings
from gcsr.models.base import Params, init_batch
from gcsr.models.registry import condensing_model
from gcsr.utils.errors import require_one_of


@dataclass(frozen=True)
class Case:
    """A dataset's size and the settings its authors condensed it with.

    ``graph_edges`` are the stored entries of the symmetric adjacency; ``changed`` replaces some of
    the authors' settings.
    """

    dataset: str
    nodes: int
    features: int
    classes: int
    train: int
    val: int
    test: int
    graph_nodes: int
    graph_edges: int
    inductive: bool = False
    changed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """The authors' settings, less what was changed."""
        return {**paper_settings("gcsr", self.dataset, self.nodes)[0], **self.changed}

    @property
    def words(self) -> bool:
        """Whether features are counts of few words (Planetoid) and not dense vectors."""
        return self.dataset in ("cora", "citeseer")


# condensed nodes, features, classes; training, validation and test nodes; nodes and edges.
CASES = {
    "cora-70": Case("cora", 70, 1433, 7, 140, 500, 1000, 2708, 10556),
    "citeseer-60": Case("citeseer", 60, 3703, 6, 120, 500, 1000, 3327, 9104),
    "arxiv-454": Case("ogbn-arxiv", 454, 128, 40, 90941, 29799, 48603, 169343, 2315598),
    "flickr-223": Case("flickr", 223, 500, 7, 44625, 22312, 22313, 89250, 899756, inductive=True),
    "reddit-153": Case(
        "reddit", 153, 602, 41, 153932, 23699, 55334, 232965, 23213838, inductive=True
    ),
}


def case(name: str) -> Case:
    """The case of that name."""
    require_one_of("case", name, CASES)
    return CASES[name]


@dataclass(frozen=True, eq=False)
class StepInputs:
    """Inputs of one iteration with the case's shape: random, but of realistic size."""

    x: Tensor
    targets: Tensor
    prior: Tensor
    history: Tensor
    start: Params
    goal: Params

    def to(self, device: torch.device, dtype: torch.dtype) -> StepInputs:
        """The same numbers elsewhere."""
        x, targets, prior, history = (
            t.to(device, dtype) for t in (self.x, self.targets, self.prior, self.history)
        )
        start, goal = (tuple(p.to(device, dtype) for p in ps) for ps in (self.start, self.goal))
        return StepInputs(x, targets, prior, history, start, goal)


def step_inputs(
    shape: Case, graphs: int, device: torch.device, dtype: torch.dtype, seed: int = 0
) -> StepInputs:
    """Draw inputs for ``graphs`` graphs.

    Features have the size of propagated ones (rows that sum to one for Planetoid, unit deviation for
    the rest); the expert moves as far as a few steps of Adam at its rate.
    """
    generator = torch.Generator().manual_seed(seed)
    n, d, c = shape.nodes, shape.features, shape.classes
    x = torch.randn((graphs, n, d), generator=generator)
    if shape.words:
        x = x.abs() / x.abs().sum(-1, keepdim=True)
    labels = torch.arange(n) * c // n
    same = (labels.unsqueeze(1) == labels.unsqueeze(0)).float()
    prior = 0.8 * same + 0.2 / c
    history = torch.eye(n) + 0.05 * torch.rand((n, n), generator=generator)
    model = condensing_model("sgc")
    start = init_batch(
        model, d, c, [torch.Generator().manual_seed(seed + i) for i in range(graphs)]
    )
    rate = float(shape.settings["expert_lr"])
    goal = tuple(p + rate * torch.randn(p.shape, generator=generator) for p in start)
    targets = torch.nn.functional.one_hot(labels, c).repeat(graphs, 1, 1)
    return StepInputs(
        x, targets, prior.repeat(graphs, 1, 1), history.repeat(graphs, 1, 1), start, goal
    ).to(device, dtype)
