"""What a network is to the gradient engine: gradients in closed form.

Every network of GCond's family is ``outer(act(inputs W1) W2)`` or linear altogether, so its gradients
can be written down. The matching loss then needs autograd once, where the published loop
differentiates through autograd's own gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from gcsr.condense.gradient.blocks import CondensedClasses
from gcsr.models import Model, Params
from gcsr.models.sparse import SparseOperator

# Gradients of all classes, weight by weight: ``(graphs, blocks, in, out)`` or a factor of that.
ClassGradients = tuple[Tensor, ...]


@dataclass(frozen=True)
class Reach:
    """Hops before the first layer (``inner``) and after the last (``outer``), and what biases see.

    ``bias``: a linear network's bias rides on a column of ``ones``, of ``propagated`` ones, or is not
    a part of the inputs (``apart``).
    """

    inner: int
    outer: int
    bias: str


@dataclass(frozen=True, eq=False)
class Condensed:
    """What does not depend on weights of a network on condensed graphs.

    Attributes:
        inputs: what the first layer multiplies, ``(graphs, n', d)``, with a column for the bias where
            :class:`Reach` says so.
        outer: the dense matrix that scores are propagated with; ``None`` for the identity.
    """

    inputs: Tensor
    outer: Tensor | None = None

    def detach(self) -> Condensed:
        """The same without a way back to X' and A'."""
        return Condensed(self.inputs.detach(), None if self.outer is None else self.outer.detach())


@dataclass(frozen=True, eq=False)
class RealBatch:
    """Training nodes of every class and what networks see of them.

    Attributes:
        inputs: ``(graphs or 1, blocks, width, d)``; the width is that of ``blocks`` or, where scores
            are propagated, of the padded neighbourhoods.
        weights: of the nodes in the mean over their class, 0 for padding.
        targets: one-hot class of every block.
        outer, outer_transposed: propagation from neighbourhoods to nodes and back, all blocks on one
            diagonal.
    """

    inputs: Tensor
    weights: Tensor
    targets: Tensor
    outer: SparseOperator | None = None
    outer_transposed: SparseOperator | None = None


class Learner(Protocol):
    """A network with its gradients."""

    @property
    def model(self) -> Model:
        """The same network for autograd, and its initial weights."""
        ...

    @property
    def reach(self) -> Reach:
        """How far its two ends reach."""
        ...

    def params(self, network: Params) -> Params:
        """The model's weights in the form that this learner trains."""
        ...

    def real_gradients(self, params: Params, batch: RealBatch) -> ClassGradients:
        """Gradients of the mean loss of every class on the real graph."""
        ...

    def condensed_gradients(
        self, params: Params, condensed: Condensed, classes: CondensedClasses
    ) -> ClassGradients:
        """The same on condensed graphs, differentiable in them."""
        ...

    def products(self, params: Params, ours: ClassGradients, theirs: ClassGradients) -> Tensor:
        """Inner products of the two gradients, all output units of all weights side by side."""
        ...

    def training_gradients(self, params: Params, condensed: Condensed, targets: Tensor) -> Params:
        """Gradients of the mean loss over all condensed nodes, biases included."""
        ...


def error(scores: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Gradient of a weighted sum of cross-entropies before the softmax."""
    return (scores.softmax(-1) - targets) * weights


def condensed_inputs(x: Tensor, operator: Tensor | None, reach: Reach) -> Condensed:
    """Propagate features as far as a network's weights do not matter."""
    inputs = x
    if reach.bias == "propagated":
        inputs = torch.cat([inputs, x.new_ones((*x.shape[:-1], 1))], -1)
    outer = None
    if operator is not None:
        for _ in range(reach.inner):
            inputs = operator @ inputs
        for _ in range(reach.outer):
            outer = operator if outer is None else operator @ outer
    if reach.bias == "ones":
        inputs = torch.cat([inputs, x.new_ones((*x.shape[:-1], 1))], -1)
    return Condensed(inputs, outer)
