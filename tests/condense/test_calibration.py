"""Rates that suit a graph, and a scaling of its features."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest
import torch

import gcsr
from gcsr import InputError, View
from gcsr.condense.automatic import calibration
from gcsr.condense.automatic.calibration import EXPERT_RATES, calibrate
from gcsr.condense.methods import GCSR
from gcsr.training import TrainingRecipe
from helpers import CPU, planted_graph, with_other_test_labels


@pytest.fixture(scope="module")
def graph():
    return planted_graph()


def test_students_of_the_real_graph_come_closest_at_their_calibrated_rate(graph):
    view = View(graph).condensing()
    found = calibrate(view, CPU, {"hidden": 8})
    assert found.expert_rate in EXPERT_RATES and found.learned >= 10
    assert [(one.steps, one.expert_steps) for one in found.students] == [(5, 2), (10, 10)]
    for one in found.students:
        pair = {"student_steps": one.steps, "expert_steps": one.expert_steps, "hidden": 8}
        for factor in (1 / 3, 3):
            pins = pair | {"expert_rate": found.expert_rate, "student_rate": factor * one.rate}
            (other,) = calibrate(view, CPU, pins).students
            assert other.distance > one.distance
        assert one.distance < 1
    assert calibrate(view, CPU, {"hidden": 8}) == found


def test_the_slowest_rate_that_comes_close_is_taken(graph, monkeypatch):
    best = dict(zip(EXPERT_RATES, (0.7, 0.798, 0.8, 0.6), strict=True))
    monkeypatch.setattr(
        calibration._Watch, "until_learned", lambda _, school: (best[school.recipe.rate], 20)
    )
    found = calibrate(View(graph).condensing(), CPU, {"hidden": 8})
    assert found.expert_rate == EXPERT_RATES[1] and found.learned == 20
    assert dict(found.validation) == best


def test_experts_are_watched_until_they_stop_learning(graph):
    scores = iter([0.2, 0.4, 0.6, 0.603, 0.5, 0.5, 0.5, 0.5, 0.9])
    view = View(graph).condensing()
    model = importlib.import_module("gcsr.models").condensing_model("sgc", 8)
    watch = calibration._Watch(model, view.validation, CPU)
    recipe = calibration._recipe(1e-2, 100, {}, restart=False)
    school = calibration.School(model, view.visible, recipe, CPU, torch.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            calibration, "accuracy", lambda *_, **__: torch.tensor([next(scores)] * 2).double()
        )
        best, learned = watch.until_learned(school)
    # The ninth look is never taken, and the third is close enough to the best.
    assert best == pytest.approx(0.603) and learned == 15
    assert next(scores) == 0.9


def test_every_pair_makes_settings_that_a_method_takes(graph):
    view = View(graph).condensing()
    for pins in ({}, {"expert_epochs": 8, "max_start": 4}, {"max_start": 30}, {"expert_steps": 7}):
        found = calibrate(view, CPU, {"hidden": 8, **pins})
        assert found.students
        for pair in range(len(found.students)):
            settings = found.settings(pair) | pins
            GCSR(nodes=9, **settings)
        kept = {
            s["max_start"] + s["expert_steps"]
            for s in map(found.settings, range(len(found.students)))
        }
        assert len(kept) == 1, "pairs share their experts"


def test_test_labels_change_no_calibration(graph):
    ours, theirs = (
        calibrate(View(g).condensing(), CPU, {"hidden": 8})
        for g in (graph, with_other_test_labels(graph))
    )
    assert ours == theirs


# -- feature scaling -----------------------------------------------------------------------------------


@pytest.fixture
def brief(monkeypatch):
    scaling = importlib.import_module("gcsr.condense.scaling")
    monkeypatch.setattr(scaling, "RECIPE", TrainingRecipe(epochs=30, validate_every=5))


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("inductive", [False, True])
def test_the_scaling_that_validates_best_is_chosen(inductive):
    graph = planted_graph(inductive=inductive)
    # One column drowns the others, unless columns are brought to the same size.
    x = graph.x.clone()
    x[:, 0] = 1e3 * torch.randn(x.shape[0], generator=torch.Generator().manual_seed(0))
    choice = gcsr.choose_scaling(replace(graph, x=x), device="cpu")
    assert choice.features == "standardise"
    assert choice.validation["standardise"] == max(choice.validation.values())
    assert set(choice.validation) == {"keep", "rows", "standardise"}
    other = gcsr.choose_scaling(with_other_test_labels(replace(graph, x=x)), device="cpu")
    assert other == choice


def test_a_graph_that_is_scaled_already_is_refused(graph):
    with pytest.raises(InputError, match="features: already scaled by 'rows'"):
        gcsr.choose_scaling(graph.scaled("rows"))
    with pytest.raises(InputError, match=r"graph: a gcsr\.Graph is needed"):
        gcsr.choose_scaling("cora")  # type: ignore[arg-type]


def test_rates_that_all_diverge_are_not_taken(graph, tmp_path):
    """On features of a huge scale every student leaves the numbers."""
    huge = replace(graph, x=graph.x * 1e12)
    found = calibrate(View(huge).condensing(), CPU, {"hidden": 8})
    assert all(one.distance < float("inf") for one in found.students)
    small = gcsr.condense(graph, nodes=6, method="random")
    spoilt = replace(small, provenance=small.provenance | {"rate": float("inf")})
    with pytest.raises(InputError, match="provenance: holds a number that is not finite"):
        spoilt.save(tmp_path / "small.safetensors")
