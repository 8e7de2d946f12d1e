r"""Curricula of training nodes: from nodes among their own class to nodes between classes.

GEOM (Zhang et al., ICML 2024), after CLNode (Wei et al., WSDM 2023).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

Pace = Literal["linear", "root", "geometric"]


def neighborhood_entropy(adjacency: sp.csr_array, labels: np.ndarray, classes: int) -> np.ndarray:
    r"""Entropy of the classes among every node's neighbors and itself.

    .. math:: -\sum_c p_{ic} \log p_{ic}, \quad
        p_{ic} = |\{j \in N(i) \cup i : y_j = c\}| / (|N(i)| + 1)
    """
    nodes = labels.size
    hot = sp.csr_array((np.ones(nodes), (np.arange(nodes), labels)), shape=(nodes, classes))
    joined = sp.csr_array(adjacency != 0, dtype=np.float64)
    joined.setdiag(0)
    counts = (joined @ hot + hot).toarray()
    shares = counts / counts.sum(1, keepdims=True)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logs).sum(1))


@dataclass(frozen=True)
class Curriculum:
    """The share of training nodes, the easiest first, that takes part in an epoch.

    Attributes:
        start: the share in the first epoch, λ.
        epochs: the epoch from which all take part, T.
        pace: how the share grows.
    """

    start: float
    epochs: int
    pace: Pace

    def share(self, epoch: int) -> float:
        r"""Linear :math:`\lambda + (1-\lambda)t`, root :math:`\sqrt{\lambda^2 + (1-\lambda^2)t}`,
        geometric :math:`\lambda^{1-t}`, with :math:`t = e/T` and at most 1."""
        time = min(1.0, epoch / self.epochs) if self.epochs else 1.0
        if self.pace == "linear":
            return self.start + (1 - self.start) * time
        if self.pace == "root":
            return math.sqrt(self.start**2 + (1 - self.start**2) * time)
        return float(self.start ** (1 - time))
