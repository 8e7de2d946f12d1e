r"""The outer loss: the loss of students on minibatches of the real graph.

.. math:: L_\text{real}(\theta) = \frac1{|B|} \sum_{i \in B}
          -\langle T_i, \log\mathrm{softmax}(f_\theta(X, A)_i)\rangle

with T the true label of a training node and tempered pseudo-labels of any other node. Minibatches of
at most ``batch_nodes`` nodes are drawn once and used in turns, so that a step does not grow with the
number of nodes. At most ``batches`` of them are kept, and no more than :data:`MOST_NUMBERS` of their
features: of a graph with more nodes a random part is used, in memory and on disk alike.
Of a multi-label graph the loss is binary cross-entropy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.engines.bilevel.window import Students, students_apart
from gcsr.models.base import Model, Prepared
from gcsr.models.registry import MODELS
from gcsr.models.sparse import SparseOperator
from gcsr.models.topology import Limited
from gcsr.outofcore.predict import hops_of
from gcsr.outofcore.real import ReadSparse, RealGraph, prepare_rows, support_of
from gcsr.training.classification import training_loss
from gcsr.utils.devices import make_generator

# Networks that are the same two layers on a condensed graph without edges.
STUDENT_MODELS = ("gcn", "sgc", "appnp", "mlp")
BATCH_NODES, BATCHES = 2048, 48
# Numbers of all minibatches together, 2 GiB; and nodes of the smallest one, if one alone has more.
MOST_NUMBERS, LEAST_NODES = 2**29, 64


# Real nodes, prepared for every student model, and their targets ``(nodes, C)``.
_Batch = tuple[list[Prepared], Tensor]


class RealLoss:
    """Loss of students on minibatches of real nodes, averaged over student models.

    Args:
        real: the graph that is condensed.
        targets: class shares of the nodes, ``(m, C)``.
        nodes: the nodes that count, by number, in the order of ``targets``.
        models: names from :data:`STUDENT_MODELS`.
        hidden_channels: hidden units of a student.
        multi_label: whether targets are those of every label.
        dtype: precision of the students.
        batch_nodes: nodes of a minibatch at most.
        batches: minibatches at most.
    """

    def __init__(
        self,
        real: RealGraph,
        targets: Tensor,
        nodes: Tensor,
        models: Sequence[str],
        hidden_channels: int,
        *,
        multi_label: bool = False,
        dtype: torch.dtype = torch.float32,
        batch_nodes: int = BATCH_NODES,
        batches: int = BATCHES,
    ) -> None:
        self._multi_label = multi_label
        self._models = tuple(MODELS[name](hidden_channels) for name in models)
        # Rows after some hops, sparse where that is less work. They are freed with this call.
        hops = (0, 1) if "gcn" in models else (0,)
        sparse = {hop: real.sparse_rows(hop) for hop in hops if real.prefers_sparse}
        dense = {hop: real.rows(hop) for hop in hops if not real.prefers_sparse}

        def batch(places: Tensor) -> tuple[_Batch, int]:
            own = nodes[places]
            prepared = [
                prepare_sparse(model, real, own, sparse, dtype)
                if real.prefers_sparse
                else prepare_rows(model, real, own, dense)
                for model in self._models
            ]
            inputs = [one.inputs for one in prepared]
            # Stored numbers of the features.
            stored = [x.numel() if isinstance(x, Tensor) else int(x.matrix.nnz) for x in inputs]
            wanted = targets[places.to(targets.device)].to(real.device, dtype)
            return (prepared, wanted), sum(stored)

        parts = minibatches(nodes, batch_nodes, batches)
        first, numbers = batch(parts[0])
        while numbers > MOST_NUMBERS and batch_nodes > LEAST_NODES:
            batch_nodes //= 2
            parts = minibatches(nodes, batch_nodes, batches)
            first, numbers = batch(parts[0])
        self._batches = [first]
        for places in parts[1:]:
            following, more = batch(places)
            numbers += more
            if numbers > MOST_NUMBERS:
                break
            self._batches.append(following)
        # What is left out beyond the usual number of minibatches.
        self.note = (
            f"the outer loss is computed on {len(self._batches)} minibatches of {batch_nodes} nodes"
            f" instead of {batches} of {BATCH_NODES}: their features are more than"
            f" {MOST_NUMBERS:,} numbers"
            if numbers > MOST_NUMBERS or batch_nodes < min(BATCH_NODES, nodes.numel())
            else None
        )

    def losses_and_gradients(
        self, students: Students, number: int
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Loss of every student, ``(graphs, S)``, and the gradients of their sum, on a minibatch."""
        prepared, targets = self._batches[number % len(self._batches)]
        params = tuple(p.detach().requires_grad_() for p in students.params)
        w1, b1, w2, b2 = params
        count = int(students.age.shape[1])
        apart = (students_apart(w1, count), students_apart(b1, count), w2, b2)
        weights = tuple(p.flatten(0, 1) for p in apart)
        share = 1 / len(self._models)
        losses = sum(
            (
                share * training_loss(model.logits(weights, one), targets, self._multi_label)
                for model, one in zip(self._models, prepared, strict=True)
            ),
            start=w1.new_zeros(()),
        )
        gradients = torch.autograd.grad(losses.sum(), params)
        return losses.detach().view_as(students.age), gradients


def prepare_sparse(
    model: Model,
    real: RealGraph,
    nodes: Tensor,
    rows: Mapping[int, ReadSparse],
    dtype: torch.dtype,
) -> Prepared:
    """What a student model needs to predict some nodes; ``rows`` are sparse, by number of hops."""
    hops = 1 if model.name == "gcn" else 0
    chain: list[Limited] = []
    for _ in range(hops or hops_of(model)):
        chain.append(real.limited(nodes))
        nodes = support_of(chain[-1])
    found = rows[hops](nodes.numpy())
    inputs: Tensor | SparseOperator
    if found.nnz * 10 >= found.shape[0] * found.shape[1]:
        # Propagated features may be dense although the features are not.
        inputs = torch.from_numpy(found.toarray()).to(real.device, dtype)
    else:
        inputs = SparseOperator(sp.csr_array(found), real.device, dtype)
    return Prepared(inputs, outer=tuple(reversed(chain)))


def minibatches(nodes: Tensor, size: int, most: int) -> list[Tensor]:
    """Where the nodes of random parts are, at most ``size`` each; the first ``most`` parts.

    Parts are equal up to one; the nodes of a part are in ascending order.
    """
    parts = -(-nodes.numel() // size)
    order = torch.randperm(nodes.numel(), generator=make_generator(0, "real minibatches"))
    return [part[nodes[part].argsort()] for part in order.tensor_split(parts)[:most]]
