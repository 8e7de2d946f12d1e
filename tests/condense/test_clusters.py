"""Class-wise centers, and who says the classes."""

from __future__ import annotations

import importlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcsr import GCSR, MTT, InputError, View, check_leaks
from gcsr.engines.result import Context
from gcsr.methods.clusters import Clusters
from gcsr.models.mlp import MLP
from gcsr.starts.clusters import balanced_bisection, cluster_start, k_means
from gcsr.starts.pseudo_labels import (
    LABELERS,
    LabelerInputs,
    at_temperature,
    best_temperature,
    class_shares,
    columns_read,
    consistent_prediction,
)
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.devices import make_generator
from gcsr.utils.progress import silent
from helpers import planted_graph

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def brief_teachers(monkeypatch):
    teachers = importlib.import_module("gcsr.starts.pseudo_labels")
    short = TrainingRecipe(epochs=30, validate_every=5)
    monkeypatch.setattr(teachers, "SUPERVISED_RECIPE", short)
    monkeypatch.setattr(teachers, "CONSISTENT_RECIPE", TrainingRecipe(epochs=60, dropout=0.5))


def test_k_means_finds_groups_that_lie_apart():
    centers = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    x = centers.repeat_interleave(5, 0) + 0.1 * torch.randn(
        15, 2, generator=make_generator(0, "noise")
    )
    # Rows that k-means begins with may lie in the same group: some begin well.
    tries = [k_means(x, 3, make_generator(seed, "clusters")) for seed in range(10)]
    found, groups = min(tries, key=lambda one: float((x - one[0][one[1]]).square().sum()))
    order = groups[::5]
    assert sorted(order.tolist()) == [0, 1, 2]
    assert torch.equal(groups, order.repeat_interleave(5))
    torch.testing.assert_close(found[order], x.view(3, 5, 2).mean(1))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 30), k=st.integers(1, 6))
def test_every_row_is_with_the_nearest_center_and_every_center_is_a_mean(seed, n, k):
    k = min(n, k)
    x = torch.randn(n, 3, generator=make_generator(seed, "rows"), dtype=torch.float64)
    centers, groups = k_means(x, k, make_generator(seed, "clusters"))
    assert torch.isfinite(centers).all()
    distances = torch.cdist(x, centers)
    chosen = distances.gather(1, groups[:, None]).flatten()
    # The last round moves the centers after it has grouped the rows: so small a graph has settled.
    assert torch.all(chosen <= distances.min(1).values + 1e-9)
    for group in groups.unique().tolist():
        torch.testing.assert_close(centers[group], x[groups == group].mean(0))


def test_equal_rows_are_no_trouble():
    centers, groups = k_means(torch.ones(6, 4), 3, make_generator(0, "clusters"))
    assert torch.equal(centers, torch.ones(3, 4))
    assert groups.numel() == 6


def test_labels_are_the_mean_of_what_is_known_of_the_grouped_nodes():
    x = torch.tensor([[0.0], [0.1], [5.0], [9.0], [9.1]])
    shares = torch.tensor([[1.0, 0.0], [0.6, 0.4], [0.7, 0.3], [0.0, 1.0], [0.2, 0.8]])
    budget = torch.tensor([2, 1])
    soft = cluster_start(x, shares, budget, make_generator(0, "clusters"), "k-means")
    assert soft.targets is not None
    order = soft.x[:2, 0].argsort()
    torch.testing.assert_close(soft.x[:2][order], torch.tensor([[0.05], [5.0]]))
    torch.testing.assert_close(soft.targets[:2][order], torch.tensor([[0.8, 0.2], [0.7, 0.3]]))
    torch.testing.assert_close(soft.targets[2], torch.tensor([0.1, 0.9]))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 40), k=st.integers(1, 12))
def test_halves_of_halves_are_of_equal_size(seed, n, k):
    k = min(n, k)
    x = torch.randn(n, 3, generator=make_generator(seed, "rows"))
    groups = balanced_bisection(x, k, make_generator(seed, "clusters"))
    sizes = torch.bincount(groups, minlength=k)
    assert sizes.numel() == k and sizes.sum() == n
    assert sizes.max() - sizes.min() <= 1
    # Scaled, even to where squares are infinite, rows stay together.
    for scale in (4.0, 2.0**60, 2.0**-60):
        assert torch.equal(
            balanced_bisection(scale * x, k, make_generator(seed, "clusters")), groups
        )


