"""A loss that is not finite: back to a good state at half the rate, three times; then a sentence."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gcsr import GCSR, MTT, SFGC, Automatic, Bilevel, Checkpoint, GCond, GCondX, InputError
from gcsr.engines.bilevel.engine import RealLoss
from gcsr.engines.gradient.engine import MatchGradients
from gcsr.engines.loop import DivergenceGuard, OuterStep, optimize
from gcsr.engines.trajectory.engine import Step
from gcsr.utils.progress import silent
from helpers import planted_graph

EXPERTS: dict[str, Any] = {"experts": 2, "expert_epochs": 20, "max_start": 10, "hidden_channels": 8}
LAST: dict[str, Any] = {"iterate": "last", **EXPERTS}
MATCH: dict[str, Any] = {
    "epochs": 40,
    "outer": 2,
    "inner": 1,
    "hidden_channels": 8,
    "iterate": "last",
}

STUDENTS: dict[str, Any] = {
    "students": 2,
    "hidden_channels": 8,
    "window": 3,
    "burn_in": 2,
    "longest": 12,
}


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
        "the loss was not finite by iteration 100: the run went back to iteration 50 and"
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
    half = MTT(nodes=9, feature_lr=1e-4, iterations=60, **LAST).condense(graph, device="cpu")
    Spoiled(monkeypatch, Step, {2})
    small = MTT(nodes=9, feature_lr=2e-4, iterations=60, **LAST).condense(graph, device="cpu")
    assert torch.equal(small.x, half.x)


@pytest.mark.parametrize("method", [GCSR, MTT])
def test_three_times_and_no_more(graph, monkeypatch, method, tmp_path):
    spoiled = Spoiled(monkeypatch, Step, range(71, 10_000))
    condenser = method(nodes=9, iterations=120, **LAST)
    sentence = (
        r"^feature_lr: the matching loss stopped being finite by iteration 100, also after the rate"
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
    with pytest.raises(InputError, match=r"^expert_lr: .* not a number from the start"):
        MTT(nodes=9, iterations=120, **LAST).condense(graph, device="cpu")
    assert spoiled.count == 1


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
    spoiled = Spoiled(monkeypatch, MatchGradients, {51})
    small = GCond(nodes=9, generator_hidden_channels=8, **MATCH).condense(graph, device="cpu")
    assert spoiled.count == 2 * (40 + 6)
    assert torch.isfinite(small.x).all()
    assert small.provenance["notes"] == [
        "the loss was not finite by epoch 26: the run went back to epoch 20 and halved its rate"
    ]


def test_gradient_matching_gives_up_too(graph, monkeypatch, tmp_path):
    Spoiled(monkeypatch, MatchGradients, range(51, 10_000))
    with pytest.raises(InputError, match=r"structure_lr is needed; the state before epoch 20 is"):
        GCondX(nodes=9, **MATCH).condense(graph, device="cpu", checkpoint=tmp_path / "state")


# -- bilevel condensation ------------------------------------------------------------------------------


class SpoiledReal:
    """A real loss that is NaN, with its gradients, at some calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, calls: Any, students: Any = ...) -> None:
        self.count = 0
        honest = RealLoss.losses_and_gradients

        def spoiled(real: RealLoss, *args: Any) -> Any:
            losses, gradients = honest(real, *args)
            self.count += 1
            if self.count in calls:
                losses[:, students] = torch.nan
                gradients[3][:, students] = torch.nan
            return losses, gradients

        monkeypatch.setattr(RealLoss, "losses_and_gradients", spoiled)


def test_bilevel_goes_back_once_and_says_so(graph, monkeypatch):
    whole = Bilevel(nodes=9, iterations=50, **STUDENTS)
    spoiled = SpoiledReal(monkeypatch, {23})
    small = whole.condense(graph, device="cpu")
    assert spoiled.count == 60
    assert torch.isfinite(small.x).all() and torch.isfinite(small.y).all()
    (note,) = small.provenance["notes"]
    assert "not finite by iteration 30: the run went back to iteration 20" in note
    assert None not in small.provenance["real_loss"]["values"]
    # No look counts twice.
    looked = small.provenance["validation"]["iterations"]
    assert looked == sorted(set(looked)) and looked[0] == 0 and looked[-1] == 50
    spoiled.count = 0
    assert content(whole.condense(graph, device="cpu")) == content(small)


