from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gcsr.data.graph import Graph

ARRAYS: dict[str, Any] = {
    "x": np.arange(18, dtype=np.float32).reshape(6, 3),
    "edges": np.array([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]]),
    "y": np.array([0, 1, 2, 0, 1, 2]),
    "train": [0, 1, 2],
    "val": [3],
    "test": [5, 4],
}


@pytest.fixture
def make() -> Callable[..., Graph]:
    """A graph of six nodes, three classes and one isolated node, with changes."""

    def made(**changes: Any) -> Graph:
        arguments = ARRAYS | changes
        x, edges, y = (arguments.pop(field) for field in ("x", "edges", "y"))
        return Graph.from_arrays(x, edges, y, **arguments)

    return made