def test_rows_are_cut_where_they_vary_most():
    generator = make_generator(0, "rows")
    long = torch.linspace(-50, 50, 16)[torch.randperm(16, generator=generator)]
    x = torch.stack([torch.randn(16, generator=generator), long], 1)
    for seed in range(5):
        groups = balanced_bisection(x, 4, make_generator(seed, "clusters"))
        quarters = long.argsort().argsort() // 4
        # The same four neighbors along the long side, from either end.
        assert all(len(set(groups[quarters == one].tolist())) == 1 for one in range(4))
    assert torch.bincount(balanced_bisection(torch.ones(6, 4), 3, generator)).tolist() == [2, 2, 2]


def test_centers_of_halves_are_means_of_as_many_nodes():
    x = torch.arange(12.0)[:, None]
    shares = torch.nn.functional.one_hot(torch.tensor([0] * 8 + [1] * 4), 2).float()
    start = cluster_start(
        x, shares, torch.tensor([4, 2]), make_generator(0, "clusters"), "bisection"
    )
    found = [sorted(block.flatten().tolist()) for block in start.x.split([4, 2])]
    assert found == [[0.5, 2.5, 4.5, 6.5], [8.5, 10.5]]


def test_a_new_seed_leaves_the_starts_of_others_as_they_are(monkeypatch):
    module = importlib.import_module("gcsr.starts.clusters")
    view = View(planted_graph()).condensing()
    Clusters(nodes=9).run(Context(view, 9, [0], CPU, silent))
    made = []
    whole = module.cluster_start
    monkeypatch.setattr(module, "cluster_start", lambda *a: made.append(a) or whole(*a))
    Clusters(nodes=9).run(Context(view, 9, [0, 1], CPU, silent))
    assert len(made) == 1


def test_hard_labels_belong_to_the_same_centers():
    view = View(planted_graph()).condensing()
    soft, again = (
        Clusters(nodes=9, soft_labels=True).run(Context(view, 9, [0], CPU, silent))[0] for _ in "ab"
    )
    # What one run was handed out is its own.
    soft.x.zero_()
    hard = Clusters(nodes=9, soft_labels=False).run(Context(view, 9, [0], CPU, silent))[0]
    assert torch.equal(hard.x, again.x)
    assert torch.equal(hard.y, again.y.argmax(1))


@pytest.mark.parametrize(
    "change",
    [{"num_hops": 0}, {"tempered": False}, {"pseudo_labels": "gcn"}, {"grouping": "k-means"}],
)
def test_a_start_is_that_of_its_settings_whatever_was_asked_before(change):
    def made(view, nodes=9, **settings):
        return Clusters(nodes=nodes, **settings).run(Context(view, nodes, [0], CPU, silent))[0]

    shared = View(planted_graph()).condensing()
    made(shared)
    made(shared, nodes=12)
    found, fresh = (made(v, **change) for v in (shared, View(planted_graph()).condensing()))
    assert torch.equal(found.x, fresh.x) and torch.equal(found.y, fresh.y)


def test_many_wide_rows_are_grouped_in_a_projection(monkeypatch):
    module = importlib.import_module("gcsr.starts.clusters")
    generator = make_generator(0, "rows")
    far = 3 * torch.randn(4, 3000, generator=generator)
    x = far.repeat_interleave(30, 0) + torch.randn(120, 3000, generator=generator)
    whole = [k_means(x, 4, make_generator(seed, "clusters")) for seed in range(8)]
    monkeypatch.setattr(module, "MANY", 1)
    narrow = [k_means(x, 4, make_generator(seed, "clusters")) for seed in range(8)]

    def missed(found):
        centers, groups = found
        return float((x - centers[groups]).square().sum())

    # The groups are found, and centers are means of the rows themselves.
    assert min(map(missed, narrow)) == pytest.approx(min(map(missed, whole)), rel=1e-5)
    for centers, groups in narrow:
        for group in groups.unique().tolist():
            torch.testing.assert_close(centers[group], x[groups == group].mean(0))


def test_a_class_with_fewer_nodes_than_its_share_repeats_them_with_jitter():
    x = torch.tensor([[1.0], [2.0], [3.0]])
    shares = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    start = cluster_start(x, shares, torch.tensor([2, 3]), make_generator(0, "clusters"))
    assert start.x.shape == (5, 1)
    assert start.x.unique().numel() == 5
    assert (start.x[2:] - 3.0).abs().max() < 0.1
    assert "2 nodes of class 1 repeat" in start.notes[0]
    # Features of another size get a jitter of that size.
    for size in (1e-6, 1e6):
        other = cluster_start(size * x, shares, torch.tensor([2, 3]), make_generator(0, "clusters"))
        torch.testing.assert_close(other.x / size, start.x)


