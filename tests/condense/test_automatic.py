"""The automatic mode: what it compares, what it keeps, and what a budget buys."""

from __future__ import annotations

import importlib
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import gcsr
from gcsr import CondensedGraph, Graph, InputError, InputWarning, View
from gcsr.auto.automatic import Automatic
from gcsr.engines.bilevel.window import InnerAdam, Students, Window
from gcsr.engines.iterates import QuickScore
from gcsr.methods.bilevel import Bilevel
from gcsr.methods.registry import REMOVED, build, value_of
from gcsr.methods.selection import Herding
from gcsr.starts.pseudo_labels import LabelerInputs
from gcsr.training.fit import TrainingRecipe
from helpers import CPU, planted_graph

# By name: the packages' own attributes are functions and classes.
auto = importlib.import_module("gcsr.auto.automatic")
bilevel = importlib.import_module("gcsr.methods.bilevel")
# Bilevel condensation that takes a moment.
SHORT: dict[str, Any] = {
    "students": 2,
    "hidden_channels": 8,
    "window": 3,
    "longest": 12,
    "burn_in": 2,
}
STEPS = 8
MUCH = 1e6
STATUS = Path("/proc/self/status")
# Estimated and then measured, in a process of its own.
PEAK = f"""
import sys
from gcsr.cli.app import main
words = sys.argv[1:]
assert main([*words, "--estimate", "--json"]) == 0
assert main([*words, "--out", "made.safetensors", "--no-checkpoint", "--json"]) == 0
print(*(line.split()[1] for line in open({str(STATUS)!r}) if line.startswith("VmHWM:")))
"""


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    labels = importlib.import_module("gcsr.starts.pseudo_labels")
    for name in ("SUPERVISED_RECIPE", "CONSISTENT_RECIPE"):
        monkeypatch.setattr(labels, name, TrainingRecipe(epochs=10, dropout=0.5))
    for module in (auto, bilevel):
        monkeypatch.setattr(module, "QUICK", TrainingRecipe(epochs=20, validate_every=5))
    monkeypatch.setattr(auto, "BRIEF_EMBEDDING", {"hidden_channels": 8, "epochs": 5})


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_graph(noise=2.0)


@pytest.fixture(scope="module")
def few_labels() -> Graph:
    return planted_graph(train_per_class=4, noise=2.0)


def short(*, disable: str = "", budget: float = MUCH, **fixed: Any) -> Automatic:
    given = SHORT | {"iterations": STEPS} | fixed
    chosen = tuple((name, value) for name, value in given.items() if value is not None)
    return Automatic(nodes=9, budget=budget, disable=disable, fixed=chosen)


def made(graph: Graph, seed: int = 0, **settings: Any) -> CondensedGraph:
    return short(**settings).condense(graph, seed=seed, device="cpu")


def content(small: CondensedGraph) -> tuple[bytes, ...]:
    return tuple(part.numpy().tobytes() for part in (small.x, small.adjacency, small.y))


def learned(story: dict[str, Any]) -> list[Bilevel]:
    """Candidates of bilevel condensation, as they can be made again."""
    candidates = [one for one in story["candidates"] if one["method"] == "bilevel"]
    return [Bilevel(nodes=9, **one["settings"]) for one in candidates]


def final_word(monkeypatch: pytest.MonkeyPatch, *, simple: bool) -> None:
    """In the final comparison Random and Herding win, or nobody does against what was learned."""
    honest = QuickScore.score

    def score(self, x, a, y, networks, seed, **more):
        if seed != auto.FINAL_SEED:
            return honest(self, x, a, y, networks, seed, **more)
        return float(y.is_floating_point() != simple)

    monkeypatch.setattr(QuickScore, "score", score)


def test_it_is_what_condense_does_when_nobody_says_otherwise(graph):
    small = gcsr.condense(graph, nodes=9, budget=0.001, device="cpu")
    assert small.provenance["method"] == "auto"
    assert gcsr.api.chosen_method(None, "paper", 35, None) == "gcsr"


