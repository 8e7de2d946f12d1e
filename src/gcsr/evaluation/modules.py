"""Training and testing a user's own ``torch.nn.Module``."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from gcsr.data.condensed import CondensedGraph
from gcsr.data.features import dense
from gcsr.data.views import Target
from gcsr.evaluation.networks import Scores
from gcsr.training.classification import (
    over_labeled,
    predicted,
    score_of,
    targets_of,
    training_loss,
)
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import InputError, require, warn_user
from gcsr.utils.formatting import counted
from gcsr.utils.progress import Progress

ModuleChoice = nn.Module | Callable[[], nn.Module]
# Parameters of a module's forward that are the edge weights, and those that are features alone.
WEIGHTS = ("edge_weight", "edge_weights", "weight", "weights", "edge_attr")
FEATURES = ("x", "input", "features")
# Features, edge_index and edge_weight.
Edges = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class TrainingGraph:
    """What modules are trained on: scores of ``nodes`` (``None``: of all) should be ``targets``.

    ``unweighted`` are the edges for modules that ignore weights; ``None``: the same ones.
    """

    edges: Edges
    targets: Tensor
    nodes: Tensor | None = None
    unweighted: Edges | None = None
    threshold: float = 0.0
    multi_label: bool = False

    @classmethod
    def of(
        cls, source: CondensedGraph | Target, num_classes: int, device: torch.device
    ) -> TrainingGraph:
        """The training nodes of a real graph, or a condensed graph.

        Of the latter every entry of A', or the edges for unweighted layers.
        """
        if isinstance(source, Target):
            targets, multi_label = targets_of(source.labels, num_classes), source.labels.ndim == 2
            edges, nodes = edges_of(source, device), source.nodes.to(device)
            return cls(edges, targets.to(device), nodes, multi_label=multi_label)

        def edges_above(threshold: float | None) -> Edges:
            data = source.to_pyg(threshold).to(str(device))
            return data.x.float(), data.edge_index, data.edge_weight.float()

        targets = source.targets.to(device, torch.float32)
        return cls(
            edges_above(0.0),
            targets if source.multi_label else over_labeled(targets),
            unweighted=edges_above(None) if source.has_weights else None,
            threshold=source.edge_threshold,
            multi_label=source.multi_label,
        )


@dataclass(frozen=True, eq=False)
class Caller:
    """Calls a module by the parameters of its ``forward``.

    ``forward(data)``, ``forward(x)``, ``forward(x, edge_index)``, or with a third argument: the edge
    weights, also as a column that is called ``edge_attr``.
    """

    module: nn.Module
    form: str
    weight: str = ""

    @classmethod
    def of(cls, module: nn.Module) -> Caller:
        """By the names of the parameters of ``forward``."""
        given = list(inspect.signature(module.forward).parameters.values())
        names = [p.name for p in given]
        for name in WEIGHTS:
            # Attention layers of PyG without edge_dim refuse edge_attr.
            refused = name == "edge_attr" and getattr(module, "edge_dim", 1) is None
            if name in names and not refused:
                return cls(module, "x, edge_index", name)
        needed = [p for p in given if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        if len(needed) == 1 and needed[0].kind is not inspect.Parameter.VAR_POSITIONAL:
            return cls(module, "x" if needed[0].name in FEATURES else "data")
        third = len(needed) > 2 or any(p.kind is p.VAR_POSITIONAL for p in given)
        return cls(module, "x, edge_index, edge_weight" if third else "x, edge_index")

    def __call__(self, edges: Edges) -> Tensor:
        """Class scores of every node."""
        x, index, weight = edges
        values: dict[str, Any] = {"x": x, "edge_index": index, "edge_weight": weight}
        if self.form == "data":
            from torch_geometric.data import Data  # noqa: PLC0415 - takes a second to import

            values["data"] = Data(**values)
        named = {}
        if self.weight:
            named[self.weight] = weight.unsqueeze(1) if self.weight == "edge_attr" else weight
        try:
            found = self.module(*(values[name] for name in self.form.split(", ")), **named)
        except Exception as error:
            called = ", ".join([self.form, *named])
            raise InputError(
                f"model: {type(self.module).__name__}.forward({called}) raised"
                f" {type(error).__name__}: {error}"
            ) from error
        require(
            isinstance(found, Tensor) and found.ndim == 2 and found.shape[0] == x.shape[0],
            f"model must return scores of shape ({x.shape[0]}, number of classes), got"
            f" {tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__}.",
        )
        return cast("Tensor", found)

    @torch.no_grad()
    def scores(self, edges: Edges, target: Target) -> Tensor:
        """Class scores of a target's nodes, by the module in evaluation mode, on the CPU."""
        self.module.eval()
        return self(edges)[target.nodes.to(edges[0].device)].cpu()

    @torch.no_grad()
    def ignores_weights(self, edges: Edges) -> bool:
        """Whether other edge weights give the same scores."""
        if self.form in ("x", "x, edge_index") and not self.weight:
            return True
        x, index, weight = edges
        self.module.eval()
        with torch.random.fork_rng():
            return torch.equal(self(edges), self((x, index, torch.ones_like(weight))))


