"""A model prepared once for the real graph, and many networks of it trained and scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.stored_graph import require_in_memory
from gcsr.data.views import Target, View
from gcsr.evaluation.networks import Scores, TrainedNetwork
from gcsr.evaluation.origin import require_graph
from gcsr.methods.base import code_versions
from gcsr.models.base import Model, Prepared, joined
from gcsr.models.gat import GAT
from gcsr.models.registry import testing_model
from gcsr.outofcore.predict import accuracy_in_blocks
from gcsr.outofcore.real import RealGraph, real_graph
from gcsr.starts.pseudo_labels import class_shares
from gcsr.training.classification import targets_of
from gcsr.training.fit import (
    Fitted,
    TrainingRecipe,
    fit,
    logits_of,
    networks_at_once,
    topology_of,
)
from gcsr.utils.devices import machine_name, pick_device, within_memory
from gcsr.utils.errors import require_integer
from gcsr.utils.parallel import run_jobs_on, suitable_threads
from gcsr.utils.progress import Progress

K = TypeVar("K")
LABELER_SEED = 0


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The common part of results: what was measured, how, and on which machine.

    ``data`` is the content hash of the graph, ``versions`` are those of the code that measured.
    """

    dataset: str
    model: str
    runs: int
    recipe: dict[str, Any]
    seed: int
    device: str
    machine: str
    data: str
    versions: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Batch:
    """Networks, by number, that are trained on the same prepared graph or batch of graphs.

    ``graphs`` makes the same of every graph of a batch of several.
    """

    prepared: Prepared
    classes: Tensor
    networks: range
    graphs: Callable[[], list[Batch]] | None = None

    def smaller(self, size: int) -> list[Batch]:
        """The same networks, fewer at a time: those of one graph, or so many."""
        if self.graphs is not None and size < len(self.networks):
            return self.graphs()
        starts = range(0, len(self.networks), size)
        return [replace(self, networks=self.networks[i : i + size]) for i in starts]


def check_numbers(graph: Graph, runs: int, hidden_channels: int, single_label: str = "") -> None:
    """Refuse other objects than graphs, graphs without test nodes, and invalid numbers.

    ``single_label`` names what needs a graph in memory with one label per node.
    """
    require_graph(graph)
    require_integer("runs", runs, least=1)
    require_integer("hidden_channels", hidden_channels, least=1)
    if single_label:
        require_in_memory(graph, "graph")
        graph.require_single_label(single_label)
    require_tested(graph)


def require_tested(graph: Graph) -> None:
    """Refuse a graph without test nodes before anything is trained."""
    if not graph.test.numel():
        View(graph).test()  # says what is missing, and reads nothing


