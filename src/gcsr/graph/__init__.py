"""A graph for node classification: features, sparse adjacency, labels and a split."""

from gcsr.graph.graph import FEATURE_SCALINGS, Graph

__all__ = ["FEATURE_SCALINGS", "Graph"]
