"""Experts trained once serve again: same bytes, never more disk than allowed."""

from __future__ import annotations

import errno
import os
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gcsr import GCSR
from gcsr.data.views import View
from gcsr.models.registry import condensing_model
from gcsr.training.expert_cache import HEADER_BYTES, ExpertCache, cache_folder
from gcsr.training.expert_recipe import ExpertRecipe, ExpertRequest, expert_key
from gcsr.training.obtain_experts import Experts, experts_for, forget_experts
from helpers import CPU, planted_graph, with_other_test_labels

RECIPE = ExpertRecipe(
    count=3, epochs=12, trained_epochs=12, kept_epochs=9, lr=0.02, weight_decay=5e-2, seed=4
)
MODEL = condensing_model("sgc", 8)
SMALL: dict[str, Any] = {
    "hidden_channels": 8,
    "iterations": 4,
    "student_steps": 2,
    "max_start": 4,
    "experts": 3,
    "expert_epochs": 8,
    "iterate": "last",
}
PLENTY = 10**8


@pytest.fixture(scope="module")
def graph():
    return planted_graph(weighted=True)


@pytest.fixture(scope="module")
def visible(graph):
    return View(graph).condensing().visible


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A cache folder of this test's own, and a process that remembers nothing."""
    monkeypatch.setenv("GCSR_CACHE", str(tmp_path))
    forget_experts()
    yield tmp_path / "experts"
    forget_experts()


def obtained(visible, *, disk: int = PLENTY, again: bool = False, **settings: Any) -> Experts:
    """Experts; ``again`` lets the process remember the last ones."""
    if not again:
        forget_experts()
    wanted = {"predictions": True, "memory_bytes": None} | settings
    recipe = replace(RECIPE, **wanted.pop("changes", {}))
    request = ExpertRequest(MODEL, recipe, disk_bytes=disk, **wanted)
    return experts_for(request, visible, device=CPU)