class NetworkTester:
    """Trains networks on small or whole graphs; validates and tests them on the real one."""

    @classmethod
    def of(
        cls,
        purpose: str,
        graph: Graph,
        model: str,
        runs: int,
        recipe: TrainingRecipe | None,
        hidden_channels: int,
        seed: int,
        device: str | torch.device,
    ) -> NetworkTester:
        """From the arguments of a public function; ``purpose`` names what it measures."""
        check_numbers(graph, runs, hidden_channels, purpose)
        network, target = testing_model(model, hidden_channels), pick_device(device)
        return cls(network, graph, target, recipe or TrainingRecipe(), seed)

    def __init__(
        self, model: Model, graph: Graph, device: torch.device, recipe: TrainingRecipe, seed: int
    ) -> None:
        self.model, self.device, self.recipe, self.seed = model, device, recipe, seed
        self._real: list[RealGraph] = []
        view = View(graph)
        self.graph, self.view = graph, view
        self.validation = view.validation()
        self.validate = self.prepare(self.validation)
        self.validation_labels = self.validation.labels.to(device)
        self.features = int(self.validation.x.shape[1])

    @cached_property
    def tested(self) -> Target:
        """The test nodes with their labels: read once, and not before all networks are trained."""
        return self.view.test()

    def described(self, model: str, runs: int) -> dict[str, Any]:
        """The fields of :class:`Measured`."""
        return {
            "dataset": self.graph.name,
            "model": model,
            "runs": runs,
            "recipe": vars(self.recipe),
            "seed": self.seed,
            "device": self.device.type,
            "machine": machine_name(self.device),
            "data": self.graph.content_hash,
            "versions": code_versions(),
        }

    def prepare(self, target: Target) -> Prepared:
        """What the model needs to predict a target's nodes."""
        # Kept, so that the same graph is normalized once.
        self._real.append(real_graph(target, self.device))
        return self._real[-1].prepared(self.model, target.nodes)

    def real_batches(self, target: Target, networks: range) -> list[Batch]:
        """How networks on (a part of) the real graph are grouped."""
        targets = targets_of(target.labels, self.graph.num_classes).to(self.device)
        return self.batches(self.prepare(target), targets, networks)

    def batches(self, prepared: Prepared, classes: Tensor, networks: range) -> list[Batch]:
        """How networks on one real graph, with ``classes`` as targets, are grouped."""
        # Weights and activations are also kept for the backward pass; on a CPU every run is a job.
        cuda = self.device.type == "cuda"
        at_once = max(1, networks_at_once(self.model, prepared) // 4) if cuda else 1
        return Batch(prepared, classes, networks).smaller(at_once)

    def condensed_batches(
        self, graphs: Sequence[CondensedGraph], runs: int, number: int = 0
    ) -> list[Batch]:
        """How networks on condensed graphs are grouped: run r of graph g has number ``g * runs + r``.

        ``number`` is added to all of them: networks of another number have other initial weights.

        On CUDA all runs of all graphs are one batch where the model and sizes allow it. On a CPU every
        network is a job of its own: its weights then stay in the cache, and jobs run on all cores.
        """
        cuda = self.device.type == "cuda"
        same_size = len({graph.num_nodes for graph in graphs}) == 1
        # Attention lists the edges of one graph.
        together = cuda and same_size and len(graphs) > 1 and not isinstance(self.model, GAT)

        def one_by_one() -> list[Batch]:
            batches = []
            for place, graph in enumerate(graphs):
                first = number + place * runs
                x, adjacency, classes = self._tensors([graph])
                prepared = self.model.prepare(x[0], topology_of(adjacency[0]))
                batch = Batch(prepared, classes[0], range(first, first + runs))
                batches += batch.smaller(runs if cuda else 1)
            return batches

        if not together:
            return one_by_one()
        x, adjacency, classes = (t.repeat_interleave(runs, 0) for t in self._tensors(graphs))
        networks = range(number, number + len(graphs) * runs)
        return [Batch(self.model.prepare(x, topology_of(adjacency)), classes, networks, one_by_one)]

    def _tensors(self, graphs: Sequence[CondensedGraph]) -> Iterator[Tensor]:
        """Features, adjacency and targets; in float32 as the real features are."""
        for parts in zip(*((g.x, g.adjacency, g.targets) for g in graphs), strict=True):
            yield torch.stack(parts).to(self.device, torch.float32)

    def scores(
        self,
        batches: Sequence[Batch],
        progress: Progress,
        *,
        metrics: bool = False,
        models: bool = False,
    ) -> Scores:
        """What every network scores, in their order; with ``models`` also the networks.

        The real graph's test labels are read once, after all networks are trained.
        """
        fitted = self.fitted(batches, progress)
        found = self.test_scores(fitted, progress, metrics=metrics)
        if not models:
            return found
        networks: list[nn.Module] = [
            TrainedNetwork(self.model, tuple(p[i : i + 1] for p in one.params))
            for one in fitted
            for i in range(one.validation.numel())
        ]
        return replace(found, models=networks)

    def percents(
        self, groups: Mapping[K, Sequence[Batch]], progress: Progress
    ) -> dict[K, list[float]]:
        """Test accuracy in percent of the networks of every group of batches."""
        test = self.scores([batch for group in groups.values() for batch in group], progress).test
        counts = [sum(len(batch.networks) for batch in group) for group in groups.values()]
        parts: Sequence[Tensor] = (100 * test.double().cpu()).split(counts)
        return {name: own.tolist() for name, own in zip(groups, parts, strict=True)}

    def fitted(self, batches: Sequence[Batch], progress: Progress) -> list[Fitted]:
        """The networks of every batch, each at its best validation epoch."""

        def fitted(batch: Batch, progress: Progress) -> Fitted:
            def trained(size: int) -> Fitted:
                parts = [self.train(some, self.recipe, progress) for some in batch.smaller(size)]
                params = joined([part.params for part in parts])
                validation = torch.cat([part.validation for part in parts])
                return Fitted(params, validation, torch.cat([part.epoch for part in parts]))

            return within_memory(trained, len(batch.networks), "test networks")

        return run_jobs_on(self.device, [partial(fitted, batch) for batch in batches], progress)

    def test_scores(
        self, fitted: Sequence[Fitted], progress: Progress, *, metrics: bool = False
    ) -> Scores:
        """What trained networks score."""
        test = self.tested
        if test.disk is not None:
            tested = [
                accuracy_in_blocks(self.model, one.params, test, self.device, progress)
                for one in fitted
            ]
            return Scores(torch.cat(tested), torch.cat([one.validation.cpu() for one in fitted]))
        labels = test.labels.to(self.device)
        found = self.logits(fitted, test)
        parts = [Scores.of(logits, labels, metrics=metrics) for logits in found]
        validation = torch.cat([one.validation for one in fitted])
        return replace(Scores.joined(parts), validation=validation)

    def logits(self, fitted: Sequence[Fitted], target: Target) -> Iterator[Tensor]:
        """Class scores ``(networks, nodes, C)`` of a target's nodes, a few networks at a time."""
        prepared = self.prepare(target)
        at_once = networks_at_once(self.model, prepared)
        for one in fitted:
            yield from logits_of(self.model, one.params, prepared, at_once=at_once)

    # Pseudo-labels: the fair references of a graph that was condensed with them.

    def pseudo_labels(self, labeler: str, progress: Progress) -> Tensor:
        """Class shares ``(n, C)`` of every visible node: one-hot on training nodes, else predicted.

        The networks that predict them have a fixed seed, are trained on training labels and choose
        their epoch by validation; test labels cannot be reached.
        """
        condensing = self.view.condensing()
        with suitable_threads(condensing.visible.x.numel(), self.device):
            return class_shares(
                condensing,
                labeler,
                seed=LABELER_SEED,
                device=self.device,
                everyone=True,
                progress=progress,
            ).shares

    def pseudo_labeled_batches(self, shares: Tensor, networks: range) -> list[Batch]:
        """Networks trained on the whole graph with the shares as targets on every node."""
        everyone = replace(self.view.training(), nodes=torch.arange(shares.shape[0]))
        return self.batches(self.prepare(everyone), shares, networks)

    def pseudo_label_accuracies(self, shares: Tensor) -> dict[str, float]:
        """Accuracy in percent of the most likely class on test and validation nodes.

        Asked for after all networks are trained: it reads the test labels.
        """
        targets = {"test": self.tested, "validation": self.validation}
        found = shares.argmax(-1).cpu()
        return {
            name: 100 * float((found[target.nodes] == target.labels).double().mean())
            for name, target in targets.items()
        }

    def train(self, batch: Batch, recipe: TrainingRecipe, progress: Progress) -> Fitted:
        """The networks of a batch, each at its best validation epoch."""
        stage = f"training {self.model.name}"
        return fit(
            self.model,
            batch.prepared,
            batch.classes,
            self.validate,
            self.validation_labels,
            features=self.features,
            recipe=recipe,
            networks=batch.networks,
            seed=self.seed,
            purpose="test",
            on_epoch=lambda epoch: progress(stage, epoch, recipe.epochs),
        )
