"""Learned structures of gradient matching: generators of A', and SGDD's structure term."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.equations.transport import (
    kept_singular_values,
    released_signal_transport,
    shifted,
    signal_transport,
    transport_plan,
)
from gcsr.models.base import Params, joined, uniform_layer
from gcsr.models.sparse import SparseTopology
from gcsr.training.adam import Adam
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import require

EPSILON = 1e-5


@dataclass(frozen=True)
class EdgeGenerator:
    """GCond's map from features to A' (Jin et al., 2022): an MLP on pairs of condensed nodes."""

    hidden_channels: int = 128

    def init(self, features: int, seeds: Sequence[int]) -> Params:
        """Initial weights as in ``torch.nn.Linear`` and ``BatchNorm1d``."""
        generators = [make_generator(seed, "edge generator") for seed in seeds]
        return joined([_branch(features, self.hidden_channels, one) for one in generators])

    def adjacency(self, x: Tensor, params: Params) -> Tensor:
        """A' of every graph."""
        return _adjacency(_last(_second(_first(x, params), params), params), x.shape[-2])


def _branch(features: int, hidden_channels: int, generator: torch.Generator) -> Params:
    """Weights of one branch; channels come first but for the two that features are multiplied with."""
    first, _ = uniform_layer(2 * features, hidden_channels, generator)
    middle, _ = uniform_layer(hidden_channels, hidden_channels, generator)
    last, bias = uniform_layer(hidden_channels, 1, generator)
    norm = (torch.ones(1, hidden_channels, 1), torch.zeros(1, hidden_channels, 1))
    return (
        first[:, :features].contiguous(),
        first[:, features:].contiguous(),
        *norm,
        middle.mT.contiguous(),
        *(t.clone() for t in norm),
        last.mT.contiguous(),
        bias,
    )


def _first(inputs: Tensor, params: Params) -> Tensor:
    """ReLU of the normalized ``left_i + right_j`` of all pairs, ``(graphs, h, n²)``."""
    left, right, scale, shift = params[:4]
    left, right = (inputs @ left).mT, (inputs @ right).mT
    left = left - left.mean(-1, keepdim=True)
    right = right - right.mean(-1, keepdim=True)
    variance = left.square().mean(-1, keepdim=True) + right.square().mean(-1, keepdim=True)
    factor = scale * (variance + EPSILON).rsqrt()
    pairs = (left * factor + shift).unsqueeze(-1) + (right * factor).unsqueeze(-2)
    return pairs.relu().flatten(-2)


def _second(pairs: Tensor, params: Params) -> Tensor:
    """Linear map, normalization over all pairs, ReLU."""
    weight, scale, shift = params[4:7]
    mapped = torch.bmm(weight, pairs)
    if mapped.shape[-1] == 1:
        # One pair is its own mean; the kernel below refuses it.
        return (shift + 0 * mapped).relu()
    flat = torch.nn.functional.batch_norm(
        mapped.flatten(0, 1).unsqueeze(0),
        None,
        None,
        scale.flatten(),
        shift.flatten(),
        training=True,
        eps=EPSILON,
    )
    return flat.view_as(mapped).relu()


def _last(pairs: Tensor, params: Params) -> Tensor:
    weight, bias = params[7:]
    return torch.baddbmm(bias, weight, pairs)


def _adjacency(scores: Tensor, nodes: int) -> Tensor:
    """From scores of all pairs ``(graphs, 1, n²)`` to A'."""
    q = scores.view(-1, nodes, nodes)
    off_diagonal = 1 - torch.eye(nodes, dtype=q.dtype, device=q.device)
    return ((q + q.mT) / 2).sigmoid() * off_diagonal


# The share of the features' branch in the scores.
SHARE = 0.5
# Weights of one branch.
_LENGTH = 9


@dataclass(frozen=True)
class GraphonGenerator:
    """SGDD's map from features to A' (Yang et al., 2023): a graphon that features modulate."""

    hidden_channels: int = 128

    def init(self, features: int, seeds: Sequence[int]) -> Params:
        """Weights of the features' branch, then of the grid's."""
        width = self.hidden_channels
        return joined(
            [
                _branch(features, width, make_generator(seed, "graphon features"))
                + _branch(1, width, make_generator(seed, "graphon grid"))
                for seed in seeds
            ]
        )

    def adjacency(self, x: Tensor, params: Params) -> Tensor:
        """A' of every graph."""
        c, u = params[:_LENGTH], params[_LENGTH:]
        grid = torch.linspace(-1, 1, x.shape[-2], dtype=x.dtype, device=x.device).unsqueeze(-1)
        of_features = _first(x, c)
        of_grid = _first(grid, u) * of_features
        of_features = _second(of_features, c)
        of_grid = _second(of_grid, u) * of_features
        scores = (1 - SHARE) * _last(of_grid, u) + SHARE * _last(of_features, c)
        return _adjacency(scores, x.shape[-2])