def test_from_there_on_both_rates_of_bilevel_are_half(graph, monkeypatch):
    """Spoiled at the first iteration of all, a run is one of half the rates."""
    more = {"iterations": 20, "iterate": "last", **STUDENTS}
    half, full = (
        Bilevel(nodes=9, feature_lr=rate * 0.04, label_lr=rate * 0.06, **more) for rate in (0.5, 1)
    )
    expected = half.condense(graph, device="cpu")
    other = full.condense(graph, device="cpu")
    SpoiledReal(monkeypatch, {1})
    small = full.condense(graph, device="cpu")
    assert torch.equal(small.x, expected.x) and torch.equal(small.y, expected.y)
    assert not torch.equal(small.x, other.x)


def test_one_student_that_is_lost_is_no_setback(graph, monkeypatch):
    SpoiledReal(monkeypatch, range(5, 15), students=1)
    small = Bilevel(nodes=9, iterations=30, iterate="last", **STUDENTS).condense(
        graph, device="cpu"
    )
    assert small.provenance["notes"] == [] and torch.isfinite(small.x).all()
    assert None not in small.provenance["real_loss"]["values"]


def test_bilevel_gives_up_after_three_times_and_keeps_what_was_good(graph, monkeypatch, tmp_path):
    spoiled = SpoiledReal(monkeypatch, range(25, 10_000))
    condenser = Bilevel(nodes=9, iterations=50, **STUDENTS)
    sentence = (
        r"^feature_lr: the real loss stopped being finite by iteration 30, also after the rates were"
        r" halved 3 times; .* needed; the state before iteration 20 is kept in .*state\.$"
    )
    with pytest.raises(InputError, match=sentence):
        condenser.condense(graph, device="cpu", checkpoint=tmp_path / "state")
    assert spoiled.count == 30 + 3 * 10
    # Where the trouble is gone the run goes on from there.
    spoiled.count = -10_000
    again = condenser.condense(graph, device="cpu", checkpoint=tmp_path / "state")
    assert spoiled.count == -10_000 + 30
    assert torch.isfinite(again.x).all() and len(again.provenance["notes"]) == 3


def test_a_rate_at_the_end_of_the_numbers_is_halved(graph):
    condenser = Bilevel(nodes=9, iterations=20, feature_lr=1e38, iterate="last", **STUDENTS)
    small = condenser.condense(graph, device="cpu")
    (note,) = small.provenance["notes"]
    assert "not finite by iteration 10: the run went back to iteration 0" in note
    assert torch.isfinite(small.x).all()


@pytest.mark.parametrize("structure", ["none", "self-expressive"])
def test_a_rate_beyond_the_numbers_is_one_sentence(graph, structure):
    condenser = Bilevel(nodes=9, iterations=20, feature_lr=1e39, structure=structure, **STUDENTS)
    with pytest.raises(InputError, match=r"^feature_lr: the real loss stopped being finite by "):
        condenser.condense(graph, device="cpu")


class Overflowing(OuterStep):
    """Features that stop being finite in one step, whose loss is finite."""

    def __init__(self) -> None:
        self.x, self.calls = torch.zeros(1, 2, 2), 0

    def buffers(self) -> tuple[torch.Tensor, ...]:
        return (self.x,)

    def __call__(self, iteration: int, lr_scale: torch.Tensor | None = None) -> torch.Tensor:
        self.calls += 1
        self.x += torch.inf if self.calls == 15 else 1.0
        return torch.ones(1)

    def divergence_message(self, iteration: int) -> str:
        return "never"

    def release(self) -> None: ...


def test_features_that_are_not_finite_are_no_good_state_whatever_the_loss():
    step, guard = Overflowing(), DivergenceGuard()
    optimize(step, 20, guard=guard, progress=silent, check_every=10)
    assert step.calls == 30 and step.x.eq(20).all()
    assert "not finite by iteration 20: the run went back to iteration 10" in guard.notes(0)[0]


def test_the_automatic_mode_outlives_it(graph, monkeypatch):
    SpoiledReal(monkeypatch, range(1, 10_000))
    pins = tuple((STUDENTS | {"iterations": 20}).items())
    small = Automatic(nodes=9, fixed=pins).condense(graph, device="cpu")
    (out,) = small.provenance["automatic"]["left_out"]
    assert out["reason"].startswith("feature_lr: the real loss stopped being finite")
    assert torch.isfinite(small.x).all()
