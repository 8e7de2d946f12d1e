"""The base class of all methods."""

from __future__ import annotations

import logging
import os
import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import version
from typing import Any, ClassVar, Self, cast

import torch

from gcsr.data.condensed import UNWEIGHTED_EDGES, CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.interop import argument_graph
from gcsr.data.stored_graph import StoredGraph
from gcsr.data.views import CondensingView, View
from gcsr.distributed.pool import Cluster, connected
from gcsr.engines.iterates import QuickScore, choose_edges
from gcsr.engines.result import CondensationResult, Context
from gcsr.methods.distributed import condense_spread
from gcsr.methods.registry import methods, require_described
from gcsr.methods.returned import require_provenance, require_tensors
from gcsr.outofcore.estimate import Estimate, Work, estimate
from gcsr.starts.sample import TooFewNodesError
from gcsr.training.expert_recipe import ExpertRequest
from gcsr.utils.checkpoint import Checkpoint, opened
from gcsr.utils.devices import arithmetic, peak_memory_bytes, pick_device
from gcsr.utils.errors import (
    Count,
    InputError,
    NamedSettings,
    PositiveShare,
    check_fields,
    checks_arguments,
    plain_number,
    require,
    require_integer,
    require_known,
)
from gcsr.utils.parallel import suitable_threads
from gcsr.utils.progress import Progress, ProgressOption, shows_progress
from gcsr.utils.safe_io import naming
from gcsr.version import __version__, source_hash

logger = logging.getLogger(__name__)
# Libraries whose version can change a result.
VERSIONED = ("torch", "torch_geometric", "numpy", "scipy", "safetensors")


def code_versions() -> dict[str, str]:
    """What ties a number to its code: versions of what can change it, and a hash of this library."""
    return {
        "gcsr": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in VERSIONED},
        "source": source_hash(),
    }


# Metadata of a field that bounds memory or disk: no part of how a result came about.
RESOURCE = {"resource": True}