def train_module(
    model: ModuleChoice,
    train: TrainingGraph,
    validation: Target | None,
    *,
    recipe: TrainingRecipe,
    seed: int,
    number: int,
) -> tuple[Caller, float]:
    """A module trained with the weights of its best validation epoch, and that accuracy.

    A module is copied and its ``reset_parameters`` called; a function is called. Without ``validation``
    the weights are those of the last epoch.
    """
    with torch.random.fork_rng():
        torch.manual_seed(make_generator(seed, f"module {number}").initial_seed())
        edges = train.edges
        caller = Caller.of(_fresh(model).to(edges[0].device))
        if train.unweighted is not None and caller.ignores_weights(edges):
            edges = train.unweighted
            if number == 0 and caller.form != "x":
                left = int((edges[1][0] != edges[1][1]).sum())
                some = f"the {counted(left, 'edge')} above {train.threshold:.3g}"
                warn_user(
                    f"{type(caller.module).__name__} ignores edge weights, so it is trained with"
                    f" {some if left else 'no edges but self-loops'} of the condensed graph."
                )
        return caller, _train(caller, edges, train, validation, recipe)


def train_modules(
    model: ModuleChoice,
    numbered: Sequence[tuple[int, TrainingGraph]],
    validation: Target,
    *,
    recipe: TrainingRecipe,
    seed: int,
    progress: Progress,
) -> tuple[list[Caller], list[float]]:
    """:func:`train_module` for every number, on its graph."""
    callers, scores = [], []
    for number, train in numbered:
        caller, score = train_module(
            model, train, validation, recipe=recipe, seed=seed, number=number
        )
        callers.append(caller)
        scores.append(score)
        progress("training modules", len(callers), len(numbered))
    return callers, scores


def module_scores(
    callers: Sequence[Caller], target: Target, device: torch.device, *, metrics: bool = False
) -> Scores:
    """What trained modules score on a target's nodes."""
    edges = edges_of(target, device)
    found = (caller.scores(edges, target)[None] for caller in callers)
    return Scores.joined([Scores.of(one, target.labels, metrics=metrics) for one in found])


def _fresh(model: ModuleChoice) -> nn.Module:
    if not isinstance(model, nn.Module):
        try:
            made = model()
        except Exception as error:
            name = getattr(model, "__name__", type(model).__name__)
            raise InputError(
                f"model must be a function without arguments that makes a module, but {name}() raised"
                f" {type(error).__name__}: {error}"
            ) from error
        require(
            isinstance(made, nn.Module),
            f"model must return a torch.nn.Module, got {type(made).__name__}.",
        )
        return made
    module = copy.deepcopy(model)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    for part in module.modules():
        reset = getattr(part, "reset_parameters", None)
        if callable(reset):
            reset()
    kept = [n for n, p in module.named_parameters() if p.numel() > 1 and torch.equal(p, before[n])]
    constant = [n for n in kept if bool((before[n] == before[n].flatten()[0]).all())]
    require(
        kept == constant,
        f"model: {(set(kept) - set(constant) or {''}).pop()} cannot be drawn anew because its module"
        " has no reset_parameters; give a function that makes the module instead.",
    )
    return module


def _train(
    caller: Caller,
    edges: Edges,
    train: TrainingGraph,
    validation: Target | None,
    recipe: TrainingRecipe,
) -> float:
    """The best validation accuracy, whose weights the module has then."""
    module = caller.module
    require(
        any(parameter.requires_grad for parameter in module.parameters()),
        f"model must have parameters to train, got {type(module).__name__} without any.",
    )
    on_validation = None if validation is None else edges_of(validation, edges[0].device)
    best, weights = -1.0, dict[str, Tensor]()
    for epoch in range(recipe.epochs):
        if epoch in (0, recipe.epochs // 2):
            lr, decay = recipe.lr if epoch == 0 else recipe.lr / 10, recipe.weight_decay
            optimizer = torch.optim.Adam(module.parameters(), lr=lr, weight_decay=decay)
        module.train()
        optimizer.zero_grad()
        found = caller(edges)
        scores = found if train.nodes is None else found[train.nodes]
        require(
            scores.shape == train.targets.shape,
            f"model must return scores of shape {(found.shape[0], train.targets.shape[1])}, got"
            f" {tuple(found.shape)}.",
        )
        training_loss(scores, train.targets, train.multi_label).backward()
        optimizer.step()
        last = epoch == recipe.epochs - 1
        due = epoch % recipe.validate_every == recipe.validate_every - 1 or last
        if validation is not None and on_validation is not None and due:
            found = predicted(caller.scores(on_validation, validation), train.multi_label)
            score = float(score_of(found, validation.labels))
            if score > best:
                best = score
                weights = {k: v.detach().clone() for k, v in module.state_dict().items()}
    if weights:
        module.load_state_dict(weights)
    module.eval()
    return best


def edges_of(target: Target, device: torch.device) -> Edges:
    """Features, edges and edge weights of a real graph."""
    coo = target.adjacency.tocoo()
    index = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
    x = dense(target.x, "a torch.nn.Module").to(device)
    return x, index.to(device), torch.from_numpy(coo.data.copy()).to(device)
