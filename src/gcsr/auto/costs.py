"""Seconds that the automatic mode is expected to take, by a count of operations.

Nothing is timed, so the same budget gives the same result on every machine. Seconds are those of one
core of a current server, or of a data-center GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcsr.data.views import CondensingView, trained_places, validation_part
from gcsr.engines.bilevel.engine import BATCH_NODES, BATCHES, MOST_NUMBERS
from gcsr.methods.bilevel import (
    COMPARISONS,
    QUICK,
    QUICK_HIDDEN,
    QUICK_NETWORKS,
    Bilevel,
    labeler_of,
)
from gcsr.starts import pseudo_labels
from gcsr.starts.clusters import PROJECTED

# Operations per second of small matrix products; large ones run faster, tall ones slower.
SPEED = {"cpu": 7e10, "cuda": 1e13}
LARGE, TALL, SLOWEST = 2.0, 800, 1.125
# Elements per second of element-wise work on small tensors and on large ones.
ELEMENTS = {"cpu": 4e9, "cuda": 5e11}
LARGE_ELEMENTS = {"cpu": 1e9, "cuda": 5e11}
# Seconds of a training epoch and of an outer step, however small.
EPOCH = {"cpu": 0.8e-3, "cuda": 0.4e-3}
OUTER_STEP = {"cpu": 0.028, "cuda": 0.012}
# Element-wise passes over the weights in a step that is differentiated.
PASSES = 25
# Work per stored number of a sparse product, in that of a dense one.
SPARSE_FACTOR = 1.2
# Entries of a dense matrix that are read per second where it is made sparse.
SCANNED = 1e8
# Numbers of the features that are propagated and cut into minibatches per second.
PREPARED = {"cpu": 5e7, "cuda": 5e8}
# Messages of one hidden unit over one edge per second.
MESSAGES = {"cpu": 4e9, "cuda": 5e11}
FLOAT = 4


@dataclass(frozen=True)
class Costs:
    """Expected seconds of the parts of the automatic mode on a graph, and the bytes it holds.

    Attributes:
        method: settings of bilevel condensation.
        labels: pseudo-labels; 0 where none are trained.
        smoothing: what the pseudo-labeler propagates before it is trained, a part of ``labels``.
        herding: the selection of nodes by Herding.
        start: one clustered start.
        comparison: networks trained on the condensed graph and validated on the real one.
        preparation: features that are propagated and cut into minibatches before the first outer step.
        iteration: one outer step.
        labeler_bytes: what the pseudo-labeler holds; 0 where none is trained.
        learning_bytes: minibatches and a window of outer steps.
    """

    method: Bilevel
    labels: float
    smoothing: float
    herding: float
    start: float
    comparison: float
    preparation: float
    iteration: float
    labeler_bytes: int
    learning_bytes: int

    def held(self, iterations: int) -> int:
        """Bytes of the largest moment."""
        return max(self.labeler_bytes, self.learning_bytes if iterations else 0)

    def seconds(self, starts: int, iterations: int) -> float:
        """Everything, for so many starts and outer steps."""
        total = self.labels + (self.herding + starts * (self.start + self.comparison))
        # Random, Herding, the start and the result are compared at the end.
        total += 4 * self.comparison
        if iterations:
            total += COMPARISONS * self.comparison + iterations * self.iteration
            total += self.preparation
        return total


def expected_costs(  # noqa: PLR0915 - one formula after the other
    view: CondensingView, nodes: int, kind: str, method: Bilevel
) -> Costs:
    """The costs of condensing what may be seen to ``nodes`` nodes; ``kind`` is ``cpu`` or ``cuda``."""
    visible, validation = view.visible, view.validation
    speed, large_elements = SPEED[kind], LARGE_ELEMENTS[kind]
    tall = min(1 + nodes / TALL, SLOWEST) if kind == "cpu" else 1.0
    everyone, features = visible.num_nodes, int(visible.x.shape[1])
    learned = method.learned_columns(features)
    edges = int(visible.adjacency.nnz) + everyone
    # Of very many nodes a random part is read.
    train = trained_places(visible).numel()
    validated = validation_part(validation).nodes.numel()
    known = min(everyone, visible.most_rows)
    degree = edges / max(1, everyone)
    filled = visible.filled / max(1, everyone)
    sparse = kind == "cpu" and 10 * filled < features
    # Work per row of the features, and of propagated ones.
    row = SPARSE_FACTOR * filled if sparse else features / LARGE
    propagated = min(features, filled * degree)
    propagated_row = SPARSE_FACTOR * propagated if sparse else features / LARGE
    scan = everyone * features / SCANNED if sparse else 0.0
    scored = min(int(validation.x.shape[0]), validated * degree)
    # Training nodes and their neighbors.
    trained_on = min(everyone, train * degree)
    reached = min(everyone, min(BATCH_NODES, everyone) * degree)

    # The pseudo-labeler.
    columns = pseudo_labels.columns_read(everyone, features)
    hops = (pseudo_labels.DRAWS + 1) * pseudo_labels.HOPS
    smoothing = hops * columns * (0.5 * edges + 3 * everyone) / large_elements
    labels = 0.0
    labeler = labeler_of(method, visible)
    if labeler is not None and not (method.pseudo_labels == "auto" and visible.is_large):
        rows = min(train, pseudo_labels.LABELED) + pseudo_labels.UNLABELED
        epochs = pseudo_labels.CONSISTENT_RECIPE.epochs
        trained = epochs * (6 * pseudo_labels.COMPARED_DRAWS * rows + validated)
        trained *= pseudo_labels.CONSISTENT_NETWORKS * pseudo_labels.CONSISTENT_HIDDEN * columns
        labels = smoothing + trained / speed + 10 * epochs * EPOCH[kind]
    if labeler is not None and method.pseudo_labels == "auto":
        # GCNs that are compared with it: five for 200 epochs, validated every second epoch.
        work = 64 * row * (6000 * trained_on + 1000 * scored)
        labels = labels + work / speed + 200 * EPOCH[kind]

    # Herding: 100 epochs, three products with the edges each.
    work = 64 * row * (600 * trained_on + 200 * scored)
    activations = 64 * 100 * 15 * (trained_on + scored)
    messages = 64 * 300 * edges * trained_on / max(1, everyone) / MESSAGES[kind]
    herding = work / speed + activations / large_elements + messages + scan + 100 * EPOCH[kind]

    # A comparison.
    epochs, validations = QUICK.epochs, QUICK.epochs // QUICK.validate_every
    width = QUICK_NETWORKS * QUICK_HIDDEN
    small = epochs * 6 * tall * nodes * features
    real = validations * 2 * scored * row
    comparison = (
        width * (small + real) / speed
        + epochs * 10 * features * width / ELEMENTS[kind]
        + validations * 4 * scored * width / large_elements
        + epochs * EPOCH[kind]
    )

    # An outer step.
    width = method.students * method.hidden_channels
    # New students train without a gradient, one at a time.
    life = max(1, (method.longest - method.burn_in) // method.window)
    steps = method.window + method.burn_in / (3 * life)
    products = 12 * steps * nodes * learned * width
    elements = PASSES * steps * learned * width
    real = 6 * reached * propagated_row * width * learned / features
    # Hidden units of condensed and of real nodes, with their gradients.
    hidden = width * (12 * steps * nodes + 6 * reached)
    work = (tall * products + real) / speed + elements / ELEMENTS[kind]
    iteration = work + hidden / large_elements + OUTER_STEP[kind]

    # Bytes of minibatches and a window, and of the pseudo-labeler's draws.
    batches = min(BATCHES, -(-(known if labeler is not None else train) // BATCH_NODES))
    numbers = min(batches * reached * min(features, propagated_row * LARGE), MOST_NUMBERS)
    window = method.held_bytes(nodes, learned, visible.num_classes)
    pooled = train + min(pseudo_labels.POOL, everyone - train)
    drawn = (6 * everyone + pseudo_labels.DRAWS * pooled) * columns
    return Costs(
        method,
        labels=labels,
        smoothing=smoothing,
        herding=herding,
        # Wide features are projected before they are grouped.
        start=1400.0 * known * min(features, 2 * PROJECTED) / speed,
        comparison=comparison,
        preparation=everyone * features / PREPARED[kind],
        iteration=iteration,
        labeler_bytes=FLOAT * drawn if labeler is not None else 0,
        learning_bytes=FLOAT * int(numbers) + window,
    )
