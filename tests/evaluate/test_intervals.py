"""Intervals and comparisons of accuracies beside those of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import gcsr
from gcsr.evaluation.intervals import Accuracy, compare

RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize(("graphs", "runs"), [(3, 5), (5, 1), (1, 10)])
def test_the_interval_is_that_of_graph_means(graphs, runs):
    scores = 80 + RANDOM.standard_normal((graphs, 1)) + 0.1 * RANDOM.standard_normal((graphs, runs))
    units = scores.mean(1) if graphs > 1 else scores[0]
    found = Accuracy.of(scores.ravel(), graphs)
    expected = stats.ttest_1samp(units, 0).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert found.spread == pytest.approx(units.std(ddof=1))
    assert found.std == pytest.approx(scores.std()) and found.mean == pytest.approx(scores.mean())
    assert found.interval_over == ("graphs" if graphs > 1 else "runs")
    assert f"over {found.interval_over}; std {scores.std():.1f}" in found.explained
    assert str(found) == f"{scores.mean():.1f} ± {(expected.high - expected.low) / 2:.1f} %"


def test_a_single_run_has_no_interval_and_is_never_above():
    one, many = Accuracy.of([99.0]), Accuracy.of([50.0, 50.1, 50.2])
    assert one.interval is None and str(one) == "99.0 %" and one.explained == ""
    assert compare(one, many).sign == 0 and compare(one, many).interval is None


def test_the_comparison_is_welchs():
    ours, theirs = 80 + RANDOM.standard_normal((3, 5)), 79 + 0.2 * RANDOM.standard_normal((7, 2))
    found = compare(Accuracy.of(ours.ravel(), 3), Accuracy.of(theirs.ravel(), 7))
    expected = stats.ttest_ind(ours.mean(1), theirs.mean(1), equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert found.interval == pytest.approx((interval.low, interval.high))
    assert found.sign == (0 if expected.pvalue > 0.05 else np.sign(found.mean))


@pytest.mark.parametrize(
    ("ours", "theirs", "word"),
    [
        ([80, 80.1, 79.9], [70, 70.1, 69.9], "above"),
        ([70, 70.1, 69.9], [80, 80.1, 79.9], "below"),
        ([80, 90, 70], [79, 79.1, 78.9], "not distinguishable"),
        ([80, 80], [79, 79], "above"),  # no spread at all
        ([80, 80], [80, 80], "not distinguishable"),
    ],
)
def test_above_only_where_the_interval_excludes_zero(ours, theirs, word):
    assert compare(Accuracy.of(ours), Accuracy.of(theirs)).direction == word


def test_runs_of_the_same_graphs_do_not_narrow_the_interval():
    means = np.array([[80.0], [82.0], [81.0]])
    few, many = (Accuracy.of(np.repeat(means, runs, 1).ravel(), 3) for runs in (2, 50))
    assert few.interval == pytest.approx(many.interval)


def test_evaluations_are_compared_by_the_public_function():
    graph, recipe = gcsr.load("digits"), gcsr.TrainingRecipe(epochs=5)
    small = gcsr.condense_many(graph, nodes=20, method="random", seeds=range(2))
    first, second = (gcsr.evaluate(one, graph, runs=1, recipe=recipe) for one in (small, small[0]))
    assert gcsr.compare(first, first).interval == pytest.approx(
        compare(first.accuracy, first.accuracy).interval
    )
    assert gcsr.compare(first, second).mean == pytest.approx(first.mean - second.mean)
    with pytest.raises(gcsr.InputError, match=r"^second must be a gcsr\.Evaluation, got float\."):
        gcsr.compare(first, 80.0)
    with pytest.raises(gcsr.InputError, match=r"^second must be given to gcsr\.compare"):
        gcsr.compare(first)
