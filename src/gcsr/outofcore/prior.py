"""The classes of a graph on disk by the predictions of experts, with nodes in blocks."""

from __future__ import annotations

import threading
from functools import partial

import torch
from torch import Tensor

from gcsr.data.stored_matrix import StoredFeatures
from gcsr.data.views import VisibleGraph
from gcsr.models import base
from gcsr.models.base import Model, Params, Prepared
from gcsr.models.sgc import SGC
from gcsr.outofcore.hops import Propagated
from gcsr.utils.errors import require
from gcsr.utils.parallel import run_jobs
from gcsr.utils.progress import Progress, silent


class ClassesInBlocks:
    """The class with the highest mean prediction of experts, for every node of a graph on disk.

    Called as each expert finishes, like :class:`~gcsr.training.experts.MeanPrediction`. It keeps only
    weights, so nothing grows with nodes times classes.
    """

    def __init__(self, model: Model, visible: VisibleGraph, device: torch.device) -> None:
        require(
            isinstance(model, SGC) and not model.relu,
            f"model must be 'sgc' with prior 'predicted' for a graph that stays on disk, got"
            f" {model.name!r}; choose it or prior 'train'.",
        )
        self._model, self._visible, self._device = model, visible, device
        self._trained: dict[int, Params] = {}
        self._lock = threading.Lock()

    def __call__(self, experts: range, params: Params) -> None:
        """Keep the last weights of a group of experts."""
        with self._lock:
            for place, number in enumerate(experts):
                self._trained[number] = tuple(p[place : place + 1].detach().clone() for p in params)

    def classes(self, progress: Progress = silent) -> Tensor:
        """One class per node."""
        disk, model = self._visible.disk, self._model
        if disk is None or not isinstance(model, SGC):
            raise RuntimeError("this graph is in memory")
        work = Propagated(disk, progress)
        features, ones = work.features(model.hops), work.ones(model.hops)
        experts = [self._trained[number] for number in sorted(self._trained)]
        found = torch.empty(disk.num_nodes, dtype=torch.long)
        step = base.ROWS_AT_ONCE
        if isinstance(disk.features, StoredFeatures):
            # Rows after some hops may be dense.
            step = max(64, min(step, disk.memory // (8 * disk.features.shape[1])))

        def predict(start: int, report: Progress) -> None:
            stop = min(disk.num_nodes, start + step)
            prepared = Prepared(
                torch.from_numpy(features.read(start, stop)).to(self._device),
                ones=torch.from_numpy(ones.read(start, stop)).to(self._device),
            )
            with torch.no_grad():
                total = torch.zeros(())
                for number, one in enumerate(experts):
                    prediction = model.logits(one, prepared)[0].softmax(-1)
                    # In memory a sum begins at zero too.
                    total = torch.zeros_like(prediction) if number == 0 else total
                    total.add_(prediction)
                found[start:stop] = (total / len(experts)).argmax(1).cpu()
            report("asking experts", 1, 1)

        run_jobs([partial(predict, start) for start in range(0, disk.num_nodes, step)], progress)
        return found