# -- what is kept --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("which", ["graph", "few_labels"])
def test_the_result_validates_no_worse_than_random_herding_and_its_start(which, seed, request):
    story = made(request.getfixturevalue(which), seed).provenance["automatic"]
    final = [one for one in story["candidates"] if "final" in one["validation"]]
    assert [one["method"] for one in final] == ["random", "herding", "bilevel", "bilevel"]
    assert [one["settings"].get("iterations") for one in final[2:]] == [0, STEPS]
    starts = [one for one in story["candidates"] if one["settings"].get("iterations") == 0]
    assert len(starts) == len(auto.HOPS)
    quick = [one["validation"]["quick"] for one in starts]
    assert final[2]["validation"]["quick"] == max(quick)
    # What was learned is kept at its best, the start included.
    assert final[3]["validation"]["quick"] >= final[2]["validation"]["quick"]
    (chosen,) = [one for one in final if one.items() >= story["chosen"].items()]
    best = max(one["validation"]["final"] for one in final)
    assert chosen["validation"]["final"] == best


@pytest.mark.parametrize(("sign", "hops"), [(1, 0), (-1, 2)])
def test_steps_begin_at_the_start_that_validates_best(graph, monkeypatch, sign, hops):
    """Rows after more hops vary less: here the most, or the least, varied start is the best."""
    varied = lambda self, x, *more, **others: sign * float(x.var(0).sum())  # noqa: E731
    monkeypatch.setattr(QuickScore, "score", varied)
    story = made(graph, iterate="last").provenance["automatic"]
    (learned_from,) = [one.num_hops for one in learned(story) if one.iterations == STEPS]
    final = [one for one in story["candidates"] if "final" in one["validation"]]
    assert learned_from == final[2]["settings"].get("num_hops", 1) == hops


def test_the_final_comparison_decides_and_not_the_first(few_labels, monkeypatch):
    honest = QuickScore.score

    def score(self, x, a, y, networks, seed, **more):
        # What chose the start likes what was learned best; the final networks like Random.
        if seed != auto.FINAL_SEED:
            return honest(self, x, a, y, networks, seed, **more)
        real = [bool((few_labels.x == row).all(1).any()) for row in x]
        return 1.0 if all(real) else 0.5

    monkeypatch.setattr(QuickScore, "score", score)
    small = made(few_labels)
    assert small.provenance["automatic"]["chosen"]["method"] in ("random", "herding")
    assert all((few_labels.x == row).all(1).any() for row in small.x)


def test_the_final_networks_chose_nothing_before(graph, monkeypatch):
    honest, met = QuickScore.score, {}

    def score(self, x, a, y, networks, seed, **more):
        for network in networks:
            met.setdefault(seed, set()).add(network)
        return honest(self, x, a, y, networks, seed, **more)

    monkeypatch.setattr(QuickScore, "score", score)
    made(graph)
    assert set(met) == {0, auto.FINAL_SEED} and auto.FINAL_SEED != 0
    assert met[auto.FINAL_SEED] == set(auto.FINAL_NETWORKS)


@pytest.mark.parametrize("simple", [False, True])
def test_what_was_chosen_can_be_made_again_by_name(few_labels, monkeypatch, simple):
    final_word(monkeypatch, simple=simple)
    for seed in (0, 5):
        small = made(few_labels, seed)
        chosen = small.provenance["automatic"]["chosen"]
        assert chosen["method"] == ("herding" if simple else "bilevel")
        assert any("validated best" in note for note in small.provenance["notes"]) is simple
        again = build(chosen["method"], {"nodes": 9, **chosen["settings"]})
        assert content(again.condense(few_labels, seed=seed, device="cpu")) == content(small)


def test_several_seeds_together_are_each_alone(few_labels):
    together = short().condense_many(few_labels, seeds=[3, 4, 5], device="cpu")
    for seed, small in zip((3, 4, 5), together, strict=True):
        alone = made(few_labels, seed)
        assert content(small) == content(alone)
        assert small.provenance["automatic"] == alone.provenance["automatic"]