def assert_same(ours: Experts, theirs: Experts) -> None:
    for expert in range(3):
        for t in range(8):
            pairs = zip(
                ours.trajectories.pairs([expert], [t], 2),
                theirs.trajectories.pairs([expert], [t], 2),
                strict=True,
            )
            assert all(torch.equal(a, b) for p, q in pairs for a, b in zip(p, q, strict=True))
    assert torch.equal(ours.mean_prediction, theirs.mean_prediction)


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def used(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_stored_experts_are_the_trained_ones(visible, folder):
    trained, stored = obtained(visible), obtained(visible)
    assert (trained.cached, stored.cached) == (False, True)
    assert_same(trained, stored)
    assert [path.stem for path in entries(folder)] == [
        expert_key(ExpertRequest(MODEL, RECIPE), visible, CPU)
    ]


def test_nothing_is_written_or_read_by_default(graph, visible, folder, tmp_path):
    GCSR(nodes=9, **SMALL).condense(graph, device="cpu")
    assert list(tmp_path.rglob("*")) == []
    obtained(visible)
    stored = entries(folder)
    assert not obtained(visible, disk=0).cached
    assert entries(folder) == stored


def test_process_remembers_the_last_experts_only(visible, tmp_path):
    first = obtained(visible, disk=0)
    again = obtained(visible, disk=0, again=True)
    assert again.cached
    assert again.trajectories is first.trajectories
    assert not obtained(visible, disk=0, again=True, changes={"seed": 5}).cached
    assert not obtained(visible, disk=0, again=True).cached
    assert list(tmp_path.rglob("*")) == []


def test_process_remembers_within_the_memory_budget_only(visible):
    first = obtained(visible, disk=0)
    exactly = first.trajectories.nbytes
    # The trajectories alone fit; with the prediction they are not held on to.
    obtained(visible, disk=0, memory_bytes=exactly)
    assert not obtained(visible, disk=0, again=True, memory_bytes=exactly).cached
    obtained(visible, disk=0)
    tight = obtained(visible, disk=0, again=True, memory_bytes=exactly - 1)
    assert not tight.cached
    assert not tight.trajectories.keeps_everything
    assert_same(first, tight)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_memory_stays_within_the_budget(visible, share):
    whole = obtained(visible, disk=0).trajectories.nbytes
    budget = int(share * whole)
    experts = obtained(visible, disk=0, memory_bytes=budget)
    assert experts.trajectories.nbytes <= budget
    assert experts.trajectories.keeps_everything is (share == 1.0)
    assert_same(experts, obtained(visible, disk=0))


@pytest.mark.parametrize("where", ["disk", "process"])
def test_longer_runs_serve_shorter_ones_and_not_the_reverse(visible, where):
    def ask(**settings: Any) -> bool:
        settings |= {"disk": PLENTY} if where == "disk" else {"disk": 0, "again": True}
        return obtained(visible, **settings).cached

    short = {"kept_epochs": 5, "trained_epochs": 5}
    assert not ask(predictions=False, changes=short)
    assert not ask()
    assert ask(predictions=False, changes=short)
    assert ask(changes={"kept_epochs": 5})
    assert not ask(changes={"kept_epochs": 10})


def test_runs_without_predictions_do_not_serve_those_with(visible):
    obtained(visible, predictions=False)
    assert not obtained(visible).cached
    assert obtained(visible).cached


@pytest.mark.parametrize(
    "spoil",
    [
        lambda blob: b"",
        lambda blob: b"no safetensors at all",
        lambda blob: blob[: len(blob) // 2],
        lambda blob: blob[:-5] + bytes([blob[-5] ^ 1]) + blob[-4:],
    ],
    ids=["empty", "garbage", "half", "one bit"],
)
def test_corrupt_file_is_ignored_and_replaced(visible, folder, spoil, caplog):
    trained = obtained(visible)
    (path,) = entries(folder)
    path.write_bytes(spoil(path.read_bytes()))
    with caplog.at_level("DEBUG", logger="gcsr.training.expert_cache"):
        again = obtained(visible)
    assert not again.cached
    assert "is ignored" in caplog.text
    assert_same(trained, again)
    assert obtained(visible).cached


def test_least_recently_used_make_room(visible, folder):
    obtained(visible)
    size = used(folder)
    allowance = 3 * size + HEADER_BYTES
    for seed in (5, 6):
        obtained(visible, disk=allowance, changes={"seed": seed})
    for age, path in enumerate(sorted(entries(folder), key=lambda p: p.stat().st_mtime_ns)):
        os.utime(path, (1000 + age, 1000 + age))
    assert obtained(visible, disk=allowance).cached  # the oldest, used again
    obtained(visible, disk=allowance, changes={"seed": 7})
    assert used(folder) <= allowance
    assert obtained(visible, disk=allowance).cached
    assert not obtained(visible, disk=allowance, changes={"seed": 5}).cached


@pytest.mark.parametrize("share", [0.5, 1.0, 1.7, 2.6])
def test_folder_never_exceeds_the_allowance(visible, folder, share):
    obtained(visible, disk=PLENTY)
    allowance = int(share * used(folder))
    entries(folder)[0].unlink()
    for seed in range(4):
        obtained(visible, disk=allowance, changes={"seed": seed})
        assert used(folder) <= allowance


def test_what_cannot_fit_evicts_nothing(visible, folder):
    obtained(visible)
    before = entries(folder)
    obtained(visible, disk=used(folder) // 2, changes={"seed": 5})
    assert entries(folder) == before


def test_leftovers_of_a_killed_writer_are_removed(visible, folder):
    folder.mkdir()
    (folder / ".abc.part").write_bytes(bytes(1000))
    obtained(visible)
    assert sorted(path.name for path in folder.iterdir()) == [".lock", entries(folder)[0].name]


def test_folder_that_cannot_be_written_is_no_error(visible, tmp_path, caplog):
    (tmp_path / "experts").write_text("a file")
    assert not obtained(visible).cached
    assert "could not be stored" in caplog.text


def test_what_was_remembered_is_stored_once_allowed(visible, folder):
    obtained(visible, disk=0)
    obtained(visible, again=True)
    assert len(entries(folder)) == 1
    assert obtained(visible).cached


def test_key_is_the_content_that_experts_see(graph, visible, monkeypatch):
    def key(seen=visible, model=MODEL, dtype=torch.float32, **changes: Any) -> str:
        return expert_key(ExpertRequest(model, replace(RECIPE, **changes), dtype), seen, CPU)

    hidden = View(with_other_test_labels(graph)).condensing().visible
    copy = replace(visible, x=visible.x.clone(), adjacency=visible.adjacency.copy())
    same = [key(hidden), key(copy), key(kept_epochs=3), key(trained_epochs=9)]
    assert set(same) == {key()}
    heavier = visible.adjacency.copy()
    heavier.data = heavier.data * np.float32(2)
    labels = visible.labels.clone()
    labels[visible.train[0]] = (labels[visible.train[0]] + 1) % 3
    others = [
        key(replace(visible, x=visible.x + 1)),
        key(replace(visible, adjacency=heavier)),
        key(replace(visible, train=visible.train[1:])),
        key(replace(visible, labels=labels)),
        key(replace(visible, num_classes=4)),
        key(model=condensing_model("sgc", 9)),
        key(model=condensing_model("gcn", 8)),
        key(model=condensing_model("sage-paper", 8)),
        key(dtype=torch.float64),
        key(count=4),
        key(epochs=13),
        key(lr=0.03),
        key(weight_decay=0.0),
        key(seed=3),
    ]
    assert len({key(), *others}) == 1 + len(others)
    # Another processor rounds otherwise: a folder may be shared between machines.
    ours = key()
    for module, name in ((platform, "machine"), (torch.backends.cpu, "get_cpu_capability")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, lambda: "another one")
            assert key() != ours
    assert key() == ours


def test_folder_follows_the_rule_of_datasets(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path
    monkeypatch.delenv("GCSR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/some/cache")
    assert ExpertCache(1).path("k") == Path("/some/cache/gcsr/experts/k.safetensors")


def test_trajectories_beyond_memory_lie_in_a_file_without_a_name(visible, tmp_path):
    whole = obtained(visible, disk=0)
    mapped = obtained(visible, memory_bytes=1)
    assert mapped.measured == whole.measured | {"mapped": True}
    assert_same(mapped, whole)
    # Nothing that a kill could leave behind, and nothing for later runs.
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    again = obtained(visible, memory_bytes=1, again=True)
    assert again.cached
    assert again.trajectories is mapped.trajectories


def test_disk_too_small_for_a_file_means_training_again(visible, tmp_path, monkeypatch):
    whole = obtained(visible, disk=0)
    replayed = obtained(visible, memory_bytes=1, disk=whole.trajectories.nbytes - 1)
    assert (replayed.measured["kept"], replayed.measured["mapped"]) == (False, False)

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    refused = obtained(visible, memory_bytes=1)
    assert (refused.measured["kept"], refused.measured["mapped"]) == (False, False)
    assert_same(refused, whole)


def test_a_prediction_for_another_graph_is_not_used(visible, folder):
    """Its checksum fits: whoever wrote it meant it."""
    first = obtained(visible, predictions=True)
    (path,) = folder.glob("*.safetensors")
    other = first.mean_prediction[1:].clone()
    ExpertCache(PLENTY).save(path.stem, first.trajectories.kept, other)
    again = obtained(visible, predictions=True)
    assert not again.cached
    assert torch.equal(again.mean_prediction, first.mean_prediction)
