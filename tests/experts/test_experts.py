from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from gcsr.data.views import View
from gcsr.methods.trajectory_matching import TrajectoryCondenser
from gcsr.models.registry import CONDENSING_MODELS, condensing_model
from gcsr.training.expert_recipe import ExpertRecipe, ExpertRequest
from gcsr.training.experts import MeanPrediction, train_experts
from gcsr.training.trajectories import Trajectories
from helpers import CPU, dense, one_network, plain_logits, planted_graph

H = 8
RECIPE = ExpertRecipe(
    count=3,
    epochs=12,
    trained_epochs=12,
    kept_epochs=9,
    lr=0.02,
    weight_decay=5e-2,
    seed=4,
)


@pytest.fixture(scope="module")
def graph():
    return planted_graph(weighted=True)


@pytest.fixture(scope="module")
def visible(graph):
    return View(graph).condensing().visible


def trained(visible, name: str = "sgc", memory: int | None = None, **changes) -> Trajectories:
    recipe = replace(RECIPE, **changes)
    request = ExpertRequest(condensing_model(name, H), recipe, memory_bytes=memory)
    return train_experts(request, visible, device=CPU)


def finals(visible, name: str) -> dict[int, tuple[Tensor, ...]]:
    """The last weights of every expert, by its number."""
    last: dict[int, tuple[Tensor, ...]] = {}
    train_experts(
        ExpertRequest(condensing_model(name, H), RECIPE),
        visible,
        device=CPU,
        on_trained=lambda experts, params: last.update({experts.start: params}),
    )
    return last


def mean_of(visible, name: str, memory: int | None = None) -> Tensor:
    model = condensing_model(name, H)
    mean = MeanPrediction(model, visible, CPU)
    request = ExpertRequest(model, RECIPE, memory_bytes=memory)
    train_experts(request, visible, device=CPU, on_trained=mean)
    return mean.mean


def everything(paths: Trajectories, epochs: int = 10) -> list[Tensor]:
    """Weights of expert 1 after epochs 0, 1, 2, ..., flattened."""
    parts = [paths.pairs([1], [t], 0)[0] for t in range(epochs)]
    return [torch.cat([p.flatten() for p in params]) for params in parts]


class Plain(nn.Module):
    """The model of section 7 as a module, for torch's own optimiser."""

    def __init__(self, name: str, params: list[Tensor]) -> None:
        super().__init__()
        self.name, self.params = name, nn.ParameterList(params)

    def forward(self, x: Tensor, a: Tensor) -> Tensor:
        return plain_logits(self.name, list(self.params), x, a)