Generator = EdgeGenerator | GraphonGenerator
Form = Literal["stabilized", "released"]
# A new sample of the real graph is drawn once in so many epochs (the stabilized form).
RESAMPLE = 50


class TransportTerm:
    """SGDD's addition to the loss, which compares A' with a sample of the real structure.

    See :func:`~gcsr.equations.transport.signal_transport`. The plan is learned, one row per sampled
    node; a new sample begins with a new plan. Everything is computed in float64. ``stabilized`` keeps
    A' finite; ``released`` is the published formula on one sample. ``sampled`` is the epoch of the
    sample that the plan is for, -1 before the first: part of a checkpoint, which has no sample.
    """

    def __init__(
        self,
        adjacency: sp.csr_array,
        x: Tensor,
        seeds: Sequence[int],
        *,
        form: Form,
        weight: float,
        samples: int,
        rounds: int,
    ) -> None:
        self._operator = SparseTopology(adjacency, torch.device("cpu")).normalized.matrix
        self._seeds, self._form = tuple(seeds), form
        self._weight, self._rounds = weight, rounds
        self._samples = min(samples, int(adjacency.shape[0]))
        self._device, self._nodes = x.device, int(x.shape[1])
        shape = (len(seeds), self._samples, self._nodes)
        self._plan = torch.zeros(shape, dtype=x.dtype, device=x.device)
        self._inverse: Tensor | None = None
        self._inverse_of = -1
        self.sampled = torch.tensor(-1)
        self.guarded = form == "stabilized"
        self.divergence_message = (
            "structure_loss: 'released' stopped being finite, which its formula does;"
            " 'stabilized' stays finite."
        )

    @property
    def params(self) -> Params:
        """The plan before it is scaled."""
        return (self._plan,)

    def begin(self, epoch: int, optimizer: Adam) -> None:
        """Draw a sample of the real graph when it is due; ``optimizer`` is the plan's own."""
        if self.sampled < 0 or (self.guarded and epoch % RESAMPLE == 0):
            self._plan.copy_(torch.stack(self.sample(epoch)))
            self.sampled.fill_(epoch)
            optimizer.reset()
        elif self._inverse_of != self.sampled:
            self.sample(int(self.sampled))

    def sample(self, epoch: int) -> list[Tensor]:
        """Draw the real nodes of an epoch's sample; returns the initial plans."""
        plans, inverses = [], []
        for seed in self._seeds:
            generator = make_generator(seed, f"structure sample of epoch {epoch}")
            nodes = torch.randperm(int(self._operator.shape[0]), generator=generator)
            plans.append(torch.rand(self._plan.shape[1:], generator=generator))
            inverses.append(self._real_inverse(nodes[: self._samples].numpy()))
        self._inverse = torch.stack(inverses).to(self._device)
        self._inverse_of = epoch
        return plans

    def value(self, adjacency: Tensor, params: Params) -> Tensor:
        """The weighted term of every graph."""
        if self._inverse is None:
            raise RuntimeError("the structure term was not begun")
        (strength,) = params
        dense, plan = adjacency.double(), strength.double()
        if self._form == "released":
            # A decomposition of what is not finite ends in an error that explains nothing.
            require(bool(torch.isfinite(dense).all()), self.divergence_message)
            distance = released_signal_transport(dense, plan, self._inverse)
        else:
            plan = transport_plan(plan, self._rounds)
            distance = signal_transport(dense, plan, self._inverse)
        return (self._weight * distance).to(adjacency.dtype)

    def _real_inverse(self, nodes: np.ndarray) -> Tensor:
        # Rows and columns of norm(A): inside a sample most nodes would have no neighbor left.
        part = torch.from_numpy(self._operator[nodes][:, nodes].toarray()).double()
        if self._form == "stabilized":
            exact: Tensor = torch.linalg.inv(shifted(part))
            return exact
        left, singular, right = torch.linalg.svd(part)
        inverse = torch.where(kept_singular_values(singular), 1 / singular, 0)
        pseudo: Tensor = (right.mT * inverse) @ left.mT
        return pseudo
