"""The page of a result of the automatic mode tells how it was chosen."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from gcsr import CondensedGraph, Graph, condense, report
from gcsr.report.race import standing


@pytest.fixture(scope="module")
def raced(graph: Graph) -> CondensedGraph:
    return condense(graph, nodes=6, budget=1.0, without="consistent", device="cpu")


def told(small: CondensedGraph, **story: Any) -> str:
    changed = small.provenance | {"automatic": small.provenance["automatic"] | story}
    return report(replace(small, provenance=changed))


def rows(page: str) -> list[list[str]]:
    section = page[page.index("How it was chosen</h2>") :]
    body = re.search(r"<tbody>(.*?)</tbody>", section, re.DOTALL)
    assert body is not None
    found = re.findall(r"<tr>(.*?)</tr>", body[1], re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in found]


def test_every_candidate_is_there_and_the_chosen_one_is_marked(raced: CondensedGraph) -> None:
    story = raced.provenance["automatic"]
    shown = rows(report(raced))
    assert len(shown) == len(story["race"])
    chosen = [row for row in shown if "(chosen)" in row[0]]
    assert [row[0] for row in chosen] == [f"{story['chosen']['method']} (chosen)"]
    scores = {row[3] for row in shown if row[3] != "–"}
    entered = [one["validation"].get("last word") for one in story["race"]]
    assert scores == {f"{100 * score:.1f} %" for score in entered if score is not None}
    # Those who came furthest are first, and the chosen one is on top.
    assert chosen[0] == shown[0]


def test_the_navigation_calls_it_what_its_heading_does(raced: CondensedGraph) -> None:
    page = report(raced)
    name, anchor = "How it was chosen", "how-it-was-chosen"
    assert f'<a href="#{anchor}">{name}</a>' in page
    assert f'<h2 id="{anchor}-title">{name}</h2>' in page


def test_of_the_last_ones_both_rounds_count(raced: CondensedGraph) -> None:
    better = {"closer look": 0.9, "last word": 0.8}
    luckier = {"closer look": 0.7, "last word": 0.81}
    race = [
        {"method": "mtt", "settings": {}, "validation": luckier},
        {"method": "clusters", "settings": {}, "validation": better},
    ]
    shown = rows(told(raced, race=race, chosen={"method": "clusters", "settings": {}}))
    assert [row[0] for row in shown] == ["clusters (chosen)", "mtt"]


def test_plan_and_calibration_are_a_line_each(raced: CondensedGraph) -> None:
    page = report(raced)
    assert page.count("Plan: teachers gcn") == 1
    assert page.count("Calibration: none") == 1
    students = [{"steps": 5, "expert_steps": 2, "rate": 0.0123456, "distance": 0.5}]
    found = {"expert_rate": 0.001, "expert_epochs": 80, "students": students}
    plan = raced.provenance["automatic"]["plan"] | {"scouting_iterations": 100, "iterations": 700}
    page = told(raced, calibration=found, plan=plan)
    assert "Calibration: expert_rate=0.001, expert_epochs=80; students: 5 steps at 0.01235" in page
    assert "matches of 100 iterations, the best of them of 700 iterations" in page


def test_who_was_left_out_is_told_with_the_reason(raced: CondensedGraph) -> None:
    out = [{"method": "gcsr", "settings": {"k": 2}, "reason": "its matrix cannot be factored"}]
    assert "Left out: gcsr (k=2) (its matrix cannot be factored)." in told(raced, left_out=out)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("clusters", "chose clusters, which recorded no loss: its nodes are centres of real ones"),
        ("herding", "chose herding, which recorded no loss: it selects real nodes"),
        ("gcsr", "chose gcsr, which recorded no loss: its file holds no curve"),
    ],
)
def test_a_winner_without_a_loss_says_why(raced: CondensedGraph, method: str, said: str) -> None:
    bare = {key: raced.provenance[key] for key in ("method", "automatic")}
    page = told(replace(raced, provenance=bare), chosen={"method": method, "settings": {}})
    assert f"The automatic mode {said}" in page


@pytest.mark.parametrize(
    "story",
    [
        {"race": 3, "plan": [], "calibration": "x", "chosen": None, "left_out": {}},
        {"race": [1, {"validation": 2}, {"method": 5, "settings": [], "validation": {"a": 1}}]},
        {"plan": {"teachers": 1, "redraws": "many"}, "calibration": {"students": [None, {}]}},
        {"race": [{"method": f"m{i}", "validation": {}} for i in range(120)]},
    ],
)
def test_a_story_by_another_program_is_shown_as_far_as_it_goes(
    raced: CondensedGraph, story: dict[str, Any]
) -> None:
    page = told(raced, **story)
    assert "How it was chosen" in page and len(rows(page)) <= 100


def test_candidates_of_a_stranger_stand_somewhere() -> None:
    odd = [{}, {"validation": 3}, {"validation": {"last word": 10**400, "closer look": "high"}}]
    assert [standing(one) for one in odd] == [(-1.0, -1.0, -1.0)] * 3
