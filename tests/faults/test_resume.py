"""Runs that end in the middle and go on: the same bytes, and never those of another run."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from gcsr import Checkpoint, CondensedGraph, InputError, condense_many
from gcsr.auto.automatic import Automatic
from gcsr.methods.bilevel import Bilevel
from gcsr.methods.trajectory_matching import MTT
from gcsr.utils.checkpoint import State, opened
from helpers import CPU, planted_graph

EXPERTS = {"experts": 2, "expert_epochs": 20, "max_start": 10, "hidden_channels": 8}
MATCH = {"epochs": 60, "outer": 2, "inner": 1, "hidden_channels": 8}
STUDENTS = {"students": 2, "hidden_channels": 8, "window": 3, "burn_in": 2, "longest": 12}
CASES: dict[str, dict[str, Any]] = {
    "gcsr": {"iterations": 230, "iterate": "best-val", **EXPERTS},
    "mtt": {"iterations": 200, "iterate": "last", "dtype": "float64", **EXPERTS},
    "sfgc": {"iterations": 230, "embedding_epochs": 20, **EXPERTS},
    "dcg": {"iterate": "last", **MATCH},
    "gcond": {"generator_hidden_channels": 8, **MATCH},
    "sgdd": {"generator_hidden_channels": 8, "iterate": "last", "samples": 20, **MATCH},
    "geom": {"iterations": 230, "embedding_epochs": 4, "score_every": 115, **EXPERTS},
    "simgc": {"generator_hidden_channels": 8, "teacher_epochs": 4, "epochs": 60},
    "gcdm": {"generator_hidden_channels": 8, "embedding_epochs": 4, **MATCH},
    "bilevel": {"iterations": 45, **STUDENTS},
    "auto": {"iterations": 45, **STUDENTS},
}


class KilledError(BaseException):
    """Stands for a process that ends."""


@pytest.fixture(scope="module")
def graph():
    return planted_graph()


def made(graph, method: str, *, seeds=(3,), **more: Any) -> list[CondensedGraph]:
    checkpoint = more.pop("checkpoint", None)
    progress = more.pop("progress", lambda stage, done, total: None)
    settings = {"device": "cpu", **CASES[method], **more}
    return condense_many(
        graph,
        nodes=9,
        method=method,
        seeds=seeds,
        checkpoint=checkpoint,
        progress=progress,
        **settings,
    )


def ended(graph, method: str, folder: Path, *, at: int, **more: Any) -> None:
    """Run until the ``at``-th report of iterations, and no further."""
    left = at

    def report(stage: str, done: int, total: int) -> None:
        nonlocal left
        left -= stage == "condensing"
        if left <= 0:
            raise KilledError

    with pytest.raises(KilledError):
        made(graph, method, checkpoint=Checkpoint(folder, every=0), progress=report, **more)


def content(graphs: list[CondensedGraph]) -> list[Any]:
    return [
        (
            {name: told for name, told in g.provenance.items() if name != "measured"},
            *(t.numpy().tobytes() for t in (g.x, g.adjacency, g.y)),
        )
        for g in graphs
    ]


def resumed(graphs: list[CondensedGraph]) -> bool:
    return all(g.provenance["measured"].get("resumed", False) for g in graphs)


@pytest.mark.parametrize("method", CASES)
def test_every_learned_method_goes_on(graph, method, tmp_path):
    whole = made(graph, method)
    folder = tmp_path / "state"
    for at in (12, 25) if "epochs" in CASES[method] else (1, 3):
        ended(graph, method, folder, at=at)
    assert list(folder.glob("*.part"))
    again = made(graph, method, checkpoint=folder)
    assert content(again) == content(whole)
    assert resumed(again) and not resumed(whole)
    assert not folder.exists()


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("method", ["gcsr", "sfgc", "gcond"])
def test_recorded_iterations_go_on(graph, method, tmp_path):
    """On CUDA iterations are replayed from a recording, which then begins in the middle."""
    length = {"iterations": 1100} if method != "gcond" else {}
    more = {**length, "device": "cuda", "seeds": (3, 4)}
    whole = made(graph, method, **more)
    ended(graph, method, tmp_path / "state", at=25 if method == "gcond" else 3, **more)
    again = made(graph, method, checkpoint=tmp_path / "state", **more)
    assert content(again) == content(whole) and resumed(again)


def test_graphs_go_on_each_from_where_it_was(graph, tmp_path):
    whole = made(graph, "gcsr", seeds=(3, 4, 5))
    ended(graph, "gcsr", tmp_path / "state", at=7, seeds=(3, 4, 5))
    assert len(list((tmp_path / "state").glob("*.part"))) >= 2
    again = made(graph, "gcsr", seeds=(3, 4, 5), checkpoint=tmp_path / "state")
    assert content(again) == content(whole) and resumed(again)


def test_a_state_is_used_and_not_made_again(graph, tmp_path):
    """A resumed run begins where the state says."""
    ended(graph, "mtt", tmp_path / "state", at=3)
    seen = []
    made(
        graph,
        "mtt",
        checkpoint=tmp_path / "state",
        progress=lambda stage, done, total: seen.append(done) if stage == "condensing" else None,
    )
    assert seen == [200]


@pytest.mark.parametrize("at", [2, 7])
def test_bilevel_goes_on_with_a_structure_or_before_it(graph, tmp_path, at):
    """Five reports of the graph without edges come first; both have a state of their own."""
    more = {"structure": "self-expressive"}
    whole = made(graph, "bilevel", **more)
    ended(graph, "bilevel", tmp_path / "state", at=at, **more)
    assert len(list((tmp_path / "state").glob("*.part"))) == (1 if at < 5 else 2)
    again = made(graph, "bilevel", checkpoint=tmp_path / "state", **more)
    assert content(again) == content(whole) and resumed(again)


def test_an_automatic_run_goes_on_where_its_bilevel_part_was(graph, tmp_path):
    """Starts are made again; outer steps that were taken are not."""
    seeds = (3, 4)
    whole = made(graph, "auto", seeds=seeds)
    ended(graph, "auto", tmp_path / "state", at=7, seeds=seeds)
    seen: dict[str, list[int]] = {}
    again = made(
        graph,
        "auto",
        seeds=seeds,
        checkpoint=tmp_path / "state",
        progress=lambda stage, done, total: seen.setdefault(stage, []).append(done),
    )
    assert content(again) == content(whole) and any(resumed([one]) for one in again)
    assert len(seen["starts"]) == 2 * (2 + len(whole[0].provenance["automatic"]["plan"]["hops"]))
    assert len(seen["condensing"]) <= 10 - 6 + 1


def test_how_often_states_are_written_changes_nothing(graph, tmp_path):
    often = made(graph, "gcsr", checkpoint=Checkpoint(tmp_path / "often", every=0))
    rarely = made(graph, "gcsr", checkpoint=tmp_path / "rarely")
    never = made(graph, "gcsr")
    assert content(often) == content(rarely) == content(never)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"iterations": 201}, r"of a run with iterations 200, not 201:"),
        ({"alpha": 0.5}, None),
        ({"seeds": (4,)}, r"seeds \[3\], not \[4\]:"),
        ({"dtype": "float32"}, r"dtype float64, not float32:"),
        ({"num_hops": 1, "student_steps": 4}, r"num_hops 0, not 1; student_steps 5, not 4:"),
    ],
)
def test_another_run_is_refused_by_name(graph, tmp_path, change, sentence):
    ended(graph, "mtt", tmp_path / "state", at=3)
    before = {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()}
    method = "gcsr" if "alpha" in change else "mtt"
    match = sentence or r"of a run with method mtt, not gcsr:"
    with pytest.raises(InputError, match=match) as refused:
        made(graph, method, checkpoint=tmp_path / "state", **change)
    assert "fresh=True" in str(refused.value) and len(str(refused.value).splitlines()) == 1
    assert {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()} == before
    fresh = Checkpoint(tmp_path / "state", fresh=True)
    anew = made(graph, method, checkpoint=fresh, **change)
    assert content(anew) == content(made(graph, method, **change)) and not resumed(anew)


@pytest.mark.parametrize("raised", [MTT, Automatic, Bilevel])
def test_an_earlier_revision_is_refused(graph, tmp_path, monkeypatch, raised):
    method = "mtt" if raised is MTT else "auto"
    ended(graph, method, tmp_path / "state", at=3)
    was = raised.revision
    monkeypatch.setattr(raised, "revision", was + 1)
    which = f"revision of {raised.name}" if raised is Bilevel else "revision"
    said = f"of a run with {which} {was}, not {was + 1}: "
    with pytest.raises(InputError, match=said):
        made(graph, method, checkpoint=tmp_path / "state")


def test_a_state_from_before_revisions_is_refused(graph, tmp_path):
    ended(graph, "mtt", tmp_path / "state", at=3)
    run = tmp_path / "state" / "run.json"
    told = json.loads(run.read_bytes())
    assert told.pop("revision") == MTT.revision
    run.write_text(json.dumps(told))
    with pytest.raises(InputError, match="of a run with no revision: "):
        made(graph, "mtt", checkpoint=tmp_path / "state")


def test_other_data_are_refused(graph, tmp_path):
    ended(graph, "mtt", tmp_path / "state", at=3)
    other = replace(graph, x=graph.x * 2)
    with pytest.raises(InputError, match=r"of a run with other data:"):
        made(other, "mtt", checkpoint=tmp_path / "state")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda blob: b"",
        lambda blob: b"no state at all",
        lambda blob: blob[: len(blob) // 2],
        lambda blob: blob[:-5] + bytes([blob[-5] ^ 1]) + blob[-4:],
    ],
    ids=["empty", "garbage", "half", "one bit"],
)
@pytest.mark.parametrize("which", ["*.part", "run.json"])
def test_a_corrupt_state_is_said_and_begun_anew(graph, tmp_path, caplog, spoil, which):
    whole = made(graph, "mtt")
    ended(graph, "mtt", tmp_path / "state", at=3)
    (path,) = (tmp_path / "state").glob(which)
    path.write_bytes(spoil(path.read_bytes()))
    try:
        again = made(graph, "mtt", checkpoint=tmp_path / "state")
    except InputError as error:
        # One bit of a description is another description.
        assert which == "run.json" and "must be of the same run" in str(error)
        return
    assert "begun anew" in caplog.text
    assert content(again) == content(whole) and not resumed(again)


def test_a_state_that_does_not_fit_in_memory_now_is_kept(graph, tmp_path, monkeypatch):
    ended(graph, "mtt", tmp_path / "state", at=3)
    (path,) = (tmp_path / "state").glob("*.part")
    state = path.read_bytes()

    def full(*_: object) -> None:
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr("gcsr.utils.checkpoint.unpacked", full)
    with pytest.raises(InputError, match="device must have memory"):
        made(graph, "mtt", checkpoint=tmp_path / "state")
    assert path.read_bytes() == state


def test_a_state_of_another_run_is_never_loaded(tmp_path, caplog):
    """Even where the description was exchanged."""
    for seed in (1, 2):
        keep = Checkpoint(tmp_path / str(seed), keep=True)
        with opened(keep, {"seed": seed}) as journal:
            journal.part("one", CPU).save(State({"x": torch.ones(3)}))
    (tmp_path / "1" / "one.part").replace(tmp_path / "2" / "one.part")
    with opened(Checkpoint(tmp_path / "2"), {"seed": 2}) as journal:
        assert journal.part("one", CPU).load() is None
    assert "not a state of this run" in caplog.text


def test_tensors_come_back_as_they_were(tmp_path):
    shared = torch.arange(6.0)
    tensors = {
        "shared": shared,
        "again": shared[:3],
        "turned": torch.rand(3, 2).T,
        "double": torch.tensor(1 / 3, dtype=torch.float64),
        "nothing": torch.zeros(0, 4, dtype=torch.int64),
    }
    state = State(tensors, {"third": 1 / 3, "none": None})
    with opened(Checkpoint(tmp_path / "s", keep=True), {}) as journal:
        journal.part("one", CPU).save(state)
    with opened(Checkpoint(tmp_path / "s"), {}) as journal:
        found = journal.part("one", CPU).load()
    assert all(torch.equal(found.tensors[name], tensors[name]) for name in tensors)
    assert found.tensors["double"].dtype == torch.float64
    assert found.values["third"] == 1 / 3 and found.values["none"] is None


def test_two_runs_cannot_share_a_folder(graph, tmp_path):
    with (
        opened(Checkpoint(tmp_path / "state"), {}),
        pytest.raises(InputError, match=r"no other process uses, got .*state;"),
    ):
        made(graph, "mtt", checkpoint=tmp_path / "state")


def test_a_folder_of_somebody_else_is_left_alone(graph, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"which has other files \(thesis.tex\)"):
        made(graph, "mtt", checkpoint=tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("path", ["absent/state", "file"])
def test_a_folder_that_cannot_be_is_one_sentence(graph, tmp_path, path):
    (tmp_path / "file").write_text("")
    said = r"^checkpoint must be a folder that can be written, got .* \("
    with pytest.raises(InputError, match=said):
        made(graph, "mtt", checkpoint=tmp_path / path)


@pytest.mark.parametrize("given", [3, Checkpoint])
def test_a_checkpoint_is_a_folder(graph, given):
    with pytest.raises(InputError, match="checkpoint must be the path of a folder"):
        made(graph, "mtt", checkpoint=given)
    with pytest.raises(InputError, match="every must be seconds >= 0, got -1"):
        Checkpoint(Path("x"), every=-1)


@pytest.mark.parametrize("path", [b"state", 3, None])
def test_the_path_of_a_checkpoint_is_a_text_or_a_path(path):
    with pytest.raises(InputError, match="checkpoint must be the path of a folder, got"):
        Checkpoint(path)


def test_a_description_that_is_nested_without_end_is_begun_anew(tmp_path, caplog):
    (tmp_path / "one.part").touch()
    (tmp_path / "run.json").write_text("[" * 10**5)
    with opened(tmp_path, {"method": "gcsr"}):
        assert "run.json cannot be read" in caplog.text


def test_seconds_of_all_processes_are_told(graph, tmp_path):
    ended(graph, "mtt", tmp_path / "state", at=3)
    (path,) = (tmp_path / "state").glob("*.part")
    with opened(Checkpoint(tmp_path / "state", keep=True), _run(tmp_path)) as journal:
        part = journal.part(path.stem, CPU)
        state = part.load()
        assert journal.seconds > state.values["seconds"] > 0


def _run(tmp_path: Path) -> dict[str, Any]:
    return json.loads((tmp_path / "state" / "run.json").read_text())


def test_writing_takes_one_hundredth_of_the_time(tmp_path, monkeypatch):
    """By a clock of the test's own: every writing takes two seconds, every step one."""
    from gcsr.utils import checkpoint as module

    now = 0.0
    monkeypatch.setattr(module.time, "perf_counter", lambda: now)

    def write(path, blob):
        nonlocal now
        now += 2.0

    monkeypatch.setattr(module, "write_atomically", write)
    with opened(Checkpoint(tmp_path / "s"), {}) as journal:
        parts = [journal.part(str(i), CPU) for i in range(2)]
        for step in range(20_000):
            now += 1.0
            parts[step % 2].offer(100, lambda: State({}, {}))
        told = journal.measured["checkpoints"]
    assert 0.005 * now < told["seconds"] <= 0.0102 * now
    assert told["written"] > 40


def test_nothing_is_logged_when_all_is_well(graph, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        made(graph, "mtt", checkpoint=Checkpoint(tmp_path / "s", every=0))
    assert caplog.text == ""


def test_nodes_that_were_hidden_stay_so(graph, tmp_path):
    """A graph has one content, whoever may see it: the setting is part of the run."""
    ended(graph, "mtt", tmp_path / "state", at=3)
    with pytest.raises(InputError, match="setting"):
        made(replace(graph, inductive=True), "mtt", checkpoint=tmp_path / "state")


def test_work_on_a_cluster_keeps_no_state(graph, tmp_path):
    with pytest.raises(InputError, match="checkpoint must be None with a cluster"):
        made(graph, "mtt", checkpoint=tmp_path / "state", cluster="local")
    assert not (tmp_path / "state").exists()
