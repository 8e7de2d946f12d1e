"""The experts that a condensed graph's students are compared with."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gcsr.experts import ExpertOrder, Experts, experts_for
from gcsr.models import Model
from gcsr.progress import Progress, silent
from gcsr.views import CondensingView


@dataclass(frozen=True, eq=False)
class Teachers:
    """The condensing model and its trained experts."""

    model: Model
    experts: Experts
    device: torch.device
    progress: Progress = silent

    @classmethod
    def of(
        cls, order: ExpertOrder, view: CondensingView, device: torch.device, progress: Progress
    ) -> Teachers:
        """The experts that were ordered, from wherever they are at hand."""
        experts = experts_for(
            order.model,
            view.visible,
            order.recipe,
            device=device,
            dtype=order.dtype,
            predictions=order.predictions,
            memory_bytes=order.memory_bytes,
            disk_bytes=order.disk_bytes,
            progress=progress,
        )
        return cls(order.model, experts, device, progress)
