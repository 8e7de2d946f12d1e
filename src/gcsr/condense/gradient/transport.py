"""SGDD's structure term: A' should carry the same signals as a sample of the real structure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.condense.gradient.adam import Adam
from gcsr.devices import stream
from gcsr.equations.transport import (
    kept_singular_values,
    released_signal_transport,
    shifted,
    signal_transport,
    transport_plan,
)
from gcsr.errors import require
from gcsr.models import Params, SparseTopology

Form = Literal["stabilised", "released"]
# A new sample of the real graph is drawn once in so many epochs (the stabilised form).
RESAMPLE = 50


class TransportTerm:
    """See :func:`~gcsr.equations.transport.signal_transport`.

    The plan is learned, one row per sampled real node; a new sample begins with a new plan. Everything
    is computed in float64. ``stabilised`` keeps A' finite; ``released`` is the published formula on one
    sample.
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
        self._operator = SparseTopology(adjacency, torch.device("cpu")).normalised_matrix
        self._seeds, self._form = tuple(seeds), form
        self._weight, self._rounds = weight, rounds
        self._samples = min(samples, int(adjacency.shape[0]))
        self._device, self._nodes = x.device, int(x.shape[1])
        shape = (len(seeds), self._samples, self._nodes)
        self._plan = torch.zeros(shape, dtype=x.dtype, device=x.device)
        self._inverse: Tensor | None = None
        self.sampled: int | None = None
        self.guarded = form == "stabilised"
        self.complaint = (
            "structure_loss: 'released' stopped being finite, which its formula does;"
            " 'stabilised' stays finite."
        )

    @property
    def params(self) -> Params:
        """The plan before it is scaled."""
        return (self._plan,)

    def begin(self, epoch: int, optimiser: Adam) -> None:
        """Draw a sample of the real graph when it is due; ``optimiser`` is the plan's own."""
        due = self.sampled is None or (self.guarded and epoch % RESAMPLE == 0)
        if due:
            self._plan.copy_(torch.stack(self.sample(epoch)))
            optimiser.reset()

    def sample(self, epoch: int) -> list[Tensor]:
        """Look at the real nodes of an epoch's sample; returns the plans that begin with it."""
        plans, inverses = [], []
        for seed in self._seeds:
            generator = stream(seed, f"structure sample of epoch {epoch}")
            nodes = torch.randperm(int(self._operator.shape[0]), generator=generator)
            plans.append(torch.rand(self._plan.shape[1:], generator=generator))
            inverses.append(self._real_inverse(nodes[: self._samples].numpy()))
        self._inverse = torch.stack(inverses).to(self._device)
        self.sampled = epoch
        return plans

    def value(self, adjacency: Tensor, params: Params) -> Tensor:
        """The weighted term of every graph."""
        if self._inverse is None:
            raise RuntimeError("the structure term was not begun")
        (strength,) = params
        dense, plan = adjacency.double(), strength.double()
        if self._form == "released":
            # A decomposition of what is not finite ends in an error that explains nothing.
            require(bool(torch.isfinite(dense).all()), self.complaint)
            distance = released_signal_transport(dense, plan, self._inverse)
        else:
            plan = transport_plan(plan, self._rounds)
            distance = signal_transport(dense, plan, self._inverse)
        return (self._weight * distance).to(adjacency.dtype)

    def _real_inverse(self, nodes: np.ndarray) -> Tensor:
        # Rows and columns of norm(A): inside a sample most nodes would have no neighbour left.
        part = torch.from_numpy(self._operator[nodes][:, nodes].toarray()).double()
        if self._form == "stabilised":
            exact: Tensor = torch.linalg.inv(shifted(part))
            return exact
        left, singular, right = torch.linalg.svd(part)
        inverse = torch.where(kept_singular_values(singular), 1 / singular, 0)
        pseudo: Tensor = (right.mT * inverse) @ left.mT
        return pseudo
