r"""Networks without an activation: the SGC of one layer, and that of two.

With :math:`H` the propagated features, a column for the bias included, scores are :math:`HM` and the
gradient of class c with respect to M is :math:`g_c = H_c^\top (\mathrm{softmax}(H_cM) - Y_c)/n_c`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from gcsr.condense.gradient.blocks import CondensedClasses
from gcsr.condense.gradient.learners.base import ClassGradients, Condensed, Reach, RealBatch, error
from gcsr.equations.gradient_distance import unit_products
from gcsr.models import Model, Params
from gcsr.models.base import linear
from gcsr.models.sgc import SGC
from gcsr.models.single import SingleSGC


@dataclass(frozen=True)
class SingleLayer:
    r""":math:`[\hat A^2X, 1] M`: the SGC of GCond's scripts for Cora, Citeseer and Reddit."""

    model: Model = field(default_factory=SingleSGC)
    reach: Reach = field(default_factory=lambda: Reach(2, 0, "ones"))

    def params(self, network: Params) -> Params:
        """The bias is the last row of M."""
        return (torch.cat(network, -2),)

    def real_gradients(self, params: Params, batch: RealBatch) -> ClassGradients:
        """One product for all classes."""
        return (_real(params[0], batch),)

    def condensed_gradients(
        self, params: Params, condensed: Condensed, classes: CondensedClasses
    ) -> ClassGradients:
        """One product for all classes."""
        return (_condensed(params[0], condensed, classes),)

    def products(self, params: Params, ours: ClassGradients, theirs: ClassGradients) -> Tensor:
        """Column by column, the bias left out."""
        return unit_products(ours[0][..., :-1, :], theirs[0][..., :-1, :])

    def training_gradients(self, params: Params, condensed: Condensed, targets: Tensor) -> Params:
        """The mean over all nodes."""
        return (_training(params[0], condensed, targets),)


@dataclass(frozen=True)
class TwoLinearLayers:
    r""":math:`[\hat A^2X, \hat A^21]\, V_1 W_2 + \hat A^2 1 b_2`, the linear SGC of the GCSR paper.

    With :math:`g_c` as above the gradients are :math:`g_cW_2^\top` and :math:`V_1^\top g_c`. The first,
    d x hidden for every class, is never formed: with rows :math:`w_j` of :math:`W_2`, the inner product
    of two of its columns is :math:`w_j^\top (g_c^\top g'_c) w_j`.
    """

    hidden: int = 256
    reach: Reach = field(default_factory=lambda: Reach(2, 0, "propagated"))

    @property
    def model(self) -> Model:
        """The same for autograd."""
        return SGC(self.hidden, relu=False, name="sgc-linear")

    def params(self, network: Params) -> Params:
        """The first bias is the last row of V1."""
        w1, b1, w2, b2 = network
        return torch.cat([w1, b1], -2), w2, b2

    def real_gradients(self, params: Params, batch: RealBatch) -> ClassGradients:
        """The factor that both weights share."""
        return (_real(self._product(params), batch),)

    def condensed_gradients(
        self, params: Params, condensed: Condensed, classes: CondensedClasses
    ) -> ClassGradients:
        """The factor that both weights share."""
        return (_condensed(self._product(params), condensed, classes),)

    def products(self, params: Params, ours: ClassGradients, theirs: ClassGradients) -> Tensor:
        """Hidden units first, then classes."""
        (a,), (b,) = ours, theirs
        v1, w2, _ = (p.unsqueeze(1) for p in params)
        gram = a[..., :-1, :].mT @ b[..., :-1, :]
        hidden = ((w2 @ gram) * w2).sum(-1)
        return torch.cat([hidden, unit_products(v1.mT @ a, v1.mT @ b)], -1)

    def training_gradients(self, params: Params, condensed: Condensed, targets: Tensor) -> Params:
        """Both layers and the second bias."""
        v1, w2, _ = params
        g = _training(self._product(params), condensed, targets)
        return g @ w2.mT, v1.mT @ g, g[:, -1:]

    @staticmethod
    def _product(params: Params) -> Tensor:
        v1, w2, b2 = params
        m = v1 @ w2
        return torch.cat([m[:, :-1], m[:, -1:] + b2], -2)


def _real(m: Tensor, batch: RealBatch) -> Tensor:
    blocks = batch.inputs
    size = tuple(blocks.shape[1:3])
    flat = blocks.flatten(1, 2)
    scores = linear(flat[0] if flat.shape[0] == 1 else flat, m).unflatten(1, size)
    return blocks.mT @ error(scores, batch.targets, batch.weights.unsqueeze(-1))


def _condensed(m: Tensor, condensed: Condensed, classes: CondensedClasses) -> Tensor:
    weights = classes.share.sum(0)
    wrong = error(condensed.inputs @ m, classes.targets, weights)
    valid = (classes.blocks.weights > 0).unsqueeze(-1)
    blocks = classes.split(wrong)
    if not classes.even:
        blocks = blocks * valid
    return classes.split(condensed.inputs).mT @ blocks


def _training(m: Tensor, condensed: Condensed, targets: Tensor) -> Tensor:
    h = condensed.inputs
    wrong = (torch.bmm(h, m).softmax(-1) - targets).mul_(1 / h.shape[-2])
    return torch.bmm(h.mT, wrong)
