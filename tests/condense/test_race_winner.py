"""Who wins the race: by how its networks validate, and by what a teacher says of other nodes."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest
import torch

from gcsr import View
from gcsr.condense import Automatic
from gcsr.condense.automatic import Candidate, Contest, Judge, Mark, Plan, second_opinion
from gcsr.condense.automatic.candidates import SIMPLE, clustered_starts
from gcsr.condense.automatic.rounds import CLOSER, FIRST, LAST, Look, Starts
from gcsr.condense.condenser import Made
from gcsr.condense.teachers import class_shares
from gcsr.training import TrainingRecipe
from helpers import planted_graph

CPU = torch.device("cpu")
STARTS = Starts(("gcn",), (1, 2), "halves", 0, soft=False)
FIRST_START, SECOND_START = clustered_starts(STARTS)
ROUNDS = ("FIRST", "CLOSER", "LAST")


@pytest.fixture(autouse=True)
def brief_teachers(monkeypatch):
    for name in ("teachers", "consistent"):
        module = importlib.import_module(f"gcsr.condense.{name}")
        monkeypatch.setattr(module, "RECIPE", TrainingRecipe(epochs=30, validate_every=5))


def winner(marks: dict[Candidate, tuple[Mark, Mark, Mark]]) -> Candidate:
    """Who wins if this is what the rounds find out; of all others nothing is good."""
    module = importlib.import_module("gcsr.condense.automatic.race")
    looks = {name: Look(number, 1, range(1)) for number, name in enumerate(ROUNDS)}
    made: dict[int, Candidate] = {}
    kept: list[Made] = []

    def make(one: Candidate) -> Made:
        found = Made(torch.full((1, 1), float(len(made))), torch.eye(1), torch.zeros(1).long())
        made[id(found)] = one
        kept.append(found)
        return found

    def judge(found: Made, look: Look) -> Mark:
        return marks.get(made[id(found)], (Mark(0.0),) * 3)[look.hidden]

    with pytest.MonkeyPatch.context() as patch:
        for name, look in looks.items():
            patch.setattr(module, name, look)
        contest = Contest(make, judge, lambda: None, list, lambda *_: None)
        found: Candidate = module.race(contest, Plan(STARTS, 0, 0, 1.0))[0].candidate
    return found


def test_the_last_two_rounds_decide_together():
    """One that two rounds like well beats one that the last round likes best."""
    assert (
        winner(
            {
                FIRST_START: (Mark(0.5), Mark(0.9), Mark(0.8)),
                SECOND_START: (Mark(0.5), Mark(0.7), Mark(0.81)),
            }
        )
        == FIRST_START
    )


def test_of_two_that_validate_alike_the_one_that_agrees_with_the_teacher_wins():
    def race(weight: float) -> Candidate:
        lucky, sound = Mark(0.81, 0.5, weight), Mark(0.8, 0.9, weight)
        return winner(
            {FIRST_START: (Mark(0.5), lucky, lucky), SECOND_START: (Mark(0.5), sound, sound)}
        )

    assert race(0.4) == SECOND_START
    assert race(0.0) == FIRST_START


def test_the_answer_never_validates_worse_than_the_simple_ones_whatever_a_teacher_says():
    liked, simple = Mark(0.7, 1.0, 5.0), Mark(0.71, 0.1, 5.0)
    assert (
        winner({FIRST_START: (Mark(0.9), liked, liked), SIMPLE[0]: (simple, simple, simple)})
        == SIMPLE[0]
    )


def test_later_looks_meet_networks_that_chose_nothing_before():
    seen = [set(look.networks) for look in (FIRST, CLOSER, LAST)]
    assert not seen[0] & seen[1] and not (seen[0] | seen[1]) & seen[2]


def test_a_second_opinion_is_about_nodes_that_nobody_has_a_label_of():
    graph = planted_graph()
    view = View(graph).condensing()
    found = second_opinion(view, ("gcn", "mlp"), seed=0, device=CPU)
    assert found is not None and found.teacher in ("gcn", "mlp")
    others = torch.ones(graph.num_nodes, dtype=torch.bool)
    others[graph.train] = others[graph.val] = False
    said = class_shares(view, found.teacher, seed=0, device=CPU).shares.argmax(1)
    assert torch.equal(found.classes, said[others])
    counted = min(200, int(others.sum()))
    assert found.weight == pytest.approx(counted / graph.val.numel())
    # Where the labels of those nodes are other ones, or missing, it says the same.
    blind = replace(graph, y=torch.where(others & (graph.y >= 0), 0, graph.y))
    again = second_opinion(View(blind).condensing(), ("gcn", "mlp"), seed=0, device=CPU)
    assert again is not None and torch.equal(again.classes, found.classes)
    known = View(planted_graph(inductive=True)).condensing()
    assert second_opinion(known, ("gcn",), seed=0, device=CPU) is None


def test_the_first_teacher_is_trusted_unless_another_validates_clearly_better(monkeypatch):
    module = importlib.import_module("gcsr.condense.automatic.opinion")
    graph = planted_graph()
    view = View(graph).condensing()
    right = torch.nn.functional.one_hot(graph.y.clamp_min(0), graph.num_classes).float()

    def trusted(**wrong: int) -> str:
        """Who is, if each is wrong about so many validation nodes."""

        def shares(view, name, **_):
            said = right.clone()
            nodes = graph.val[: wrong[name]]
            said[nodes] = said[nodes].roll(1, 1)
            return type("Taught", (), {"shares": said})()

        monkeypatch.setattr(module, "class_shares", shares)
        found = second_opinion(view, tuple(wrong), seed=0, device=CPU)
        assert found is not None
        return found.teacher

    many = graph.val.numel()
    assert trusted(consistent=many // 2 + 1, mlp=many // 2) == "consistent"
    assert trusted(consistent=many, mlp=many // 4) == "mlp"


def test_an_opinion_on_few_nodes_counts_as_few():
    graph = planted_graph()
    few = replace(graph, val=torch.cat([graph.val, graph.test[:-3]]), test=graph.test[-3:])
    found = second_opinion(View(few).condensing(), ("gcn",), seed=0, device=CPU)
    assert found is not None
    nodes = graph.num_nodes - graph.train.numel() - few.val.numel()
    assert nodes < 200 and found.weight == pytest.approx(nodes / few.val.numel())


@pytest.mark.parametrize("broken", [{"consistent"}, {"consistent", "together", "mlp"}])
def test_a_teacher_that_fails_ends_nothing(monkeypatch, broken):
    module = importlib.import_module("gcsr.condense.teachers")
    whole = module._taught

    def taught(view, teacher, *others):
        if teacher in broken:
            raise torch.OutOfMemoryError("too little memory")
        return whole(view, teacher, *others)

    monkeypatch.setattr(module, "_taught", taught)
    small = Automatic(nodes=9, budget=1000.0, without="matching").condense(
        planted_graph(), device="cpu"
    )
    told = small.provenance["automatic"]
    assert {one["settings"]["teacher"] for one in told["left_out"]} >= broken
    if "mlp" in broken:
        assert told["second_opinion"] is None
        assert told["chosen"]["method"] in ("random", "herding")
    else:
        assert told["second_opinion"]["teacher"] == "mlp"


def test_no_teacher_is_trained_twice(monkeypatch):
    module = importlib.import_module("gcsr.condense.teachers")
    whole, asked = module._taught, []
    monkeypatch.setattr(module, "_taught", lambda *a: asked.append(a[1]) or whole(*a))
    for settings in ({}, {"without": "tempering"}, {"pins": (("tempered", False),)}):
        asked.clear()
        off = ",".join(filter(None, ["matching", settings.get("without")]))
        chosen = {**settings, "without": off}
        Automatic(nodes=9, budget=1000.0, **chosen).condense(planted_graph(), device="cpu")
        assert sorted(asked) == ["appnp", "consistent", "gcn", "mlp", "together"]


def test_one_node_of_a_class_has_no_other_draw():
    told = (
        Automatic(nodes=3, budget=1000.0, without="matching")
        .condense(planted_graph(), device="cpu")
        .provenance["automatic"]
    )
    assert not any("draw" in one["settings"] for one in told["race"])


def test_a_judge_tells_how_often_its_networks_agree_with_the_teacher():
    graph = planted_graph()
    view = View(graph).condensing()
    opinion = second_opinion(view, ("gcn",), seed=0, device=CPU)
    assert opinion is not None
    small = Made(graph.x[graph.train], torch.eye(graph.train.numel()), graph.y[graph.train])
    look = Look(16, 30, range(2), asks=True)
    judge = Judge(view.validation, graph.num_classes, CPU, lambda: opinion)
    mark = judge(small, look)
    assert mark.agreement is not None and mark.agreement > 1.5 / graph.num_classes
    assert mark.merit == pytest.approx(mark.validation + opinion.weight * mark.agreement)
    # A teacher that says the opposite is agreed with by nobody.
    wrong = replace(opinion, classes=(opinion.classes + 1) % graph.num_classes)
    other = Judge(view.validation, graph.num_classes, CPU, lambda: wrong)(small, look)
    assert other.agreement is not None and other.agreement < 1 - mark.agreement + 1e-9
    assert other.validation == mark.validation
    assert judge(small, replace(look, asks=False)) == Mark(mark.validation)


def test_a_result_tells_who_was_asked_and_what_candidates_were_compared_by():
    graph = planted_graph()
    told = Automatic(nodes=9, budget=0.001).condense(graph, device="cpu").provenance["automatic"]
    asked = told["second_opinion"]
    assert asked["teacher"] == "consistent" and asked["unlabelled_nodes"] > 0
    met = [one for one in told["race"] if "closer look" in one["validation"]]
    assert met
    for one in met:
        expected = (
            one["validation"]["closer look"] + asked["weight"] * one["agreement"]["closer look"]
        )
        assert one["merit"]["closer look"] == pytest.approx(expected)
    alone = Automatic(nodes=9, budget=0.001, without="agreement").condense(graph, device="cpu")
    story = alone.provenance["automatic"]
    assert story["second_opinion"] is None
    assert all("agreement" not in one for one in story["race"])
    assert all(one["merit"] == one["validation"] for one in story["race"])