@pytest.mark.parametrize("which", ["graph", "few_labels"])
def test_test_labels_change_nothing(which, request):
    gcsr.check_leaks(short(), request.getfixturevalue(which))


# -- the budget ----------------------------------------------------------------------------------------


def test_a_larger_budget_takes_more_steps_and_the_same_budget_the_same(graph, few_labels):
    for one in (graph, few_labels):
        view = View(one).condensing()
        plan, costs = Automatic(nodes=9, budget=MUCH).expected(view, 9, "cpu")
        one_start = costs.seconds(starts=1, iterations=1) - costs.iteration
        _, wanted, _ = auto.STEPS_FEW_LABELS if costs.labels else auto.STEPS_MANY_LABELS
        wanted = min(wanted, plan.iterations)
        bought = (0, auto.LEAST_ITERATIONS - 1, auto.LEAST_ITERATIONS, wanted // 3, 10 * wanted)
        plans = [
            Automatic(nodes=9, budget=one_start + (steps + 0.5) * costs.iteration).expected(
                view, 9, "cpu"
            )[0]
            for steps in bought
        ]
        assert [plan.iterations for plan in plans] == [0, 0, *bought[2:4], wanted]
        enough = Automatic(nodes=9, budget=1e-6 + plans[0].least_seconds_with_steps)
        assert enough.expected(view, 9, "cpu")[0].iterations == auto.LEAST_ITERATIONS
        assert [plan.hops for plan in plans[:4]] == [auto.HOPS[:1]] * 4
        assert plans[4].hops == auto.HOPS
        expected = [plan.expected_seconds for plan in plans]
        assert expected == sorted(expected) and plans[0].least_seconds <= expected[0]
        for steps, plan in zip(bought, plans, strict=True):
            assert plan.expected_seconds <= one_start + (steps + 0.5) * costs.iteration


def test_the_same_budget_gives_the_same_result(graph):
    view = View(graph).condensing()
    _, costs = short(iterations=None).expected(view, 9, "cpu")
    enough = costs.seconds(starts=1, iterations=STEPS + 12) + 0.5 * costs.iteration
    ours, again = (made(graph, budget=enough, iterations=None) for _ in range(2))
    assert content(ours) == content(again)
    plan = ours.provenance["automatic"]["plan"]
    assert plan == again.provenance["automatic"]["plan"]
    assert plan["iterations"] == STEPS + 12
    assert max(one.iterations for one in learned(ours.provenance["automatic"])) == STEPS + 12


@pytest.mark.parametrize("steps", [0, 1, STEPS])
def test_a_small_budget_takes_one_start_however_many_steps_are_fixed(graph, steps):
    view = View(graph).condensing()
    _, costs = Automatic(nodes=9).expected(view, 9, "cpu")
    few = costs.seconds(starts=1, iterations=1)
    for budget, hops in ((0.5 * few, auto.HOPS[:1]), (MUCH, auto.HOPS)):
        method = Automatic(nodes=9, budget=budget, fixed=(("iterations", steps),))
        plan, _ = method.expected(view, 9, "cpu")
        assert (plan.iterations, plan.hops) == (steps, hops)


def test_few_labels_need_fewer_steps(graph, few_labels):
    many, few = (
        Automatic(nodes=9, budget=MUCH).expected(View(one).condensing(), 9, "cpu")[0].iterations
        for one in (graph, few_labels)
    )
    assert auto.STEPS_MANY_LABELS[0] <= many <= auto.STEPS_MANY_LABELS[1]
    assert auto.STEPS_FEW_LABELS[0] <= few <= auto.STEPS_FEW_LABELS[1] < many


def test_a_budget_below_the_least_is_said_before_the_work_begins(graph, recwarn, caplog):
    said: list[str] = []

    def listen(stage: str, done: int, total: int) -> None:
        if not said:
            said.extend(budget_warnings(recwarn))

    tight = Automatic(nodes=9, budget=0.001)
    with caplog.at_level(logging.WARNING):
        small = tight.condense(graph, device="cpu", progress=listen)
    (line,) = said
    assert budget_warnings(recwarn) == [line] and caplog.text == ""
    assert [one.filename for one in recwarn if one.category is InputWarning] == [__file__]
    assert line.startswith("without outer steps: everything else is expected to take ")
    assert "more than the budget of 0.001 s, and runs anyway; a budget of " in line
    assert line == small.provenance["notes"][-1] + "."
    story = small.provenance["automatic"]
    assert story["plan"]["iterations"] == 0 and story["plan"]["hops"] == [auto.HOPS[0]]
    recwarn.clear()
    assert not any("budget" in note for note in made(graph).provenance["notes"])
    assert budget_warnings(recwarn) == []


def budget_warnings(recorded: pytest.WarningsRecorder) -> list[str]:
    return [str(one.message) for one in recorded if one.category is InputWarning]


def test_time_for_fewer_steps_than_are_worth_beginning_is_a_warning(graph):
    view = View(graph).condensing()
    plan, costs = Automatic(nodes=9).expected(view, 9, "cpu")
    needed = plan.least_seconds_with_steps
    with pytest.warns(InputWarning) as caught:
        small = Automatic(nodes=9, budget=needed - 2 * costs.iteration).condense(
            graph, device="cpu"
        )
    (line,) = [str(one.message) for one in caught]
    assert f"leaves time for fewer than {auto.LEAST_ITERATIONS} steps; a budget of " in line
    assert float(line.split("a budget of ")[1].split()[0]) >= needed
    assert line == small.provenance["notes"][-1] + "."
    plan = small.provenance["automatic"]["plan"]
    assert plan["iterations"] == 0 and plan["least_seconds"] <= needed - 2 * costs.iteration


@pytest.mark.parametrize("fixed", [{"students": 1, "feature_lr": 0.03}, {"students": 7}])
def test_the_plan_is_that_of_the_settings_that_are_fixed(graph, fixed):
    given = Automatic(nodes=9, budget=MUCH, fixed=tuple(fixed.items()))
    plan, costs = given.expected(View(graph).condensing(), 9, "cpu")
    assert {name: getattr(plan, name) for name in fixed} == fixed
    assert costs.method.students == fixed["students"]
    small = made(graph, **fixed)
    story = small.provenance["automatic"]
    ran = [one for one in learned(story) if one.iterations == STEPS]
    plan = story["plan"]
    assert [(one.students, one.feature_lr) for one in ran] == [
        (plan["students"], plan["feature_lr"])
    ]
    assert fixed.items() <= plan.items()


def test_a_budget_that_fixed_steps_exceed_is_a_warning(graph):
    with pytest.warns(InputWarning) as caught:
        small = made(graph, budget=0.001)
    (line,) = [str(one.message) for one in caught]
    assert line.startswith(f"the budget of 0.001 s is exceeded: with {STEPS} outer steps ")
    assert line == small.provenance["notes"][-1] + "."
    assert small.provenance["automatic"]["plan"]["iterations"] == STEPS


# -- parts and fixed settings ------------------------------------------------------------------------


def test_every_part_has_a_setting_and_a_sentence():
    assert all(hasattr(Bilevel, name) for name, _, _ in auto.PARTS.values())
    assert all(len(sentence) > 10 for _, _, sentence in auto.PARTS.values())


@pytest.mark.parametrize("part", auto.PARTS)
def test_every_part_can_be_switched_off(few_labels, monkeypatch, part):
    final_word(monkeypatch, simple=False)
    name, value, _ = auto.PARTS[part]
    fixed: dict[str, Any] = {"iterate": "last"}
    if part == "bilevel":
        fixed["iterations"] = None
    if part == "burn-in":
        fixed |= {name: None, "longest": Bilevel(nodes=9).longest}
    whole, less = (made(few_labels, disable=off, **fixed) for off in ("", f" {part} "))
    stories = [small.provenance["automatic"] for small in (whole, less)]
    values = [{getattr(one, name) for one in learned(story)} for story in stories]
    assert values[0] != {value} and values[1] == {value}
    # The best start may be that after one hop.
    assert part == "hops" or content(whole) != content(less)
    assert less.provenance["settings"]["disable"] == f" {part} "
    if part == "pseudo-labels":
        assert "pseudo_labels" in whole.provenance and "pseudo_labels" not in less.provenance
    elif part == "hops":
        assert [story["plan"]["hops"] for story in stories] == [list(auto.HOPS), [1]]
    elif part == "clusters":
        rows = made(few_labels, disable=f"{part},bilevel", iterations=None, num_hops=0).x
        assert all((few_labels.x[few_labels.train] == row).all(1).any() for row in rows)
    elif part == "labels":
        start = made(few_labels, disable=f"{part},bilevel", iterations=None)
        torch.testing.assert_close(less.y, start.y, rtol=1e-4, atol=1e-6)
    elif part == "bilevel":
        assert stories[1]["plan"]["iterations"] == 0
        assert stories[1]["chosen"]["settings"]["iterations"] == 0


def test_parts_can_be_switched_off_together(few_labels):
    story = made(few_labels, disable="hops, labels,pseudo-labels").provenance["automatic"]
    for one in learned(story):
        assert (one.num_hops, one.label_lr, one.pseudo_labels) == (1, 0.0, "none")


def test_pins_reach_bilevel(few_labels):
    small = made(few_labels, num_hops=3, models="gcn,mlp", pseudo_labels="appnp", expert_seed=4)
    story = small.provenance["automatic"]
    assert story["plan"]["hops"] == [3]
    for one in learned(story):
        assert (one.num_hops, one.models, one.pseudo_labels, one.expert_seed) == (
            3,
            "gcn,mlp",
            "appnp",
            4,
        )
        assert (one.students, one.hidden_channels, one.burn_in) == (2, 8, 2)
    assert small.provenance["settings"]["num_hops"] == 3
    assert build("auto", {"nodes": 9, "num_hops": 3, "label-lr": 0.1}).fixed == (
        ("label_lr", 0.1),
        ("num_hops", 3),
    )


@pytest.mark.parametrize(
    "fixed", [{"iterate": "last"}, {"structure": "self-expressive"}, {"init": "sample"}]
)
def test_any_pin_leads_to_a_result(graph, fixed):
    small = made(graph, **fixed)
    assert torch.isfinite(small.x).all()
    story = small.provenance["automatic"]
    found = [one["validation"] for one in story["candidates"] if one["method"] == "bilevel"]
    assert len(found) == len(auto.HOPS) + 1
    # Starts are compared whatever is kept later.
    assert all("quick" in one for one in found[:-1])
    assert ("quick" in found[-1]) == (fixed.get("iterate") != "last")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"budget": -1}, "budget must be .*, got -1"),
        ({"budget": 0}, "^budget must be a number > 0, got 0.$"),
        ({"budget": float("nan")}, "^budget must be a number > 0, got nan.$"),
        ({"disable": "luck"}, "disable must be one of .*, got 'luck'"),
        ({"disable": 3}, "disable must be a string, got 3"),
        ({"fixed": [("num_hops", 1)]}, "fixed must be a tuple of pairs"),
        ({"fixed": (("color", 1),)}, "fixed must name settings of bilevel, got 'color'"),
        ({"fixed": (("nodes", 3),)}, "fixed must name settings of bilevel, got 'nodes'"),
        ({"fixed": (("num_hops", -1),)}, "num_hops must be .*, got -1"),
        ({"fixed": (("longest", 1),)}, "longest must be >= 60, .*, got 1"),
        (
            {"fixed": (("num_hops", 2),), "disable": "hops"},
            "^num_hops must be 1 if 'hops' is disabled, got 2.$",
        ),
        (
            {"fixed": (("pseudo_labels", "gcn"),), "disable": "pseudo-labels"},
            "pseudo_labels must be 'none' if 'pseudo-labels' is disabled, got 'gcn'",
        ),
        (
            {"fixed": (("iterations", 5),), "disable": "labels,bilevel"},
            "iterations must be 0 if 'bilevel' is disabled, got 5",
        ),
    ],
)
def test_bad_settings_are_refused_before_any_work(settings, said):
    with pytest.raises(InputError, match=said):
        Automatic(nodes=9, **settings)