@pytest.mark.parametrize("inductive", [False, True])
@pytest.mark.parametrize("teacher", LABELERS)
def test_teachers_keep_training_labels_and_learn_the_rest(teacher, inductive):
    graph = planted_graph(inductive=inductive)
    view = View(graph).condensing()
    shares = class_shares(view, teacher, seed=0, device=CPU).shares
    assert shares.shape == (view.visible.num_nodes, 3)
    torch.testing.assert_close(shares.sum(1), torch.ones(view.visible.num_nodes))
    known = torch.nn.functional.one_hot(view.visible.train_labels, 3).float()
    assert torch.equal(shares[view.visible.train], known)
    if not inductive:
        assert (shares.argmax(1) == graph.y)[graph.test].double().mean() > 0.6


def test_the_best_temperature_makes_labels_likeliest():
    # Two of three predictions are right: whoever says 2/3 says it best.
    sure = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    labels = torch.tensor([0, 0, 0])
    found = best_temperature(sure, labels)
    assert found > 1
    tempered = at_temperature(sure, found)
    assert float(tempered[0, 0]) == pytest.approx(2 / 3, abs=0.02)
    assert torch.equal(tempered.argmax(1), sure.argmax(1))
    assert best_temperature(torch.tensor([[0.6, 0.4]] * 3), labels) < 0.25
    torch.testing.assert_close(at_temperature(sure, 1.0), sure)


def test_validation_labels_temper_and_nothing_else_does(monkeypatch):
    labels = importlib.import_module("gcsr.starts.pseudo_labels")
    # Without dropout networks are much surer of the training nodes than of others.
    monkeypatch.setattr(labels, "SUPERVISED_RECIPE", TrainingRecipe(epochs=30, validate_every=5))
    graph = planted_graph(noise=5.0)
    view = View(graph).condensing()
    plain = class_shares(view, "gcn", seed=0, device=CPU, tempered=False)
    tempered = class_shares(view, "gcn", seed=0, device=CPU)
    assert plain.temperature is None and tempered.temperature is not None
    assert torch.equal(plain.shares.argmax(1), tempered.shares.argmax(1))
    rows = view.validation.nodes

    def loss(shares):
        return float(torch.nn.functional.nll_loss(shares[rows].log(), view.validation.labels))

    # No other temperature makes the validation labels likelier; training labels have no say.
    tried = [loss(at_temperature(plain.shares, 1.05**step)) for step in range(-32, 33)]
    assert loss(tempered.shares) <= min(tried) + 1e-3 < max(tried)
    told = Clusters(nodes=9, pseudo_labels="gcn").condense(graph, device="cpu").provenance
    assert told["pseudo_labels"]["temperature"] == tempered.temperature
    untold = Clusters(nodes=9, pseudo_labels="gcn", tempered=False).condense(graph, device="cpu")
    assert untold.provenance["pseudo_labels"]["temperature"] is None


@pytest.mark.parametrize("better", ["consistent", "gcn"])
def test_the_labeler_that_validates_better_is_used(monkeypatch, better):
    labels = importlib.import_module("gcsr.starts.pseudo_labels")
    graph = planted_graph()
    view = View(graph).condensing()
    right = torch.nn.functional.one_hot(graph.y.clamp_min(0), 3).float().clamp(0.01, 0.98)
    wrong = right.roll(1, 1)

    def predicted(name):
        return (right if name == better else wrong).clone()

    monkeypatch.setattr(labels, "consistent_prediction", lambda *a, **k: predicted("consistent"))
    monkeypatch.setattr(labels, "network_prediction", lambda name, *a, **k: predicted(name))
    found = class_shares(view, "auto", seed=0, device=CPU)
    assert found.labeler == better
    assert found.validation == {name: float(name == better) for name in ("consistent", "gcn")}
    assert found.provenance["validation"] == found.validation
    alone = class_shares(view, better, seed=0, device=CPU)
    assert torch.equal(found.shares, alone.shares) and "validation" not in alone.provenance


