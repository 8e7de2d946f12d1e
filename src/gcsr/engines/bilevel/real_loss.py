r"""The outer loss: how well students do on minibatches of the real graph.

.. math:: L_\text{real}(\theta) = \frac1{|B|} \sum_{i \in B}
          -\langle T_i, \log\mathrm{softmax}(f_\theta(X, A)_i)\rangle

with T the true label of a training node and tempered pseudo-labels of any other node. Minibatches of
at most ``batch_nodes`` nodes are drawn once and used in turns, so that a step does not grow with the
number of nodes. At most ``batches`` of them are kept: of a graph with more nodes a random part is used.
Of a multi-label graph the loss is binary cross-entropy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.data.features import csr_matrix, is_sparse
from gcsr.data.views import VisibleGraph
from gcsr.engines.bilevel.window import Students, students_apart
from gcsr.models.base import Model, Prepared, prefers_sparse
from gcsr.models.registry import testing_model
from gcsr.models.sparse import SparseOperator, SparseTopology
from gcsr.models.topology import repeated
from gcsr.training.classification import training_loss
from gcsr.utils.devices import make_generator

# Networks that are the same two layers on a condensed graph without edges.
STUDENT_MODELS = ("gcn", "sgc", "appnp", "mlp")
BATCH_NODES, BATCHES = 2048, 48


@dataclass(frozen=True, eq=False)
class _Batch:
    """Real nodes, prepared for every student model, and their targets ``(nodes, C)``."""

    prepared: tuple[Prepared, ...]
    targets: Tensor


class RealLoss:
    """Loss of students on minibatches of real nodes, averaged over student models.

    Args:
        visible: the graph that is condensed.
        targets: class shares of the visible nodes, ``(n, C)``; rows of zeros are never used.
        nodes: the nodes that count, by number.
        models: names from :data:`STUDENT_MODELS`.
        hidden_channels: hidden units of a student.
        device: where students are.
        dtype: their precision.
        batch_nodes: nodes of a minibatch at most.
        batches: minibatches at most.
    """

    def __init__(
        self,
        visible: VisibleGraph,
        targets: Tensor,
        nodes: Tensor,
        models: Sequence[str],
        hidden_channels: int,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
        batch_nodes: int = BATCH_NODES,
        batches: int = BATCHES,
    ) -> None:
        self._multi_label = visible.multi_label
        self._models = tuple(testing_model(name, hidden_channels) for name in models)
        source = _Source(visible, device, dtype, propagated="gcn" in models)
        self._batches = [
            _Batch(
                tuple(source.prepared(model, part) for model in self._models),
                targets[part.to(targets.device)].to(device, dtype),
            )
            for part in minibatches(nodes, batch_nodes, batches)
        ]

    def losses_and_gradients(
        self, students: Students, number: int
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Loss of every student, ``(graphs, S)``, and the gradients of their sum, on a minibatch."""
        batch = self._batches[number % len(self._batches)]
        params = tuple(p.detach().requires_grad_() for p in students.params)
        w1, b1, w2, b2 = params
        count = students.students
        apart = (students_apart(w1, count), students_apart(b1, count), w2, b2)
        weights = tuple(p.flatten(0, 1) for p in apart)
        share = 1 / len(self._models)
        losses = sum(
            (
                share
                * training_loss(model.logits(weights, prepared), batch.targets, self._multi_label)
                for model, prepared in zip(self._models, batch.prepared, strict=True)
            ),
            start=w1.new_zeros(()),
        )
        gradients = torch.autograd.grad(losses.sum(), params)
        return losses.detach().view_as(students.age), gradients


def minibatches(nodes: Tensor, size: int, most: int) -> list[Tensor]:
    """The nodes in random parts of at most ``size``, equal up to one; the first ``most`` of them."""
    parts = -(-nodes.numel() // size)
    order = torch.randperm(nodes.numel(), generator=make_generator(0, "real minibatches"))
    return [part.sort().values for part in nodes[order].tensor_split(parts)[:most]]


class _Source:
    """Features of the real graph, sparse where that is less work, and its normalized adjacency."""

    def __init__(
        self, visible: VisibleGraph, device: torch.device, dtype: torch.dtype, *, propagated: bool
    ) -> None:
        self._device, self._dtype = device, dtype
        topology = SparseTopology(visible.adjacency, device, dtype)
        self._operator = topology.normalized
        x = visible.x.to(device, dtype)
        self._x: Tensor | sp.csr_array = x
        if prefers_sparse(x):
            self._x = csr_matrix(x) if is_sparse(x) else sp.csr_array(x.numpy())
        self._ax: Tensor | sp.csr_array | None = None
        if propagated and isinstance(self._x, Tensor):
            self._ax = self._operator(x)
        elif propagated:
            self._ax = sp.csr_array(topology.normalized_matrix.astype(self._x.dtype) @ self._x)

    def prepared(self, model: Model, nodes: Tensor) -> Prepared:
        """What a student model needs to predict some nodes."""
        if model.name == "gcn":
            assert self._ax is not None
            outer = self._operator.limited_to(nodes)
            return Prepared(self._rows(self._ax, outer.support), outer=(outer,))
        if model.name == "mlp":
            return Prepared(self._rows(self._x, nodes))
        chain = repeated(self._operator, 2, nodes)
        return Prepared(self._rows(self._x, chain[0].support), outer=chain)

    def _rows(
        self, features: Tensor | sp.csr_array, nodes: Tensor | None
    ) -> Tensor | SparseOperator:
        if isinstance(features, Tensor):
            return features if nodes is None else features[nodes.to(features.device)]
        chosen = features if nodes is None else features[np.asarray(nodes)]
        # Propagated features may be dense although the features are not.
        if chosen.nnz * 10 >= chosen.shape[0] * chosen.shape[1]:
            return torch.from_numpy(chosen.toarray()).to(self._device, self._dtype)
        return SparseOperator(sp.csr_array(chosen), self._device, self._dtype)
