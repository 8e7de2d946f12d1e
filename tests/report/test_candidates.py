"""The page of a result of the automatic mode shows how it was chosen."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gcsr import CondensedGraph, Graph, condense, report
from gcsr.cli.app import main
from gcsr.reporting.candidates import ranked, rounds_of, standing

# As files had it before: other rounds, other plan, and parts that are no longer shown.
OLD = {
    "chosen": {"method": "clusters", "settings": {"k": 2}},
    "plan": {"teachers": ["gcn"], "redraws": 2, "expected_seconds": 61.23456},
    "calibration": {"students": [{"steps": 5, "rate": 0.01}]},
    "second_opinion": {"pseudo_labels": "gcn", "unlabelled_nodes": 20, "weight": 0.4},
    "race": [
        {"method": "mtt", "settings": {}, "validation": {"first look": 0.9}, "merit": {}},
        {
            "method": "gcsr",
            "settings": {},
            "validation": {"closer look": 0.7, "first look": 0.5, "last word": 0.81},
            "agreement": {"last word": 0.99},
        },
        {
            "method": "clusters",
            "settings": {"k": 2},
            "validation": {"closer look": 0.9, "first look": 0.6, "last word": 0.8},
        },
        {"method": "random", "settings": {}, "validation": {"closer look": 0.3}},
    ],
}


@pytest.fixture(scope="module")
def automatic(graph: Graph) -> CondensedGraph:
    return condense(graph, nodes=6, iterations=2, disable="pseudo-labels", device="cpu")


def with_story(small: CondensedGraph, story: dict[str, Any]) -> CondensedGraph:
    return replace(small, provenance=small.provenance | {"automatic": story})


def changed(small: CondensedGraph, **story: Any) -> str:
    return report(with_story(small, small.provenance["automatic"] | story))


def table(page: str) -> tuple[list[str], list[list[str]]]:
    section = page[page.index("How it was chosen</h2>") :]
    found = re.search(r"<thead>(.*?)</thead><tbody>(.*?)</tbody>", section, re.DOTALL)
    assert found is not None
    rows = re.findall(r"<tr>(.*?)</tr>", found[2], re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in (found[1], *rows)]
    return cells[0], cells[1:]


def test_every_candidate_is_there_and_the_chosen_one_is_marked(automatic: CondensedGraph) -> None:
    story = automatic.provenance["automatic"]
    headings, shown = table(report(automatic))
    assert headings == ["candidate", "quick", "final", "settings"]
    assert len(shown) == len(story["candidates"]) > 4
    assert [row[0] for row in shown if "(chosen)" in row[0]] == [shown[0][0]]
    assert shown[0][0] == f"{story['chosen']['method']} (chosen)"
    for column, name in ((1, "quick"), (2, "final")):
        scores = [one["validation"].get(name) for one in story["candidates"]]
        expected = sorted("–" if score is None else f"{100 * score:.1f} %" for score in scores)
        assert sorted(row[column] for row in shown) == expected
    # Those with a final score come before those without.
    final = [row[2] != "–" for row in shown]
    assert final == sorted(final, reverse=True) and not all(final)


def test_a_file_that_was_written_and_read_shows_the_same(
    automatic: CondensedGraph, tmp_path: Path
) -> None:
    # Files sort their keys: the order of the rounds does not come from there.
    again = CondensedGraph.load(automatic.save(tmp_path / "a.safetensors"))
    (headings, shown), (expected, rows) = table(report(again)), table(report(automatic))
    assert headings == expected
    assert [row[:-1] for row in shown] == [row[:-1] for row in rows]


def test_the_navigation_calls_it_what_its_heading_does(automatic: CondensedGraph) -> None:
    page = report(automatic)
    name, anchor = "How it was chosen", "how-it-was-chosen"
    assert f'<a href="#{anchor}">{name}</a>' in page
    assert f'<h2 id="{anchor}-title">{name}</h2>' in page


def test_the_plan_is_plain_pairs(automatic: CondensedGraph) -> None:
    plan = {"hops": [1, 0, 2], "iterations": 300, "least_seconds": 3.48373964}
    assert "Plan: hops=[1, 0, 2], iterations=300, least_seconds=3.484." in changed(
        automatic, plan=plan
    )
    assert "Plan: " not in changed(automatic, plan={})


def test_what_was_left_out_is_shown_with_the_reason(automatic: CondensedGraph) -> None:
    out = [{"method": "bilevel", "settings": {"k": 2}, "reason": "it does not fit into memory"}]
    page = changed(automatic, left_out=out)
    assert "Left out: bilevel (k=2) (it does not fit into memory)." in page


def test_an_older_file_is_shown_in_the_same_way(
    automatic: CondensedGraph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    older = with_story(automatic, OLD)
    page = report(older)
    headings, shown = table(page)
    assert headings == ["candidate", "first look", "closer look", "last word", "settings"]
    assert shown == [
        ["clusters (chosen)", "60.0 %", "90.0 %", "80.0 %", "k=2"],
        ["gcsr", "50.0 %", "70.0 %", "81.0 %", ""],
        ["random", "–", "30.0 %", "–", ""],
        ["mtt", "90.0 %", "–", "–", ""],
    ]
    assert "compared 4 candidates by networks trained on each and chose clusters (k=2)." in page
    assert "redraws=2, expected_seconds=61.23." in page
    assert main(["inspect", str(older.save(tmp_path / "old.safetensors"))]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "clusters k=2 (chosen): first look 60.0 %, closer look 90.0 %, last word 80.0 %" in words
    assert "compared mtt: first look 90.0 %" in words


def test_rounds_of_another_program_come_last_and_are_not_too_many() -> None:
    compared = [
        {"validation": {"mine": 0.2, "final": 0.5, "none": None}},
        {"validation": {"quick": 0.4, "another": 0.1}},
    ]
    assert rounds_of(compared) == ["quick", "final", "mine", "another"]
    assert len(rounds_of([{"validation": {f"round {i}": 0.5}} for i in range(1000)])) == 8


def test_the_real_loss_is_a_curve_and_a_start_has_none(automatic: CondensedGraph) -> None:
    chosen = {"method": "bilevel", "settings": {"iterations": 2}}
    curve = {"every": 1, "values": [2.0, None, 1.5]}
    told = {"automatic": {"chosen": chosen}, "real_loss": curve}
    page = report(replace(automatic, provenance=automatic.provenance | told))
    assert "Real loss from 2 to 1.5" in page and "Matching loss" not in page
    empty = {"automatic": {"chosen": {"method": "bilevel", "settings": {"iterations": 0}}}}
    empty |= {"real_loss": {"every": 1, "values": []}}
    empty |= {"validation": {"iterations": [0], "values": [0.9]}}
    page = report(replace(automatic, provenance=automatic.provenance | empty))
    why = "which recorded no loss: it is a start, without outer steps."
    assert f"The automatic mode chose bilevel, {why}" in page and "kept: 90 at 0" in page


def test_a_start_that_was_asked_for_says_so(automatic: CondensedGraph) -> None:
    bare = {"method": "bilevel", "settings": {"iterations": 0}}
    page = report(replace(automatic, provenance=bare))
    assert "bilevel recorded no loss: it is a start, without outer steps." in page


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("clusters", "chose clusters, which recorded no loss: its nodes are centers of real ones"),
        ("herding", "chose herding, which recorded no loss: it selects real nodes"),
        ("gcsr", "chose gcsr, which recorded no loss: its file holds no loss curve"),
    ],
)
def test_a_choice_without_a_loss_says_why(
    automatic: CondensedGraph, method: str, said: str
) -> None:
    bare = {key: automatic.provenance[key] for key in ("method", "automatic")}
    small = replace(automatic, provenance=bare)
    page = changed(small, chosen={"method": method, "settings": {}})
    assert f"The automatic mode {said}" in page


@pytest.mark.parametrize(
    "story",
    [
        {"candidates": 3, "plan": [], "chosen": None, "left_out": {}},
        {
            "candidates": [
                1,
                {"validation": 2},
                {"method": 5, "settings": [], "validation": {"a": 1}},
            ]
        },
        {"candidates": [], "race": [None, {"validation": {"final": 10**400}}]},
        {"plan": {"hops": 10**400, "iterations": "many", "least_seconds": {"a": [None]}}},
        {"plan": "x", "chosen": {"method": [], "settings": 3}, "left_out": [1, {"reason": 2}]},
        {"candidates": [{"method": f"m{i}", "validation": {}} for i in range(120)]},
        {"candidates": [{"validation": {f"r{i}": 0.5}} for i in range(120)]},
    ],
)
def test_a_story_by_another_program_is_shown_as_far_as_it_goes(
    automatic: CondensedGraph,
    story: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = with_story(automatic, automatic.provenance["automatic"] | story)
    page = report(small)
    assert "How it was chosen" in page and len(table(page)[1]) <= 100
    assert main(["inspect", str(small.save(tmp_path / "a.safetensors"))]) == 0


def test_scores_that_are_not_numbers_rank_below_all_others() -> None:
    rounds = ["quick", "final"]
    odd = [{}, {"validation": 3}, {"validation": {"final": 10**400, "quick": "high"}}]
    assert {standing(one, rounds) for one in odd} == {(float("-inf"),) * 2}
    bad = {"validation": {"final": -3.0}}
    assert ranked({"candidates": [*odd, bad]})[0] is bad
