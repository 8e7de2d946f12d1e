"""The choice of a feature scaling by quickly trained networks, on validation nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from gcsr.data.arrays import FEATURE_SCALINGS, FeatureScaling
from gcsr.data.features import csr_matrix, is_sparse, select_rows
from gcsr.data.graph import Graph
from gcsr.data.objects import described
from gcsr.data.stored_graph import StoredGraph, require_in_memory
from gcsr.data.views import View
from gcsr.models.gcn import GCN
from gcsr.models.sparse import SparseTopology
from gcsr.training.classification import targets_of
from gcsr.training.fit import TrainingRecipe, fit
from gcsr.utils.devices import pick_device
from gcsr.utils.errors import require, require_one_of
from gcsr.utils.progress import Progress, ProgressOption, shows_progress, silent

HIDDEN, NETWORKS = 64, 3
# Features are badly scaled where a column is so many times as large as the median column, or where that
# is not within these bounds.
LARGEST_RATIO, USUAL_SCALES = 100.0, (1e-4, 1e4)
RECIPE = TrainingRecipe(epochs=150, validate_every=5)


@dataclass(frozen=True)
class ScalingChoice:
    """The scaling under which networks validated best, the first of equals.

    Args:
        features: ``keep``, ``rows`` or ``standardize``; ``graph.scaled(features)`` applies it.
        validation: mean validation accuracy (a share) under each of them.
    """

    features: FeatureScaling
    validation: dict[str, float]

    @property
    def provenance(self) -> dict[str, Any]:
        """For the provenance of what is condensed then."""
        return {"chosen": self.features, "validation": dict(self.validation)}


def scale_problem(graph: Graph) -> str | None:
    """What is wrong with the scale of the features that condensing sees; ``None`` where it is usual.

    The scale of a column is its largest absolute value; columns of zeros do not count.
    """
    if isinstance(graph, StoredGraph) or graph.feature_scaling != "keep":
        return None
    x = select_rows(graph.x, graph.train) if graph.inductive else graph.x
    if is_sparse(x):
        scales = torch.from_numpy(abs(csr_matrix(x)).max(0).toarray().ravel())
    else:
        low, high = torch.aminmax(x, dim=0)
        scales = torch.maximum(-low, high)
    if not bool(scales.any()):
        return None
    median, largest = float(scales[scales > 0].median()), int(scales.argmax())
    if float(scales[largest]) > LARGEST_RATIO * median:
        return (
            f"columns of x have very different scales (column {largest}: up to"
            f" {float(scales[largest]):.2g}, the median column: up to {median:.2g})"
        )
    if not USUAL_SCALES[0] <= median <= USUAL_SCALES[1]:
        return f"columns of x have an unusual scale (the median column: up to {median:.2g})"
    return None


def scaled_graph(
    graph: Graph,
    features: str | None = None,
    *,
    device: str | torch.device = "auto",
    progress: Progress = silent,
) -> tuple[Graph, ScalingChoice | None]:
    """The graph with its features scaled as asked, and the choice where one was made.

    ``auto`` chooses by :func:`choose_scaling`. ``None`` does so where features are badly scaled
    (:func:`scale_problem`), with a warning, and changes nothing otherwise.
    """
    require_one_of("features", features, (None, "auto", *FEATURE_SCALINGS))
    if features in FEATURE_SCALINGS and features != graph.feature_scaling:
        return graph.scaled(features), None
    problem = scale_problem(graph) if features is None else None
    if features != "auto" and problem is None:
        return graph, None
    choice = choose_scaling(graph, device=device, progress=progress)
    scaled = graph.scaled(choice.features)
    if problem is not None:
        best, kept = (100 * choice.validation[name] for name in (choice.features, "keep"))
        outcome = f"they are kept, as no other scaling validates better than {kept:.1f} %"
        if choice.features != "keep":
            outcome = (
                f"condensed with features={choice.features!r}, which validates at {best:.1f} % instead"
                f" of {kept:.1f} %; x of the result is scaled, and gcsr.evaluate scales the real graph"
                " alike"
            )
        scaled = scaled.with_notes(f"{problem}: {outcome}", warn=True)
    return scaled, choice


@shows_progress
def choose_scaling(
    graph: Graph,
    *,
    seed: int = 0,
    device: str | torch.device = "auto",
    progress: ProgressOption = None,
) -> ScalingChoice:
    """Train a few GCNs on the real training nodes under every scaling, and compare them.

    ``graph`` must hold its features unscaled. Only training and validation labels are read. Sparse
    features are not standardized, which would make them dense.

    Args:
        graph: the real graph, loaded with ``features="keep"``.
        seed: of the networks' weights.
        device: ``auto``, ``cpu`` or ``cuda``.
        progress: called with what is being done, how much of it is done and how much there is.
    """
    require(
        isinstance(graph, Graph),
        f"graph must be a gcsr.Graph, got {described(graph)}; gcsr.load and"
        " gcsr.Graph.from_pyg make one.",
    )
    require_in_memory(graph, "features")
    require(
        graph.feature_scaling == "keep",
        f"graph must have features 'keep', which are not scaled, got {graph.feature_scaling!r}.",
    )
    target = pick_device(device)
    scores: dict[str, float] = {}
    compared = FEATURE_SCALINGS[:2] if is_sparse(graph.x) else FEATURE_SCALINGS
    for done, scaling in enumerate(compared):
        progress("choosing a feature scaling", done, len(compared))
        scores[scaling] = _validated(graph.scaled(scaling), seed, target)
    progress("choosing a feature scaling", len(compared), len(compared))
    return ScalingChoice(max(compared, key=scores.__getitem__), scores)


def _validated(graph: Graph, seed: int, device: torch.device) -> float:
    view = View(graph)
    training, validation = view.training(), view.validation()
    model = GCN(HIDDEN)
    topology = SparseTopology(training.adjacency, device)
    same = validation.adjacency is training.adjacency
    validated = topology if same else SparseTopology(validation.adjacency, device)
    fitted = fit(
        model,
        model.prepare(training.x.to(device), topology, training.nodes),
        targets_of(training.labels, graph.num_classes).to(device),
        model.prepare(validation.x.to(device), validated, validation.nodes),
        validation.labels.to(device),
        features=graph.num_features,
        recipe=RECIPE,
        networks=range(NETWORKS),
        seed=seed,
    )
    return float(fitted.validation.mean())
