"""Testing with a user's own ``torch.nn.Module``, called as ``module(x, edge_index, edge_weight)``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from gcsr.data.condensed import CondensedGraph
from gcsr.data.views import Target, View
from gcsr.equations.trajectory import cross_entropy, over_labeled
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import require
from gcsr.utils.progress import Progress

Edges = tuple[Tensor, Tensor, Tensor]


def evaluate_module(
    model: nn.Module | Callable[[], nn.Module],
    graphs: Sequence[CondensedGraph],
    view: View,
    *,
    runs: int,
    recipe: TrainingRecipe,
    seed: int,
    device: torch.device,
    progress: Progress,
    networks: range | None = None,
) -> tuple[Tensor, Tensor]:
    """Test and validation accuracy of every run (or of some ``networks``), one network at a time.

    A module is copied and its ``reset_parameters`` called for every run; a function is called anew.
    Edges carry A' before normalization; a module adds self-loops and normalizes as it sees fit. Test
    labels are read once, after all networks are trained.
    """
    validation = view.validation()
    on_validation = _edges(validation, device)
    wanted = range(len(graphs) * runs) if networks is None else networks
    trained, best_scores = list[tuple[nn.Module, dict[str, Tensor]]](), list[float]()
    for g, small in enumerate(graphs):
        data = small.to_pyg().to(str(device))
        train = (data.x.float(), data.edge_index, data.edge_weight.float())
        targets = over_labeled(small.targets.to(device, torch.float32))
        for number in range(g * runs, (g + 1) * runs):
            if number not in wanted:
                continue
            with torch.random.fork_rng():
                torch.manual_seed(make_generator(seed, f"module {number}").initial_seed())
                module = _fresh(model).to(device)
                best, weights = _train(module, train, targets, on_validation, validation, recipe)
            trained.append((module, weights))
            best_scores.append(best)
            progress("training modules", len(trained), len(wanted))
    test = view.test()
    on_test, scores = _edges(test, device), list[float]()
    for module, weights in trained:
        module.load_state_dict(weights)
        scores.append(_accuracy(module, on_test, test))
    return torch.tensor(scores, dtype=torch.float64), torch.tensor(best_scores, dtype=torch.float64)


def _fresh(model: nn.Module | Callable[[], nn.Module]) -> nn.Module:
    if not isinstance(model, nn.Module):
        made = model()
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
    module: nn.Module,
    train: Edges,
    targets: Tensor,
    on_validation: Edges,
    validation: Target,
    recipe: TrainingRecipe,
) -> tuple[float, dict[str, Tensor]]:
    best, weights = -1.0, {}
    optimizer = torch.optim.Adam(
        module.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay
    )
    for epoch in range(recipe.epochs):
        if epoch == recipe.epochs // 2 and epoch > 0:
            optimizer = torch.optim.Adam(
                module.parameters(), lr=recipe.lr / 10, weight_decay=recipe.weight_decay
            )
        module.train()
        optimizer.zero_grad()
        scores = module(*train)
        require(
            isinstance(scores, Tensor) and scores.shape == targets.shape,
            f"model must return scores of shape {tuple(targets.shape)}.",
        )
        cross_entropy(scores, targets).backward()
        optimizer.step()
        last = epoch == recipe.epochs - 1
        if epoch % recipe.validate_every == recipe.validate_every - 1 or last:
            score = _accuracy(module, on_validation, validation)
            if score > best:
                best = score
                weights = {k: v.detach().clone() for k, v in module.state_dict().items()}
    return best, weights


@torch.no_grad()
def _accuracy(module: nn.Module, edges: Edges, target: Target) -> float:
    module.eval()
    predicted = module(*edges)[target.nodes.to(edges[0].device)].argmax(-1).cpu()
    return float((predicted == target.labels).double().mean())


def _edges(target: Target, device: torch.device) -> Edges:
    coo = target.adjacency.tocoo()
    index = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
    return target.x.to(device), index.to(device), torch.from_numpy(coo.data.copy()).to(device)
