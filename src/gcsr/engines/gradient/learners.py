"""Networks of gradient matching, with their gradients in closed form, and class means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gcsr.engines.gradient.blocks import CondensedClasses
from gcsr.equations.gradient_distance import unit_products
from gcsr.models.base import Params, linear, uniform_layer
from gcsr.models.mlp import MLP
from gcsr.models.sparse import SparseOperator

# What is matched. Gradients of all classes, weight by weight: ``(graphs, blocks, in, out)`` or a factor
# of that; or means of all classes, ``(graphs, blocks, 1, h)``.
ClassGradients = tuple[Tensor, ...]


@dataclass(frozen=True)
class Propagation:
    """Hops before the first layer (``inner``) and after the last (``outer``), and where the biases are.

    ``bias``: the bias of a linear network is the weight of an added column of ``ones`` or of
    ``propagated`` ones; or it is not part of the inputs (``apart``).
    """

    inner: int
    outer: int
    bias: str


@dataclass(frozen=True, eq=False)
class Condensed:
    """The part of a network on condensed graphs that does not depend on its weights.

    Attributes:
        inputs: what the first layer multiplies, ``(graphs, n', d)``, with a column for the bias where
            :class:`Propagation` needs one.
        outer: the dense matrix that scores are propagated with; ``None`` for the identity.
    """

    inputs: Tensor
    outer: Tensor | None = None

    def detach(self) -> Condensed:
        """The same, detached from autograd."""
        return Condensed(self.inputs.detach(), None if self.outer is None else self.outer.detach())


@dataclass(frozen=True, eq=False)
class RealBatch:
    """Training nodes of every class and their inputs to networks.

    Attributes:
        inputs: ``(graphs or 1, blocks, width, d)``; the width is that of ``blocks`` or, where scores
            are propagated, of the padded neighborhoods.
        weights: of the nodes in the mean over their class, 0 for padding.
        targets: one-hot class of every block.
        outer, outer_transposed: propagation from neighborhoods to nodes and back, all blocks on one
            diagonal.
    """

    inputs: Tensor
    weights: Tensor
    targets: Tensor
    outer: SparseOperator | None = None
    outer_transposed: SparseOperator | None = None


def error(scores: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Gradient of a weighted sum of cross-entropies before the softmax."""
    return (scores.softmax(-1) - targets) * weights


def condensed_inputs(x: Tensor, operator: Tensor | None, reach: Propagation) -> Condensed:
    """The hops of a network that do not depend on its weights."""
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


@dataclass(frozen=True)
class SingleLayer:
    r""":math:`[\hat A^2X, 1] M`: the SGC of GCond's scripts for Cora, Citeseer and Reddit.

    ``reach`` has its hops.
    """

    reach: ClassVar[Propagation] = Propagation(2, 0, "ones")

    def init(self, features: int, classes: int, generator: torch.Generator) -> Params:
        """Weights and biases of a fresh network, layer by layer."""
        return uniform_layer(features, classes, generator)

    def params(self, network: Params) -> Params:
        """Weights as they are trained here: the bias is the last row of M."""
        return (torch.cat(network, -2),)

    def on_real(self, params: Params, batch: RealBatch) -> ClassGradients:
        """Gradients of the mean loss of every class on the real graph."""
        blocks = batch.inputs
        scores = linear(_flat(blocks), self._product(params)).unflatten(1, tuple(blocks.shape[1:3]))
        return (blocks.mT @ error(scores, batch.targets, batch.weights.unsqueeze(-1)),)

    def on_condensed(
        self, params: Params, condensed: Condensed, classes: CondensedClasses
    ) -> ClassGradients:
        """The same on condensed graphs, differentiable in them."""
        scores = condensed.inputs @ self._product(params)
        blocks = classes.split(error(scores, classes.targets, classes.share.sum(0)))
        if not classes.even:
            blocks = blocks * (classes.blocks.weights > 0).unsqueeze(-1)
        return (classes.split(condensed.inputs).mT @ blocks,)

    def products(self, params: Params, first: ClassGradients, second: ClassGradients) -> Tensor:
        """Inner products of two gradients by output unit, without biases."""
        return unit_products(first[0][..., :-1, :], second[0][..., :-1, :])

    def training_gradients(self, params: Params, condensed: Condensed, targets: Tensor) -> Params:
        """Gradients of the mean loss over all condensed nodes, with biases."""
        h = condensed.inputs
        scores = torch.bmm(h, self._product(params))
        return (torch.bmm(h.mT, (scores.softmax(-1) - targets).mul_(1 / h.shape[-2])),)

    def embedding(self, params: Params, inputs: Tensor, outer: object) -> Tensor:
        """What the last layer's weights multiply: here the inputs, without the bias's column."""
        return inputs[..., :-1]

    @staticmethod
    def _product(params: Params) -> Tensor:
        return params[0]


@dataclass(frozen=True)
class TwoLinearLayers(SingleLayer):
    r""":math:`[\hat A^2X, \hat A^21]\, V_1 W_2 + \hat A^2 1 b_2`, the linear SGC of the GCSR paper.

    With the gradient :math:`g_c` of the product M the gradients are :math:`g_cW_2^\top` and
    :math:`V_1^\top g_c`. The first, d x hidden for every class, is never formed: with rows :math:`w_j`
    of :math:`W_2`, the inner product of two of its columns is :math:`w_j^\top (g_c^\top g'_c) w_j`.
    """

    hidden_channels: int = 256
    reach: ClassVar[Propagation] = Propagation(2, 0, "propagated")

    def init(self, features: int, classes: int, generator: torch.Generator) -> Params:
        """Two affine layers."""
        return MLP(self.hidden_channels).init(features, classes, generator)

    def params(self, network: Params) -> Params:
        """The first bias is the last row of V1."""
        w1, b1, w2, b2 = network
        return torch.cat([w1, b1], -2), w2, b2

    def products(self, params: Params, first: ClassGradients, second: ClassGradients) -> Tensor:
        """Hidden units first, then classes."""
        (a,), (b,) = first, second
        v1, w2, _ = (p.unsqueeze(1) for p in params)
        gram = a[..., :-1, :].mT @ b[..., :-1, :]
        hidden = ((w2 @ gram) * w2).sum(-1)
        return torch.cat([hidden, unit_products(v1.mT @ a, v1.mT @ b)], -1)

    def training_gradients(self, params: Params, condensed: Condensed, targets: Tensor) -> Params:
        """Both layers and the second bias."""
        v1, w2, _ = params
        (g,) = super().training_gradients(params, condensed, targets)
        return g @ w2.mT, v1.mT @ g, g[:, -1:]

    def embedding(self, params: Params, inputs: Tensor, outer: object) -> Tensor:
        """The hidden layer."""
        return linear(inputs, params[0])

    @staticmethod
    def _product(params: Params) -> Tensor:
        v1, w2, b2 = params
        m = v1 @ w2
        return torch.cat([m[:, :-1], m[:, -1:] + b2], -2)


def _flat(blocks: Tensor) -> Tensor:
    """Inputs ``(graphs or 1, blocks, width, d)`` without blocks; those of all graphs as ``(n, d)``."""
    flat = blocks.flatten(1, 2)
    return flat[0] if flat.shape[0] == 1 else flat


@dataclass(frozen=True)
class TwoReluLayers:
    """Two layers with a ReLU: GCN, and the SGC of GCond's scripts for Arxiv and Flickr.

    ``sgc`` propagates its scores twice, biases included; ``gcn`` once before every bias.
    """

    kind: str = "gcn"
    hidden_channels: int = 256

    @property
    def reach(self) -> Propagation:
        """Hops before the first layer and after the last."""
        return Propagation(1, 1, "apart") if self.kind == "gcn" else Propagation(0, 2, "apart")

    def init(self, features: int, classes: int, generator: torch.Generator) -> Params:
        """Two affine layers."""
        return MLP(self.hidden_channels).init(features, classes, generator)

    def params(self, network: Params) -> Params:
        """As they are drawn."""
        return network

    def on_real(self, params: Params, batch: RealBatch) -> ClassGradients:
        """Classes side by side; a neighbor that two classes share is there twice."""
        w1, b1, w2, b2 = params
        blocks = batch.inputs
        size = tuple(blocks.shape[1:3])
        before = linear(_flat(blocks), w1) + b1
        hidden = before.relu()
        scores = self._biased(hidden @ w2, b2, batch.outer)
        scores = scores.unflatten(1, tuple(batch.weights.shape[-2:]))
        wrong = error(scores, batch.targets, batch.weights.unsqueeze(-1)).flatten(1, 2)
        inner = wrong if batch.outer_transposed is None else batch.outer_transposed(wrong)
        bar = (inner @ w2.mT) * (before > 0)
        second = hidden.unflatten(1, size).mT @ inner.unflatten(1, size)
        return blocks.mT @ bar.unflatten(1, size), second

    def on_condensed(
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

    def products(self, params: Params, first: ClassGradients, second: ClassGradients) -> Tensor:
        """Hidden units first, then classes."""
        pairs = zip(first, second, strict=True)
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

    def embedding(self, params: Params, inputs: Tensor, outer: object) -> Tensor:
        """Hidden units after the last hop."""
        return _propagated((linear(inputs, params[0]) + params[1]).relu(), outer)

    def _biased(self, scores: Tensor, bias: Tensor, outer: object) -> Tensor:
        if self.kind != "gcn":
            return _propagated(scores + bias, outer)
        return _propagated(scores, outer) + bias


def _propagated(signal: Tensor, outer: object) -> Tensor:
    """With a dense matrix, a sparse operator, or nothing."""
    if isinstance(outer, Tensor):
        return outer @ signal
    result: Tensor = outer(signal) if callable(outer) else signal
    return result


Network = SingleLayer | TwoReluLayers


@dataclass(frozen=True)
class ClassMeans:
    r"""Means of every class's embeddings instead of gradients (Zhao and Bilen, 2023).

    With :math:`\phi`, of width h, what the last layer's weights multiply, the ``squared`` distance is
    :math:`\frac1h |\bar\phi_c - \bar\phi'_c|^2`.
    """

    network: Network

    def on_real(self, params: Params, batch: RealBatch) -> ClassGradients:
        """Of the real training nodes, ``(graphs, blocks, 1, h)``."""
        embedded = self.network.embedding(params, _flat(batch.inputs), batch.outer)
        rows = embedded.unflatten(-2, tuple(batch.weights.shape[-2:]))
        return (batch.weights.unsqueeze(-2) @ rows,)

    def on_condensed(
        self, params: Params, condensed: Condensed, classes: CondensedClasses
    ) -> ClassGradients:
        """Of the condensed nodes, differentiable in them."""
        embedded = self.network.embedding(params, condensed.inputs, condensed.outer)
        return (classes.share.mT @ embedded.unsqueeze(-3),)

    def products(self, params: Params, first: ClassGradients, second: ClassGradients) -> Tensor:
        """By unit, over the number of units."""
        return unit_products(first[0], second[0]) / first[0].shape[-1]


# sgc: one layer; sgc2: two linear layers; sgc-relu: two layers with a ReLU; all propagate twice.
LEARNERS: dict[str, Callable[[int], Network]] = {
    "sgc": lambda hidden_channels: SingleLayer(),
    "sgc2": TwoLinearLayers,
    "sgc-relu": lambda hidden_channels: TwoReluLayers("sgc", hidden_channels),
    "gcn": lambda hidden_channels: TwoReluLayers("gcn", hidden_channels),
}
