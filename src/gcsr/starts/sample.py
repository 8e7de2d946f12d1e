"""Initial condensed features (Eq. 2-4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gcsr.data.features import SparseRows, dense, is_sparse, propagated, select_rows
from gcsr.data.stored_matrix import StoredRows
from gcsr.data.views import RowsByNumber, Target, VisibleGraph, rows_by_number
from gcsr.models.sparse import SparseTopology
from gcsr.outofcore.real import real_graph
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import InputError
from gcsr.utils.progress import Progress, silent


class TooFewNodesError(InputError):
    """Fewer condensed nodes than ``classes``, the number of classes with training nodes."""

    classes = 0

    def of_ratio(self, ratio: float, visible: int) -> InputError:
        """The same where the size was given as a share of the ``visible`` nodes."""
        least = (self.classes - 0.5) / visible
        unit = 10.0 ** (math.floor(math.log10(least)) - 2)
        steps = math.ceil(least / unit)
        while round(float(f"{steps * unit:.3g}") * visible) < self.classes:
            steps += 1
        return InputError(
            f"ratio must be >= {steps * unit:.3g}, which is {self.classes} of {visible} nodes: one for"
            f" each class with training nodes, got {ratio:g}."
        )


def class_budget(train_labels: Tensor, num_classes: int, nodes: int) -> Tensor:
    """Nodes per class: shares as among the training labels, at least one each, ``nodes`` in all.

    Largest remainder; ties go to the class with the smaller number. Classes without training nodes
    get none.
    """
    counts = torch.bincount(train_labels, minlength=num_classes).double()
    present = counts > 0
    classes = int(present.sum())
    if nodes < classes:
        error = TooFewNodesError(
            f"nodes must be >= {classes}, the number of classes with training nodes, got {nodes}."
        )
        error.classes = classes
        raise error
    exact = counts / counts.sum() * nodes
    # A class that rounds to zero takes its one node first; the rest share what is left.
    budget = torch.maximum(exact.floor(), present.double())
    while int(budget.sum()) > nodes:
        surplus = torch.where(budget > 1, budget - exact, -torch.inf)
        budget[int(surplus.argmax())] -= 1
    while int(budget.sum()) < nodes:
        missing = torch.where(present, exact - budget, -torch.inf)
        budget[int(missing.argmax())] += 1
    return budget.long()


def block_labels(budget: Tensor) -> Tensor:
    """Labels of the condensed nodes, in blocks by class."""
    return torch.repeat_interleave(torch.arange(budget.numel()), budget)


# Deviation of the noise that tells repeated rows apart, relative to the features' own size.
JITTER = 1e-3


@dataclass(frozen=True, eq=False)
class Start:
    """Initial features, and the training nodes they were sampled from.

    ``targets`` are class shares ``(n', C)`` of nodes that are means of several. ``provenance`` says
    how pseudo-labels of them were made.
    """

    x: Tensor
    nodes: Tensor
    notes: tuple[str, ...] = ()
    targets: Tensor | None = None
    provenance: dict[str, Any] = field(default_factory=dict)


def propagated_features(
    visible: VisibleGraph,
    hops: int,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    progress: Progress = silent,
) -> RowsByNumber:
    """Eq. 3: features after ``hops`` rounds of message passing; of a graph on disk a file of rows.

    They are on the host where the device is too small for them.
    """
    return real_graph(visible, device, dtype, progress).rows(hops)


def taken(rows: RowsByNumber, nodes: Tensor, device: torch.device) -> Tensor | SparseRows:
    """The rows of some nodes, sparse if these are; no copy where it is all of those in memory."""
    if isinstance(rows, StoredRows):
        return rows_by_number(rows.kept(nodes), device)
    x = rows.x if isinstance(rows, SparseRows) else rows
    if not torch.equal(nodes, torch.arange(x.shape[0])):
        x = select_rows(x, nodes)
    return rows_by_number(x, device)


def rows_by_hop(
    graph: VisibleGraph | Target, nodes: Tensor, hops: int, device: torch.device
) -> list[Tensor]:
    """Rows of some nodes after 0, 1, ..., ``hops`` rounds of message passing (Eq. 3), dense."""
    # Sparse features stay on the CPU.
    x = graph.x if is_sparse(graph.x) else graph.x.to(device)
    operator = SparseTopology(graph.adjacency, device).normalized
    found = []
    for hop in range(hops + 1):
        x = propagated(operator, x) if hop else x
        found.append(dense(select_rows(x, nodes), "rows after every hop").to(device))
    return found


# From where the members of a class lie in ``visible.train``, and how many of them are wanted (at most
# all), to which of the members.
Pick = Callable[[Tensor, int], Tensor]


def sample_training_rows(
    features: RowsByNumber, visible: VisibleGraph, labels: Tensor, generator: torch.Generator
) -> Start:
    """Eq. 4: for every condensed node a random training node of its class.

    Without replacement as long as the class has enough training nodes.
    """

    def pick(members: Tensor, wanted: int) -> Tensor:
        return torch.randperm(members.numel(), generator=generator)[:wanted]

    return pick_training_rows(features, visible, labels, generator, pick)


def sampled_starts(
    features: RowsByNumber, visible: VisibleGraph, labels: Tensor, seeds: Sequence[int]
) -> list[Start]:
    """Eq. 4 for every seed."""
    generators = (make_generator(seed, "initial rows") for seed in seeds)
    return [sample_training_rows(features, visible, labels, one) for one in generators]


def pick_training_rows(
    features: RowsByNumber,
    visible: VisibleGraph,
    labels: Tensor,
    generator: torch.Generator,
    pick: Pick,
) -> Start:
    """For every condensed node a training node of its class, as ``pick`` chooses them.

    Beyond the training nodes of a class random ones repeat, and their rows get a small jitter so
    that no two condensed nodes are the same.
    """
    chosen, repeated = [], []
    for label in labels.unique().tolist():
        wanted = int((labels == label).sum())
        places = (visible.train_strata == label).nonzero().flatten()
        members = visible.train[places]
        picked = pick(places, min(wanted, members.numel()))
        extra = torch.randint(
            members.numel(), (max(0, wanted - members.numel()),), generator=generator
        )
        chosen.append(members[torch.cat([picked, extra])])
        repeated.append(torch.arange(wanted) >= members.numel())
    nodes, again = torch.cat(chosen), torch.cat(repeated)
    x = features[nodes.to(features.device)].clone()
    notes: tuple[str, ...] = ()
    if again.any():
        noise = torch.randn((int(again.sum()), x.shape[1]), generator=generator)
        size = x.square().mean().sqrt()
        x[again.to(x.device)] += JITTER * size * noise.to(x)
        notes = (
            f"{int(again.sum())} of {nodes.numel()} nodes repeat a training node with jitter, because"
            " their class has fewer training nodes than condensed ones",
        )
    return Start(x, nodes, notes)
