"""A loss that is not finite: back to a good state at half the rate, three times; then a sentence."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gcsr import GCSR, MTT, SFGC, Checkpoint, GCond, GCondX, InputError
from gcsr.condense.gradient.step import Step as GradientStep
from gcsr.condense.trajectory.engine import Step
from helpers import planted_graph

EXPERTS: dict[str, Any] = {"experts": 2, "expert_epochs": 20, "max_start": 10, "hidden": 8}
LAST: dict[str, Any] = {"iterate": "last", **EXPERTS}
MATCH: dict[str, Any] = {"epochs": 40, "outer": 2, "inner": 1, "hidden": 8, "iterate": "last"}


@pytest.fixture(scope="module")
def graph():
    return planted_graph()


class Spoiled:
    """An engine's step whose loss and gradients are NaN at some calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: type, calls: Any) -> None:
        self.count = 0
        honest = step.loss_and_gradients

        def spoiled(engine: Any, *args: Any, **more: Any) -> Any:
            loss, gradients, *rest = honest(engine, *args, **more)
            self.count += 1
            if self.count in calls:
                loss, gradients = loss * torch.nan, tuple(g * torch.nan for g in gradients)
            return loss, gradients, *rest

        monkeypatch.setattr(step, "loss_and_gradients", spoiled)


def content(small: Any) -> Any:
    told = {name: value for name, value in small.provenance.items() if name != "measured"}
    return told, small.x.numpy().tobytes(), small.adjacency.numpy().tobytes()


@pytest.mark.parametrize("iterate", ["last", "best-val"])
def test_once_is_survived_and_said(graph, monkeypatch, iterate):
    settings = {**LAST, "iterate": iterate, "iterations": 120}
    spoiled = Spoiled(monkeypatch, Step, {77})
    small = GCSR(nodes=9, **settings).condense(graph, device="cpu")
    assert spoiled.count == 170
    assert torch.isfinite(small.x).all() and torch.isfinite(small.adjacency).all()
    assert small.provenance["notes"] == [
        "the matching loss was not finite by iteration 100: the run went back to iteration 50 and"
        " halved its rate"
    ]
    assert None not in small.provenance["matching_loss"]["values"]
    if iterate == "best-val":
        looked = small.provenance["validation"]["iterations"]
        assert looked == list(range(0, 121, 12))
    spoiled.count = 0
    assert content(GCSR(nodes=9, **settings).condense(graph, device="cpu")) == content(small)


def test_from_there_on_the_rate_is_half(graph, monkeypatch):
    """Spoiled at the first iteration of all, a run is one of half the rate."""
    half = MTT(nodes=9, feature_rate=1e-4, iterations=60, **LAST).condense(graph, device="cpu")
    Spoiled(monkeypatch, Step, {2})
    small = MTT(nodes=9, feature_rate=2e-4, iterations=60, **LAST).condense(graph, device="cpu")
    assert torch.equal(small.x, half.x)


@pytest.mark.parametrize("method", [GCSR, MTT])
def test_three_times_and_no_more(graph, monkeypatch, method, tmp_path):
    spoiled = Spoiled(monkeypatch, Step, range(71, 10_000))
    condenser = method(nodes=9, iterations=120, **LAST)
    sentence = (
        r"^feature_rate: the matching loss stopped being finite by iteration 100, also after the rate"
        r" was halved 3 times; .* is needed; the state before iteration 50 is kept in .*state\.$"
    )
    with pytest.raises(InputError, match=sentence):
        condenser.condense(graph, device="cpu", checkpoint=tmp_path / "state")
    assert spoiled.count == 100 + 3 * 50
    # What is kept is good: where the trouble is gone the run goes on from it.
    spoiled.count = -10_000
    again = condenser.condense(graph, device="cpu", checkpoint=tmp_path / "state")
    assert spoiled.count == -10_000 + 70
    assert torch.isfinite(again.x).all() and len(again.provenance["notes"]) == 3


def test_sfgc_still_returns_its_best_iterate(graph, monkeypatch):
    Spoiled(monkeypatch, Step, range(71, 10_000))
    small = SFGC(nodes=9, iterations=120, embedding_epochs=10, **EXPERTS).condense(
        graph, device="cpu"
    )
    assert torch.isfinite(small.x).all()
    assert len(small.provenance["notes"]) == 4
    assert "the best iterate before is returned" in small.provenance["notes"][-1]


def test_what_is_wrong_from_the_start_is_not_tried_again(graph, monkeypatch):
    spoiled = Spoiled(monkeypatch, Step, range(1, 10_000))
    with pytest.raises(InputError, match=r"^expert_rate: .* not a number from the start"):
        MTT(nodes=9, iterations=120, **LAST).condense(graph, device="cpu")
    assert spoiled.count == 50


def test_a_setback_is_part_of_the_state(graph, monkeypatch, tmp_path):
    """Ended after a setback, a run goes on at half the rate and tells of it."""
    condenser = MTT(nodes=9, iterations=200, **LAST)
    spoiled = Spoiled(monkeypatch, Step, {30})
    whole = condenser.condense(graph, device="cpu")
    spoiled.count = 0

    def end(stage: str, done: int, total: int) -> None:
        if stage == "condensing" and done == 100:
            raise KeyboardInterrupt

    checkpoint = Checkpoint(tmp_path / "state", every=0)
    with pytest.raises(KeyboardInterrupt):
        condenser.condense(graph, device="cpu", checkpoint=checkpoint, progress=end)
    spoiled.count = 10_000
    again = condenser.condense(graph, device="cpu", checkpoint=checkpoint)
    assert content(again) == content(whole)
    assert spoiled.count == 10_100


def test_gradient_matching_goes_back_too(graph, monkeypatch):
    spoiled = Spoiled(monkeypatch, GradientStep, {51})
    small = GCond(nodes=9, generator_hidden=8, **MATCH).condense(graph, device="cpu")
    assert spoiled.count == 2 * (40 + 6)
    assert torch.isfinite(small.x).all()
    assert small.provenance["notes"] == [
        "the matching loss was not finite by epoch 26: the run went back to epoch 20 and halved its"
        " rate"
    ]


def test_gradient_matching_gives_up_too(graph, monkeypatch, tmp_path):
    Spoiled(monkeypatch, GradientStep, range(51, 10_000))
    with pytest.raises(InputError, match=r"structure_rate is needed; the state before epoch 20 is"):
        GCondX(nodes=9, **MATCH).condense(graph, device="cpu", checkpoint=tmp_path / "state")
