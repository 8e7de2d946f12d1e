"""Update: a condensed graph of a graph that has grown, learned from the one before.

1. X' and Y' of the previous graph are the start. A class that has none of its nodes gets its share, by
   clusters of its real nodes; where there is no room, nodes that are most alike in classes with more
   than their share are removed.
2. Bilevel condensation goes on from there, for a fourth of the outer steps of the automatic mode.
3. The result, its start and the previous graph are compared by other networks on validation nodes.
   The best one is returned.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from gcsr.auto.automatic import LEAST_ITERATIONS, STEPS_MANY_LABELS, Automatic, final_score
from gcsr.data.arrays import FEATURE_SCALINGS
from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.interop import argument_graph, recordable_options
from gcsr.data.objects import described
from gcsr.data.views import CondensingView, VisibleGraph
from gcsr.engines.result import CondensationResult, Context
from gcsr.methods.base import RESOURCE, Condenser
from gcsr.methods.bilevel import Bilevel, known_labels
from gcsr.outofcore.estimate import Work
from gcsr.starts.sample import Start, class_budget
from gcsr.training.fit import topology_of
from gcsr.utils.checkpoint import Checkpoint
from gcsr.utils.errors import Whole, checks_arguments, require
from gcsr.utils.progress import ProgressOption
from gcsr.utils.safe_io import part

# Of the outer steps that condensing anew would take.
SHARE_OF_STEPS = 4


@checks_arguments
def update(
    small: CondensedGraph,
    graph: object,
    *,
    nodes: int | None = None,
    iterations: int | None = None,
    seed: int = 0,
    device: str | torch.device = "auto",
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    progress: ProgressOption = None,
) -> CondensedGraph:
    """A condensed graph for ``graph``, learned from that of an earlier state of it.

    For graphs to which nodes, edges, labels or classes were added. Features mean the same as before,
    and classes keep their numbers; new classes have the next ones.

    Args:
        small: the condensed graph of the earlier state.
        graph: the real graph now, or an object that :func:`gcsr.load` converts. Features that are not
            scaled are scaled as those behind ``small``.
        nodes: number of condensed nodes; by default as many as ``small`` has.
        iterations: outer steps; by default a fourth of those of condensing anew.
        seed: the same seed on the same machine gives the same bytes.
        device: ``auto`` (CUDA where there is one), ``cpu`` or ``cuda``.
        checkpoint: as in :func:`gcsr.condense`.
        progress: as in :func:`gcsr.condense`.

    Returns:
        The condensed graph. It never validates worse than the start. ``provenance["update"]`` records
        what was kept and added, and ``provenance["history"]`` all graphs before it.
    """
    require(
        isinstance(small, CondensedGraph),
        f"small must be a gcsr.CondensedGraph, got {described(small)}; gcsr.condense makes one of a"
        " real graph, and gcsr.CondensedGraph.load reads a file.",
    )
    before = part(small.provenance, "dataset")
    if not isinstance(graph, Graph):
        options = recordable_options(part(small.provenance, "loading"))
        graph = argument_graph(graph, **options, inductive=before.get("inductive") is True)
    scaling = before.get("features")
    if graph.feature_scaling == "keep" and scaling in FEATURE_SCALINGS:
        graph = graph.scaled(scaling)
    require(
        scaling not in FEATURE_SCALINGS or graph.feature_scaling == scaling,
        f"data: the condensed graph was made with features={scaling!r}, but {graph.name} is loaded"
        f" with features={graph.feature_scaling!r}; load it with the same or with 'keep'.",
    )
    nodes = small.num_nodes if nodes is None else nodes
    method = Update(nodes=nodes, previous=small, iterations=iterations)
    return method.condense(
        graph, seed=seed, device=device, checkpoint=checkpoint, progress=progress
    )


@dataclass(frozen=True, kw_only=True)
class Update(Condenser):
    """Bilevel condensation from a condensed graph of an earlier state of the graph.

    Args:
        previous: that condensed graph.
        iterations: outer steps; by default a fourth of those of condensing anew.
    """

    name = "update"
    summary = "bilevel condensation from an earlier condensed graph"
    same_on_every_device = False
    beyond_training_nodes = True
    exact_class_budget = False
    multi_label = True
    works_in_blocks = Bilevel.works_in_blocks
    includes = (Bilevel,)

    previous: CondensedGraph = field(metadata=RESOURCE)
    iterations: Whole | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the result, by name; the previous graph as a hash."""
        return super().settings | {"previous": content_hash(self.previous)}

    def _work(self, nodes: int) -> Work:
        most = (
            STEPS_MANY_LABELS[1] // SHARE_OF_STEPS if self.iterations is None else self.iterations
        )
        return Bilevel(nodes=nodes, iterations=most)._work(nodes)

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        view, device = ctx.view, ctx.device
        self._require_fits(view)
        plan, _ = Automatic(nodes=ctx.nodes).expected(view, ctx.nodes, device.type)
        steps = max(LEAST_ITERATIONS, plan.iterations // SHARE_OF_STEPS)
        steps = steps if self.iterations is None else self.iterations
        method = Bilevel(
            nodes=ctx.nodes,
            iterations=steps,
            students=plan.students,
            feature_lr=plan.feature_lr,
            # The start and the last iterate are compared below.
            iterate="last",
        )
        old = PreviousNodes.of(self.previous, view.visible.num_classes, device)
        kept, added = old.fitted(view.visible, ctx.nodes)
        new: list[Start | None] = [None for _ in ctx.seeds]
        if added.any():
            new = [*method.starts(ctx, known_labels(method, ctx), added)]
        starts = [old.start(kept, one) for one in new]
        made = method.run(ctx, starts)
        learned = {"kept": int(kept.sum()), "added": added.tolist(), "iterations": steps}
        return [
            self._best(ctx, start, one, learned) for start, one in zip(starts, made, strict=True)
        ]

    def _require_fits(self, view: CondensingView) -> None:
        small, visible, name = self.previous, view.visible, view.source.name
        features = int(visible.x.shape[1])
        require(
            small.x.shape[1] == features,
            f"data: the condensed graph has {small.x.shape[1]} features, {name} has {features}; a"
            " graph that has grown has the same ones.",
        )
        require(
            small.num_classes <= visible.num_classes,
            f"data: the condensed graph has {small.num_classes} classes, {name} has"
            f" {visible.num_classes}; a graph that has grown has as many or more.",
        )
        require(
            small.multi_label == visible.multi_label,
            f"data: the condensed graph and {name} must both be multi-label or neither, got one.",
        )

    def _best(
        self, ctx: Context, start: Start, made: CondensationResult, learned: dict[str, Any]
    ) -> CondensationResult:
        """The result, its start or the previous graph, whichever validates best."""
        small, device = self.previous, start.x.device
        assert start.targets is not None
        order = start.targets.argmax(1).sort(stable=True).indices
        eye = torch.eye(len(start.x), device=device)
        finalists = {
            "start": replace(made, x=start.x[order], adjacency=eye, y=start.targets[order])
        }
        # Without edges the previous graph is the start.
        structured = not torch.equal(
            small.adjacency, torch.eye(small.num_nodes).to(small.adjacency)
        )
        if structured and learned["kept"] == small.num_nodes == len(start.x):
            shares = _padded(small.targets, int(start.targets.shape[1]))
            x, a, y = (one.float().to(device) for one in (small.x, small.adjacency, shares))
            finalists["previous graph"] = replace(made, x=x, adjacency=a, y=y)
        finalists["updated"] = made
        validation = {name: final_score(one, ctx) for name, one in finalists.items()}
        # Of equals what was learned.
        chosen = max(reversed(finalists), key=validation.__getitem__)
        notes, before = made.notes, small.provenance.get("history")
        if chosen != "updated":
            notes = (*notes, f"no outer step validated better than the {chosen}")
        details = {
            **made.details,
            "update": {**learned, "chosen": chosen, "validation": validation},
            "history": [*(before if isinstance(before, list) else []), record(small)],
            **({"leaks_test_labels": True} if small.leaks_test_labels else {}),
        }
        return replace(finalists[chosen], notes=notes, details=details)


@dataclass(frozen=True, eq=False)
class PreviousNodes:
    """Labeled nodes of the previous graph: features as networks see them, class shares, strata."""

    x: Tensor
    shares: Tensor
    strata: Tensor

    @classmethod
    def of(cls, small: CondensedGraph, num_classes: int, device: torch.device) -> PreviousNodes:
        """Of a previous graph. A' = I while learning: features are those after a hop on its A'."""
        x = topology_of(small.adjacency.float()).normalized(small.x.float())[small.labeled]
        shares = _padded(small.targets.float(), num_classes)[small.labeled]
        strata = torch.zeros(len(x)) if small.multi_label else shares.argmax(1)
        return cls(x.to(device), shares.to(device), strata.long().cpu())

    def fitted(self, visible: VisibleGraph, nodes: int) -> tuple[Tensor, Tensor]:
        """Which nodes are kept, and how many are added to every class: ``nodes`` in all.

        A class without nodes gets its share (:func:`class_budget`). Beyond that as few nodes as
        possible are added or removed, in the class that is farthest from its share.
        """
        classes = visible.num_classes
        share = class_budget(visible.train_strata, classes, nodes)
        kept = torch.bincount(self.strata, minlength=classes)
        added = torch.where(kept == 0, share, 0)
        while int(kept.sum() + added.sum()) > nodes:
            # A class keeps its last node, unless it has no training nodes any more.
            removable = (kept > 1) | ((kept > 0) & (share == 0))
            surplus = torch.where(removable, (kept - share).double(), -torch.inf)
            kept[int(surplus.argmax())] -= 1
        while int(kept.sum() + added.sum()) < nodes:
            added[int((share - kept - added).argmax())] += 1
        mask = torch.ones(len(self.x), dtype=torch.bool)
        for label, count in enumerate(kept.tolist()):
            members = (self.strata == label).nonzero().flatten()
            mask[members[redundant(self.x[members.to(self.x.device)], len(members) - count)]] = (
                False
            )
        return mask, added

    def start(self, kept: Tensor, new: Start | None) -> Start:
        """The nodes that are kept and new ones."""
        places = kept.to(self.x.device)
        x, shares = self.x[places], self.shares[places]
        notes: tuple[str, ...] = ()
        if new is not None:
            assert new.targets is not None
            x, shares = torch.cat([x, new.x]), torch.cat([shares, new.targets])
            notes = new.notes
        return Start(x, torch.empty(0, dtype=torch.int64), notes, shares)


def redundant(x: Tensor, count: int) -> Tensor:
    """Places of ``count`` rows to remove: again and again the later one of the nearest two."""
    removed: list[int] = []
    if count:
        distances = torch.cdist(x.double(), x.double()).tril(-1)
        distances[distances.new_ones(distances.shape).triu().bool()] = torch.inf
        for _ in range(count):
            place = int(distances.argmin()) // len(x)
            removed.append(place)
            distances[place], distances[:, place] = torch.inf, torch.inf
    return torch.tensor(removed, dtype=torch.int64)


def _padded(shares: Tensor, num_classes: int) -> Tensor:
    return torch.nn.functional.pad(shares, (0, num_classes - int(shares.shape[1])))


def content_hash(small: CondensedGraph) -> str:
    """SHA-256 of features, adjacency and labels."""
    digest = hashlib.sha256()
    for tensor in (small.x, small.adjacency, small.y):
        digest.update(f"{tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def record(small: CondensedGraph) -> dict[str, Any]:
    """The provenance of this graph in files of later updates."""
    made = small.provenance
    plan = part(part(made, "automatic"), "plan") or part(made, "update") or part(made, "settings")
    source = part(made, "dataset")
    return {
        "graph": content_hash(small),
        "nodes": small.num_nodes,
        **{name: made.get(name) for name in ("method", "settings", "seed")},
        "dataset": {name: source.get(name) for name in ("name", "content_hash", "num_nodes")},
        "iterations": plan.get("iterations"),
        "seconds": part(made, "measured").get("seconds"),
    }
