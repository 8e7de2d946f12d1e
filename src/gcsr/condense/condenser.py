"""What every method is: settings in, condensed graphs out, with their provenance."""

from __future__ import annotations

import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from gcsr.condense.fields import real_number, require_setting, whole_number
from gcsr.condensed import CondensedGraph
from gcsr.devices import peak_memory_bytes, pick_device
from gcsr.errors import InputError, require
from gcsr.graph import Graph
from gcsr.progress import Progress, silent
from gcsr.version import __version__
from gcsr.views import CondensingView, Source, View

# Libraries whose version can change a result.
VERSIONED = ("torch", "numpy", "scipy", "safetensors")


@dataclass(frozen=True, eq=False)
class Made:
    """What a method returns for one graph; the rest of the provenance is the same for all methods.

    Args:
        x: features, ``(n', d)``.
        adjacency: A', ``(n', n')``, non-negative; the identity where there is no structure.
        y: classes, ``(n',)``.
        notes: sentences that somebody who uses the result should read.
        details: more provenance, the same whenever the graph is made again.
        measured: more provenance that need not be the same.
    """

    x: Tensor
    adjacency: Tensor
    y: Tensor
    notes: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)


def resource(default: Any) -> Any:
    """A field that bounds memory or disk: no part of how a result came about, whatever its value."""
    return field(default=default, metadata={"resource": True})


