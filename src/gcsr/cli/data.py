"""DATA, a registered name or a file, as a graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from gcsr.progress import Progress

if TYPE_CHECKING:
    from gcsr.graph import Graph
    from gcsr.graph.graph import FeatureScaling


def load_graph(
    data: str,
    *,
    root: Path | None,
    features: str | None,
    undirected: bool,
    inductive: bool | None,
    progress: Progress,
) -> Graph:
    """Load a graph; the library refuses a scaling that it does not know."""
    from gcsr.datasets import load  # noqa: PLC0415 - torch takes a second to import

    stage = f"loading {data}"
    progress(stage, 0, 0)
    scaling = cast("FeatureScaling | None", features)
    graph = load(data, root, features=scaling, undirected=undirected, inductive=inductive)
    progress(stage, 1, 1)
    return graph
