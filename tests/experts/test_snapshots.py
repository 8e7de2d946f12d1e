"""Experts looked up every few epochs: the same weights as epoch by epoch, with less kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from gcsr.data.views import View
from gcsr.models.registry import condensing_model
from gcsr.training.expert_recipe import ExpertRecipe, ExpertRequest, expert_key
from gcsr.training.experts import train_experts
from gcsr.training.obtain_experts import experts_for, forget_experts
from gcsr.training.trajectories import Trajectories
from helpers import CPU, dense, one_network, plain_logits, planted_graph

MODEL = condensing_model("gcn", 8)
EVERY = 4
# The epochs 0, 4, 8, ..., 36: starts 0 to 2 and goals six snapshots later are looked up.
RECIPE = ExpertRecipe(
    count=3,
    epochs=40,
    trained_epochs=32,
    kept_epochs=32,
    lr=0.02,
    weight_decay=5e-2,
    seed=4,
    restart=False,
)
GAPPED = replace(RECIPE, snapshot_every=EVERY, unread=(3, 6))
READ = [0, 1, 2, 6, 7, 8]
STATE = 4 * sum(p[0].numel() for p in MODEL.init(12, 3, torch.Generator()))


@pytest.fixture(scope="module")
def graph():
    return planted_graph(weighted=True)


@pytest.fixture(scope="module")
def visible(graph):
    return View(graph).condensing().visible


def trained(visible, recipe: ExpertRecipe, memory: int | None = None) -> Trajectories:
    request = ExpertRequest(MODEL, recipe, memory_bytes=memory)
    return train_experts(request, visible, device=CPU)


def assert_equal(ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> None:
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
@pytest.mark.parametrize("states", [None, 0, 3, 7, 14], ids=lambda s: f"{s} states")
def test_snapshots_are_the_epochs_in_between(visible, optimiser, states):
    plain = trained(visible, replace(RECIPE, optimizer=optimiser))
    memory = None if states is None else states * STATE
    found = trained(visible, replace(GAPPED, optimizer=optimiser), memory)
    assert found.keeps_everything is (states is None)
    if memory is not None:
        assert found.nbytes <= memory
    for expert in range(3):
        for start in range(3):
            ours = found.pairs([expert], [start], 6)
            theirs = plain.pairs([expert], [EVERY * start], EVERY * 6)
            assert_equal(ours[0], theirs[0])
            assert_equal(ours[1], theirs[1])


def test_several_graphs_read_by_position_what_each_reads_alone(visible):
    paths = trained(visible, GAPPED)
    experts, starts = [2, 0, 1], [1, 2, 0]
    together = paths.pairs(experts, starts, 6)
    for i, (expert, start) in enumerate(zip(experts, starts, strict=True)):
        for side, alone in zip(together, paths.pairs([expert], [start], 6), strict=True):
            assert_equal(tuple(p[i : i + 1] for p in side), alone)
    where = torch.tensor([paths.position(1, 2)])
    # The engine adds the steps to a position on the device.
    assert_equal(paths.at(where + 6), paths.pairs([1], [2], 6)[1])


def test_only_what_can_be_read_takes_memory(visible):
    assert trained(visible, GAPPED).nbytes == 3 * len(READ) * STATE
    assert trained(visible, replace(GAPPED, unread=(0, 0))).nbytes == 3 * 9 * STATE
    with pytest.raises(IndexError, match="snapshot 4 was not kept"):
        trained(visible, GAPPED).pairs([0], [4], 0)


@pytest.mark.parametrize("restart", [False, True])
def test_sgd_experts_are_what_torchs_sgd_trains(graph, visible, restart):
    recipe = replace(RECIPE, optimizer="sgd", restart=restart, lr=0.3)
    paths = trained(visible, recipe)
    params = nn.ParameterList(one_network(paths.pairs([1], [0], 0)[0]))
    x, a = graph.x.double(), dense(graph.adjacency)
    sgd = torch.optim.SGD(params, lr=0.3, weight_decay=5e-2)
    for epoch in range(32):
        if restart and epoch == 20:
            sgd = torch.optim.SGD(params, lr=0.03, weight_decay=5e-2)
        sgd.zero_grad()
        scores = plain_logits("gcn", list(params), x, a)[graph.train]
        nn.functional.cross_entropy(scores, graph.y[graph.train]).backward()
        sgd.step()
    found = one_network(paths.pairs([1], [32], 0)[0])
    for ours, theirs in zip(found, params, strict=True):
        torch.testing.assert_close(ours, theirs.data, rtol=1e-4, atol=1e-6)


def test_adam_without_a_restart_goes_on_as_it_began(visible):
    restarted = trained(visible, replace(RECIPE, restart=True))
    plain = trained(visible, RECIPE)
    assert_equal(restarted.pairs([0], [20], 0)[0], plain.pairs([0], [20], 0)[0])
    ours, theirs = (paths.pairs([0], [21], 0)[0][0] for paths in (restarted, plain))
    assert not torch.equal(ours, theirs)


@pytest.mark.parametrize(
    "change",
    [{"snapshot_every": 2}, {"optimizer": "sgd"}, {"restart": True}, {"unread": (3, 5)}],
    ids=lambda change: next(iter(change)),
)
def test_another_way_of_training_is_another_key(visible, change):
    ours, theirs = (
        expert_key(ExpertRequest(MODEL, recipe), visible, CPU)
        for recipe in (GAPPED, replace(GAPPED, **change))
    )
    assert ours != theirs


def test_snapshots_come_back_from_disk(visible, tmp_path, monkeypatch):
    monkeypatch.setenv("GCSR_CACHE", str(tmp_path))
    found = []
    for _ in range(2):
        forget_experts()
        found.append(
            experts_for(ExpertRequest(MODEL, GAPPED, disk_bytes=10**8), visible, device=CPU)
        )
    forget_experts()
    assert [experts.cached for experts in found] == [False, True]
    for start in range(3):
        ours, theirs = (experts.trajectories.pairs([1], [start], 6) for experts in found)
        assert_equal(ours[0], theirs[0])
        assert_equal(ours[1], theirs[1])