def test_a_pin_that_says_the_same_is_no_contradiction():
    assert Automatic(nodes=9, disable="hops", fixed=(("num_hops", 1),)).settings["num_hops"] == 1


@pytest.mark.parametrize(
    ("method", "name"),
    [(method, name) for method, names in REMOVED.items() for name in names]
    + [("auto", "expert_rate"), ("bilevel", "expert-rate")],
)
def test_settings_that_are_gone_are_told_from_slips(method, name):
    with pytest.raises(InputError) as refused:
        build(method, {"nodes": 9, name: 1})
    assert str(refused.value) == (
        f"{name} was removed in version 0.1: {method} has no such setting; leave it out."
    )


@pytest.mark.parametrize("method", ["auto", "bilevel", "geom"])
@pytest.mark.parametrize("value", ["fixed", "expanding"])
def test_values_of_window_that_are_gone_are_told_from_slips(method, value):
    gone = f"^window={value} was removed in version 0.1: .*; leave it out.$"
    with pytest.raises(InputError, match=gone):
        build(method, {"nodes": 9, "window": value})
    with pytest.raises(InputError, match=gone):
        value_of("window", value, int)


@pytest.mark.parametrize("part", auto.REMOVED_PARTS)
def test_parts_that_are_gone_are_told_from_slips(part):
    gone = f"^disable={part} was removed in version 0.1: .*; leave it out.$"
    with pytest.raises(InputError, match=gone):
        build("auto", {"nodes": 9, "disable": f"hops,{part}"})


