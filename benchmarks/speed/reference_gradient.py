"""The published loop of gradient matching, written plainly: what the gradient engine is measured with.

Class by class, autograd through autograd, a concatenation of all pairs of condensed nodes as the
generator's input, propagation at every call, torch's Adam; one graph at a time. Nothing here is used
outside benchmarks and tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.speed.reference import normalize
from gcsr.engines.gradient.engine import Distance
from gcsr.models.base import Params


class PlainGenerator(nn.Module):
    """GCond's edge generator on all pairs side by side."""

    def __init__(self, features: int, hidden_channels: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [
                nn.Linear(2 * features, hidden_channels),
                nn.Linear(hidden_channels, hidden_channels),
                nn.Linear(hidden_channels, 1),
            ]
        )
        self.norms = nn.ModuleList(
            [nn.BatchNorm1d(hidden_channels), nn.BatchNorm1d(hidden_channels)]
        )

    @classmethod
    def with_weights(cls, params: Params) -> PlainGenerator:
        """From one graph's weights of :class:`~gcsr.engines.gradient.structures.EdgeGenerator`."""
        left, right, scale, shift, middle, scale2, shift2, last, bias = (p.detach() for p in params)
        plain = cls(left.shape[0], left.shape[1]).to(left)
        values = {
            "layers.0.weight": torch.cat([left, right]).T,
            "layers.1.weight": middle,
            "layers.2.weight": last,
            "layers.2.bias": bias.flatten(),
            "norms.0.weight": scale.flatten(),
            "norms.0.bias": shift.flatten(),
            "norms.1.weight": scale2.flatten(),
            "norms.1.bias": shift2.flatten(),
        }
        plain.load_state_dict({k: v.clone() for k, v in values.items()}, strict=False)
        return plain

    def forward(self, x: Tensor) -> Tensor:
        """A' of one graph."""
        n = x.shape[0]
        nodes = torch.arange(n, device=x.device)
        first, second = torch.meshgrid(nodes, nodes, indexing="ij")
        pairs = torch.cat([x[first.reshape(-1)], x[second.reshape(-1)]], 1)
        for i, layer in enumerate(self.layers):
            pairs = layer(pairs)
            if i < len(self.norms):
                pairs = functional.relu(self.norms[i](pairs))
        q = pairs.reshape(n, n)
        adjacency = torch.sigmoid((q + q.T) / 2)
        return adjacency - torch.diag(torch.diag(adjacency))


def plain_scores(model: str, params: Sequence[Tensor], x: Tensor, operator: Tensor) -> Tensor:
    """Scores of every node, propagated at every call."""
    if model == "sgc":
        w, b = params
        return operator @ (operator @ (x @ w)) + b
    w1, b1, w2, b2 = params
    if model == "sgc2":
        return operator @ (operator @ ((x @ w1 + b1) @ w2 + b2))
    if model == "sgc-relu":
        return operator @ (operator @ ((x @ w1 + b1).relu() @ w2 + b2))
    return operator @ ((operator @ (x @ w1) + b1).relu() @ w2) + b2


def plain_distance(ours: Sequence[Tensor], theirs: Sequence[Tensor], distance: Distance) -> Tensor:
    """Over the columns of every weight; biases are left out."""
    total = torch.zeros(()).to(ours[0])
    for a, b in zip(ours, theirs, strict=True):
        if a.ndim == 1:
            continue
        for j in range(a.shape[1]):
            if distance == "squared":
                total = total + ((a[:, j] - b[:, j]) ** 2).sum()
            else:
                norms = torch.norm(a[:, j]) * torch.norm(b[:, j]) + 1e-6
                total = total + 1 - (a[:, j] * b[:, j]).sum() / norms
    return total