def test_a_consistent_teacher_learns_from_nodes_without_a_label(monkeypatch):
    labels = importlib.import_module("gcsr.starts.pseudo_labels")
    view = View(planted_graph()).condensing()
    told = consistent_prediction(view, seed=0, device=CPU)
    assert torch.equal(told, consistent_prediction(view, seed=0, device=CPU))
    assert not torch.equal(told, consistent_prediction(view, seed=1, device=CPU))

    def sureness() -> float:
        # Over a few seeds: builds of torch draw dropout differently, and one draw says little.
        said = [consistent_prediction(view, seed=seed, device=CPU) for seed in range(4)]
        return float(torch.stack(said).max(-1).values.mean())

    # Where draws are compared with a mean that is as sharp as can be, predictions become surer.
    sharp = sureness()
    monkeypatch.setattr(labels, "SHARPENING", 1.0)
    assert sharp > sureness()


def test_dropped_rows_are_made_up_for_by_the_others():
    view = View(planted_graph()).condensing()
    found = LabelerInputs(view, 0, CPU, draws=600)
    draws, whole = torch.stack(found.draws), found.undropped[found.rows]
    assert (draws.var(0) > 0).any(1).all()
    # On average features are what they are without dropping, as networks see them later.
    scale = float((draws.mean(0) * whole).sum() / whole.square().sum())
    assert scale == pytest.approx(1, abs=0.03)


def test_half_of_the_columns_are_dropped_and_the_others_doubled():
    material = LabelerInputs(View(planted_graph()).condensing(), 0, CPU, dropout=0.0)
    # One unit that adds up the columns: row j of the identity is column j.
    networks = 50
    params = (torch.ones(networks, 12, 1), torch.zeros(networks, 1, 1),
              torch.ones(networks, 1, 1), torch.zeros(networks, 1, 1))  # fmt: skip
    first, again = (material.logits(MLP(1), params, torch.eye(12)) for _ in range(2))
    assert set(first.unique().tolist()) == {0.0, 2.0}
    assert 0.4 < float((first == 0).double().mean()) < 0.6
    assert not torch.equal(first, again) and not torch.equal(first[0], first[1])


def test_a_consistent_teacher_reads_what_fits_of_wide_features():
    labels = importlib.import_module("gcsr.starts.pseudo_labels")
    assert columns_read(3_000, 1_400) == 1_400
    assert columns_read(3_000, 9_000) == labels.WIDEST
    assert columns_read(10**6, 9_000) == labels.NARROWEST
    graph = planted_graph()
    chosen = labels.varied_columns_of(View(graph).condensing().visible, 3)
    assert chosen.numel() == 3
    varied = graph.x.var(0)
    assert varied[chosen].min() >= varied.sort(descending=True).values[2]
    assert chosen.tolist() == sorted(chosen.tolist())


@pytest.mark.parametrize("method", [Clusters(nodes=9), MTT(nodes=9, init="clusters",
    iterations=3, experts=2, expert_epochs=8, max_start=4, hidden_channels=8)])  # fmt: skip
def test_test_labels_change_nothing(method):
    check_leaks(method, planted_graph())


def test_matching_from_centers_begins_where_the_centers_are():
    graph = planted_graph()
    short = {
        "experts": 2,
        "expert_epochs": 8,
        "max_start": 4,
        "hidden_channels": 8,
        "iterate": "last",
    }
    centers = Clusters(nodes=9, pseudo_labels="gcn", soft_labels=True, num_hops=2).condense(
        graph, device="cpu"
    )
    begin = {"init": "clusters", "pseudo_labels": "gcn", "soft_labels": True, "num_hops": 2}
    for method in (GCSR, MTT):
        still = method(nodes=9, iterations=0, **begin, **short).condense(graph, device="cpu")
        moved = method(nodes=9, iterations=5, **begin, **short).condense(graph, device="cpu")
        assert torch.equal(still.x, centers.x)
        assert torch.equal(still.y, centers.y)
        assert not torch.equal(moved.x, centers.x)
        assert torch.equal(moved.y, centers.y)
    assert not torch.equal(GCSR(nodes=9, iterations=0, **begin, **short).condense(
        graph, device="cpu").adjacency, torch.eye(9))  # fmt: skip


def test_soft_labels_of_sampled_rows_are_refused():
    with pytest.raises(InputError, match="soft_labels must be false for init 'sample'"):
        MTT(nodes=9, soft_labels=True)
    with pytest.raises(InputError, match="pseudo_labels must be one of"):
        Clusters(nodes=9, pseudo_labels="oracle")
