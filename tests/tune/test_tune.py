"""The search: what it proposes, keeps, prunes and refuses."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tune_helpers import GRAPH, search, story

import gcsr
from gcsr import CondensedGraph, InputError
from gcsr.data.views import View
from gcsr.engines.iterates import QuickScore
from gcsr.methods.registry import methods
from gcsr.tuning import study as study_module
from gcsr.tuning.search import open_search, tune
from gcsr.tuning.space import space_for
from helpers import tiny, with_other_test_labels

pytestmark = pytest.mark.needs("optuna")


@pytest.fixture
def optuna():
    return pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def whole():
    """Nine trials without a break, in memory."""
    return search(trials=9)


def test_trials_differ_and_stay_in_the_space(whole):
    assert [trial.number for trial in whole.trials] == list(range(9))
    assert len({trial.settings["feature_lr"] for trial in whole.trials}) == 9
    for trial in whole.trials:
        assert 0.03 <= trial.settings["feature_lr"] <= 30
        assert trial.settings["alpha"] in (0.1, 1.0, 10.0)
    assert len({trial.score for trial in whole.trials}) > 2


def test_the_best_is_the_best_and_can_be_made_again(whole, tmp_path):
    scores = [trial.score for trial in whole.trials if trial.score is not None]
    assert whole.score == max(scores) == whole.ranked[0].score
    said = f"the best of {len(whole.trials)} trials of gcsr: validation {100 * whole.score:.2f} % ("
    assert str(whole).startswith(said)
    assert str(replace(whole, trials=())) == "none of 0 trials of gcsr was completed"
    assert set(whole.settings) == {*tiny("gcsr"), "feature_lr", "alpha"}
    (small,) = whole.condense(device="cpu")
    by_hand = gcsr.condense(GRAPH, method="gcsr", nodes=9, device="cpu", **whole.settings)
    assert torch.equal(small.x, by_hand.x) and torch.equal(small.adjacency, by_hand.adjacency)
    view = View(GRAPH).condensing()
    judge = QuickScore(view.validation, torch.device("cpu"), networks=5, seed=1)
    assert judge(small.x, small.adjacency, small.targets) == whole.score
    told = CondensedGraph.load(small.save(tmp_path / "best.safetensors")).provenance["tuned"]
    assert told["trials"] == 9 and told["validation"] == whole.score
    assert told["space"]["feature_lr"] == "0.03..30:log"


def test_a_trial_scores_the_mean_by_networks_that_chose_nothing(monkeypatch):
    honest, met, scores = QuickScore.score, {}, []

    def score(self, x, a, targets, networks, seed, **more):
        scored = honest(self, x, a, targets, networks, seed, **more)
        met.setdefault((networks, seed), []).append(x.numpy().tobytes())
        scores.append(scored)
        return scored

    monkeypatch.setattr(QuickScore, "score", score)
    (trial,) = search(trials=1, graphs=3, iterate="best-val", feature_lr=3.0, alpha=1.0).trials
    # The last three calls are of the three results.
    assert len(set(scores[-3:])) > 1
    assert trial.score == pytest.approx(sum(scores[-3:]) / 3)
    judges = [who for who, graphs in met.items() if len(graphs) == 3]
    assert len(judges) == 1 and len(met) == 2
    (networks, seed), *_ = judges
    assert all(
        seed != other or not set(networks) & set(others)
        for others, other in met
        if (others, other) != judges[0]
    )


def test_some_trials_are_pruned_and_none_of_the_first(whole):
    pruned = [trial for trial in whole.trials if trial.state == "pruned"]
    assert pruned
    assert all(trial.number >= 5 for trial in pruned)
    for trial in pruned:
        assert trial.score is None
        last = max(trial.curve)
        before = [t for t in whole.trials[: trial.number] if t.state == "complete"]
        others = [t.curve[last] for t in before if last in t.curve]
        assert max(trial.curve.values()) < sorted(others)[len(others) // 2]


@pytest.mark.parametrize("change", [{"iterate": "last"}, {"graphs": 2}])
def test_iterates_are_watched_however_one_is_chosen(change):
    found = search(trials=1, **change)
    assert list(found.trials[0].curve) == [1, 2, 3, 4, 5, 6]


def test_watching_changes_no_result():
    for method in ("gcsr", "gcond", "sfgc"):
        chosen = methods()[method](nodes=9, **tiny(method))
        heard: dict[int, float] = {}
        watched = replace(
            View(GRAPH).condensing(), watch=lambda i, scores, heard=heard: heard.update({i: scores})
        )
        ours = chosen.condense(watched, device="cpu")
        assert len(heard) > 2
        assert torch.equal(ours.x, chosen.condense(GRAPH, device="cpu").x)


def test_a_study_that_is_continued_is_one_without_a_break(whole, tmp_path):
    path = tmp_path / "odd name #1?%20.sqlite"
    first = search(trials=2, study=path)
    assert path.is_file() and len(first.trials) == 2
    assert story(search(trials=9, study=path)) == story(whole)
    assert story(search(trials=3, study=path)) == story(whole)  # it has enough


def test_an_interrupted_trial_leaves_no_trace(whole, tmp_path, optuna):
    path = tmp_path / "study.sqlite"
    calls = 0

    def interrupt(stage: str, done: int, total: int) -> None:
        nonlocal calls
        calls += stage == "condensing"
        if calls == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(trials=9, study=path, progress=interrupt)
    kept = optuna.load_study(study_name="gcsr", storage=f"sqlite:///{path}").get_trials()
    assert [trial.state.name for trial in kept] == ["COMPLETE", "COMPLETE", "FAIL"]
    assert story(search(trials=4, study=path)) == story(whole)[:4]


def test_an_interrupt_right_after_a_score_was_told_keeps_it(whole, tmp_path, optuna, monkeypatch):
    path, tell = tmp_path / "study.sqlite", optuna.Study.tell

    def interrupted(study, trial, values=None, **options):
        told = tell(study, trial, values, **options)
        if values is not None:
            raise KeyboardInterrupt
        return told

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(optuna.Study, "tell", interrupted)
        search(trials=9, study=path)
    kept = optuna.load_study(study_name="gcsr", storage=f"sqlite:///{path}").get_trials()
    assert [trial.state.name for trial in kept] == ["COMPLETE"]
    assert story(search(trials=3, study=path)) == story(whole)[:3]


def test_a_killed_process_can_be_continued(whole, tmp_path, optuna):
    path = tmp_path / "study.sqlite"
    program = (
        "import sys, time\nfrom gcsr.engines import iterates as select\n"
        "from tune_helpers import QUICK, search\n"
        "select.QuickScore.score.__kwdefaults__['recipe'] = QUICK\n"
        "trials = 0\n"
        "def hang(stage, done, total):\n"
        "    global trials\n"
        "    trials = done if stage == 'trials' else trials\n"
        "    if stage == 'condensing' and trials == 2:\n"
        "        print('in the third', flush=True)\n"
        "        time.sleep(60)\n"
        "search(trials=9, study=sys.argv[1], progress=hang)\n"
    )
    here = Path(__file__).parent
    paths = [str(here), str(here.parent), *sys.path]
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"in the third\n"
        with pytest.raises(InputError, match=r"study.sqlite is in use by another process"):
            search(study=path)
        process.send_signal(signal.SIGKILL)
    storage = f"sqlite:///{path}"
    left = optuna.load_study(study_name="gcsr", storage=storage).get_trials()
    assert [trial.state.name for trial in left] == ["COMPLETE", "COMPLETE", "RUNNING"]
    assert story(search(trials=4, study=path)) == story(whole)[:4]
    states = [t.state.name for t in optuna.load_study(study_name="gcsr", storage=storage).trials]
    assert states == ["COMPLETE", "COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"nodes": 12}, "was made with nodes 9, not 12; name another file"),
        ({"method": "mtt", "alpha": None}, "was made with method gcsr, not mtt"),
        ({"alpha": "0.1,1"}, "was made with space .*alpha=0.1,1,10, not .*alpha=0.1,1; name"),
        ({"iterations": 5}, "was made with space"),
        ({"seed": 1}, "was made with seed 0, not 1"),
        ({"graphs": 2}, "was made with graphs 1, not 2"),
        ({"graph": with_other_test_labels(GRAPH)}, "was made with data planted "),
    ],
)
def test_a_study_of_something_else_is_refused(change, sentence, study_of_one):
    given = {key: value for key, value in change.items() if value is not None}
    if change.get("method") == "mtt":
        with pytest.raises(InputError, match=sentence):
            tune(
                GRAPH,
                nodes=9,
                study=study_of_one,
                device="cpu",
                method="mtt",
                feature_lr="0.03..30:log",
                **tiny("mtt"),
            )
        return
    with pytest.raises(InputError, match=sentence):
        search(study=study_of_one, **given)


def test_a_study_of_another_scorer_is_refused(study_of_one, monkeypatch):
    monkeypatch.setattr(study_module, "SCORER", "somebody else")
    with pytest.raises(InputError, match=r"was made with scorer 5 GCNs.*, not somebody else"):
        search(study=study_of_one)


def test_a_study_of_version_0_3_is_continued(study_of_one, tmp_path):
    path = tmp_path / "old.sqlite"
    path.write_bytes(study_of_one.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE study_user_attributes SET key = 'question',"
            """ value_json = replace(value_json, '"scorer"', '"judge"') WHERE key = 'identity'"""
        )
    found = search(trials=2, study=path)
    assert len(found.trials) == 2
    with pytest.warns(DeprecationWarning, match="question is called spec"):
        assert found.question is found.spec


@pytest.fixture(scope="module")
def study_of_one(tmp_path_factory):
    path = tmp_path_factory.mktemp("studies") / "one.sqlite"
    search(trials=1, study=path)
    return path


def test_files_that_are_no_studies_are_refused(tmp_path, optuna):
    path = tmp_path / "notes.sqlite"
    path.write_text("my notes, not a study")
    with pytest.raises(InputError, match=r"notes.sqlite is not a study but something else"):
        search(study=path)
    assert path.read_text() == "my notes, not a study"
    with pytest.raises(InputError, match="study must be a file, got the folder"):
        search(study=tmp_path)
    with pytest.raises(InputError, match="cannot be opened"):
        search(study=tmp_path / "gone" / "study.sqlite")
    other = tmp_path / "other.sqlite"
    theirs = optuna.create_study(storage=f"sqlite:///{other}", study_name="gcsr")
    theirs.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    with pytest.raises(InputError, match="was not made by gcsr tune"):
        search(study=other)


@pytest.mark.parametrize("at_fault", ["Search", "require_sound_trials"])
def test_a_study_is_closed_where_the_search_cannot_begin(at_fault, tmp_path, monkeypatch):
    path = tmp_path / "study.sqlite"
    space = space_for("random", None, {})
    asked = study_module.StudySpec.of(GRAPH, nodes=9, method="random", space=space)
    held = open_search(asked, study=path, device="cpu")
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[tune.__module__], at_fault, broken)
        with pytest.raises(MemoryError):
            held.__enter__()
    # The first is still there, and does not keep the file.
    assert len(tune(GRAPH, nodes=9, method="random", study=path, device="cpu").trials) == 1


def broken(*_: object) -> None:
    raise MemoryError


def test_test_labels_have_no_say(whole):
    blind = search(with_other_test_labels(GRAPH), trials=9)
    assert story(blind) == story(whole)


def test_a_prior_that_leaks_is_refused():
    with pytest.raises(InputError, match="prior must be predicted or train, got 'all', which"):
        search(prior="predicted,all")
    with pytest.raises(InputError, match="prior must be predicted or train, got 'all'"):
        search(prior="all")


@pytest.mark.parametrize("method", methods())
def test_every_method_can_be_tuned(method):
    settings = {k: v for k, v in tiny(method).items() if k not in ("student_steps", "inner")}
    found = tune(GRAPH, nodes=9, method=method, space="paper", trials=1, device="cpu", **settings)
    (trial,) = found.trials
    assert trial.state == "complete" and 0 < found.score <= 1
    # Iterates of different candidates do not compare.
    curves = {"matching_loss", "real_loss"}
    watched = method != "auto" and bool(curves & found.condense(device="cpu")[0].provenance.keys())
    assert bool(trial.curve) is watched


def test_a_finite_space_ends_and_repeats_cost_nothing():
    found = tune(GRAPH, nodes=9, method="random", trials=5, device="cpu")
    assert len(found.trials) == 1 and found.settings == {}
    found = search(trials=20, feature_lr=1e-3, alpha="0.1,1")
    assert {trial.settings["alpha"] for trial in found.trials} == {0.1, 1.0}
    repeats = [trial for trial in found.trials if trial.note]
    assert len(found.trials) == 2 + len(repeats) < 20


def test_combinations_that_a_method_refuses_are_passed_over():
    """max_start + expert_steps - 1 may not exceed expert_epochs: 8 + 1 is too much, 4 + 1 is not."""
    found = search(trials=8, max_start="4,8", expert_steps="1,2", feature_lr=1e-3, alpha=1.0)
    refused = [trial for trial in found.trials if "must be <= expert_epochs" in trial.note]
    assert refused and all(trial.state == "pruned" for trial in refused)
    assert all(t.settings == {"max_start": 8, "expert_steps": 2} for t in refused)
    assert found.best.settings != refused[0].settings
    with pytest.raises(InputError, match="got max_start = 9 and expert_steps = 2"):
        search(max_start="4,9")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"alpha": "-1..1"}, "alpha.*-1.0"),
        ({"tau": "0.9..2"}, "tau.*2.0"),
        ({"alfa": 1}, "alfa is neither an argument of gcsr.tune nor a setting of gcsr"),
        ({"method": "gone"}, "method must be one of .*"),
        ({"preset": "gone"}, "preset must be one of .*"),
        ({"trials": 0}, "trials must be an integer >= 1, got 0"),
        ({"trials": 1.5}, "trials must be an integer >= 1, got 1.5"),
        ({"trials": "5"}, "trials must be an integer >= 1, got '5'"),
        ({"seconds": -1}, "seconds must be a number > 0, got -1"),
        ({"graphs": 0}, "graphs must be an integer >= 1, got 0"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"nodes": 2}, "nodes must be >= 3, .*, got 2"),
        ({"nodes": 999}, "nodes must be <= "),
        ({"nodes": None, "ratio": 0.001}, "ratio must be >= .*, got 0.001"),
        ({"nodes": None}, "exactly one of nodes and ratio"),
    ],
)
def test_bad_questions_are_one_sentence(change, sentence):
    with pytest.raises(InputError, match=sentence):
        search(**change)


def test_no_trial_begins_when_time_is_up():
    assert len(search(trials=9, seconds=1e-9).trials) <= 1


def test_progress_counts_trials():
    calls: list[tuple[int, int]] = []
    search(trials=2, progress=lambda stage, *n: calls.append(n) if stage == "trials" else None)
    assert calls == [(0, 2), (1, 2), (2, 2)]


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_plot_has_the_course_and_a_panel_per_parameter(whole, tmp_path, suffix):
    from gcsr.tuning.search import tuning_figure

    path = whole.plot(tmp_path / f"tune.{suffix}")
    assert path.stat().st_size > 5000
    course, *panels = tuning_figure(whole).axes
    assert [panel.get_xlabel() for panel in panels] == ["feature_lr", "alpha"]
    labels = course.get_legend_handles_labels()[1]
    assert labels == ["complete", "pruned", "best so far"]
    best = course.get_lines()[0].get_ydata()
    assert best[-1] == pytest.approx(100 * whole.score)
    points = sum(len(one.get_offsets()) for one in panels[0].collections)
    assert points == len(whole.trials)
    with pytest.raises(InputError, match=r"plot must end with .png or .svg, got 'tune.pdf'"):
        whole.plot(tmp_path / "tune.pdf")
