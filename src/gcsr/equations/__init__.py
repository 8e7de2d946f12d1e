"""The paper, one pure function per equation; torch only, differentiable, any leading dimensions."""

from gcsr.equations.momentum import momentum_update
from gcsr.equations.prior import class_correlation, class_prior
from gcsr.equations.propagation import normalised_adjacency, normalised_sparse_adjacency, propagate
from gcsr.equations.self_expression import (
    self_expression,
    self_expression_objective,
    self_expression_of_gram,
    self_expressive_adjacency,
    symmetric_adjacency,
)
from gcsr.equations.trajectory import cross_entropy, over_labelled, trajectory_distance

__all__ = [
    "class_correlation",
    "class_prior",
    "cross_entropy",
    "momentum_update",
    "normalised_adjacency",
    "normalised_sparse_adjacency",
    "over_labelled",
    "propagate",
    "self_expression",
    "self_expression_objective",
    "self_expression_of_gram",
    "self_expressive_adjacency",
    "symmetric_adjacency",
    "trajectory_distance",
]
