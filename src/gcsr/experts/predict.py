"""What the experts think of every visible node."""

from __future__ import annotations

import threading

import torch
from torch import Tensor

from gcsr.models import Model, Params, Prepared, SparseTopology
from gcsr.views import VisibleGraph


class MeanPrediction:
    """Mean class probabilities ``(n, C)`` over experts, added up as each of them finishes.

    So no trained expert has to be kept. Experts finish in any order, on any thread; they are counted
    in the order of their numbers, because the sum of floating-point numbers depends on it.
    """

    def __init__(
        self,
        model: Model,
        visible: VisibleGraph,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._model, self._visible, self._device, self._dtype = model, visible, device, dtype
        shape = (visible.num_nodes, visible.num_classes)
        self._total = torch.zeros(shape, dtype=dtype, device=device)
        self._prepared: Prepared | None = None
        self._early: dict[int, Params] = {}
        self._count = 0
        # One expert at a time: hidden units of every node are large.
        self._lock = threading.Lock()

    def __call__(self, experts: range, params: Params) -> None:
        """Count a group of experts whose training ended."""
        with self._lock:
            self._early[experts.start] = tuple(p.detach().clone() for p in params)
            while self._count in self._early:
                self._add(self._early.pop(self._count))

    @property
    def mean(self) -> Tensor:
        """The mean over all experts, once every one of them is counted."""
        if self._early or not self._count:
            raise RuntimeError("not every expert was counted")
        return self._total / self._count

    def _add(self, group: Params) -> None:
        if self._prepared is None:
            topology = SparseTopology(self._visible.adjacency, self._device, self._dtype)
            x = self._visible.x.to(self._device, self._dtype)
            self._prepared = self._model.prepare(x, topology)
        with torch.no_grad():
            for i in range(group[0].shape[0]):
                one = tuple(p[i : i + 1] for p in group)
                self._total += self._model.logits(one, self._prepared)[0].softmax(-1)
                self._count += 1