# -- failures ------------------------------------------------------------------------------------------


def failing(monkeypatch: pytest.MonkeyPatch, method: type, when: Any, error: Exception) -> None:
    honest = method.run

    def make(self, *args):
        if when(self):
            raise error
        return honest(self, *args)

    monkeypatch.setattr(method, "run", make)


def test_a_start_that_fails_is_left_out_with_its_reason(graph, monkeypatch):
    error = InputError("num_hops: not today.\nNor ever.")
    failing(monkeypatch, Bilevel, lambda one: one.num_hops == 1, error)
    story = made(graph).provenance["automatic"]
    (out,) = story["left_out"]
    assert out["method"] == "bilevel" and out["settings"]["iterations"] == 0
    assert out["reason"] == "num_hops: not today."
    assert {one.num_hops for one in learned(story)} == set(auto.HOPS) - {1}


def test_where_the_last_stage_fails_the_start_is_kept(graph, monkeypatch):
    final_word(monkeypatch, simple=False)
    error = torch.OutOfMemoryError("too little memory")
    failing(monkeypatch, Bilevel, lambda one: one.iterations > 0, error)
    small = made(graph)
    story = small.provenance["automatic"]
    assert [out["reason"] for out in story["left_out"]] == ["too little memory"]
    assert story["left_out"][0]["settings"]["iterations"] == STEPS
    assert story["chosen"]["settings"]["iterations"] == 0
    assert torch.isfinite(small.x).all()


