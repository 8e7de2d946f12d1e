"""Named datasets and graph files: ``load("cora")`` or ``load("my-graph.npz")``."""

from typing import Any

from gcsr.datasets.registry import DatasetInfo, catalogue, names

__all__ = ["DatasetInfo", "catalogue", "load", "names"]


def __getattr__(name: str) -> Any:
    # Reading a graph needs torch; listing datasets does not.
    if name != "load":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gcsr.datasets.loading import load  # noqa: PLC0415

    return load
