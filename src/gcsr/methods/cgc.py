r"""CGC: the centers of CGC-X, with edges between similar ones.

:math:`A'_{ij} = [\cos(h_i, h_j) > t]` for i ≠ j, and with :math:`P = \mathrm{norm}(A')^3` and the
normalized Laplacian L of A'

.. math:: X' = \arg\min_X \alpha \|PX - H\|^2 + \mathrm{tr}(X^\top L X)
             = (\alpha P^\top P + L)^{-1} \alpha P^\top H.

Reference: as :mod:`gcsr.methods.cgc_x`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from gcsr.equations.propagation import normalized_adjacency
from gcsr.methods.cgc_x import CGCX
from gcsr.utils.errors import Bounds, Rate


@dataclass(frozen=True, kw_only=True)
class CGC(CGCX):
    """Edges join centers of :class:`gcsr.CGCX` that are similar; features propagate to the centers.

    X' minimizes alpha times the squared distance of its propagation from the centers, plus its
    variation over the edges.

    Args:
        threshold: t, the cosine above which two centers are joined.
        alpha: weight of the first term.
        solver: ``exact``, or ``faithful`` to the released code, which omits alpha on the left, so that
            alpha only scales X'.
    """

    name: ClassVar[str] = "cgc"
    summary: ClassVar[str] = "centers of groups of training rows, with edges between similar ones"

    threshold: Annotated[float, Bounds(least=-1.0, most=1.0)] = 0.8
    alpha: Rate = 1.0
    solver: Literal["exact", "faithful"] = "exact"

    def _graph(self, centers: Tensor) -> tuple[Tensor, Tensor]:
        directions = torch.nn.functional.normalize(centers.double(), dim=1)
        adjacency = (directions @ directions.T > self.threshold).double().fill_diagonal_(0)
        hop = normalized_adjacency(adjacency)
        reached = hop @ hop @ hop
        degree = adjacency.sum(1)
        scale = degree.clamp_min(1).rsqrt()
        # A center without edges has a row of zeros; its system is that of P alone, which is one.
        laplacian = (degree > 0).double().diag() - scale[:, None] * adjacency * scale
        left = self.alpha if self.solver == "exact" else 1.0
        x = torch.linalg.solve(
            left * reached.T @ reached + laplacian, self.alpha * reached.T @ centers.double()
        )
        return x.to(centers), adjacency.to(centers)