@pytest.mark.parametrize("name", CONDENSING_MODELS)
def test_experts_are_what_torchs_adam_trains(name, graph, visible):
    paths = trained(visible, name)
    network = Plain(condensing_model(name).name, one_network(paths.pairs([1], [0], 0)[0]))
    x, a = graph.x.double(), dense(graph.adjacency)
    adam = torch.optim.Adam(network.parameters(), lr=0.02, weight_decay=5e-2)
    for epoch in range(9):
        if epoch == 6:
            adam = torch.optim.Adam(network.parameters(), lr=0.002, weight_decay=5e-2)
        adam.zero_grad()
        scores = network(x, a)[graph.train]
        nn.functional.cross_entropy(scores, graph.y[graph.train]).backward()
        adam.step()
        found = one_network(paths.pairs([1], [epoch + 1], 0)[0])
        for ours, theirs in zip(found, network.params, strict=True):
            torch.testing.assert_close(ours, theirs.data, rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("name", ["sgc", "gcn", "appnp"])
def test_training_nodes_in_parts_train_the_same_experts(name, visible, monkeypatch):
    from gcsr.training import experts as rows

    model = condensing_model(name, 8)
    request = ExpertRequest(model, RECIPE, torch.float64)
    whole = train_experts(request, visible, device=CPU)
    monkeypatch.setitem(rows.ACTIVATION_BUDGET, "cpu", 100)
    assert len(rows.TrainingRows(model, visible, CPU, torch.float64).parts) > 2
    parts = train_experts(request, visible, device=CPU)
    for ours, theirs in zip(parts.kept, whole.kept, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_every_epoch_is_a_snapshot_of_its_own(visible):
    epochs = everything(trained(visible))
    for i, early in enumerate(epochs):
        for late in epochs[i + 1 :]:
            assert not torch.equal(early, late)


def test_experts_differ_and_depend_on_their_seed_only(visible):
    paths, again, other = trained(visible), trained(visible, count=2), trained(visible, seed=5)
    first, second = paths.pairs([0], [5], 0)[0], paths.pairs([1], [5], 0)[0]
    assert not torch.equal(first[0], second[0])
    assert torch.equal(second[0], again.pairs([1], [5], 0)[0][0])
    assert not torch.equal(second[0], other.pairs([1], [5], 0)[0][0])


def test_pairs_are_m_epochs_apart_and_one_per_graph(visible):
    paths = trained(visible)
    start, goal = paths.pairs([2, 0, 2], [1, 7, 4], 2)
    for i, (expert, t) in enumerate([(2, 1), (0, 7), (2, 4)]):
        for ends, epoch in ((start, t), (goal, t + 2)):
            (alone, _) = paths.pairs([expert], [epoch], 0)
            for many, one in zip(ends, alone, strict=True):
                assert torch.equal(many[i], one[0])


STATE = 4 * sum(p[0].numel() for p in condensing_model("sgc", H).init(12, 3, torch.Generator()))


@pytest.mark.parametrize(
    "budget",
    [0, 3 * STATE, 9 * STATE, 18 * STATE, 29 * STATE],
    ids=lambda b: f"{b // STATE} states",
)
@pytest.mark.parametrize("name", ["sgc", "gcn", "cheby-paper"])
def test_replayed_weights_are_the_kept_ones_bit_by_bit(visible, name, budget):
    kept, replayed = trained(visible, name), trained(visible, name, memory=budget)
    assert kept.keeps_everything
    assert not replayed.keeps_everything
    assert replayed.nbytes <= budget
    for expert in range(3):
        for t in range(8):
            for ours, theirs in zip(
                replayed.pairs([expert], [t], 2), kept.pairs([expert], [t], 2), strict=True
            ):
                assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_budget_that_suffices_keeps_everything(visible):
    paths = trained(visible, memory=30 * STATE)
    assert paths.keeps_everything
    assert paths.nbytes == 30 * STATE


def test_larger_budget_means_fewer_epochs_to_train_again(visible):
    strides = [trained(visible, memory=b * STATE).stride for b in (0, 9, 18, 27, 30)]
    assert strides == sorted(strides, reverse=True)
    assert strides[0] > 9
    assert strides[-1] == 1


def test_replaying_does_not_change_what_is_kept(visible):
    paths = trained(visible, memory=9 * STATE)
    before = everything(paths)
    paths.pairs([1, 1], [7, 2], 2)
    assert all(torch.equal(a, b) for a, b in zip(before, everything(paths), strict=True))


def test_training_may_stop_early_without_changing_what_was_kept(visible):
    whole, early = everything(trained(visible)), everything(trained(visible, trained_epochs=9))
    assert all(torch.equal(a, b) for a, b in zip(whole, early, strict=True))


@pytest.mark.parametrize("name", ["sgc", "gcn"])
def test_mean_prediction_is_the_mean_of_softmaxes(name, graph, visible):
    experts = finals(visible, name)
    found = mean_of(visible, name)
    formula = condensing_model(name).name
    x, a = graph.x.double(), dense(graph.adjacency)
    experts = [one_network(experts[expert]) for expert in range(3)]
    expected = sum(plain_logits(formula, params, x, a).softmax(1) for params in experts) / 3
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.sum(1), torch.ones(graph.num_nodes))


@pytest.mark.parametrize("budget", [0, 9 * STATE, 29 * STATE])
def test_mean_prediction_does_not_depend_on_the_budget(visible, budget):
    assert torch.equal(mean_of(visible, "gcn"), mean_of(visible, "gcn", memory=budget))


def test_mean_prediction_does_not_depend_on_who_finishes_first(visible):
    model, experts = condensing_model("sgc", H), finals(visible, "sgc")
    means = []
    for order in ((0, 1, 2), (2, 0, 1)):
        mean = MeanPrediction(model, visible, CPU)
        for expert in order:
            mean(range(expert, expert + 1), experts[expert])
        means.append(mean.mean)
    assert torch.equal(*means)


def test_mean_prediction_without_every_expert_is_refused(visible):
    mean = MeanPrediction(condensing_model("sgc", H), visible, CPU)
    mean(range(1, 2), finals(visible, "sgc")[1])
    with pytest.raises(RuntimeError, match="not every expert"):
        _ = mean.mean


def test_weights_at_the_end_of_training_are_those_of_the_last_epoch(visible):
    paths, last = trained(visible, kept_epochs=12), finals(visible, "sgc")
    assert sorted(last) == [0, 1, 2]
    for expert, params in last.items():
        kept = paths.pairs([expert], [12], 0)[0]
        assert all(torch.equal(a, b) for a, b in zip(kept, params, strict=True))


def test_experts_see_training_labels_only(graph):
    labels = graph.y.clone()
    labels[torch.cat([graph.val, graph.test])] = 0
    other = View(replace(graph, y=labels, num_classes=3)).condensing().visible
    ours = everything(trained(View(graph).condensing().visible))
    theirs = everything(trained(other))
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_progress_counts_every_epoch_of_every_expert(visible):
    calls = []
    train_experts(
        ExpertRequest(condensing_model("sgc", H), RECIPE),
        visible,
        device=CPU,
        progress=lambda stage, done, total: calls.append((stage, done, total)),
    )
    assert calls[-1] == ("training experts", 36, 36)
    assert [done for _, done, _ in calls] == sorted(done for _, done, _ in calls)


def test_defaults_keep_what_the_schedule_can_ask_for():
    fields = TrajectoryCondenser.__dataclass_fields__
    last = fields["max_start"].default + fields["expert_steps"].default - 1
    assert last <= fields["expert_epochs"].default
