"""The paper, one pure function per equation; torch only, differentiable, any leading dimensions."""

from gcsr.equations.ccns import cross_class_similarity
from gcsr.equations.gntk import KernelTarget, kernel_error
from gcsr.equations.prior import ClassCounts, class_correlation, class_prior
from gcsr.equations.propagation import normalized_adjacency, normalized_sparse_adjacency, propagate
from gcsr.equations.self_expression import (
    momentum_update,
    self_expression,
    self_expression_objective,
    self_expression_of_gram,
    self_expressive_adjacency,
    symmetric_adjacency,
)
from gcsr.equations.trajectory import cross_entropy, over_labeled, trajectory_distance

__all__ = [
    "ClassCounts",
    "KernelTarget",
    "class_correlation",
    "class_prior",
    "cross_class_similarity",
    "cross_entropy",
    "kernel_error",
    "momentum_update",
    "normalized_adjacency",
    "normalized_sparse_adjacency",
    "over_labeled",
    "propagate",
    "self_expression",
    "self_expression_objective",
    "self_expression_of_gram",
    "self_expressive_adjacency",
    "symmetric_adjacency",
    "trajectory_distance",
]
