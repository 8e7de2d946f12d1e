"""Variation neighbourhoods: a graph contracted so that its smooth signals survive.

A. Loukas, "Graph reduction with spectral and cut guarantees", JMLR 2019; Z. Huang et al., "Scaling up
graph neural networks via graph coarsening", KDD 2021.
"""

from gcsr.condense.selection.coarsen.levels import Rules
from gcsr.condense.selection.coarsen.project import Labels, Projection, projected, super_labels
from gcsr.condense.selection.coarsen.whole import Whole, coarsen_graph

__all__ = [
    "Labels",
    "Projection",
    "Rules",
    "Whole",
    "coarsen_graph",
    "projected",
    "super_labels",
]
