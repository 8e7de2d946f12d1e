"""Condensing from noisy labels, features and edges, beside the whole graph with the same noise."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.data.features import csr_matrix, from_csr, is_sparse
from gcsr.data.graph import Graph
from gcsr.data.interop import argument_graph
from gcsr.data.views import View
from gcsr.evaluation.intervals import Accuracy, Difference
from gcsr.evaluation.trial import Batch, Measured, NetworkTester
from gcsr.methods.registry import build, known_setting
from gcsr.methods.registry import method as find_method
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import plain_number, require, require_integer, require_one_of
from gcsr.utils.formatting import counted
from gcsr.utils.progress import ProgressOption, prefixed, shows_progress
from gcsr.utils.safe_io import is_number

NOISES = {
    "symmetric": "labels of training nodes become another class, each equally likely",
    "pair": "labels of training nodes become the next class",
    "features": "feature entries become those of random nodes in the same column",
    "edges": "edges get a random node at one end",
}
LEVELS = (0.1, 0.3, 0.5)
ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class NoisyScore:
    """Accuracy on clean test nodes after training on what was condensed, and on the whole graph.

    ``noise`` is one of :data:`NOISES` or ``none``; ``level`` the share that was perturbed.
    ``difference`` is the accuracy of the condensed graph less that of the whole one, draw by draw.
    """

    noise: str
    level: float
    condensed: Accuracy
    whole: Accuracy
    difference: Difference

    def __str__(self) -> str:
        noise = f"{self.noise} {self.level:g}" if self.level else "without noise"
        return f"{noise}: {self.condensed}, the whole graph {self.whole} ({self.difference})"


@dataclass(frozen=True)
class Robustness(Measured):
    """Accuracies by kind and level of noise; the first row is without noise."""

    method: str
    nodes: int
    settings: dict[str, Any]
    graphs: int
    rows: tuple[NoisyScore, ...]

    def __str__(self) -> str:
        nodes = counted(self.nodes, "node")
        what = f"{self.model} on {self.dataset}, condensed to {nodes} by {self.method}"
        return "\n".join([what, *map(str, self.rows)])


@shows_progress
def robustness(
    graph: object,
    *,
    nodes: int | None = None,
    ratio: float | None = None,
    method: str = "auto",
    noises: str | Sequence[str] = tuple(NOISES),
    levels: float | Sequence[float] = LEVELS,
    model: str = "gcn",
    graphs: int = 3,
    runs: int = 3,
    recipe: TrainingRecipe | None = None,
    hidden_channels: int = 256,
    seed: int = 0,
    device: str | torch.device = "auto",
    progress: ProgressOption = None,
    **settings: Any,
) -> Robustness:
    """Condense a graph with noise, and compare with training on the whole graph with the same noise.

    Only what is visible while condensing is perturbed, see :func:`perturbed`. Validation and test
    labels never are. Networks choose their epoch and are tested on the clean graph.

    Args:
        graph: the real graph.
        nodes: size of the condensed graph.
        ratio: the same as a share of the visible nodes.
        method: of condensing, by name.
        noises: some of ``symmetric``, ``pair``, ``features`` and ``edges``.
        levels: shares that are perturbed, above 0 and up to 1.
        model: the network, by name.
        graphs: draws of the noise, each with a condensed graph of its own; intervals are over them.
        runs: networks per graph.
        recipe: how they are trained; by default the paper's protocol.
        hidden_channels, seed, device, progress: as in :func:`gcsr.evaluate`.
        settings: of the method.
    """
    if isinstance(noises, str):
        noises = [noises]
    elif isinstance(noises, Iterable):
        noises = list(noises)
    given: Any = levels
    if isinstance(given, str) or not isinstance(given, Iterable):
        given = [given]
    levels = [plain_number(level) for level in given]
    seed = plain_number(seed)
    require_integer("seed", seed, 0)
    for name in settings:
        known_setting(find_method(method), name, robustness)
    real = argument_graph(graph)
    require_integer("graphs", graphs, 1)
    for field, given in (("noises", noises), ("levels", levels)):
        fine = isinstance(given, Collection) and len(given) > 0
        require(fine, f"{field} must have at least one element, got {given!r}.")
    for noise in noises:
        require_one_of("noises", noise, NOISES)
    for level in levels:
        fine = is_number(level) and 0 < level <= 1
        require(fine, f"levels must be > 0 and <= 1, got {level!r}.")
    condenser = build(method, {"nodes": nodes, "ratio": ratio, **settings})
    tester = NetworkTester.of(
        "robustness", real, model, runs, recipe, hidden_channels, seed, device
    )
    cases = [("none", 0.0), *((noise, float(level)) for noise in noises for level in levels)]
    rows = []
    for done, (noise, level) in enumerate(cases):
        progress("noises", done, len(cases))
        named = prefixed(progress, f"{noise} {level:g}")
        batches: dict[str, list[Batch]] = {"condensed": [], "whole": []}
        for draw in range(graphs):
            noisy = perturbed(real, noise, level, seed + draw)
            small = condenser.condense(
                noisy, seed=seed + draw, device=tester.device, progress=named
            )
            # Every draw has its own initial weights.
            networks = range(draw * runs, (draw + 1) * runs)
            batches["condensed"] += tester.condensed_batches([small], runs, networks.start)
            batches["whole"] += tester.real_batches(View(noisy).training(), networks)
        scores = tester.percents(batches, named)
        found = {name: Accuracy.of(own, graphs) for name, own in scores.items()}
        # Both share the draws of the noise: differences are paired.
        each = np.subtract(scores["condensed"], scores["whole"]).reshape(graphs, -1).mean(1)
        paired = Accuracy.of(each.tolist())
        difference = Difference(paired.mean, paired.interval)
        rows.append(NoisyScore(noise, level, **found, difference=difference))
    progress("noises", len(cases), len(cases))
    visible = real.train.numel() if real.inductive else real.num_nodes
    return Robustness(
        method=method,
        nodes=condenser.size(visible),
        settings=condenser.settings,
        graphs=graphs,
        rows=tuple(rows),
        **tester.described(model, runs),
    )


def perturbed(graph: Graph, noise: str, level: float, seed: int) -> Graph:
    """The graph with a share ``level`` of one thing perturbed; nothing else is changed.

    - ``symmetric``: a training label becomes another class, all others equally likely.
    - ``pair``: a training label becomes the next class, the last one the first.
    - ``features``: an entry becomes that of a random node in the same column; of sparse features every
      stored entry moves to a random node, where entries of one column add up. Of all nodes, or of the
      training nodes if inductive.
    - ``edges``: an edge gets a random node in place of one end; edges that then exist already, or join
      a node to itself, are dropped. Of all edges, or of those among training nodes if inductive.

    Every label, entry or edge is chosen with probability ``level``.
    """
    if level == 0 or noise == "none":
        return graph
    own = make_generator(seed, f"noise {noise}").initial_seed()
    random = np.random.default_rng(own)
    seen = np.asarray(graph.train) if graph.inductive else np.arange(graph.num_nodes)
    if noise in ("symmetric", "pair"):
        y, classes = graph.y.clone(), graph.num_classes
        chosen = graph.train[torch.from_numpy(random.random(graph.train.numel()) < level)]
        shift = random.integers(1, classes, chosen.numel()) if noise == "symmetric" else 1
        y[chosen] = (y[chosen] + torch.as_tensor(shift)) % classes
        return replace(graph, y=y)
    if noise == "features":
        return replace(graph, x=_swapped(graph.x, seen, level, random))
    return replace(graph, adjacency=_rewired(graph.adjacency, seen, level, random))


def _swapped(x: Tensor, seen: np.ndarray, level: float, random: np.random.Generator) -> Tensor:
    if is_sparse(x):
        coo = csr_matrix(x).tocoo()
        rows = coo.row.copy()
        moved = np.isin(rows, seen) & (random.random(rows.size) < level)
        rows[moved] = random.choice(seen, int(moved.sum()))
        matrix = sp.csr_array(sp.coo_array((coo.data, (rows, coo.col)), shape=coo.shape))
        return from_csr(matrix, x.device, x.dtype)
    changed, values = x.clone(), x.numpy()
    for part in np.array_split(seen, max(1, seen.size // ROWS_AT_ONCE)):
        block = values[part]
        rows, columns = np.nonzero(random.random(block.shape) < level)
        block[rows, columns] = values[random.choice(seen, rows.size), columns]
        changed[torch.from_numpy(part)] = torch.from_numpy(block)
    return changed


def _rewired(
    adjacency: sp.csr_array, seen: np.ndarray, level: float, random: np.random.Generator
) -> sp.csr_array:
    coo = sp.triu(adjacency, 1).tocoo()
    ends, weights = np.stack([coo.row, coo.col]), coo.data
    visible = np.isin(ends, seen).all(0)
    chosen = np.nonzero(visible & (random.random(weights.size) < level))[0]
    side = random.integers(0, 2, chosen.size)
    ends[side, chosen] = random.choice(seen, chosen.size)
    low, high = ends.min(0), ends.max(0)
    _, first = np.unique(low.astype(np.int64) * adjacency.shape[0] + high, return_index=True)
    first = first[low[first] != high[first]]
    upper = sp.coo_array((weights[first], (low[first], high[first])), shape=adjacency.shape)
    return sp.csr_array(upper + upper.T)
