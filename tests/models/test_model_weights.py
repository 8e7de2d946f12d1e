from __future__ import annotations

import pytest
import torch

from gcsr.models.base import Dropout, init_batch
from gcsr.models.registry import MODELS
from gcsr.models.registry import testing_model as model_named
from gcsr.models.topology import EmptyTopology
from helpers import CPU

D, H, C = 40, 64, 5


def initial(name: str) -> tuple[torch.Tensor, ...]:
    return model_named(name, H).init(D, C, torch.Generator().manual_seed(0))


def assert_uniform(values: torch.Tensor, bound: float) -> None:
    assert values.abs().max() <= bound
    if values.numel() >= 200:
        assert values.abs().max() > 0.95 * bound
        assert values.std() == pytest.approx(bound / 3**0.5, rel=0.12)
        assert values.mean().abs() < 0.15 * bound


@pytest.mark.parametrize("name", [n for n in MODELS if n not in ("gat", "cheby-paper")])
def test_weights_and_biases_are_uniform_in_the_root_of_the_fan_in(name):
    w1, b1, w2, b2 = initial(name)
    assert_uniform(w1, D**-0.5)
    assert_uniform(b1, D**-0.5)
    assert_uniform(w2, H**-0.5)
    assert_uniform(b2, H**-0.5)
    assert b1.std() > 0
    assert b2.std() > 0


def test_biases_of_the_papers_cheby_start_at_zero():
    w1, b1, w2, b2 = initial("cheby-paper")
    assert_uniform(w1, D**-0.5)
    assert_uniform(w2, H**-0.5)
    assert not b1.any()
    assert not b2.any()


@pytest.mark.parametrize("name", MODELS)
def test_network_does_not_depend_on_its_batch(name):
    def generators(*seeds: int) -> list[torch.Generator]:
        return [torch.Generator().manual_seed(s) for s in seeds]

    model = model_named(name, H)
    batch = init_batch(model, D, C, generators(3, 4, 5))
    alone = init_batch(model, D, C, generators(4))
    for many, one in zip(batch, alone, strict=True):
        assert torch.equal(many[1:2], one)
        if one.any():
            assert not torch.equal(many[0], many[1])


@pytest.mark.parametrize("name", MODELS)
def test_dropout_acts_on_hidden_units_and_keeps_the_mean(name):
    model, params = model_named(name, H), initial(name)
    x = torch.randn(6, D, generator=torch.Generator().manual_seed(1))
    prepared = model.prepare(x, EmptyTopology(6, CPU))
    exact = model.logits(params, prepared)
    dropout = Dropout(0.5, torch.Generator().manual_seed(0))
    draws = torch.stack([model.logits(params, prepared, dropout) for _ in range(400)])
    assert draws.std(0).min() > 0
    error = (draws.mean(0) - exact).abs() / (draws.std(0) / 20)
    assert error.max() < 5
    none = model.logits(params, prepared, Dropout(0.0, dropout.generator))
    torch.testing.assert_close(none, exact, rtol=1e-5, atol=1e-6)
