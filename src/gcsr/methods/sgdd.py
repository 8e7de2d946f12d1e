"""SGDD: gradient matching with a generated graphon that carries the real structure (NeurIPS 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from gcsr.data.views import CondensingView
from gcsr.engines.gradient.structures import GraphonGenerator, TransportTerm
from gcsr.methods.gradient_matching import StructuredGradientCondenser
from gcsr.utils.errors import Count, Weight, Whole


@dataclass(frozen=True, kw_only=True)
class SGDD(StructuredGradientCondenser):
    """GCond with another generator and an optimal-transport term (Yang et al., 2023).

    Args:
        structure_loss: ``stabilized``: on Laplacians with a scaled plan, smooth gradients and steps
            that are clipped and skipped where they are not finite; ``released``: the formula of the
            authors' code, which raises an error when it is not finite any more; or ``off``.
        structure_weight: its weight.
        samples: maximal number of real nodes in it.
        sinkhorn: rounds of scaling the plan.
    """

    name = "sgdd"
    summary = "gradient matching with a graphon and a structure loss (NeurIPS 2023)"
    reference = (
        'Yang et al., "Does Graph Distillation See Like Vision Dataset Counterpart?", NeurIPS 2023'
    )
    generator = GraphonGenerator

    smoothness: Weight = 0.01
    structure_loss: Literal["stabilized", "released", "off"] = "stabilized"
    structure_weight: Weight = 1e-6
    samples: Count = 500
    sinkhorn: Whole = 5

    def _term(self, view: CondensingView, x: Tensor, seeds: Sequence[int]) -> TransportTerm | None:
        if self.structure_loss == "off":
            return None
        return TransportTerm(
            view.visible.adjacency,
            x,
            seeds,
            form=self.structure_loss,
            weight=self.structure_weight,
            samples=self.samples,
            rounds=self.sinkhorn,
        )