def test_a_simple_method_that_fails_is_left_out(graph, monkeypatch):
    error = torch.linalg.LinAlgError("no")
    failing(monkeypatch, Herding, lambda one: True, error)
    story = made(graph).provenance["automatic"]
    assert [(out["method"], out["reason"]) for out in story["left_out"]] == [("herding", "no")]


def test_a_labeler_that_fails_ends_nothing(few_labels, monkeypatch):
    teachers = importlib.import_module("gcsr.starts.pseudo_labels")

    def broken(*args, **more):
        raise torch.OutOfMemoryError("too little memory")

    monkeypatch.setattr(teachers, "consistent_prediction", broken)
    story = made(few_labels).provenance["automatic"]
    assert {out["reason"] for out in story["left_out"]} == {"too little memory"}
    assert len(story["left_out"]) == len(auto.HOPS)
    assert story["chosen"]["method"] in ("random", "herding")


def test_what_is_wrong_with_the_program_is_no_failure_of_a_candidate(graph, monkeypatch):
    failing(monkeypatch, Bilevel, lambda one: one.num_hops == 0, ZeroDivisionError("a defect"))
    with pytest.raises(ZeroDivisionError, match="a defect"):
        made(graph)


def test_labels_are_guessed_once_for_all_candidates(few_labels, monkeypatch):
    teachers = importlib.import_module("gcsr.starts.pseudo_labels")
    honest, asked = teachers.train_labeler, []
    monkeypatch.setattr(teachers, "train_labeler", lambda *a: asked.append(a[1]) or honest(*a))
    short().condense_many(few_labels, seeds=[0, 1], device="cpu")
    assert asked == ["consistent", "gcn"]


