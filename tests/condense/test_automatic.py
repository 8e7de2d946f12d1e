"""The race: who takes part, who judges, who wins."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import pytest
import torch

import gcsr
from gcsr import InputError, View
from gcsr.condense import Automatic, build
from gcsr.condense.automatic import Candidate, plan_for
from gcsr.condense.automatic.candidates import SIMPLE, clustered_starts, matched, pinned
from gcsr.condense.automatic.costs import Costs
from gcsr.condense.automatic.rounds import Look, Starts
from gcsr.condense.methods.auto import KNOWN
from gcsr.training import TrainingRecipe
from helpers import planted_graph

STARTS = Starts(("gcn",), (1,), "halves", 0)
SHORT = {"experts": 2, "expert_epochs": 8, "max_start": 4, "hidden": 8, "iterations": 2}


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    teachers = importlib.import_module("gcsr.condense.teachers")
    monkeypatch.setattr(teachers, "RECIPE", TrainingRecipe(epochs=30, validate_every=5))
    consistent = importlib.import_module("gcsr.condense.consistent")
    monkeypatch.setattr(consistent, "RECIPE", TrainingRecipe(epochs=30, dropout=0.5))
    race = importlib.import_module("gcsr.condense.automatic.race")
    for name in ("FIRST", "CLOSER", "LAST"):
        monkeypatch.setattr(race, name, Look(16, 20, range(2)))


@pytest.fixture(scope="module")
def graph():
    return planted_graph()


def story(graph, **settings: Any) -> dict[str, Any]:
    small = Automatic(nodes=9, **settings).condense(graph, device="cpu")
    return small.provenance


def test_it_is_what_condense_does_when_nobody_says_otherwise(graph):
    small = gcsr.condense(graph, nodes=9, budget=0.001, device="cpu")
    assert small.provenance["method"] == "auto"
    named = graph.renamed("cora")
    with_preset, _ = gcsr.api.make_condenser(
        named, nodes=35, ratio=None, method=None, preset="paper", settings={}
    )
    assert with_preset.name == "gcsr"


def test_the_winner_validates_no_worse_than_random_and_herding(graph):
    told = story(graph, budget=0.001)["automatic"]

    def word(one: dict[str, Any]) -> float:
        return one["validation"]["closer look"] + one["validation"]["last word"]

    last = [one for one in told["race"] if "last word" in one["validation"]]
    simple = {one["method"]: word(one) for one in last if one["method"] in ("random", "herding")}
    assert len(simple) == 2
    chosen = [
        one
        for one in last
        if (one["method"], one["settings"])
        == (told["chosen"]["method"], told["chosen"]["settings"])
    ]
    assert word(chosen[0]) == max(map(word, last)) >= max(simple.values())


def test_what_won_can_be_made_again_by_name(graph):
    won = set()
    for seed in range(3):
        for pins in ((), (("k", 1),), tuple(SHORT.items())):
            whole = Automatic(nodes=9, budget=1000.0 if len(pins) > 1 else 0.001, pins=pins)
            small = whole.condense(graph, seed=seed, device="cpu")
            chosen = small.provenance["automatic"]["chosen"]
            again = build(chosen["method"], {"nodes": 9, **chosen["settings"]})
            assert torch.equal(again.condense(graph, seed=seed, device="cpu").x, small.x)
            won.add(chosen["method"])
    assert won & {"clusters", "mtt", "gcsr"}


def test_a_simple_winner_is_told(graph, monkeypatch):
    auto = importlib.import_module("gcsr.condense.methods.auto")

    def random_wins(contest, plan):
        entry = contest.enter(SIMPLE, "simple candidates")[0]
        return entry, [entry]

    monkeypatch.setattr(auto, "race", random_wins)
    told = story(graph, budget=0.001)
    assert told["automatic"]["chosen"]["method"] == "random"
    assert any("random did best" in note for note in told["notes"])


def test_test_labels_change_nothing(graph):
    y = graph.y.clone()
    y[graph.test] = (y[graph.test] + 1) % 3
    ours, theirs = (
        Automatic(nodes=9, budget=0.001).condense(g, device="cpu")
        for g in (graph, replace(graph, y=y))
    )
    assert torch.equal(ours.x, theirs.x)
    assert ours.provenance["automatic"] == theirs.provenance["automatic"]


def test_a_larger_budget_tries_more_and_the_same_budget_the_same(graph):
    view = View(graph).condensing()
    plans = [plan_for(view, 9, budget, "cpu") for budget in (0.0, 10.0, 1000.0)]
    assert plans[0].scouts == 0 and len(plans[0].starts.teachers) == 1
    assert plans[2].scouts > 0 and plans[2].iterations > plans[2].scouts
    assert len(plans[2].starts.teachers) == 3
    tried = [len(clustered_starts(plan.starts)) + plan.scouts for plan in plans]
    assert tried == sorted(tried) and plans[1].seconds <= 10.0
    assert plan_for(view, 9, 10.0, "cpu") == plans[1]


def test_where_pins_leave_matching_alone_the_plan_says_that_it_matches(graph):
    pins = tuple((SHORT | {"window": "fixed"}).items())
    told = story(graph, budget=0.001, pins=pins)["automatic"]
    assert told["plan"]["scouting_iterations"] == 300 and told["second_opinion"] is None
    assert {one["method"] for one in told["race"]} == {"random", "herding", "gcsr", "mtt"}
    view = View(graph).condensing()
    alone, starts = (
        plan_for(view, 9, 0.001, "cpu", only_matching=only).seconds for only in (True, False)
    )
    assert alone > starts


def test_matching_takes_part_where_the_budget_allows_it(graph):
    told = story(graph, budget=1000.0, pins=tuple(SHORT.items()))["automatic"]["race"]
    methods = [one["method"] for one in told]
    assert {"random", "herding", "gcsr", "mtt"} <= set(methods)
    assert all(one["settings"]["experts"] == 2 for one in told if one["method"] == "gcsr")


def test_pins_reach_every_candidate_that_has_them(graph):
    told = story(graph, budget=0.001, pins=(("k", 3), ("soft_labels", False)))
    assert told["settings"]["k"] == 3
    clusters = [one for one in told["automatic"]["race"] if one["method"] == "clusters"]
    assert clusters and {one["settings"]["k"] for one in clusters} == {3}
    assert {one["settings"]["soft_labels"] for one in clusters} == {False}
    assert build("auto", {"nodes": 9, "k": 3}).pins == (("k", 3),)


def test_candidates_that_cannot_be_pinned_are_left_out():
    found = [*SIMPLE, *clustered_starts(STARTS), Candidate("gcsr")]
    kept = pinned(found, {"alpha": 2.0}, KNOWN)
    assert kept == [*SIMPLE, Candidate("gcsr", (("alpha", 2.0),))]


@pytest.mark.parametrize(("part", "name"), [("window", "window"), ("class-means", "class_means")])
def test_parts_of_matching_change_their_setting_and_nothing_else(part, name):
    start = clustered_starts(STARTS)[0]
    whole, less = matched(start, None), matched(start, None, {part})
    assert any(name in one.options for one in whole)
    for one, other in zip(whole, less, strict=True):
        assert {k: v for k, v in one.options.items() if k != name} == other.options


def test_more_centres_in_a_class_cost_more(graph):
    view = View(graph).condensing()
    few, many = (Costs(view, nodes, "cpu", frozenset()) for nodes in (30, 300))
    started = replace(STARTS, draws=5)
    assert many.starts(started) > few.starts(started)


def test_bounds_on_memory_rule_out_nobody(graph):
    plain, bounded = (
        Automatic(nodes=9, budget=0.001, pins=pins) for pins in ((), (("expert_memory", 10**9),))
    )
    ours, theirs = (one.condense(graph, device="cpu") for one in (plain, bounded))
    assert torch.equal(ours.x, theirs.x)
    assert ours.provenance["settings"] == theirs.provenance["settings"]


def test_pins_that_rule_out_centres_leave_matching(graph):
    short: dict[str, Any] = dict(SHORT)
    told = story(graph, budget=0.001, pins=tuple({**short, "alpha": 2.0}.items()))["automatic"]
    assert {one["method"] for one in told["race"]} == {"random", "herding", "gcsr"}
    short["initialise"] = "sample"
    told = story(graph, budget=0.001, pins=tuple(short.items()))["automatic"]
    assert {"gcsr", "mtt"} <= {one["method"] for one in told["race"]}


def test_who_fails_is_told_and_the_race_goes_on(graph, monkeypatch):
    auto = importlib.import_module("gcsr.condense.methods.auto")
    built = auto._built

    def broken(one: Candidate, nodes: int):
        if one.options.get("soft_labels"):
            raise InputError("soft: not today.")
        return built(one, nodes)

    monkeypatch.setattr(auto, "_built", broken)
    told = story(graph, budget=0.001)["automatic"]
    assert [out["reason"] for out in told["left_out"]] == ["soft: not today."]
    assert any(one["method"] == "clusters" for one in told["race"])


def test_the_same_start_is_judged_once():
    told = story(planted_graph(inductive=True), budget=30.0, without="matching", pins=(("k", 1),))
    starts = [one for one in told["automatic"]["race"] if one["method"] == "clusters"]
    drawn = [one["settings"].get("draw", 0) for one in starts]
    assert drawn == [0, 1, 2, 3, 4, 5]


def test_what_was_calibrated_is_told_and_used(graph):
    short = {name: SHORT[name] for name in ("experts", "hidden", "iterations")}
    told = story(graph, budget=1000.0, pins=tuple(short.items()))["automatic"]
    found = told["calibration"]
    matched = [one["settings"] for one in told["race"] if one["method"] in ("gcsr", "mtt")]
    rates = {(s["student_steps"], s["expert_steps"], s["student_rate"]) for s in matched
             if "student_rate" in s}  # fmt: skip
    assert rates == {(s["steps"], s["expert_steps"], s["rate"]) for s in found["students"]}
    assert {s["expert_rate"] for s in matched} <= {found["expert_rate"], 1e-3}
    fixed = story(graph, budget=1000.0, pins=tuple({**short, "student_rate": 0.5}.items()))
    matched = [one["settings"] for one in fixed["automatic"]["race"] if one["method"] == "mtt"]
    assert matched and {s["student_rate"] for s in matched} == {0.5}
    assert {s["rate"] for s in fixed["automatic"]["calibration"]["students"]} == {0.5}


def test_every_part_can_be_switched_off(graph):
    def without(*parts: str, pins: tuple[tuple[str, Any], ...] = ()) -> dict[str, Any]:
        whole = Automatic(nodes=9, budget=1000.0, without=",".join(parts), pins=pins)
        return whole.condense(graph, device="cpu").provenance["automatic"]

    def values(told: dict[str, Any], name: str) -> set[Any]:
        return {one["settings"][name] for one in told["race"] if name in one["settings"]}

    starts = without("matching")
    assert values(starts, "teacher") == {"consistent", "together", "mlp"}
    assert values(starts, "grouping") == {"halves"}
    assert values(starts, "soft_labels") == {True, False}
    assert values(starts, "draw") == {1, 2, 3, 4, 5}
    assert values(starts, "tempered") == values(starts, "initialise") == set()
    still = without("consistent", "matching", " redraws ")
    assert values(still, "teacher") == {"gcn", "appnp", "mlp"} and values(still, "draw") == set()
    little = without("teachers", "grouping", "soft-labels", "tempering", "matching")
    assert values(little, "teacher") == {"consistent"}
    assert values(little, "grouping") == {"k-means"}
    assert values(little, "soft_labels") == values(little, "tempered") == {False}
    default = without("calibration", pins=tuple(SHORT.items()))
    assert values(default, "initialise") == {"clusters"}
    assert default["calibration"] is None and values(default, "student_rate") == set()


def test_where_every_label_is_known_nothing_is_tried_twice():
    view = View(planted_graph(inductive=True)).condensing()
    starts = plan_for(view, 9, 1000.0, "cpu").starts
    assert len(starts.teachers) == 1 and not starts.soft
    assert len(starts.hops) == 3


def test_pins_reach_the_plan_and_teachers_behind_a_mean_are_trained_once(graph):
    view = View(graph).condensing()
    whole = plan_for(view, 9, 1000.0, "cpu").starts
    assert whole.trained == ("consistent", "gcn", "appnp", "mlp")
    pins = {"teacher": "mlp", "grouping": "k-means", "k": 4, "soft_labels": True}
    pinned_plan = plan_for(view, 9, 1000.0, "cpu", pins=pins).starts
    assert (pinned_plan.trained, pinned_plan.grouping) == (("mlp",), "k-means")
    assert pinned_plan.hops == (4,) and len(clustered_starts(pinned_plan)) == 1
    told = story(graph, budget=0.001, pins=tuple(pins.items()))["automatic"]
    assert told["plan"]["teachers"] == ["mlp"] and told["plan"]["grouping"] == "k-means"
    made = [one["settings"] for one in told["race"] if one["method"] == "clusters"]
    assert made == [pins]


def test_a_part_that_had_nothing_to_do_is_told(graph):
    idle = Automatic(nodes=9, budget=0.001, without="window,redraws").condense(graph, device="cpu")
    assert any(
        note.startswith("without window made no difference") for note in idle.provenance["notes"]
    )


def test_teachers_that_a_budget_leaves_out_are_told(graph):
    view = View(graph).condensing()
    assert plan_for(view, 9, 0.0, "cpu").unasked == ("together", "mlp")
    assert plan_for(view, 9, 1000.0, "cpu").unasked == ()
    assert any(
        "teachers 'together', 'mlp' were not asked" in note
        for note in story(graph, budget=0.001)["notes"]
    )


def test_a_budget_that_is_too_small_is_told(graph):
    assert "more than the budget of 0.001 s" in story(graph, budget=0.001)["notes"][-1]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"budget": -1}, "budget: -1 is not accepted"),
        ({"budget": 0}, "^budget: 0 is not accepted; a number > 0 is.$"),
        ({"budget": float("nan")}, "^budget: nan is not accepted; a number > 0 is.$"),
        ({"without": "luck"}, "without: 'luck' is not known"),
        ({"pins": (("colour", 1),)}, "no candidate has the setting 'colour'"),
        ({"pins": (("alpha", -1.0),)}, "alpha: -1.0 is not accepted"),
        ({"pins": (("k", -1),)}, "k: -1 is not accepted"),
        (
            {"pins": (("grouping", "halves"),), "without": "grouping"},
            "without: 'grouping' contradicts the pinned grouping=halves",
        ),
        (
            {"pins": (("teacher", "consistent"),), "without": "consistent"},
            "without: 'consistent' contradicts the pinned teacher=consistent",
        ),
        (
            {"pins": (("iterations", 5),), "without": "matching"},
            "without: 'matching' contradicts the pinned iterations, which only matching has",
        ),
    ],
)
def test_bad_settings_are_refused_before_any_work(settings, said):
    with pytest.raises(InputError, match=said):
        Automatic(nodes=9, **settings)


def test_a_pinned_leak_is_marked(graph):
    assert Automatic(nodes=9, pins=(("prior", "all"),)).leaks_test_labels
    assert not Automatic(nodes=9).leaks_test_labels


def test_a_pinned_draw_is_drawn_once(graph):
    told = story(graph, budget=3.0, pins=(("draw", 0),))["automatic"]["race"]
    settings = [(one["method"], sorted(one["settings"].items())) for one in told]
    assert all(settings.count(one) == 1 for one in settings)