def fast_plain_distance(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> Tensor:
    """The cosine distance as the released code writes it: columns at once."""
    total = torch.zeros(()).to(ours[0])
    for a, b in zip(ours, theirs, strict=True):
        if a.ndim == 2:
            norms = torch.norm(a, dim=0) * torch.norm(b, dim=0) + 1e-6
            total = total + (1 - (a * b).sum(0) / norms).sum()
    return total


@dataclass(frozen=True, eq=False)
class PlainReal:
    """The real graph: dense normalized adjacency, features, and training rows by class."""

    x: Tensor
    operator: Tensor
    members: dict[int, Tensor]

    @property
    def classes(self) -> list[int]:
        """Classes with training nodes."""
        return list(self.members)

    def loss(self, model: str, theta: Sequence[Tensor], label: int) -> Tensor:
        """Mean loss over the training nodes of a class."""
        members = self.members[label]
        scores = plain_scores(model, theta, self.x, self.operator)[members]
        return functional.cross_entropy(scores, torch.full_like(members, label))


@dataclass(frozen=True, eq=False)
class PlainNeighborhoods:
    """The real graph of a single-layer SGC as its training nodes' neighborhoods, class by class.

    For every class the features of all nodes within two hops, and the sparse matrices of the two hops
    from the outside in.
    """

    parts: dict[int, tuple[Tensor, Tensor, Tensor]]

    @property
    def classes(self) -> list[int]:
        """Classes with training nodes."""
        return list(self.parts)

    def loss(self, model: str, theta: Sequence[Tensor], label: int) -> Tensor:
        """Mean loss over the training nodes of a class."""
        x, far, near = self.parts[label]
        weight, bias = theta
        scores = near @ (far @ (x @ weight)) + bias
        wanted = torch.full((scores.shape[0],), label, device=scores.device)
        return functional.cross_entropy(scores, wanted)


@dataclass(eq=False)
class PlainStep:
    """Outer steps of one graph with the network's weights in ``theta`` (biases one-dimensional)."""

    x: nn.Parameter
    labels: Tensor
    generator: PlainGenerator | None
    real: PlainReal | PlainNeighborhoods
    theta: list[nn.Parameter]
    model: str
    inner: int
    distance: Distance
    feature_lr: float
    structure_lr: float
    theta_rate: float = 0.01

    def __post_init__(self) -> None:
        self.feature_adam = torch.optim.Adam([self.x], lr=self.feature_lr)
        self.theta_adam = torch.optim.Adam(self.theta, lr=self.theta_rate)
        self.structure_adam = None
        if self.generator is not None:
            weights = self.generator.parameters()
            self.structure_adam = torch.optim.Adam(weights, lr=self.structure_lr)

    def operator(self, x: Tensor) -> Tensor:
        """The normalized A', or the identity."""
        if self.generator is None:
            return torch.eye(x.shape[0]).to(x)
        return normalize(self.generator(x))

    def match(self) -> Tensor:
        """The matching loss, with its graph."""
        operator = self.operator(self.x)
        sizes = {c: int((self.labels == c).sum()) for c in self.real.classes}
        loss = torch.zeros(()).to(self.x)
        for c in self.real.classes:
            real_loss = self.real.loss(self.model, self.theta, c)
            theirs = [g.detach() for g in torch.autograd.grad(real_loss, self.theta)]
            scores = plain_scores(self.model, self.theta, self.x, operator)
            block = self.labels == c
            own_loss = functional.cross_entropy(scores[block], self.labels[block])
            ours = torch.autograd.grad(own_loss, self.theta, create_graph=True)
            if self.distance == "cosine":
                apart = fast_plain_distance(ours, theirs)
            else:
                apart = plain_distance(ours, theirs, self.distance)
            loss = loss + sizes[c] / max(sizes.values()) * apart
        return loss

    def train(self) -> None:
        """Train the network on the condensed graph."""
        x = self.x.detach()
        with torch.no_grad():
            operator = self.operator(x)
        for _ in range(self.inner):
            self.theta_adam.zero_grad()
            scores = plain_scores(self.model, self.theta, x, operator)
            functional.cross_entropy(scores, self.labels).backward()
            self.theta_adam.step()

    def __call__(self, *, structural: bool, train: bool) -> Tensor:
        """Match, move X' or the generator, train; the loss before moving."""
        self.feature_adam.zero_grad()
        if self.structure_adam is not None:
            self.structure_adam.zero_grad()
        loss = self.match()
        loss.backward()
        chosen = self.structure_adam if structural else self.feature_adam
        if chosen is not None:
            chosen.step()
        if train:
            self.train()
        return loss.detach()
