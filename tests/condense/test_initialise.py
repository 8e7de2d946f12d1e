from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from gcsr.data.views import View
from gcsr.starts.sample import block_labels, sample_training_rows
from helpers import planted_graph


@pytest.fixture
def visible():
    return View(planted_graph()).condensing().visible


def sampled(visible, budget, seed=0):
    labels = block_labels(torch.tensor(budget))
    generator = torch.Generator().manual_seed(seed)
    return labels, sample_training_rows(visible.x, visible, labels, generator)


def test_rows_are_training_rows_of_the_label(visible):
    labels, start = sampled(visible, [4, 7, 2])
    assert torch.equal(start.x, visible.x[start.nodes])
    assert torch.equal(visible.labels[start.nodes], labels)
    assert set(start.nodes.tolist()) <= set(visible.train.tolist())
    assert start.nodes.unique().numel() == 13
    assert start.notes == ()


def test_class_with_too_few_nodes_repeats_them_with_jitter_and_says_so(visible):
    labels, start = sampled(visible, [10, 7, 2])
    assert torch.equal(visible.labels[start.nodes], labels)
    assert start.nodes[:10].unique().numel() == 7
    same = torch.cdist(start.x, start.x) + torch.eye(19) < 1e-6
    assert not same.any()
    away = (start.x - visible.x[start.nodes]).norm(dim=1) / visible.x.norm(dim=1).mean()
    assert (away[7:10] > 0).all()
    assert (away[7:10] < 0.01).all()
    assert not away[:7].any()
    assert not away[10:].any()
    assert len(start.notes) == 1
    assert start.notes[0].startswith("3 of 19 nodes repeat")


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_jitter_has_the_size_of_the_features(visible, size):
    _, start = sampled(visible, [10, 7, 2])
    _, other = sampled(replace(visible, x=size * visible.x), [10, 7, 2])
    torch.testing.assert_close(other.x / size, start.x)


def test_source_is_left_alone(visible):
    before = visible.x.clone()
    _, start = sampled(visible, [10, 7, 2])
    start.x.zero_()
    assert torch.equal(visible.x, before)


def test_seed_decides(visible):
    assert torch.equal(sampled(visible, [3, 3, 3], 1)[1].x, sampled(visible, [3, 3, 3], 1)[1].x)
    assert not torch.equal(sampled(visible, [3, 3, 3], 1)[1].x, sampled(visible, [3, 3, 3], 2)[1].x)
