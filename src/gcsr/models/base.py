"""The base class of models: initial weights, what is computed once per graph, and the scores.

A model is a frozen dataclass without weights. Weights are plain tensors with a leading *batch*
dimension: one for every network that is trained at the same time (the ten runs of an evaluation,
the hundred experts, the students of several condensed graphs). Networks of a batch are
independent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.models.sparse import SparseOperator
from gcsr.models.topology import Limited, Operator, Topology
from gcsr.utils.products import csr_matrix, is_sparse

Params = tuple[Tensor, ...]
# Sources, targets (ascending) and weights.
Edges = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a model computes once per graph and keeps over all training steps.

    Attributes:
        inputs: what the first layer multiplies, ``(n, d)`` or ``(batch, n, d)``, sparse where
            that is less work.
        inner: how the first layer's output is propagated, where its input was not.
        outer: how the last layer's output is propagated, from the inside out.
        ones: propagated ones that carry the biases of a linear model.
        edges: those that each of two attention layers reads.
    """

    inputs: Tensor | SparseOperator
    outer: tuple[Limited, ...] = ()
    inner: Limited | None = None
    ones: Tensor | None = None
    edges: tuple[Edges, Edges] | None = None


@dataclass(frozen=True)
class Dropout:
    """Drops hidden units while training, with random numbers of its own."""

    rate: float
    generator: torch.Generator

    def __call__(self, hidden: Tensor) -> Tensor:
        """Zero a share ``rate`` of the entries and scale up the rest."""
        if self.rate == 0:
            return hidden
        kept = torch.empty_like(hidden).bernoulli_(1 - self.rate, generator=self.generator)
        return (hidden * kept).div_(1 - self.rate)


@dataclass(frozen=True, eq=False)
class TwoLayers:
    """A two-layer network on a condensed graph: what each layer propagates with.

    Scores are ``second (relu(first X W1 + b1) W2)`` with the second bias added after propagation, or
    before it where ``bias_propagates``. ``None`` stands for the identity.
    """

    first: Tensor | None
    second: Tensor | None
    bias_propagates: bool


@dataclass(frozen=True)
class Model:
    """A graph neural network over any :class:`~gcsr.models.topology.Topology`, without weights.

    ``name`` is its name in the registry.
    """

    hidden_channels: int = 256
    name: str = ""

    def init(self, features: int, classes: int, generator: torch.Generator) -> Params:
        """Fresh weights of one network (a batch of one), on the CPU: here of two affine layers."""
        first = uniform_layer(features, self.hidden_channels, generator)
        return (*first, *uniform_layer(self.hidden_channels, classes, generator))

    def prepare(self, x: Tensor, topology: Topology, nodes: Tensor | None = None) -> Prepared:
        """Everything that does not depend on weights; ``nodes`` limits the output to these."""
        raise NotImplementedError

    def logits(self, params: Params, prepared: Prepared, dropout: Dropout | None = None) -> Tensor:
        """Class scores ``(batch, n, C)``."""
        raise NotImplementedError

    def two_layers(self, operator: Tensor) -> TwoLayers | None:
        """Its two layers for a normalized adjacency; ``None`` if it has another form."""
        return None


def linear(inputs: Tensor | SparseOperator, weight: Tensor) -> Tensor:
    """``inputs @ weight`` for every network of the batch.

    Inputs shared by the batch, ``(n, d)``, are multiplied once with all weights side by side.
    """
    if isinstance(inputs, SparseOperator):
        return inputs(weight)
    if inputs.ndim == 3 or weight.ndim == 2:
        return inputs @ weight
    batch, width, channels = weight.shape
    if batch == 1:
        return (inputs @ weight[0]).unsqueeze(0)
    wide = weight.permute(1, 0, 2).reshape(width, batch * channels)
    return (inputs @ wide).view(-1, batch, channels).permute(1, 0, 2)


# Rows of a large graph that a layer multiplies at once where no gradient is kept. A product's last bit
# may depend on how many rows it has, so graphs in memory and graphs on disk are cut alike.
ROWS_AT_ONCE = 2**18


def in_chunks(inputs: Tensor, work: Callable[[Tensor], Tensor]) -> Tensor:
    """``work`` on rows of the inputs, a bounded number at a time unless a gradient is kept."""
    if torch.is_grad_enabled() or inputs.shape[-2] <= ROWS_AT_ONCE:
        return work(inputs)
    return torch.cat([work(part) for part in inputs.split(ROWS_AT_ONCE, -2)], -2)