# -- estimates -----------------------------------------------------------------------------------------


def estimated(graph: Graph, **settings: Any) -> Any:
    return Automatic(nodes=9, **settings).estimate(graph)


def test_seconds_are_those_of_the_plan_even_where_it_takes_longer_than_the_budget(graph):
    view = View(graph).condensing()
    for budget in (0.001, 20.0, MUCH):
        planned = Automatic(nodes=9, budget=budget).expected(view, 9, "cpu")[0].expected_seconds
        said = estimated(graph, budget=budget).seconds
        assert planned > 0 and said == pytest.approx(planned, rel=0.2, abs=0.1)


def test_the_states_of_a_window_are_counted_tensor_by_tensor():
    wide = planted_graph(features=200)
    fixed = {"students": 3, "hidden_channels": 20, "window": 7}
    method = Automatic(nodes=9, fixed=tuple(fixed.items()))
    costs = method.expected(View(wide).condensing(), 9, "cpu")[1]
    counted = costs.held(iterations=1)
    assert costs.held(iterations=0) == 0
    students = Students.zeros(1, 3, (200, 20, 3), torch.zeros(()))
    window = Window(students, InnerAdam(), 7)
    (track, *_) = window._tracks
    parts = (track.value, track.first, track.gradient, track.root, track.directions)
    kept = sum(one.nbytes for part in parts for one in part)
    # Minibatches and activations come on top.
    assert kept <= counted < 1.5 * kept


def test_the_labeler_is_counted_tensor_by_tensor():
    few = planted_graph(per_class=60, features=40, train_per_class=4)
    view = View(few).condensing()
    material = LabelerInputs(view, 0, CPU)
    kept = sum(one.nbytes for one in (material.undropped, few.x, *material.draws))
    whole, less = (
        short(disable=off).expected(view, 9, "cpu")[1].held(iterations=1)
        for off in ("", "pseudo-labels")
    )
    assert kept < whole < 2 * kept and less < whole / 3


def test_an_estimate_knows_what_will_be_done(graph, few_labels):
    wide = planted_graph(features=400)
    narrow = estimated(wide, fixed=(("hidden_channels", 8),)).memory_bytes
    assert estimated(wide).memory_bytes > narrow
    assert estimated(graph).seconds > estimated(graph, disable="bilevel").seconds
    assert estimated(few_labels).seconds > estimated(few_labels, budget=0.001).seconds


@pytest.mark.slow
@pytest.mark.skipif(torch.version.cuda is not None, reason="CUDA's libraries take memory too")
@pytest.mark.skipif(not STATUS.is_file(), reason="the system does not tell a process's peak")
@pytest.mark.parametrize("name", ["amazon-computers", "facebook-pagepage"])
def test_real_graphs_take_between_half_and_twice_of_the_memory(
    shared_data: Path, tmp_path: Path, name: str
) -> None:
    data = shared_data / "graphs" / f"{name}.npz"
    if not data.is_file():
        pytest.skip(f"{shared_data} does not hold {name}")
    words = ["condense", str(data), "--nodes", "100", "--budget", "20", "--device", "cpu"]
    done = [sys.executable, "-c", PEAK, *words]
    out = subprocess.run(done, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    estimate, _ = json.JSONDecoder().raw_decode(out)
    peak = 1024 * int(out.splitlines()[-1])
    assert peak / 2 < estimate["memory_bytes"] < 2 * peak
