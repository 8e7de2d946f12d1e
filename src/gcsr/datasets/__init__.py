"""Named datasets and graph files: ``load("cora")`` or ``load("my-graph.npz")``."""

from gcsr.datasets.loading import DatasetInfo, catalogue, load, names

__all__ = ["DatasetInfo", "catalogue", "load", "names"]
