"""The paper's test protocol.

Networks are trained on the condensed graph alone; the real graph is used to validate after every
epoch and, once, to test the weights of the best epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from gcsr.condensed import CondensedGraph
from gcsr.devices import pick_device
from gcsr.errors import InputError, require
from gcsr.evaluate.evaluation import Evaluation
from gcsr.evaluate.modules import evaluate_module
from gcsr.graph import Graph
from gcsr.models import Model, Prepared, SparseTopology, testing_model
from gcsr.models.gat import GAT
from gcsr.progress import Progress, silent
from gcsr.training import TrainingRecipe, accuracy, fit, networks_at_once, topology_of
from gcsr.views import Target, View

ModelChoice = str | nn.Module | Callable[[], nn.Module]


def evaluate(
    small: CondensedGraph | Sequence[CondensedGraph],
    graph: Graph,
    *,
    model: ModelChoice = "gcn",
    runs: int = 10,
    recipe: TrainingRecipe | None = None,
    hidden: int = 256,
    seed: int = 0,
    device: str | torch.device = "auto",
    any_graph: bool = False,
    progress: Progress = silent,
) -> Evaluation:
    """Train ``runs`` networks on each condensed graph and test them on the real one.

    ``model`` is a name (:data:`gcsr.models.MODELS`), a ``torch.nn.Module`` called as
    ``module(x, edge_index, edge_weight)``, or a function that makes such a module. A condensed graph
    made from another graph than this one is an error unless ``any_graph`` says otherwise.
    """
    graphs = [small] if isinstance(small, CondensedGraph) else list(small)
    recipe = recipe or TrainingRecipe()
    _check(graphs, graph, runs, any_graph)
    target = pick_device(device)
    began = time.perf_counter()
    view = View(graph)
    if isinstance(model, str):
        network = testing_model(model, hidden)
        trial = _Trial(network, view, target, recipe, seed)
        test, validation = _on_condensed(trial, graphs, runs, progress)
        name = model
    else:
        test, validation = evaluate_module(
            model,
            graphs,
            view,
            runs=runs,
            recipe=recipe,
            seed=seed,
            device=target,
            progress=progress,
        )
        # A functools.partial is a function without a name.
        named = type(model) if isinstance(model, nn.Module) else model
        name = getattr(named, "__name__", type(model).__name__)
    return Evaluation.of(
        test,
        validation,
        model=name,
        dataset=graph.name,
        nodes=graphs[0].num_nodes,
        graphs=len(graphs),
        runs=runs,
        trained_on="condensed",
        leaks_test_labels=any(g.leaks_test_labels for g in graphs),
        recipe=vars(recipe),
        seed=seed,
        seconds=time.perf_counter() - began,
    )


def evaluate_full(
    graph: Graph,
    *,
    model: str = "gcn",
    runs: int = 10,
    recipe: TrainingRecipe | None = None,
    hidden: int = 256,
    seed: int = 0,
    device: str | torch.device = "auto",
    progress: Progress = silent,
) -> Evaluation:
    """The same protocol with networks trained on the whole graph, for comparison."""
    require(runs >= 1, f"runs: {runs} is not accepted; a whole number >= 1 is.")
    recipe = recipe or TrainingRecipe()
    target = pick_device(device)
    began = time.perf_counter()
    view = View(graph)
    trial = _Trial(testing_model(model, hidden), view, target, recipe, seed)
    whole = view.training()
    prepared = trial.prepare(whole)
    classes = torch.nn.functional.one_hot(whole.labels, graph.num_classes).to(target, torch.float32)
    # Weights and activations are also kept for the backward pass.
    at_once = max(1, networks_at_once(trial.model, prepared) // 4)
    parts = []
    for first in range(0, runs, at_once):
        networks = range(first, min(first + at_once, runs))
        parts.append(trial.run(prepared, classes, networks, runs, progress))
    test, validation = (torch.cat(scores) for scores in zip(*parts, strict=True))
    return Evaluation.of(
        test,
        validation,
        model=model,
        dataset=graph.name,
        nodes=whole.x.shape[0],
        graphs=1,
        runs=runs,
        trained_on="whole graph",
        leaks_test_labels=False,
        recipe=vars(recipe),
        seed=seed,
        seconds=time.perf_counter() - began,
    )


class _Trial:
    """A model prepared for validating and testing on the real graph."""

    def __init__(
        self, model: Model, view: View, device: torch.device, recipe: TrainingRecipe, seed: int
    ) -> None:
        self.model, self.device, self.recipe, self.seed = model, device, recipe, seed
        self._topologies: dict[int, SparseTopology] = {}
        self._view = view
        validation = view.validation()
        self.validate = self.prepare(validation)
        self.validation_labels = validation.labels.to(device)
        self.features = int(validation.x.shape[1])

    def prepare(self, target: Target) -> Prepared:
        """What the model needs to predict a target's nodes."""
        key = id(target.adjacency)
        if key not in self._topologies:
            self._topologies[key] = SparseTopology(target.adjacency, self.device)
        return self.model.prepare(target.x.to(self.device), self._topologies[key], target.nodes)

    def run(
        self, train: Prepared, classes: Tensor, networks: range, total: int, progress: Progress
    ) -> tuple[Tensor, Tensor]:
        """Test and validation accuracy of a batch of networks."""
        epochs = self.recipe.epochs

        def report(epoch: int) -> None:
            done = networks.start * epochs + len(networks) * epoch
            progress(f"training {self.model.name}", done, total * epochs)

        fitted = fit(
            self.model,
            train,
            classes,
            self.validate,
            self.validation_labels,
            features=self.features,
            recipe=self.recipe,
            networks=networks,
            seed=self.seed,
            on_epoch=report,
        )
        test = self._view.test()
        prepared = self.prepare(test)
        scores = accuracy(
            self.model,
            fitted.params,
            prepared,
            test.labels.to(self.device),
            at_once=networks_at_once(self.model, prepared),
        )
        return scores, fitted.validation


