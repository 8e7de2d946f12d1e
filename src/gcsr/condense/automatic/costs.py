"""Seconds that parts of the race are expected to take, by a count of operations.

Nothing is timed. Seconds are those of one core, or of a data-centre GPU, give or take a factor of two.
"""

from __future__ import annotations

import math

from gcsr.condense import centres, consistent
from gcsr.condense.automatic import calibration
from gcsr.condense.automatic.rounds import (
    CLOSELY,
    CLOSER,
    FINALISTS,
    FIRST,
    LAST,
    LOOKS,
    MATCHED,
    MOST_ITERATIONS,
    REDRAWN,
    SCOUT_ITERATIONS,
    Look,
    Starts,
)
from gcsr.views import CondensingView

# Operations per second that small networks reach, and seconds that no work goes below.
SPEED = {"cpu": 5e10, "cuda": 5e12}
LEAST = {"cpu": 0.02, "cuda": 0.4}
# What an epoch takes however small a graph is.
LEAST_EPOCH = {"cpu": 1.5e-3, "cuda": 0.5e-3}
LEAST_ITERATION = {"cpu": 1e-3, "cuda": 1e-3}
# An epoch of an expert is a few small products.
LEAST_EXPERT_EPOCH = {"cpu": 0.4e-3, "cuda": 0.5e-3}
# Work per stored number of a sparse product, in that of a dense one.
SPARSE_FACTOR = 4.0
# And that of a wide dense one, of many rows: it runs faster than small ones.
WIDE_FACTOR = 0.5
# Work per weight of an optimiser, which is bound by memory, in that of a dense product.
WEIGHT_WORK = 500.0
# Work per number of the features in all rounds of k-means, which are bound by memory up to so many
# centres in a class; and in every level of halves.
K_MEANS_WORK, K_MEANS_CENTRES = 2500.0, 25
HALVES_WORK = 200.0
# Networks of a teacher, their width and epochs; experts, their width and epochs.
TEACHER_NETWORKS, TEACHER_HIDDEN, TEACHER_EPOCHS = 5, 64, 200
EXPERTS, EXPERT_HIDDEN, EXPERT_EPOCHS = 8, 256, 100
# Slow experts and calibrated ones are trained; for the longer match some are trained once more.
SETS_OF_EXPERTS = 2
# Experts that are watched until they stop learning take about this share of the most epochs.
WATCHED_SHARE = 0.7