@dataclass(frozen=True, kw_only=True)
class Condenser(ABC):
    """Hyper-parameters of a method. Constructing one touches no data and checks every value.

    The size is given as ``nodes`` or as ``ratio`` of the nodes that may be seen (the paper's r).

    Args:
        nodes: number of condensed nodes.
        ratio: the same as a share of all nodes, or of the training nodes of an inductive graph.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    # What a method cannot promise by nature it declares here, and says why.
    # Whether every class gets its share of the nodes (see :func:`~gcsr.condense.labels.class_budget`).
    exact_class_budget: ClassVar[bool] = True
    # Whether another seed gives another graph.
    seed_matters: ClassVar[bool] = True
    # Whether the CPU and CUDA give the same graph, but for rounding.
    same_on_every_device: ClassVar[bool] = True
    # Whether its nodes may stand for others than training nodes, of which a class may have few.
    beyond_training_nodes: ClassVar[bool] = False
    # Methods whose settings may be given to this one, which hands them on (its field ``pins``).
    hands_on_to: ClassVar[tuple[type[Condenser], ...]] = ()

    nodes: int | None = None
    ratio: float | None = None

    def __post_init__(self) -> None:
        if self.nodes is not None:
            whole_number(self, "nodes", least=1)
        if self.ratio is not None:
            fine = isinstance(self.ratio, int | float) and 0 < self.ratio <= 1
            require(fine, f"ratio: {self.ratio!r} is not accepted; a number > 0 and <= 1 is.")
            real_number(self, "ratio")
        require(
            (self.nodes is None) != (self.ratio is None),
            "nodes, ratio: exactly one of the two must be given.",
        )
        self._check()

    @abstractmethod
    def _check(self) -> None:
        """Raise :class:`InputError` for a setting that cannot be used."""

    @abstractmethod
    def _make(
        self,
        view: CondensingView,
        nodes: int,
        seeds: Sequence[int],
        device: torch.device,
        progress: Progress,
    ) -> list[Made]:
        """One result per seed."""

    @property
    def leaks_test_labels(self) -> bool:
        """Whether these settings ask for test labels."""
        return False

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the result, by name."""
        decisive = [f.name for f in fields(self) if not f.metadata.get("resource")]
        return {name: getattr(self, name) for name in decisive}

    # -- the scikit-learn habit --------------------------------------------------------------------

    def fit(
        self,
        graph: Graph | CondensingView,
        y: object = None,
        *,
        seed: int = 0,
        device: str | torch.device = "auto",
        progress: Progress = silent,
    ) -> Self:
        """Condense a graph and keep the result as ``condensed_``; ``y`` is there for the habit."""
        result = self.condense(graph, seed=seed, device=device, progress=progress)
        # Not a field: what came out is no part of what the settings are, nor of their hash.
        vars(self)["condensed_"] = result
        return self

    @property
    def condensed_(self) -> CondensedGraph:
        """What :meth:`fit` made."""
        if "condensed_" not in vars(self):
            raise AttributeError("condensed_: there is none yet; fit(graph) makes it.")
        result: CondensedGraph = vars(self)["condensed_"]
        return result

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every setting by name; none of them has settings of its own, so ``deep`` says nothing."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Change settings in place, all of them or, where one cannot be used, none.

        The only way a condenser changes: what it was fitted to is forgotten, and its hash is another.
        """
        for name in params:
            require_setting(self.name, name, self.get_params())
        checked = replace(self, **params)
        vars(self).pop("condensed_", None)
        vars(self).update(checked.get_params())
        return self

    # -- the way to a condensed graph --------------------------------------------------------------

    def size(self, visible_nodes: int) -> int:
        """Number of condensed nodes for a graph of which ``visible_nodes`` may be seen."""
        if self.nodes is not None:
            require(
                self.nodes <= visible_nodes,
                f"nodes: {self.nodes} is more than the {visible_nodes} nodes being condensed.",
            )
            return self.nodes
        return max(1, round((self.ratio or 0) * visible_nodes))

    def condense(
        self,
        source: Graph | CondensingView,
        *,
        seed: int = 0,
        device: str | torch.device = "auto",
        progress: Progress = silent,
    ) -> CondensedGraph:
        """Condense a graph. The same seed on the same machine gives the same bytes.

        Args:
            source: a graph, or a view of one (``View(graph).condensing()``).
            seed: of everything random.
            device: ``auto``, ``cpu`` or ``cuda``.
            progress: called with what is being done, how much of it is done and how much there is.
        """
        return self.condense_many(source, seeds=[seed], device=device, progress=progress)[0]

    def condense_many(
        self,
        source: Graph | CondensingView,
        *,
        seeds: Sequence[int],
        device: str | torch.device = "auto",
        progress: Progress = silent,
        context: dict[str, Any] | None = None,
    ) -> list[CondensedGraph]:
        """Condense a graph once per seed, all together; experts are shared.

        Args:
            source: a graph, or a view of one.
            seeds: one condensed graph is made for each.
            device: ``auto``, ``cpu`` or ``cuda``.
            progress: called with what is being done, how much of it is done and how much there is.
            context: added to the provenance (the command line stores the preset's name there).
        """
        require(len(seeds) > 0, "seeds: at least one is needed.")
        for seed in seeds:
            require(
                isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0,
                f"seed: {seed!r} is not accepted; a whole number >= 0 is.",
            )
        require(
            isinstance(source, Graph | CondensingView),
            f"graph: a gcsr.Graph is needed, not {type(source).__name__}; gcsr.load makes one.",
        )
        view = source
        if isinstance(view, Graph):
            leak = self.leaks_test_labels
            view = View(view).condensing(leak_every_label=leak)
        if self.leaks_test_labels and view.every_label is None:
            raise InputError(
                "prior: 'all' needs test labels, and this view does not hold them; make it with"
                " leak_every_label=True or choose prior 'predicted' or 'train'."
            )
        target = pick_device(device)
        nodes = self.size(view.visible.num_nodes)
        if target.type == "cuda":
            torch.cuda.reset_peak_memory_stats(target)
        began = time.perf_counter()
        made = self._make(view, nodes, seeds, target, progress)
        seconds = (time.perf_counter() - began) / len(seeds)
        return [
            self._signed(view, result, seed, target, seconds, len(seeds), context or {})
            for result, seed in zip(made, seeds, strict=True)
        ]

    def _signed(
        self,
        view: CondensingView,
        made: Made,
        seed: int,
        device: torch.device,
        seconds: float,
        together: int,
        context: dict[str, Any],
    ) -> CondensedGraph:
        x, adjacency, y = made.x.cpu(), made.adjacency.cpu(), made.y.cpu()
        source = view.source
        nodes = int(x.shape[0])
        stored = CondensedGraph(x, adjacency, y, view.visible.num_classes).stored_bytes
        # On an inductive graph every visible label is a training label: nothing can leak.
        leaks = self.leaks_test_labels and not source.inductive
        provenance = {
            "method": self.name,
            "settings": self.settings,
            "seed": seed,
            "nodes": nodes,
            "ratio": nodes / view.visible.num_nodes,
            "leaks_test_labels": leaks,
            "dataset": asdict(source),
            "notes": [*made.notes, *_size_note(stored, source)],
            "versions": {
                "gcsr": __version__,
                "python": platform.python_version(),
                **{name: version(name) for name in VERSIONED},
            },
            "device": device.type,
            "bytes": {"original": source.nbytes, "condensed": stored},
            "measured": {
                "seconds": seconds,
                "graphs_together": together,
                "peak_memory_bytes": peak_memory_bytes(device),
                **made.measured,
            },
            **made.details,
            **context,
        }
        return CondensedGraph(x, adjacency, y, view.visible.num_classes, provenance)


def _size_note(condensed: int, source: Source) -> list[str]:
    if condensed < source.nbytes:
        return []
    return [
        f"the condensed graph takes {condensed:,} bytes, its original {source.nbytes:,}: an"
        " adjacency grows with the square of its nodes; it can be sparsified"
    ]