def _on_condensed(
    trial: _Trial, graphs: list[CondensedGraph], runs: int, progress: Progress
) -> tuple[Tensor, Tensor]:
    """All runs of all graphs in one batch on CUDA where the model allows it, else graph by graph.

    On a CPU one wide product for the runs of one graph beats many small ones for all graphs.
    """
    total = len(graphs) * runs
    same_size = len({g.num_nodes for g in graphs}) == 1
    batched = trial.device.type == "cuda" and same_size and not isinstance(trial.model, GAT)
    together = len(graphs) if batched else 1
    parts = []
    for first in range(0, len(graphs), together):
        group = graphs[first : first + together]
        # Whatever precision a file holds, it meets real features in float32.
        x, adjacency, classes = (
            torch.stack(parts).to(trial.device, torch.float32)
            for parts in zip(*((g.x, g.adjacency, g.targets) for g in group), strict=True)
        )
        networks = range(first * runs, (first + len(group)) * runs)
        if len(group) == 1:
            prepared = trial.model.prepare(x[0], topology_of(adjacency[0]))
            parts.append(trial.run(prepared, classes[0], networks, total, progress))
        else:
            x, adjacency, classes = (t.repeat_interleave(runs, 0) for t in (x, adjacency, classes))
            prepared = trial.model.prepare(x, topology_of(adjacency))
            parts.append(trial.run(prepared, classes, networks, total, progress))
    test, validation = zip(*parts, strict=True)
    return torch.cat(test), torch.cat(validation)


def _check(graphs: list[CondensedGraph], graph: Graph, runs: int, any_graph: bool) -> None:
    require(runs >= 1, f"runs: {runs} is not accepted; a whole number >= 1 is.")
    require(bool(graphs), "graphs: at least one condensed graph is needed.")
    for small in graphs:
        require(
            small.x.shape[1] == graph.num_features and small.num_classes == graph.num_classes,
            f"data: the condensed graph has {small.x.shape[1]} features and {small.num_classes}"
            f" classes, {graph.name} has {graph.num_features} and {graph.num_classes}.",
        )
        made_from = small.provenance.get("dataset", {})
        known = made_from.get("content_hash", graph.content_hash)
        if known != graph.content_hash and not any_graph:
            raise InputError(
                f"data: the condensed graph was made from {made_from.get('name')} with content hash"
                f" {str(known)[:12]}, but {graph.name} has {graph.content_hash[:12]}; give the same"
                " data and feature scaling, or any_graph=True (command line: --any-graph)."
            )
