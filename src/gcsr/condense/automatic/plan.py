"""How much of the race fits into a budget, by a count of operations.

Nothing is timed: the same graph, size, budget and kind of device give the same plan, and so the same
result. Seconds are those of one core, or of a data-centre GPU, give or take a factor of two.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcsr.views import CondensingView

# Operations per second that small networks reach, and seconds that no work goes below.
SPEED = {"cpu": 5e10, "cuda": 5e12}
LEAST = {"cpu": 0.02, "cuda": 0.4}
# What an epoch takes however small a graph is.
LEAST_EPOCH = {"cpu": 2.5e-3, "cuda": 0.5e-3}
LEAST_ITERATION = {"cpu": 1e-3, "cuda": 1e-3}
# Work per stored number of a sparse product, in that of a dense one.
SPARSE_FACTOR = 4.0
K_MEANS_ROUNDS = 30
TEACHERS = ("gcn", "self-trained", "appnp")
HOPS = (1, 2, 0)
MATCHED = 6
FINALISTS = 3
SCOUT_ITERATIONS = 300
# How often a matched candidate looks at its iterates, the start and the end included.
LOOKS = 11
MOST_ITERATIONS = 3000


@dataclass(frozen=True)
class Look:
    """How closely a round looks: GCNs of some width, trained for some epochs."""

    hidden: int
    epochs: int
    networks: range


# Narrow networks tell good starts from bad ones; the last word have networks nobody met before, as
# wide as those of the protocol.
FIRST = Look(64, 60, range(2))
CLOSER = Look(128, 150, range(2))
LAST = Look(256, 200, range(10, 13))
CLOSELY = 6
# The best starts begin k-means elsewhere too, so often.
REDRAWN, DRAWS = 2, 3


@dataclass(frozen=True)
class Plan:
    """Which starts are tried, and for how many iterations matching is.

    Args:
        teachers, hops: of the clustered starts.
        scouts: iterations of every matched candidate; 0: there are none.
        iterations: of the matched candidate that did best.
        seconds: what all this is expected to take.
    """

    teachers: tuple[str, ...]
    hops: tuple[int, ...]
    scouts: int
    iterations: int
    seconds: float


def plan_for(view: CondensingView, nodes: int, budget: float, kind: str) -> Plan:
    """The largest plan that is expected to take no more than ``budget`` seconds per graph."""
    costs = _Costs(view, nodes, kind)
    starts = [(TEACHERS[:teachers], HOPS[:hops]) for teachers, hops in _LADDER]
    for chosen in reversed(starts):
        base = costs.starts(*chosen)
        left = budget - base - costs.scouting
        most = costs.affordable(left)
        if chosen == starts[-1] and most >= 2 * SCOUT_ITERATIONS:
            seconds = budget - left + costs.longer(most)
            return Plan(*chosen, SCOUT_ITERATIONS, most, seconds)
        if base <= budget:
            return Plan(*chosen, 0, 0, base)
    return Plan(*starts[0], 0, 0, costs.starts(*starts[0]))


# Teachers and hops of the clustered starts, from the least to the most.
_LADDER = ((1, 1), (1, 3), (2, 2), (2, 3), (3, 3))


class _Costs:
    """Seconds that parts of the race are expected to take."""

    def __init__(self, view: CondensingView, nodes: int, kind: str) -> None:
        visible, validation = view.visible, view.validation
        self._speed, self._least = SPEED[kind], LEAST[kind]
        self._least_iteration = LEAST_ITERATION[kind]
        self._least_epoch = LEAST_EPOCH[kind]
        self._features = int(visible.x.shape[1])
        filled = float(visible.x.count_nonzero()) / max(1, visible.num_nodes)
        self._all, self._small = visible.num_nodes, nodes
        degree = visible.adjacency.nnz / max(1, visible.num_nodes)
        # Rows of the real graph are multiplied as sparse ones where that takes less, on a CPU.
        sparse = SPARSE_FACTOR * filled * (1 + degree) if kind == "cpu" else self._features
        self._filled = min(float(self._features), sparse)
        self._train = min(self._all, visible.train.numel() * (1 + degree))
        known = int(validation.x.shape[0])
        self._judged = min(known, validation.nodes.numel() * (1 + degree))

    def starts(self, teachers: tuple[str, ...], hops: tuple[int, ...]) -> float:
        """Teachers, and the judging of every start."""
        total = 0.0
        for teacher in teachers:
            rows = self._all if teacher == "self-trained" else self._train
            work = 5 * 64 * self._filled * (1200 * rows + 200 * self._judged)
            total += self._seconds(work, epochs=200)
        # Herding: 100 epochs of one network of the same width, which validates after each.
        work = 64 * self._filled * (600 * self._train + 200 * self._judged)
        total += self._seconds(work, epochs=100)
        count = 2 * len(teachers) * len(hops)
        spread = 2 * self._all * self._features * (len(hops) + count * K_MEANS_ROUNDS)
        total += self._seconds(spread)
        closer = 2 + min(count, CLOSELY) + REDRAWN * DRAWS
        total += count * self._judge(FIRST) + closer * self._judge(CLOSER)
        return total + (2 + FINALISTS) * self._judge(LAST)

    @property
    def scouting(self) -> float:
        """Experts, and every matched candidate for a few iterations."""
        experts = self._seconds(20 * 600 * self._filled * self._train)
        return experts + MATCHED * (SCOUT_ITERATIONS * self._iteration + self._judge(CLOSER))

    def longer(self, iterations: int) -> float:
        """The best of them for many iterations, with looks on the way."""
        looks = LOOKS * self._judge(Look(256, 200, range(2))) + self._judge(CLOSER)
        return looks + iterations * self._iteration

    def affordable(self, seconds: float) -> int:
        """How many iterations that may be, in hundreds."""
        left = seconds - self.longer(0)
        return min(MOST_ITERATIONS, int(left / self._iteration) // 100 * 100)

    @property
    def _iteration(self) -> float:
        n, d = self._small, self._features
        step = 5 * 8 * n * d * 256 if n > d else 40 * n * n * d + 5 * 8 * n * n * 256
        # Small products run at a fraction of the speed of large ones, and A' is solved for.
        return max(self._least_iteration, (4 * step + 20 * n**3) / self._speed)

    def _judge(self, look: Look) -> float:
        small = look.epochs * 6 * self._small * self._features
        real = 20 * 2 * self._judged * self._filled
        work = len(look.networks) * look.hidden * (small + real)
        return self._seconds(work, epochs=look.epochs)

    def _seconds(self, operations: float, epochs: int = 0) -> float:
        return self._least + epochs * self._least_epoch + operations / self._speed
