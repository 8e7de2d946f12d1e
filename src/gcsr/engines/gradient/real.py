"""Gradients on the real graph, for all classes at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.data.features import csr_matrix, dense, is_sparse, propagated, select_rows, with_ones
from gcsr.data.views import VisibleGraph
from gcsr.engines.gradient.blocks import Blocks, Chain, chain, walks_from
from gcsr.engines.gradient.learners import ClassGradients, Learner, Propagation, RealBatch
from gcsr.models.base import Params, joined
from gcsr.models.sparse import SparseOperator, SparseTopology
from gcsr.utils.devices import make_generator

# Rows of neighborhoods that a network sees at once; classes beyond them come after.
ROWS_AT_ONCE = 200_000


@dataclass(frozen=True, eq=False)
class ClassSampler:
    """Draws training nodes of every class; a class that fits into the batch is taken whole."""

    members: tuple[Tensor, ...]
    classes: Tensor
    batch: int

    @classmethod
    def of(cls, visible: VisibleGraph, classes: Tensor, batch: int) -> ClassSampler:
        """Positions among the training nodes, of the classes that condensed nodes have."""
        labels = visible.train_labels
        members = tuple((labels == label).nonzero().flatten() for label in classes)
        return cls(members, classes, batch)

    @property
    def constant(self) -> bool:
        """Whether every draw is the same."""
        return all(group.numel() <= self.batch for group in self.members)

    def draw(self, generator: torch.Generator) -> list[Tensor]:
        """Positions of the chosen nodes, class by class."""
        return [
            group
            if group.numel() <= self.batch
            else group[torch.randperm(group.numel(), generator=generator)[: self.batch]]
            for group in self.members
        ]


@dataclass(frozen=True)
class Draws:
    """Random draws: the seeds of the graphs, and the steps of an epoch."""

    seeds: tuple[int, ...]
    steps: int

    def generators(self, epoch: int) -> list[torch.Generator]:
        """One generator per graph."""
        return [make_generator(seed, f"real batches of epoch {epoch}") for seed in self.seeds]


class ConstantRows:
    """Inputs that do not depend on the step: rows of (propagated) features at training nodes."""

    def __init__(self, rows: Tensor, sampler: ClassSampler, draws: Draws, num_classes: int) -> None:
        device, dtype = rows.device, rows.dtype
        self._rows, self._sampler, self._draws = rows, sampler, draws
        first = self._draw(0)
        self._index = first.to(device)
        self._counter = torch.zeros(1, dtype=torch.long, device=device)
        blocks = self._blocks([group[: sampler.batch] for group in sampler.members], dtype)
        self._weights = blocks.weights.to(device)
        self._targets = blocks.targets(num_classes).to(device)
        self._whole = rows[blocks.index.to(device)].unsqueeze(0) if sampler.constant else None

    @property
    def capturable(self) -> bool:
        """Batches lie on the device before an epoch begins."""
        return True

    @property
    def buffers(self) -> tuple[Tensor, ...]:
        """The number of the step."""
        return (self._counter,)

    def begin(self, epoch: int) -> None:
        """Draw every batch of the epoch."""
        self._counter.zero_()
        if self._whole is None:
            self._index.copy_(self._draw(epoch))

    def gradients(self, learner: Learner, params: Params) -> ClassGradients:
        """Of the whole classes, or of the batches of this step."""
        inputs = self._whole
        if inputs is None:
            inputs = self._rows[self._index.index_select(0, self._counter)[0]]
            self._counter.add_(1)
        return learner.on_real(params, RealBatch(inputs, self._weights, self._targets))

    def _draw(self, epoch: int) -> Tensor:
        if self._sampler.constant:
            return torch.zeros((1, 1), dtype=torch.long)
        by_graph = [
            torch.stack(
                [self._blocks(self._sampler.draw(g)).index for _ in range(self._draws.steps)]
            )
            for g in self._draws.generators(epoch)
        ]
        return torch.stack(by_graph, 1)

    def _blocks(self, groups: list[Tensor], dtype: torch.dtype = torch.float32) -> Blocks:
        return Blocks.of(groups, self._sampler.classes, dtype)


class Neighborhoods:
    """Inputs with the nodes they are propagated from, drawn and assembled on the host.

    ``fan_outs`` are those of the hops from the batch outwards; ``None`` takes every neighbor.
    """

    def __init__(
        self,
        source: RealSource,
        fan_outs: tuple[int | None, ...],
        draws: Draws,
    ) -> None:
        self._source, self._fan_outs, self._draws = source, fan_outs, draws
        self.rows_at_once = ROWS_AT_ONCE
        x = source.features
        self._features = csr_matrix(x) if is_sparse(x) else x.cpu().numpy()
        self._train = np.asarray(source.visible.train)
        self._generators: list[torch.Generator] = []
        constant = source.sampler.constant and all(fan is None for fan in fan_outs)
        self._whole = self._batches(draws.generators(0)[0]) if constant else None

    @property
    def capturable(self) -> bool:
        """Only if nothing is drawn."""
        return self._whole is not None

    @property
    def buffers(self) -> tuple[Tensor, ...]:
        """Nothing on the device changes."""
        return ()

    def begin(self, epoch: int) -> None:
        """Generators of the epoch."""
        self._generators = self._draws.generators(epoch)

    def gradients(self, learner: Learner, params: Params) -> ClassGradients:
        """Of the whole classes, or graph by graph on batches of their own."""
        if self._whole is not None:
            return joined([learner.on_real(params, part) for part in self._whole], 1)
        by_graph = []
        for g, generator in enumerate(self._generators):
            own = tuple(p[g : g + 1] for p in params)
            parts = [learner.on_real(own, part) for part in self._batches(generator)]
            by_graph.append(joined(parts, 1))
        return joined(by_graph, 0)

    def _batches(self, generator: torch.Generator) -> list[RealBatch]:
        """All classes, as many at a time as memory is meant for."""
        sampler = self._source.sampler
        groups = sampler.draw(generator)
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        ways = [
            chain(self._source.operator.matrix, self._train[group.numpy()], self._fan_outs, rng)
            for group in groups
        ]
        widest = max(way.support.size for way in ways)
        size = max(1, self.rows_at_once // widest)
        return [
            self._batch(groups[i : i + size], ways[i : i + size], sampler.classes[i : i + size])
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
            inputs.append(rows if inner is None else inner @ rows)
        outers = [way.product(0, outer_hops) for way in ways]
        blocks = Blocks.of(groups, classes, dtype).to(device)
        padded = _padded(inputs, source.reach.bias == "ones")
        return RealBatch(
            torch.from_numpy(padded).to(device, dtype).unsqueeze(0),
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


def _padded(parts: Sequence[np.ndarray], with_ones: bool) -> np.ndarray:
    width = max(part.shape[0] for part in parts)
    features = parts[0].shape[1]
    result = np.zeros((len(parts), width, features + with_ones), parts[0].dtype)
    for i, part in enumerate(parts):
        result[i, : part.shape[0], :features] = part
        if with_ones:
            result[i, : part.shape[0], -1] = 1
    return result


RealSide = ConstantRows | Neighborhoods
Neighbors = Literal["auto", "all", "sampled"]
# From this many rows on, all neighbors of the batches are too many for a network with a ReLU.
MANY_ROWS = 200_000


@dataclass(frozen=True, eq=False)
class RealSource:
    """The real graph, shared by all condensed graphs.

    ``features`` are ``(n, d)``: propagated over the inner hops if all neighbors are used, raw if they
    are sampled. They have a column of ones for a bias that propagates. Without ``edges`` (DCG) networks
    see features alone.
    """

    visible: VisibleGraph
    reach: Propagation
    edges: bool
    fan_outs: tuple[int, int]
    sampler: ClassSampler
    features: Tensor
    operator: SparseOperator
    neighbors: Literal["all", "sampled"]

    @classmethod
    def of(
        cls,
        visible: VisibleGraph,
        reach: Propagation,
        sampler: ClassSampler,
        *,
        edges: bool,
        neighbors: Neighbors,
        fan_outs: tuple[int, int],
        device: torch.device,
        dtype: torch.dtype,
    ) -> RealSource:
        """Decide about neighbors and propagate features as far as weights do not matter."""
        operator = SparseTopology(visible.adjacency, device, dtype).normalized
        if neighbors == "auto":
            batch = torch.cat([group[: sampler.batch] for group in sampler.members])
            nodes = np.asarray(visible.train[batch])
            few = reach.outer == 0 or walks_from(operator.matrix, nodes, reach.outer) <= MANY_ROWS
            neighbors = "all" if few else "sampled"
        x = visible.x.to(dtype) if is_sparse(visible.x) else visible.x.to(device, dtype)
        if reach.bias == "propagated":
            x = with_ones(x)
        if edges and neighbors == "all":
            for _ in range(reach.inner):
                x = propagated(operator, x)
        return cls(visible, reach, edges, fan_outs, sampler, x, operator, neighbors)

    def side(self, draws: Draws) -> RealSide:
        """The real side for some graphs that are condensed together."""
        if not self.edges or (self.neighbors == "all" and self.reach.outer == 0):
            rows = select_rows(self.features, self.visible.train)
            rows = dense(rows, "rows of the training nodes").to(self.operator.device)
            if self.reach.bias == "ones":
                rows = torch.cat([rows, rows.new_ones((rows.shape[0], 1))], 1)
            return ConstantRows(rows, self.sampler, draws, self.visible.num_classes)
        hops = self.reach.outer + (self.reach.inner if self.neighbors == "sampled" else 0)
        fan_outs: tuple[int | None, ...] = (None,) * hops
        if self.neighbors == "sampled":
            fan_outs = self.fan_outs[:hops]
        return Neighborhoods(self, fan_outs, draws)
