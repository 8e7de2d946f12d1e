from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gcsr.starts.sample import TooFewNodesError, block_labels, class_budget
from gcsr.utils.errors import InputError

COUNTS = st.lists(st.integers(0, 60), min_size=1, max_size=12).filter(any)


def labels_of(counts: list[int]) -> torch.Tensor:
    return torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))


@given(counts=COUNTS, nodes=st.integers(1, 300))
@settings(deadline=None)
def test_budget_is_exact_and_fair(counts, nodes):
    present = sum(count > 0 for count in counts)
    assume(nodes >= present)
    budget = class_budget(labels_of(counts), len(counts), nodes).tolist()
    assert sum(budget) == nodes
    exact = [count / sum(counts) * nodes for count in counts]
    for got, count in zip(budget, counts, strict=True):
        assert got >= 1 if count else got == 0
    if min(share for share in exact if share) >= 1:
        # Nobody had to be lifted to one node, so that rounding is all there is.
        assert all(abs(got - share) < 1 for got, share in zip(budget, exact, strict=True))
    # More training nodes never mean fewer condensed nodes.
    for got, count in zip(budget, counts, strict=True):
        for other, fewer in zip(budget, counts, strict=True):
            assert got >= other or count <= fewer or other == 1 or abs(got - other) <= 1


@given(counts=COUNTS)
@settings(deadline=None)
def test_as_many_nodes_as_training_nodes_gives_the_training_counts(counts):
    assert class_budget(labels_of(counts), len(counts), sum(counts)).tolist() == counts


@given(counts=COUNTS.filter(lambda counts: sum(c > 0 for c in counts) > 1), short=st.integers(1, 3))
@settings(deadline=None)
def test_too_few_nodes_are_refused_with_both_numbers(counts, short):
    classes = sum(count > 0 for count in counts)
    nodes = max(1, classes - short)
    with pytest.raises(InputError) as caught:
        class_budget(labels_of(counts), len(counts), nodes)
    said = f"nodes must be >= {classes}, the number of classes with training nodes, got {nodes}."
    assert str(caught.value) == said


@given(classes=st.integers(2, 60), more=st.integers(0, 100_000))
@settings(deadline=None)
def test_the_smallest_ratio_works(classes, more):
    error = TooFewNodesError()
    error.classes, visible = classes, classes + more
    said = str(error.of_ratio(1e-9, visible))
    least = float(said.removeprefix("ratio must be >= ").partition(",")[0])
    assert round(least * visible) >= classes and least <= 1
    # Three digits: at most a hundredth above the smallest one.
    assert least <= 1.02 * (classes - 0.5) / visible and said.endswith("got 1e-09.")


@pytest.mark.parametrize(
    ("counts", "nodes", "expected"),
    [
        ([20] * 7, 35, [5] * 7),
        ([20] * 7, 70, [10] * 7),
        ([20] * 6, 30, [5] * 6),
        ([1, 1, 98], 10, [1, 1, 8]),
        ([5, 3, 2], 4, [2, 1, 1]),
        ([0, 4, 0, 4], 3, [0, 2, 0, 1]),
        ([1000, 1, 1, 1], 4, [1, 1, 1, 1]),
    ],
)
def test_examples(counts, nodes, expected):
    assert class_budget(labels_of(counts), len(counts), nodes).tolist() == expected


def test_labels_lie_in_blocks():
    assert block_labels(torch.tensor([2, 0, 1])).tolist() == [0, 0, 2]
