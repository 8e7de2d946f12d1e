r"""Two layers with a ReLU between them: GCN, and the SGC of GCond's scripts for Arxiv and Flickr.

With I the inputs of the first layer, O what scores are propagated with, :math:`Z = IW_1 + b_1` and
:math:`R = \sigma(Z)`:

.. math:: U = O^\top (\mathrm{softmax}(ORW_2) - Y), \qquad \bar R = UW_2^\top \circ [Z > 0], \qquad
          \partial W_2 = R^\top U, \qquad \partial W_1 = I^\top \bar R.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.condense.gradient.blocks import CondensedClasses
from gcsr.condense.gradient.learners.base import ClassGradients, Condensed, Reach, RealBatch, error
from gcsr.equations.gradient_distance import unit_products
from gcsr.models import Model, Params
from gcsr.models.base import linear
from gcsr.models.gcn import GCN
from gcsr.models.sgc import SGC


@dataclass(frozen=True)
class TwoReluLayers:
    """``sgc`` propagates its scores twice, biases included; ``gcn`` once before every bias."""

    kind: str = "gcn"
    hidden: int = 256

    @property
    def model(self) -> Model:
        """The same for autograd."""
        return GCN(self.hidden) if self.kind == "gcn" else SGC(self.hidden)

    @property
    def reach(self) -> Reach:
        """Where the hops are."""
        return Reach(1, 1, "apart") if self.kind == "gcn" else Reach(0, 2, "apart")

    def params(self, network: Params) -> Params:
        """As the model has them."""
        return network

    def real_gradients(self, params: Params, batch: RealBatch) -> ClassGradients:
        """Classes side by side; a neighbour that two classes share is there twice."""
        w1, b1, w2, b2 = params
        blocks = batch.inputs
        size = tuple(blocks.shape[1:3])
        flat = blocks.flatten(1, 2)
        before = linear(flat[0] if flat.shape[0] == 1 else flat, w1) + b1
        hidden = before.relu()
        scores = self._biased(hidden @ w2, b2, batch.outer)
        scores = scores.unflatten(1, tuple(batch.weights.shape[-2:]))
        wrong = error(scores, batch.targets, batch.weights.unsqueeze(-1)).flatten(1, 2)
        inner = wrong if batch.outer_transposed is None else batch.outer_transposed(wrong)
        bar = (inner @ w2.mT) * (before > 0)
        second = hidden.unflatten(1, size).mT @ inner.unflatten(1, size)
        return blocks.mT @ bar.unflatten(1, size), second

    def condensed_gradients(
        self, params: Params, condensed: Condensed, classes: CondensedClasses
    ) -> ClassGradients:
        """A dense structure mixes all nodes, so every class reads every row."""
        w1, b1, w2, b2 = params
        before = condensed.inputs @ w1 + b1
        hidden = before.relu()
        scores = self._biased(hidden @ w2, b2, condensed.outer)
        wrong = (scores.softmax(-1) - classes.targets).unsqueeze(1) * classes.share
        graphs, blocks, nodes, width = wrong.shape
        inner = wrong.transpose(1, 2).reshape(graphs, nodes, blocks * width)
        if condensed.outer is not None:
            inner = condensed.outer.mT @ inner
        second = (hidden.mT @ inner).unflatten(-1, (blocks, width)).transpose(1, 2)
        by_class = inner.unflatten(-1, (blocks, width)).transpose(1, 2)
        active = (before.detach() > 0).unsqueeze(1)
        bar = (by_class @ w2.unsqueeze(1).mT) * active
        return condensed.inputs.unsqueeze(1).mT @ bar, second

    def products(self, params: Params, ours: ClassGradients, theirs: ClassGradients) -> Tensor:
        """Hidden units first, then classes."""
        pairs = zip(ours, theirs, strict=True)
        return torch.cat([unit_products(a, b) for a, b in pairs], -1)

    def training_gradients(self, params: Params, condensed: Condensed, targets: Tensor) -> Params:
        """Both layers and both biases."""
        w1, b1, w2, b2 = params
        before = condensed.inputs @ w1 + b1
        hidden = before.relu()
        scores = self._biased(hidden @ w2, b2, condensed.outer)
        wrong = (scores.softmax(-1) - targets) / targets.shape[-2]
        inner = wrong if condensed.outer is None else condensed.outer.mT @ wrong
        bar = (inner @ w2.mT) * (before > 0)
        bar_b2 = (wrong if self.kind == "gcn" else inner).sum(-2, keepdim=True)
        return condensed.inputs.mT @ bar, bar.sum(-2, keepdim=True), hidden.mT @ inner, bar_b2

    def _biased(self, scores: Tensor, bias: Tensor, outer: object) -> Tensor:
        if self.kind != "gcn":
            scores = scores + bias
        if isinstance(outer, Tensor):
            scores = outer @ scores
        elif callable(outer):
            scores = outer(scores)
        return scores + bias if self.kind == "gcn" else scores