class Costs:
    """Seconds that parts of the race are expected to take on a graph."""

    def __init__(
        self, view: CondensingView, nodes: int, kind: str, without: frozenset[str]
    ) -> None:
        visible, validation = view.visible, view.validation
        self._without = without
        self._speed, self._least = SPEED[kind], LEAST[kind]
        self._least_iteration = LEAST_ITERATION[kind]
        self._least_epoch = LEAST_EPOCH[kind]
        self._least_expert_epoch = LEAST_EXPERT_EPOCH[kind]
        self._features, self._classes = int(visible.x.shape[1]), visible.num_classes
        filled = float(visible.x.count_nonzero()) / max(1, visible.num_nodes)
        self._all, self._small = visible.num_nodes, nodes
        self._edges = visible.adjacency.nnz + self._all
        degree = visible.adjacency.nnz / max(1, visible.num_nodes)
        # Rows of the real graph are multiplied as sparse ones where that takes less, on a CPU.
        sparse = SPARSE_FACTOR * filled * (1 + degree) if kind == "cpu" else self._features
        self._filled = min(WIDE_FACTOR * self._features, sparse)
        self._labelled = visible.train.numel()
        self._train = min(self._all, self._labelled * (1 + degree))
        known = int(validation.x.shape[0])
        self._validated = validation.nodes.numel()
        self._judged = min(known, self._validated * (1 + degree))

    def starts(self, starts: Starts) -> float:
        """Teachers, and the judging of every start."""
        total = sum(self._teacher(name) for name in starts.trained)
        # Herding: 100 epochs of one network of the same width, which validates after each.
        work = 64 * self._filled * (600 * self._train + 200 * self._judged)
        total += self._seconds(work, epochs=100)
        hops = starts.hops
        clusterings = len(starts.teachers) * len(hops)
        # Soft and hard labels belong to the same centres.
        count = clusterings * (2 if starts.soft else 1)
        redrawn = min(count, REDRAWN) * starts.draws
        passed = SPARSE_FACTOR * 2 * self._edges * (sum(hops) / len(hops))
        grouped = self._all * self._grouping(starts.grouping)
        total += (clusterings + redrawn) * self._seconds((passed + grouped) * self._features)
        total += (count + redrawn) * self._judge(FIRST)
        total += (2 + CLOSELY) * self._judge(CLOSER)
        return total + (2 + FINALISTS) * self._judge(LAST)

    def _grouping(self, name: str) -> float:
        """Work per number of the features."""
        each = self._small / self._classes
        if name == "k-means":
            return K_MEANS_WORK * max(1.0, each / K_MEANS_CENTRES) * min(1.0, self._narrowed)
        return HALVES_WORK * max(1.0, math.log2(each))

    @property
    def _narrowed(self) -> float:
        """The share of the work that is left where k-means sees a projection of wide features."""
        wide = self._features > centres.WIDER * centres.PROJECTED
        if not wide or self._all * self._features / self._classes <= centres.MANY:
            return 1.0
        return centres.PROJECTED * (1 / self._features + 2 / K_MEANS_WORK)

    def _teacher(self, name: str) -> float:
        if self._labelled == self._all:
            return 0.0
        if name == "consistent":
            return self._consistent
        rows, judged = self._train, self._judged
        if name == "mlp":
            rows, judged = self._labelled, self._validated
        looks = TEACHER_EPOCHS / 2
        work = self._filled * (6 * TEACHER_EPOCHS * rows + 2 * looks * judged)
        # Hidden units are dropped and propagated.
        work += 60 * TEACHER_EPOCHS * rows
        return self._seconds(TEACHER_NETWORKS * TEACHER_HIDDEN * work, epochs=TEACHER_EPOCHS)

    @property
    def _consistent(self) -> float:
        columns = consistent.columns_read(self._all, self._features)
        spread = SPARSE_FACTOR * (consistent.DRAWS + 1) * consistent.HOPS * columns
        spread *= 2 * self._edges + self._all
        rows = min(self._labelled, consistent.LABELLED) + consistent.UNLABELLED
        epochs = consistent.RECIPE.epochs
        taught = epochs * 6 * consistent.COMPARED * rows + epochs * self._validated
        taught *= consistent.NETWORKS * consistent.HIDDEN * columns
        return self._seconds(spread + taught, epochs=epochs)

    @property
    def scouting(self) -> float:
        """Experts, and every matched candidate for a few iterations."""
        each = SCOUT_ITERATIONS * self._iteration + self._judge(CLOSER)
        return SETS_OF_EXPERTS * self._experts + self._calibrating + MATCHED * each

    @property
    def _experts(self) -> float:
        return EXPERTS * EXPERT_EPOCHS * self._expert_epoch

    @property
    def _calibrating(self) -> float:
        if "calibration" in self._without:
            return 0.0
        rates = len(calibration.EXPERT_RATES)
        schedules = rates + len(calibration.PAIRS)
        epochs = WATCHED_SHARE * schedules * calibration.EXPERTS * calibration.MOST_EPOCHS
        tried = len(calibration.STUDENT_RATES) + len(calibration.FINER)
        ways = calibration.EXPERTS * len(calibration.STARTS)
        epochs += ways * tried * sum(steps for steps, _ in calibration.PAIRS)
        return self._least + epochs * self._expert_epoch

    @property
    def _expert_epoch(self) -> float:
        """An epoch of one expert: its weights are multiplied with each other first."""
        weights = self._features * EXPERT_HIDDEN
        work = 6 * weights * self._classes + 6 * self._labelled * self._features * self._classes
        return self._least_expert_epoch + (work + WEIGHT_WORK * weights) / self._speed

    def longer(self, iterations: int) -> float:
        """The best of them for many iterations, with looks on the way."""
        looks = LOOKS * self._judge(Look(256, 200, range(2), 20)) + self._judge(CLOSER)
        return self._experts + looks + iterations * self._iteration

    def affordable(self, seconds: float) -> int:
        """How many iterations that may be, in hundreds."""
        left = seconds - self.longer(0)
        return min(MOST_ITERATIONS, int(left / self._iteration) // 100 * 100)

    @property
    def _iteration(self) -> float:
        n, d = self._small, self._features
        # Where nodes outnumber features, weights themselves take the steps, in small products that run
        # at a fraction of the speed of large ones. A' is solved for.
        step = 4 * 40 * n * d * 256 if n > d else 40 * n * n * (d + 256)
        return max(self._least_iteration, (step + 20 * n**3) / self._speed)

    def _judge(self, look: Look) -> float:
        small = look.epochs * 4 * self._small * self._features
        real = look.validations * 2 * self._judged * self._filled
        work = len(look.networks) * look.hidden * (small + real)
        return self._seconds(work, epochs=look.epochs)

    def _seconds(self, operations: float, epochs: int = 0) -> float:
        return self._least + epochs * self._least_epoch + operations / self._speed
