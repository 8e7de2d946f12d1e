"""Mean, spread and 95 % interval of test accuracies, and whether two results differ.

Networks trained on one condensed graph share that graph. The independent unit is therefore the mean of
a graph. Only where there is a single graph are its runs the units: such an interval says nothing about
other condensed graphs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import stdtrit

from gcsr.utils.errors import checks_arguments, require
from gcsr.utils.formatting import accuracy, counted


@dataclass(frozen=True)
class Accuracy:
    """Test accuracies in percent of networks trained on one or several graphs.

    Attributes:
        mean: of all runs.
        interval: 95 % interval of the mean by Student's t over the means of graphs or, of a single
            graph, over its runs; ``None`` for a single run.
        interval_over: ``graphs`` or ``runs``.
        spread: sample deviation of what the interval is over.
        std: population deviation over all runs of all graphs, which papers report.
        scores: of every run, graph by graph.
    """

    mean: float
    interval: tuple[float, float] | None
    interval_over: str
    spread: float | None
    std: float
    scores: list[float]
    graphs: int

    @classmethod
    def of(cls, scores: Sequence[float], graphs: int = 1) -> Accuracy:
        """From the runs, equally many of each graph."""
        runs = np.asarray(scores, dtype=np.float64)
        # The independent values: the mean of each graph, or the runs of the only one.
        units = runs if graphs == 1 else runs.reshape(graphs, -1).mean(1)
        mean, spread, interval = float(runs.mean()), None, None
        if units.size > 1:
            spread = float(units.std(ddof=1))
            half = _quantile(units.size - 1) * spread / math.sqrt(units.size)
            interval = mean - half, mean + half
        over = "graphs" if graphs > 1 else "runs"
        return cls(mean, interval, over, spread, float(runs.std()), runs.tolist(), graphs)

    @property
    def plus_minus(self) -> float | None:
        """Half of the interval."""
        return None if self.interval is None else (self.interval[1] - self.interval[0]) / 2

    @property
    def explained(self) -> str:
        """What ``±`` is, and the deviation of all runs; empty for a single run."""
        if self.interval is None:
            return ""
        std = f"std {self.std:.1f} over {counted(len(self.scores), 'run')}"
        return f"±: 95 % interval over {self.interval_over}; {std}"

    def __str__(self) -> str:
        return accuracy(self.mean, self.plus_minus)


@dataclass(frozen=True)
class Difference:
    """How far one mean is from another in points, with a 95 % interval where both have one."""

    mean: float
    interval: tuple[float, float] | None

    @property
    def sign(self) -> int:
        """1: above, -1: below, 0: the interval contains 0, or there is none."""
        if self.interval is None:
            return 0
        low, high = self.interval
        return (low > 0) - (high < 0)

    @property
    def direction(self) -> str:
        """``above``, ``below`` or ``not distinguishable``."""
        return ("not distinguishable", "above", "below")[self.sign]

    @property
    def word(self) -> str:
        """The name of :attr:`direction` until version 0.3."""
        warnings.warn("word is called direction now", DeprecationWarning, stacklevel=2)
        return self.direction

    def __str__(self) -> str:
        mean, *ends = (f"{value:+.2f}" for value in (self.mean, *(self.interval or ())))
        return f"{mean} [{', '.join(ends)}]" if ends else mean


class Evaluated(Protocol):
    """What has test accuracies, such as :class:`gcsr.Evaluation`."""

    @property
    def accuracy(self) -> Accuracy:
        """The scores with the 95 % interval of their mean."""


@checks_arguments
def compare(first: Evaluated | Accuracy, second: Evaluated | Accuracy) -> Difference:
    """The mean accuracy of one evaluation less that of another, with Welch's 95 % interval.

    Args:
        first: what :func:`gcsr.evaluate` or :func:`gcsr.evaluate_full` returned.
        second: another one on the same test nodes.
    """
    first, second = _accuracy("first", first), _accuracy("second", second)
    mean = first.mean - second.mean
    if first.spread is None or second.spread is None:
        return Difference(mean, None)
    counts = [one.graphs if one.graphs > 1 else len(one.scores) for one in (first, second)]
    a, b = (one.spread**2 / n for one, n in zip((first, second), counts, strict=True))  # type: ignore[operator]
    if a + b == 0:
        return Difference(mean, (mean, mean))
    freedom = (a + b) ** 2 / (a**2 / (counts[0] - 1) + b**2 / (counts[1] - 1))
    half = _quantile(freedom) * math.sqrt(a + b)
    return Difference(mean, (mean - half, mean + half))


def _accuracy(name: str, given: Evaluated | Accuracy) -> Accuracy:
    found = given if isinstance(given, Accuracy) else getattr(given, "accuracy", None)
    kind = type(given).__name__
    require(isinstance(found, Accuracy), f"{name} must be a gcsr.Evaluation, got {kind}.")
    return found  # type: ignore[return-value]


# Resamples behind the interval of a rank correlation.
RESAMPLES = 2000


def rank_correlation(
    first: Sequence[float], second: Sequence[float], seed: int = 0
) -> tuple[float | None, tuple[float, float] | None]:
    r"""Kendall's :math:`\tau_b` of two rankings, with a 95 % interval over the ranked things.

    The interval is that of the percentile bootstrap; pairs of one thing drawn twice do not count.
    ``None`` where all values of a ranking are equal.
    """
    signs = [np.sign(np.subtract.outer(values, values)) for values in (first, second)]
    a, b = (np.asarray(one, dtype=np.float64) for one in signs)
    counts = np.random.default_rng(seed).multinomial(
        len(a), np.full(len(a), 1 / len(a)), size=RESAMPLES
    )
    drawn = np.concatenate([np.ones((1, len(a))), counts]).astype(np.float64)

    def summed(pairs: np.ndarray) -> np.ndarray:
        return np.asarray(((drawn @ pairs) * drawn).sum(1))

    scale = np.sqrt(summed(np.abs(a)) * summed(np.abs(b)))
    with np.errstate(invalid="ignore"):
        taus = summed(a * b) / scale
    if scale[0] == 0:
        return None, None
    low, high = np.nanpercentile(taus[1:], (2.5, 97.5))
    return float(taus[0]), (float(low), float(high))


def _quantile(freedom: float) -> float:
    """Of Student's t: both tails together are 5 %."""
    return float(stdtrit(freedom, 0.975))