@dataclass(frozen=True, kw_only=True)
class Condenser(NamedSettings, ABC):
    """Hyper-parameters of a method. Constructing one touches no data and checks every value.

    The size is given as ``nodes`` or as ``ratio`` of the visible nodes: all nodes, or the training
    nodes of an inductive graph (r in the GCSR paper).

    Args:
        nodes: number of condensed nodes.
        ratio: the same as a share of all nodes, or of the training nodes of an inductive graph.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    # The paper that it is from.
    reference: ClassVar[str] = ""
    # Increased whenever the same settings give another result; checkpoints of other revisions are
    # refused, and results contain their revision.
    revision: ClassVar[int] = 1
    # Whether every class gets its share of the nodes (see :func:`~gcsr.starts.sample.class_budget`).
    exact_class_budget: ClassVar[bool] = True
    # Whether a result may have fewer nodes than were asked for.
    may_have_fewer_nodes: ClassVar[bool] = False
    # Whether another seed gives another graph.
    seed_matters: ClassVar[bool] = True
    # Whether the CPU and CUDA give the same graph, but for rounding.
    same_on_every_device: ClassVar[bool] = True
    # Whether its nodes may be made from nodes without a training label.
    beyond_training_nodes: ClassVar[bool] = False
    # Whether it can condense a graph that stays on disk.
    works_in_blocks: ClassVar[bool] = False
    # Whether it divides its work into units of a cluster (``Context.cluster``); else a seed is a unit.
    divides_its_work: ClassVar[bool] = False
    # Whether it can condense a graph whose nodes may have several labels.
    multi_label: ClassVar[bool] = False
    # Settings that a preset of that name stands for, for methods of other packages.
    presets: ClassVar[dict[str, dict[str, Any]]] = {}
    # Methods whose settings may be given to this one, which passes them on (its field ``fixed``).
    delegates: ClassVar[tuple[type[Condenser], ...]] = ()
    # Methods whose results may be part of this one's.
    includes: ClassVar[tuple[type[Condenser], ...]] = ()

    nodes: Count | None = None
    ratio: PositiveShare | None = None

    def __post_init__(self) -> None:
        require_described(type(self))
        nodes = plain_number(self.nodes)
        if isinstance(nodes, float) and nodes.is_integer():
            object.__setattr__(self, "nodes", int(nodes))
        check_fields(self)
        require(
            (self.nodes is None) != (self.ratio is None),
            "exactly one of nodes and ratio must be given.",
        )
        try:
            self._check()
        except InputError:
            raise
        except ValueError as error:
            raise InputError(str(error)) from error

    def _check(self) -> None:  # some have nothing to check
        """Raise :class:`InputError` for settings that do not go together; types were checked."""

    @abstractmethod
    def run(self, ctx: Context) -> list[CondensationResult]:
        """One result per seed."""

    @property
    def leaks_test_labels(self) -> bool:
        """Whether these settings ask for test labels."""
        return False

    @property
    def expert_request(self) -> ExpertRequest | None:
        """The experts that these settings ask for, where they can be trained beforehand."""
        return None

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the result, by name."""
        decisive = [f.name for f in fields(self) if not f.metadata.get("resource")]
        return {name: getattr(self, name) for name in decisive}

    def fit(
        self,
        graph: Graph | CondensingView,
        y: object = None,
        *,
        seed: int = 0,
        random_state: int | None = None,
        device: str | torch.device = "auto",
        progress: ProgressOption = None,
    ) -> Self:
        """Condense a graph and keep the result as ``condensed_``.

        ``y`` is ignored: labels are part of the graph. ``random_state`` is another name of ``seed``.
        """
        seed = seed if random_state is None else random_state
        result = self.condense(graph, seed=seed, device=device, progress=progress)
        # Not a field: the result is not part of the settings or of their hash.
        vars(self)["condensed_"] = result
        return self

    @property
    def condensed_(self) -> CondensedGraph:
        """What :meth:`fit` made."""
        if "condensed_" not in vars(self):
            raise AttributeError("condensed_ does not exist before fit(graph).")
        result: CondensedGraph = vars(self)["condensed_"]
        return result

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every setting by name; ``deep`` has no effect."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """A copy with other settings, not fitted: settings never change in place."""
        for name in params:
            require_known(name, f"a setting of {self.name}", sorted(self.get_params()))
        return replace(self, **params)

    def size(self, visible_nodes: int) -> int:
        """Number of condensed nodes for a graph with ``visible_nodes`` visible nodes."""
        if self.nodes is not None:
            require(
                self.nodes <= visible_nodes,
                f"nodes must be <= {visible_nodes}, the nodes being condensed, got {self.nodes}.",
            )
            return self.nodes
        return max(1, round((self.ratio or 0) * visible_nodes))

    @checks_arguments
    def condense(
        self,
        source: Graph | CondensingView,
        *,
        seed: int = 0,
        device: str | torch.device = "auto",
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
        progress: ProgressOption = None,
    ) -> CondensedGraph:
        """Condense a graph. The same seed on the same machine gives the same bytes.

        ``seed`` is that of all random numbers; for the other arguments see :meth:`condense_many`.
        """
        return self.condense_many(
            source, seeds=[seed], device=device, checkpoint=checkpoint, progress=progress
        )[0]

    @shows_progress
    def condense_many(
        self,
        source: Graph | CondensingView,
        *,
        seeds: Sequence[int],
        device: str | torch.device = "auto",
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
        progress: ProgressOption = None,
        context: dict[str, Any] | None = None,
        cluster: str | Cluster | None = None,
    ) -> list[CondensedGraph]:
        """Condense a graph once per seed, all together; experts are shared.

        Args:
            source: a graph, or a view of one (``View(graph).condensing()``).
            seeds: one condensed graph is made for each.
            device: ``auto``, ``cpu`` or ``cuda``.
            checkpoint: a folder for the state of the run; the same call continues an interrupted run.
            progress: as in :func:`gcsr.condense`.
            context: added to the provenance (:func:`gcsr.condense` stores the preset's name there).
            cluster: ``local`` or the ``HOST:PORT`` of a Ray cluster's head: every seed, or every
                candidate of the automatic mode, is a unit of work there, with the same bytes as a
                result; by default this process does it all.
        """
        require(hasattr(seeds, "__len__"), f"seeds must be a list of integers >= 0, got {seeds!r}.")
        require(len(seeds) > 0, "seeds must have at least one element.")
        seeds = [plain_number(seed) for seed in seeds]
        for seed in seeds:
            require_integer("seed", seed)
        view = self._seen(source)
        if cluster is not None:
            require(
                checkpoint is None,
                "checkpoint must be None with a cluster, which repeats lost work itself.",
            )
            self.size(view.visible.num_nodes)
            with connected(cluster) as units:
                return condense_spread(
                    self,
                    view,
                    seeds,
                    cluster=units,
                    device=units.device(device),
                    progress=progress,
                    context=context,
                )
        target = pick_device(device)
        return self._condense(view, seeds, target, checkpoint, progress, context)

    def _condense(
        self,
        view: CondensingView,
        seeds: Sequence[int],
        target: torch.device,
        checkpoint: Checkpoint | str | os.PathLike[str] | None,
        progress: Progress,
        context: dict[str, Any] | None,
        cluster: Cluster | None = None,
    ) -> list[CondensedGraph]:
        nodes = self.size(view.visible.num_nodes)
        logger.info("%s: %d nodes, seeds %s, on %s", self.name, nodes, [*seeds], target)
        if target.type == "cuda":
            torch.cuda.reset_peak_memory_stats(target)
        began = time.perf_counter()
        others = {name: value for name, value in self.revisions.items() if name != self.name}
        # What must be equal for a run to continue from a checkpoint.
        identity = {
            "method": self.name,
            "revision": self.revision,
            **{f"revision of {name}": value for name, value in others.items()},
            **self.settings,
            "nodes": nodes,
            "seeds": list(seeds),
            "dataset": view.source.name,
            "data": view.source.content_hash,
            "setting": "inductive" if view.source.inductive else "transductive",
            "device": arithmetic(target),
            **{name: value for name, value in code_versions().items() if name != "source"},
        }
        with opened(checkpoint, identity) as log:
            with suitable_threads(view.visible.x.numel(), target):
                ctx = Context(
                    replace(view, checkpoint=log), nodes, seeds, target, progress, cluster
                )
                before = view.versions()
                try:
                    made = self.run(ctx)
                except TooFewNodesError as error:
                    if self.ratio is None:
                        raise
                    raise error.of_ratio(self.ratio, view.visible.num_nodes) from None
                require(
                    view.is_unchanged(before),
                    f"run of {self.name!r} must not change the graph in place; x.clone() makes a tensor"
                    " that may be changed.",
                )
                many = isinstance(made, list | tuple)
                kinds = [type(one) for one in made] if many else type(made)
                require(
                    many
                    and len(made) == len(seeds)
                    and all(isinstance(one, CondensationResult) for one in made),
                    f"run of {self.name!r} must return a list with one CondensationResult per seed"
                    f" ({len(seeds)}), got {kinds}.",
                )
                graphs = [
                    self._finished(view, result, nodes, seed, target, context or {})
                    for result, seed in zip(made, seeds, strict=True)
                ]
            measured: dict[str, Any] = {
                "seconds": time.perf_counter() - began,
                "graphs_together": len(seeds),
            }
            if log is not None:
                measured |= {"seconds": log.seconds} | log.measured
        measured["seconds"] /= len(seeds)
        measured["peak_memory_bytes"] = peak_memory_bytes(target)
        for small in graphs:
            small.provenance["measured"] = measured | small.provenance["measured"]
        return graphs

    def _seen(self, source: Graph | CondensingView) -> CondensingView:
        """The view of a graph, without test labels unless these settings need them."""
        view = source if isinstance(source, CondensingView | Graph) else argument_graph(source)
        if isinstance(view, StoredGraph) and not view.inductive:
            self.estimate(view).require_room()
        if isinstance(view, Graph):
            view = View(view).condensing(leak_every_label=self.leaks_test_labels)
        if self.leaks_test_labels and view.every_label is None:
            raise InputError(
                "prior must be 'predicted' or 'train' for this view, got 'all', which needs test labels"
                " (leak_every_label=True)."
            )
        if view.visible.disk is not None:
            self._require_blocks()
        if view.visible.multi_label:
            self._require_trait("multi_label", "for a multi-label graph", ".")
        return view

    @property
    def revisions(self) -> dict[str, int]:
        """Of this method, and of those that it may run."""
        return {one.name: one.revision for one in (type(self), *(self.includes or self.delegates))}

    def estimate(self, graph: Graph, kind: str = "cpu") -> Estimate:
        """Expected seconds (an order of magnitude), memory and disk space of condensing a graph.

        ``kind`` is that of the device: ``cpu`` or ``cuda``, which the automatic mode distinguishes.
        """
        if isinstance(graph, StoredGraph) and not graph.inductive:
            self._require_blocks()
        visible = graph.train.numel() if graph.inductive else graph.num_nodes
        nodes = self.size(visible)
        work = self._work(nodes)
        require(
            work is not None,
            f"method must define _work for an estimate, got {self.name!r}, which does not.",
        )
        return estimate(graph, self._estimated_work(cast("Work", work), graph, kind))

    def _work(self, nodes: int) -> Work | None:
        """The amount of work for a number of condensed nodes; ``None`` where it is unknown."""
        return None

    def _estimated_work(self, work: Work, graph: Graph, kind: str) -> Work:
        """The same, corrected for the graph and the kind of device."""
        return work

    def _require_blocks(self) -> None:
        """Refuse a graph that stays on disk where these settings need it in memory."""
        self._require_trait(
            "works_in_blocks", "for a graph on disk", "; or load it with a larger memory=BYTES."
        )

    def _require_trait(self, trait: str, purpose: str, end: str) -> None:
        """Refuse a method whose class variable ``trait`` is false."""
        if not getattr(self, trait):
            *able, last = sorted(name for name, one in methods().items() if getattr(one, trait))
            raise InputError(
                f"method must be {', '.join(able)} or {last} {purpose}, got {self.name!r}{end}"
            )

    def _finished(
        self,
        view: CondensingView,
        made: CondensationResult,
        nodes: int,
        seed: int,
        device: torch.device,
        context: dict[str, Any],
    ) -> CondensedGraph:
        """A result with its provenance, and with edges for unweighted layers where A' has weights.

        What a method may not return is refused.
        """
        visible, source = view.visible, view.source
        with naming(f"run of {self.name!r}"):
            require_tensors(
                made,
                nodes=nodes,
                fewer=self.may_have_fewer_nodes,
                num_features=int(visible.x.shape[1]),
            )
            small = CondensedGraph(
                made.x.cpu(),
                made.adjacency.cpu(),
                made.y.cpu(),
                visible.num_classes,
                multi_label=visible.multi_label,
            )
        provenance = {
            "method": self.name,
            "revision": self.revision,
            "revisions": self.revisions,
            "settings": self.settings,
            "seed": seed,
            "nodes": small.num_nodes,
            "ratio": small.num_nodes / visible.num_nodes,
            # On an inductive graph every visible label is a training label: nothing can leak.
            "leaks_test_labels": self.leaks_test_labels and not source.inductive,
            "dataset": asdict(source),
            "notes": [*view.notes],
            "versions": code_versions(),
            "device": device.type,
            "bytes": {"original": source.visible_bytes, "condensed": small.stored_bytes},
            "measured": {},
        }
        with naming(f"run of {self.name!r}"):
            require_provenance(made, [*provenance, UNWEIGHTED_EDGES])
        provenance["notes"] = [*view.notes, *made.notes]
        provenance["measured"] = made.measured
        provenance |= made.details
        if small.has_weights and view.validation.nodes.numel():
            quick = QuickScore(view.validation, device)
            x, a, targets = (p.to(device) for p in (small.x, small.adjacency, small.targets))
            provenance[UNWEIGHTED_EDGES] = choose_edges(x, a, targets, quick, seed)
        return replace(small, provenance=provenance | context)
