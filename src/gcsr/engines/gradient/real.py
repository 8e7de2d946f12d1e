"""Gradients on the real graph, for all classes at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from gcsr.data.features import csr_matrix, dense, is_sparse, propagated, select_rows, with_ones
from gcsr.data.views import VisibleGraph
from gcsr.engines.gradient.blocks import Blocks, Chain, chain, walks_from
from gcsr.engines.gradient.learners import (
    ClassGradients,
    ClassMeans,
    Network,
    Propagation,
    RealBatch,
)
from gcsr.models.base import Params, joined
from gcsr.models.sparse import SparseOperator, SparseTopology
from gcsr.utils.devices import make_generator

# Rows of neighborhoods that a network sees at once; classes beyond them come after.
ROWS_AT_ONCE = 200_000


def epoch_generators(seeds: Sequence[int], epoch: int) -> list[torch.Generator]:
    """One generator per graph."""
    return [make_generator(seed, f"real batches of epoch {epoch}") for seed in seeds]


class ConstantRows:
    """Inputs that do not depend on the step: rows of (propagated) features at training nodes."""

    # Batches lie on the device before an epoch begins.
    capturable = True

    def __init__(self, rows: Tensor, source: RealSource, seeds: Sequence[int], steps: int) -> None:
        device, groups = rows.device, [group[: source.batch] for group in source.members]
        self._rows, self._source, self._seeds, self._steps = rows, source, seeds, steps
        self._index = self._draw(0).to(device)
        self._step = torch.zeros(1, dtype=torch.long, device=device)
        blocks = Blocks.of(groups, source.classes, rows.dtype)
        self._weights = blocks.weights.to(device)
        self._targets = blocks.targets(source.visible.num_classes).to(device)
        self._whole = rows[blocks.index.to(device)].unsqueeze(0) if source.constant else None
        self.buffers = (self._step,)

    def begin(self, epoch: int) -> None:
        """Draw every batch of the epoch."""
        self._step.zero_()
        if self._whole is None:
            self._index.copy_(self._draw(epoch))

    def gradients(self, matched: Network | ClassMeans, params: Params) -> ClassGradients:
        """Of the whole classes, or of the batches of this step."""
        inputs = self._whole
        if inputs is None:
            inputs = self._rows[self._index.index_select(0, self._step)[0]]
            self._step.add_(1)
        return matched.on_real(params, RealBatch(inputs, self._weights, self._targets))

    def _draw(self, epoch: int) -> Tensor:
        """Rows of the batches of every step and graph."""
        source = self._source
        if source.constant:
            return torch.zeros((1, 1), dtype=torch.long)
        by_graph = [
            [Blocks.of(source.draw(one), source.classes).index for _ in range(self._steps)]
            for one in epoch_generators(self._seeds, epoch)
        ]
        return torch.stack([torch.stack(steps) for steps in by_graph], 1)


class Neighborhoods:
    """Inputs with the nodes they are propagated from, drawn and assembled on the host.

    ``fan_outs`` are those of the hops from the batch outwards; ``None`` takes every neighbor.
    """

    # Nothing on the device changes.
    buffers: tuple[Tensor, ...] = ()

    def __init__(
        self, source: RealSource, fan_outs: tuple[int | None, ...], seeds: Sequence[int]
    ) -> None:
        self._source, self._fan_outs, self._seeds = source, fan_outs, seeds
        self.rows_at_once = ROWS_AT_ONCE
        x = source.features
        self._features = csr_matrix(x) if is_sparse(x) else x.cpu().numpy()
        self._train = np.asarray(source.visible.train)
        self._generators: list[torch.Generator] = []
        constant = source.constant and all(fan is None for fan in fan_outs)
        self._whole = self._batches(epoch_generators(seeds, 0)[0]) if constant else None
        # Only if nothing is drawn.
        self.capturable = constant

    def begin(self, epoch: int) -> None:
        """Generators of the epoch."""
        self._generators = epoch_generators(self._seeds, epoch)

    def gradients(self, matched: Network | ClassMeans, params: Params) -> ClassGradients:
        """Of the whole classes, or graph by graph on batches of their own."""
        if self._whole is not None:
            return joined([matched.on_real(params, part) for part in self._whole], 1)
        by_graph = []
        for g, generator in enumerate(self._generators):
            own = tuple(p[g : g + 1] for p in params)
            parts = [matched.on_real(own, part) for part in self._batches(generator)]
            by_graph.append(joined(parts, 1))
        return joined(by_graph, 0)

    def _batches(self, generator: torch.Generator) -> list[RealBatch]:
        """All classes, at most ``rows_at_once`` rows at a time."""
        classes, groups = self._source.classes, self._source.draw(generator)
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        ways = [
            chain(self._source.operator.matrix, self._train[group.numpy()], self._fan_outs, rng)
            for group in groups
        ]
        widest = max(way.support.size for way in ways)
        size = max(1, self.rows_at_once // widest)
        return [
            self._batch(groups[i : i + size], ways[i : i + size], classes[i : i + size])
            for i in range(0, len(groups), size)
        ]

    def _batch(self, groups: list[Tensor], ways: list[Chain], classes: Tensor) -> RealBatch:
        source, outer_hops = self._source, self._source.reach.outer
        device, dtype = source.operator.device, source.operator.dtype
        inputs = []
        for way in ways:
            rows = self._features[way.support]
            rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
            inner = way.product(outer_hops, len(way.hops))
            own = torch.from_numpy(rows if inner is None else inner @ rows)
            inputs.append(pad(own, (0, 1), value=1.0) if source.reach.bias == "ones" else own)
        outers = [way.product(0, outer_hops) for way in ways]
        blocks = Blocks.of(groups, classes, dtype).to(device)
        padded = pad_sequence(inputs, batch_first=True)
        return RealBatch(
            padded.to(device, dtype).unsqueeze(0),
            blocks.weights,
            blocks.targets(source.visible.num_classes),
            *self._operators(outers, blocks.index.shape[1], padded.shape[1]),
        )

    def _operators(
        self, outers: Sequence[sp.csr_array | None], height: int, width: int
    ) -> tuple[SparseOperator, SparseOperator] | tuple[()]:
        """All blocks on one diagonal, each padded to the same size."""
        if outers[0] is None:
            return ()
        parts = [sp.coo_array(outer) for outer in outers]
        rows = np.concatenate([part.row + i * height for i, part in enumerate(parts)])
        columns = np.concatenate([part.col + i * width for i, part in enumerate(parts)])
        data = np.concatenate([part.data for part in parts])
        shape, operator = (len(parts) * height, len(parts) * width), self._source.operator
        matrix = sp.csr_array((data, (rows, columns)), shape=shape)
        forward, back = (
            SparseOperator(sp.csr_array(m), operator.device, operator.dtype)
            for m in (matrix, matrix.T)
        )
        return forward, back


RealSide = ConstantRows | Neighborhoods
Neighbors = Literal["auto", "all", "sampled"]
# From this many rows on, all neighbors of the batches are too many for a network with a ReLU.
MANY_ROWS = 200_000


class RealSource:
    """The real graph and batches of its training nodes, shared by all condensed graphs.

    Its ``features`` are ``(n, d)``: propagated over the inner hops if all neighbors are used, raw if
    they are sampled. They have a column of ones for a bias that propagates. A class that fits into a
    ``batch`` is taken whole; of others random nodes are drawn.

    Args:
        visible: the real graph.
        reach: how far the network that is matched propagates.
        classes: those that condensed nodes have.
        batch: training nodes per class and step at most.
        edges: whether networks see edges; without them (DCG) they see features alone.
        neighbors, fan_outs: which neighbors they see; see ``GradientCondenser``.
        device, dtype: of the features.
    """

    def __init__(
        self,
        visible: VisibleGraph,
        reach: Propagation,
        classes: Tensor,
        *,
        batch: int,
        edges: bool,
        neighbors: Neighbors,
        fan_outs: tuple[int, int],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.visible, self.reach, self.classes, self.batch = visible, reach, classes, batch
        self._edges, self._fan_outs = edges, fan_outs
        labels = visible.train_labels
        # Positions among the training nodes.
        self.members = [(labels == label).nonzero().flatten() for label in classes]
        self.constant = all(group.numel() <= batch for group in self.members)
        self.operator = SparseTopology(visible.adjacency, device, dtype).normalized
        if neighbors == "auto":
            taken = torch.cat([group[:batch] for group in self.members])
            nodes = np.asarray(visible.train[taken])
            few = (
                reach.outer == 0
                or walks_from(self.operator.matrix, nodes, reach.outer) <= MANY_ROWS
            )
            neighbors = "all" if few else "sampled"
        self.neighbors = neighbors
        x = visible.x.to(dtype) if is_sparse(visible.x) else visible.x.to(device, dtype)
        if reach.bias == "propagated":
            x = with_ones(x)
        if edges and neighbors == "all":
            for _ in range(reach.inner):
                x = propagated(self.operator, x)
        self.features = x

    def draw(self, generator: torch.Generator) -> list[Tensor]:
        """Positions of a batch among the training nodes, class by class."""
        return [
            group
            if group.numel() <= self.batch
            else group[torch.randperm(group.numel(), generator=generator)[: self.batch]]
            for group in self.members
        ]

    def side(self, seeds: Sequence[int], steps: int) -> RealSide:
        """Batches of the real graph, ``steps`` per epoch, for graphs that are condensed together."""
        if not self._edges or (self.neighbors == "all" and self.reach.outer == 0):
            rows = select_rows(self.features, self.visible.train)
            rows = dense(rows, "rows of the training nodes").to(self.operator.device)
            if self.reach.bias == "ones":
                rows = torch.cat([rows, rows.new_ones((rows.shape[0], 1))], 1)
            return ConstantRows(rows, self, seeds, steps)
        hops = self.reach.outer + (self.reach.inner if self.neighbors == "sampled" else 0)
        fan_outs: tuple[int | None, ...] = (None,) * hops
        if self.neighbors == "sampled":
            fan_outs = self._fan_outs[:hops]
        return Neighborhoods(self, fan_outs, seeds)