def hidden_layer(
    inputs: Tensor | SparseOperator, weight: Tensor, bias: Tensor, *, relu: bool = True
) -> Tensor:
    """``relu(inputs @ weight + bias)`` for every network of the batch."""
    fusible = relu and weight.is_cuda and weight.ndim == 3 and not torch.is_grad_enabled()
    if fusible and isinstance(inputs, Tensor) and inputs.ndim == 2:
        # One kernel: on a large graph the hidden units are by far the largest tensor.
        batch, width, channels = weight.shape
        wide = weight.permute(1, 0, 2).reshape(width, batch * channels)
        hidden: Tensor = torch._addmm_activation(bias.reshape(-1), inputs, wide)
        return hidden.view(-1, batch, channels).permute(1, 0, 2)
    return activated(linear(inputs, weight), bias, relu=relu)


def activated(product: Tensor, bias: Tensor, *, relu: bool = True) -> Tensor:
    """``relu(product + bias)``, written over the product where no gradient is kept."""
    if torch.is_grad_enabled():
        shifted = product + bias
        return shifted.relu() if relu else shifted
    shifted = product.add_(bias)
    return shifted.relu_() if relu else shifted


def uniform_layer(
    fan_in: int, fan_out: int, generator: torch.Generator, *, bound_fan: int | None = None
) -> tuple[Tensor, Tensor]:
    r"""Weight and bias, both :math:`U(\pm 1/\sqrt{f})`, f the input width or ``bound_fan``."""
    bound = (bound_fan or fan_in) ** -0.5
    weight = torch.empty(1, fan_in, fan_out).uniform_(-bound, bound, generator=generator)
    bias = torch.empty(1, 1, fan_out).uniform_(-bound, bound, generator=generator)
    return weight, bias


def init_batch(
    model: Model, features: int, classes: int, generators: Sequence[torch.Generator]
) -> Params:
    """A batch of fresh networks, each from its own generator: the first is the same in any batch."""
    return joined([model.init(features, classes, generator) for generator in generators])


def joined(networks: Sequence[Params], dim: int = 0) -> Params:
    """Weights (or gradients) of several networks along one dimension."""
    return tuple(torch.cat(parts, dim) for parts in zip(*networks, strict=True))


# A sparse product does this many times the work per stored number that a dense one does per number.
SPARSE_COST = 10
# Below this size the difference is not worth a copy of the features.
SPARSE_ROWS = 500


def prefers_sparse(x: Tensor) -> bool:
    """Whether features are sparse, or dense and so empty that a CPU multiplies them faster sparse."""
    if is_sparse(x):
        return True
    if x.ndim != 2 or x.requires_grad or x.device.type != "cpu" or x.shape[0] < SPARSE_ROWS:
        return False
    return int(torch.count_nonzero(x)) * SPARSE_COST < x.numel()


def first_inputs(x: Tensor, nodes: Tensor | None) -> Tensor | SparseOperator:
    """Features of some nodes as a first layer wants them."""
    if is_sparse(x):
        matrix = csr_matrix(x)
        matrix = matrix if nodes is None else matrix[nodes.cpu().numpy()]
        return SparseOperator(matrix, x.device, x.dtype)
    chosen = rows(x, nodes)
    if not prefers_sparse(x):
        return chosen
    return SparseOperator(sp.csr_array(chosen.numpy()), x.device, x.dtype)


def rows(tensor: Tensor, nodes: Tensor | None) -> Tensor:
    """The rows of ``nodes``, or all of them."""
    return tensor if nodes is None else tensor[..., nodes.to(tensor.device), :]


def prepared_hop(
    x: Tensor,
    operator: Operator,
    nodes: Tensor | None,
    first: Callable[[Tensor], Tensor],
    *,
    sparse: bool,
) -> Prepared:
    """What a network whose layers propagate once each keeps: what ``first`` makes of the features.

    Propagated sparse features are several times denser. Of these hidden units are propagated instead.
    """
    outer = operator.limited_to(nodes)
    if sparse:
        inner = operator.limited_to(outer.support)
        return Prepared(first_inputs(x, inner.support), outer=(outer,), inner=inner)
    return Prepared(rows(first(x), outer.support), outer=(outer,))
