"""The paper's test protocol.

Networks are trained on the condensed graph alone; the real graph is used to validate after every
epoch and, once, to test the weights of the best epoch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.interop import argument_graph
from gcsr.data.stored_graph import StoredGraph, require_in_memory
from gcsr.data.views import View
from gcsr.distributed.pool import Cluster, connected
from gcsr.distributed.worker import Shared
from gcsr.evaluation.modules import (
    ModuleChoice,
    TrainingGraph,
    module_scores,
    train_module,
    train_modules,
)
from gcsr.evaluation.networks import (
    WHOLE,
    WITH_PSEUDO_LABELS,
    Evaluation,
    Scores,
    TrainedNetwork,
)
from gcsr.evaluation.origin import (
    condensed_graphs,
    require_condensed,
    require_origin,
    same_settings,
)
from gcsr.evaluation.trial import NetworkTester, check_numbers
from gcsr.models.base import Model
from gcsr.models.registry import testing_model
from gcsr.starts.pseudo_labels import LABELERS
from gcsr.training.classification import measure_name
from gcsr.training.fit import TrainingRecipe, fit, topology_of
from gcsr.utils.devices import pick_device
from gcsr.utils.errors import checks_arguments, require, require_integer, require_one_of
from gcsr.utils.progress import Progress, ProgressOption, shows_progress, silent

ModelChoice = str | ModuleChoice
# Units per CPU: each prepares the real graph once, and the last ones should end together.
UNITS_PER_CPU = 2


@dataclass(frozen=True, eq=False)
class Task:
    """``runs`` networks on each of some condensed graphs or, where there is none, on the whole one.

    With a ``labeler`` they are trained with pseudo-labels on the whole graph.
    """

    graphs: tuple[CondensedGraph, ...]
    model: Model | ModuleChoice
    runs: int
    recipe: TrainingRecipe
    seed: int
    metrics: bool = False
    models: bool = False
    labeler: str = ""

    @property
    def networks(self) -> range:
        """All networks by number: run r of graph g is ``g * runs + r``."""
        return range(max(1, len(self.graphs)) * self.runs)

    def scores(
        self, graph: Graph, device: torch.device, networks: range, progress: Progress
    ) -> Scores:
        """What some networks score, in their order.

        On a CPU a network's scores do not depend on which others are trained with it; on CUDA those
        of one call are batched, and the last bits may.
        """
        if not isinstance(self.model, Model):
            return self._module_scores(self.model, graph, device, networks, progress)
        tester, shares = NetworkTester(self.model, graph, device, self.recipe, self.seed), None
        if self.graphs:
            batches = tester.condensed_batches(self.graphs, self.runs)
            batches = [batch for batch in batches if batch.networks.start in networks]
        elif self.labeler:
            shares = tester.pseudo_labels(self.labeler, progress)
            batches = tester.pseudo_labeled_batches(shares, networks)
        else:
            batches = tester.real_batches(tester.view.training(), networks)
        found = tester.scores(batches, progress, metrics=self.metrics, models=self.models)
        if shares is None:
            return found
        return replace(found, pseudo_labels=tester.pseudo_label_accuracies(shares))

    def _module_scores(
        self,
        model: ModuleChoice,
        graph: Graph,
        device: torch.device,
        networks: range,
        progress: Progress,
    ) -> Scores:
        """The same for a user's module, one network at a time."""
        view, trains = View(graph), dict[int, TrainingGraph]()
        for g in {number // self.runs for number in networks}:
            source = self.graphs[g] if self.graphs else view.training()
            trains[g] = TrainingGraph.of(source, graph.num_classes, device)
        callers, best = train_modules(
            model,
            [(number, trains[number // self.runs]) for number in networks],
            view.validation(),
            recipe=self.recipe,
            seed=self.seed,
            progress=progress,
        )
        found = module_scores(callers, view.test(), device, metrics=self.metrics)
        modules = [caller.module for caller in callers] if self.models else []
        return replace(found, validation=torch.tensor(best, dtype=torch.float64), models=modules)


def scores_spread(
    task: Task, graph: Graph, cluster: Cluster, device: torch.device, progress: Progress
) -> Scores:
    """What every network of a task scores.

    On a CPU networks are trained one by one, wherever that is. On CUDA they are one batched
    computation, whose rounding depends on how many they are: they stay together, in one unit.
    """
    networks = task.networks
    each = len(networks)
    if device.type == "cpu":
        each = -(-len(networks) // (UNITS_PER_CPU * cluster.cpus))
    if isinstance(graph, StoredGraph):
        # All units together take the memory that one process may take.
        memory = graph.disk.memory // max(1, cluster.cpus)
        graph = replace(graph, disk=replace(graph.disk, memory=memory))
    shared, real = cluster.put(task), cluster.put(graph)
    units = [
        cluster.submit(
            _scored,
            shared,
            real,
            device,
            networks[first : first + each],
            device=device,
            reports=progress is not silent,
        )
        for first in range(0, len(networks), each)
    ]
    return Scores.joined(cluster.results(units, progress))


def _scored(
    shared: Shared, real: Shared, device: torch.device, networks: range, progress: Progress
) -> Scores:
    """The unit."""
    task: Task = shared.read()
    return task.scores(real.get(), device, networks, progress).cpu()


@shows_progress
def evaluate(
    small: CondensedGraph | Sequence[CondensedGraph],
    graph: object,
    *,
    model: ModelChoice = "gcn",
    runs: int = 10,
    recipe: TrainingRecipe | None = None,
    hidden_channels: int = 256,
    seed: int = 0,
    device: str | torch.device = "auto",
    check_origin: bool = True,
    progress: ProgressOption = None,
    cluster: str | Cluster | None = None,
    metrics: bool = False,
    return_models: bool = False,
) -> Evaluation:
    """Train ``runs`` networks on each condensed graph and test them on the real one.

    Every network keeps the epoch that validates best; test labels are read once, at the end.

    Args:
        small: one condensed graph, or several of different seeds and otherwise the same settings,
            whose scores are pooled.
        graph: the real graph that it was made from, or the object that was condensed, such as a PyG
            ``Data``.
        model: a name (``gcn``, ``sgc``, ``sage``, ``appnp``, ``cheby``, ``gat``, ``mlp``, ... of
            :data:`gcsr.models.MODELS`), a ``torch.nn.Module`` with ``forward(x, edge_index)``,
            ``forward(x, edge_index, edge_weight)`` or ``forward(data)``, or a function that makes such
            a module. A module that ignores edge weights is trained on the edges of
            :meth:`CondensedGraph.to_pyg`.
        runs: networks per condensed graph.
        recipe: how a network is trained; by default the paper's protocol.
        hidden_channels: hidden units of a network given by name.
        seed: of initial weights and dropout.
        device: ``auto``, ``cpu`` or ``cuda``.
        check_origin: ``False`` accepts a condensed graph of another graph.
        progress: True shows a bar, False nothing, a function is called with the stage, the steps done
            and their number. By default a bar on a terminal or in a notebook.
        cluster: ``local`` or the ``HOST:PORT`` of a Ray cluster's head, where networks are then trained
            and tested, with the same scores.
        metrics: also compute macro-F1, balanced accuracy, AUC and calibration error on the test nodes,
            and keep the predictions.
        return_models: keep the trained networks as ``models``, modules for the real graph.

    Returns:
        Accuracies in percent: every run, their mean and deviation.
    """
    graphs = condensed_graphs(small)
    graph = require_origin(graphs, graph, check_origin)
    kinds = [graphs[group[0]] for group in same_settings(graphs)]
    require(
        len(kinds) == 1,
        f"small must be one graph, or several made with the same settings and other seeds, whose"
        f" scores are pooled, got {', '.join(map(repr, kinds))}; evaluate these one by one.",
    )
    check_numbers(graph, runs, hidden_channels)
    recipe = recipe or TrainingRecipe()
    name, network = resolved_model(model, graph, hidden_channels)
    if metrics or return_models:
        require_in_memory(graph, "metrics" if metrics else "return_models")
    task = Task(tuple(graphs), network, runs, recipe, seed, metrics, return_models)
    return _evaluation(task, graph, name, device, progress, cluster)


@shows_progress
def evaluate_full(
    graph: object,
    *,
    model: ModelChoice = "gcn",
    runs: int = 10,
    recipe: TrainingRecipe | None = None,
    hidden_channels: int = 256,
    seed: int = 0,
    device: str | torch.device = "auto",
    progress: ProgressOption = None,
    cluster: str | Cluster | None = None,
    pseudo_labels: bool | str = False,
    metrics: bool = False,
    return_models: bool = False,
) -> Evaluation:
    """The same protocol with networks trained on the whole graph, for comparison.

    Args:
        graph: the real graph, or an object that :func:`gcsr.load` converts; of an inductive one
            networks see the training nodes alone.
        model: a name of :data:`gcsr.models.MODELS`, a module or a function that makes one, as in
            :func:`evaluate`; with ``pseudo_labels`` a name.
        runs, recipe, hidden_channels, seed, device, progress, cluster, metrics, return_models: as in
            :func:`evaluate`.
        pseudo_labels: train on predicted class shares of every unlabeled node as well as on the
            training labels. This is the fair reference of a graph that was condensed with
            pseudo-labels. A name says who predicts them: ``consistent``, ``gcn``, ``appnp``, or
            ``auto`` (also ``True``): the first or the second, by validation accuracy. The
            pseudo-labels do not depend on ``seed``. Only a transductive graph has unlabeled nodes;
            ``cluster`` cannot be used with it.

    Returns:
        Accuracies in percent: every run, their mean and deviation; with ``pseudo_labels`` also those
        of the pseudo-labels themselves.
    """
    graph = argument_graph(graph)
    check_numbers(graph, runs, hidden_channels)
    require_in_memory(graph, "graph")
    recipe = recipe or TrainingRecipe()
    name, network = resolved_model(model, graph, hidden_channels)
    labeler = "auto" if pseudo_labels is True else pseudo_labels or ""
    if labeler:
        require_one_of("pseudo_labels", labeler, ("auto", *LABELERS))
        require(
            not graph.inductive,
            f"pseudo_labels must be false for the inductive graph {graph.name}, got true: every"
            " visible node has a training label.",
        )
        graph.require_single_label("pseudo_labels")
        require(cluster is None, "pseudo_labels must be false with a cluster, got true.")
        named = isinstance(network, Model)
        require(named, "pseudo_labels must be false with a module, got true.")
    task = Task((), network, runs, recipe, seed, metrics, return_models, labeler)
    return _evaluation(task, graph, name, device, progress, cluster)


@checks_arguments
def train(
    small: CondensedGraph,
    model: ModelChoice = "gcn",
    graph: object = None,
    *,
    recipe: TrainingRecipe | None = None,
    hidden_channels: int = 256,
    seed: int = 0,
    device: str | torch.device = "auto",
    check_origin: bool = True,
) -> nn.Module:
    """A network trained on a condensed graph, ready for the real one.

    Args:
        small: the condensed graph.
        model: a name, a module or a function that makes one, as in :func:`evaluate`.
        graph: the real graph: the epoch with the best validation accuracy is kept. Without it the last.
        recipe, hidden_channels, seed, device, check_origin: as in :func:`evaluate`, whose first
            network it is.

    Returns:
        The module in evaluation mode. One given by name is called as
        ``network(x, edge_index, edge_weight=None)``.
    """
    recipe, target = recipe or TrainingRecipe(), pick_device(device)
    require_condensed(small)
    require_integer("hidden_channels", hidden_channels, least=1)
    real = None if graph is None else require_origin([small], graph, check_origin)
    _, network = resolved_model(model, real, hidden_channels)
    if not isinstance(network, Model):
        caller, _ = train_module(
            network,
            TrainingGraph.of(small, small.num_classes, target),
            None if real is None else View(real).validation(),
            recipe=recipe,
            seed=seed,
            number=0,
        )
        return caller.module
    if real is not None:
        tester = NetworkTester(network, real, target, recipe, seed)
        params = tester.train(tester.condensed_batches([small], 1)[0], recipe, silent).params
    else:
        x, adjacency, targets = (
            part.to(target, torch.float32) for part in (small.x, small.adjacency, small.targets)
        )
        prepared = network.prepare(x, topology_of(adjacency))
        params = fit(
            network,
            prepared,
            targets,
            prepared,
            small.labels.to(target),
            features=int(x.shape[1]),
            # Only the last epoch is compared, with nothing.
            recipe=replace(recipe, validate_every=recipe.epochs),
            networks=range(1),
            seed=seed,
            purpose="test",
        ).params
    return TrainedNetwork(network, params).eval()


def _evaluation(
    task: Task,
    graph: Graph,
    model: str,
    device: str | torch.device,
    progress: Progress,
    cluster: str | Cluster | None,
) -> Evaluation:
    """What networks of a task score, here or on a cluster, with what was asked for.

    The seconds do not include the start and the end of a cluster.
    """
    with nullcontext() if cluster is None else connected(cluster) as units:
        began = time.perf_counter()
        if units is None:
            found = task.scores(graph, pick_device(device), task.networks, progress)
        else:
            found = scores_spread(task, graph, units, units.device(device), progress)
        seconds = time.perf_counter() - began
    scores = (100 * found.test.double().cpu().numpy()).tolist()
    names = found.metrics[0] if found.metrics else {}
    if task.graphs:
        nodes, trained_on = task.graphs[0].num_nodes, "condensed"
    else:
        nodes = graph.train.numel() if graph.inductive else graph.num_nodes
        trained_on = WITH_PSEUDO_LABELS if task.labeler else WHOLE
    return Evaluation(
        mean=float(np.mean(scores)),
        std=float(np.std(scores)),
        scores=scores,
        validation=(100 * found.validation.double().cpu().numpy()).tolist(),
        dataset=graph.name,
        graphs=max(1, len(task.graphs)),
        runs=task.runs,
        leaks_test_labels=any(small.leaks_test_labels for small in task.graphs),
        recipe=vars(task.recipe),
        seed=task.seed,
        seconds=seconds,
        metrics={name: [one[name] for one in found.metrics] for name in names} or None,
        predictions=found.predictions,
        models=found.models or None,
        pseudo_labels=found.pseudo_labels,
        measure=measure_name(graph.multi_label),
        model=model,
        nodes=nodes,
        trained_on=trained_on,
    )


def resolved_model(
    model: ModelChoice, graph: Graph | None, hidden_channels: int
) -> tuple[str, Model | ModuleChoice]:
    """The name of a model, a module or a function, and what it names; refuses what is none of them."""
    if isinstance(model, str):
        return model, testing_model(model, hidden_channels)
    require(
        callable(model),
        f"model must be a name, a torch.nn.Module or a function that makes one, got"
        f" {type(model).__name__}.",
    )
    if graph is not None:
        require_in_memory(graph, "model")
    # A functools.partial is a function without a name.
    named = type(model) if isinstance(model, nn.Module) else model
    return str(getattr(named, "__name__", type(model).__name__)), model
