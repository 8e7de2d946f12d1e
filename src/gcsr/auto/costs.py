"""Seconds that the automatic mode is expected to take, by a count of operations.

Nothing is timed, so the same budget gives the same result on every machine. Seconds are those of one
core of a current server, or of a data-center GPU.
"""

from __future__ import annotations

from gcsr.data.views import CondensingView, trained_places, validation_part
from gcsr.engines.bilevel.real_loss import BATCH_NODES, BATCHES, MOST_NUMBERS
from gcsr.methods.bilevel import COMPARISONS, QUICK, QUICK_HIDDEN, QUICK_NETWORKS, Bilevel
from gcsr.starts import consistent
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
# Numbers of a dense matrix that are looked at per second where it is made sparse.
SCANNED = 1e8
# Numbers of the features that are propagated and cut into minibatches per second.
PREPARED = {"cpu": 5e7, "cuda": 5e8}
# Messages of one hidden unit over one edge per second.
MESSAGES = {"cpu": 4e9, "cuda": 5e11}
FLOAT = 4


class Costs:
    """Expected seconds and bytes of the automatic mode on a graph.

    Args:
        view: what may be seen.
        nodes: of the condensed graph.
        kind: ``cpu`` or ``cuda``.
        method: settings of bilevel condensation.
        labeler: whether pseudo-labels are trained.
    """

    def __init__(
        self, view: CondensingView, nodes: int, kind: str, method: Bilevel, *, labeler: bool
    ) -> None:
        visible, validation = view.visible, view.validation
        self.method, self._nodes, self.labeler = method, nodes, labeler
        self._speed, self._elements = SPEED[kind], ELEMENTS[kind]
        self._large_elements = LARGE_ELEMENTS[kind]
        self._prepared, self._messages = PREPARED[kind], MESSAGES[kind]
        self._epoch, self._outer_step = EPOCH[kind], OUTER_STEP[kind]
        self._tall = min(1 + nodes / TALL, SLOWEST) if kind == "cpu" else 1.0
        self._all, self._features = visible.num_nodes, int(visible.x.shape[1])
        self._learned = method.learned_columns(self._features)
        self._classes = visible.num_classes
        self._edges = int(visible.adjacency.nnz) + self._all
        # Of very many nodes a random part is read.
        self._train = trained_places(visible).numel()
        self._validated = validation_part(validation).nodes.numel()
        self._known = min(self._all, visible.most_rows)
        degree = self._edges / max(1, self._all)
        filled = visible.filled / max(1, self._all)
        sparse = kind == "cpu" and 10 * filled < self._features
        # Work per row of the features, and of propagated ones.
        self._row = SPARSE_FACTOR * filled if sparse else self._features / LARGE
        propagated = min(self._features, filled * degree)
        self._propagated_row = SPARSE_FACTOR * propagated if sparse else self._features / LARGE
        self._large = visible.is_large
        self._scan = self._all * self._features / SCANNED if sparse else 0.0
        known = int(validation.x.shape[0])
        self._scored = min(known, self._validated * degree)
        # Training nodes and their neighbors.
        self._trained_on = min(self._all, self._train * degree)
        self._reached = min(self._all, min(BATCH_NODES, self._all) * degree)

    def seconds(self, starts: int, iterations: int) -> float:
        """Everything, for so many starts and outer steps."""
        total = self.labels if self.labeler else 0.0
        # Wide features are projected before they are grouped.
        start = 1400.0 * self._known * min(self._features, 2 * PROJECTED) / self._speed
        total += self._herding() + starts * (start + self.comparison())
        # Random, Herding, the start and the result are compared at the end.
        total += 4 * self.comparison()
        if iterations:
            total += COMPARISONS * self.comparison() + iterations * self.iteration
            total += self.preparation
        return total

    @property
    def iteration(self) -> float:
        """One outer step."""
        m = self.method
        width = m.students * m.hidden_channels
        # New students train without a gradient, one at a time.
        steps = m.window + m.burn_in / (3 * max(1, (m.longest - m.burn_in) // m.window))
        products = 12 * steps * self._nodes * self._learned * width
        elements = PASSES * steps * self._learned * width
        real = 6 * self._reached * self._propagated_row * width * self._learned / self._features
        # Hidden units of condensed and of real nodes, with their gradients.
        hidden = width * (12 * steps * self._nodes + 6 * self._reached)
        work = (self._tall * products + real) / self._speed + elements / self._elements
        return work + hidden / self._large_elements + self._outer_step

    @property
    def held(self) -> int:
        """Bytes of the largest moment: the pseudo-labeler's draws, or minibatches and a window."""
        nodes = self._known if self.labeler else self._train
        batches = min(BATCHES, -(-nodes // BATCH_NODES))
        reached = batches * self._reached * min(self._features, self._propagated_row * LARGE)
        reached = min(reached, MOST_NUMBERS)
        learned = self.method.held_bytes(self._nodes, self._learned, self._classes)
        columns = consistent.columns_read(self._all, self._features)
        rows = self._train + min(consistent.POOL, self._all - self._train)
        drawn = (6 * self._all + consistent.DRAWS * rows) * columns
        held = FLOAT * int(reached) + learned if self.method.iterations else 0
        return max(held, FLOAT * drawn if self.labeler else 0)

    @property
    def smoothing(self) -> float:
        """What the pseudo-labeler propagates before it is trained."""
        columns = consistent.columns_read(self._all, self._features)
        hops = (consistent.DRAWS + 1) * consistent.HOPS
        return hops * columns * (0.5 * self._edges + 3 * self._all) / self._large_elements

    @property
    def preparation(self) -> float:
        """Features that are propagated and cut into minibatches before the first outer step."""
        return self._all * self._features / self._prepared

    @property
    def labels(self) -> float:
        """Pseudo-labels."""
        columns = consistent.columns_read(self._all, self._features)
        rows = min(self._train, consistent.LABELED) + consistent.UNLABELED
        epochs = consistent.RECIPE.epochs
        trained = epochs * (6 * consistent.COMPARED * rows + self._validated)
        trained *= consistent.NETWORKS * consistent.HIDDEN * columns
        seconds = self.smoothing + trained / self._speed + 10 * epochs * self._epoch
        if self.method.pseudo_labels != "auto":
            return seconds
        seconds = 0.0 if self._large else seconds
        # GCNs that are compared with it: five for 200 epochs, validated every second epoch.
        work = 64 * self._row * (6000 * self._trained_on + 1000 * self._scored)
        return seconds + work / self._speed + 200 * self._epoch

    def _herding(self) -> float:
        rows = self._trained_on
        work = 64 * self._row * (600 * rows + 200 * self._scored)
        activations = 64 * 100 * 15 * (rows + self._scored)
        # 100 epochs, three products with the edges each.
        messages = 64 * 300 * self._edges * rows / max(1, self._all) / self._messages
        seconds = work / self._speed + activations / self._large_elements + messages
        return seconds + self._scan + 100 * self._epoch

    def comparison(self) -> float:
        """Networks trained on the condensed graph and validated on the real one."""
        epochs, validations = QUICK.epochs, QUICK.epochs // QUICK.validate_every
        width = QUICK_NETWORKS * QUICK_HIDDEN
        small = epochs * 6 * self._tall * self._nodes * self._features
        real = validations * 2 * self._scored * self._row
        weights = epochs * 10 * self._features * width
        activations = validations * 4 * self._scored * width
        return (
            width * (small + real) / self._speed
            + weights / self._elements
            + activations / self._large_elements
            + epochs * self._epoch
        )
