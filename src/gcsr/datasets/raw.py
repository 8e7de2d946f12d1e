"""What every reader hands over: plain arrays, not yet checked or scaled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True, eq=False)
class RawGraph:
    """Arrays as the files give them; :meth:`gcsr.Graph.from_arrays` checks and cleans them."""

    x: np.ndarray | sp.csr_array
    edges: np.ndarray | sp.csr_array
    y: np.ndarray
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray
    num_classes: int = 0
