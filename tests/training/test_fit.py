from __future__ import annotations

import pytest
import torch

from gcsr.models.registry import testing_model as model_named
from gcsr.models.sparse import SparseTopology
from gcsr.models.topology import DenseTopology, EmptyTopology
from gcsr.training.fit import (
    TrainingRecipe,
    fit,
    networks_at_once,
    scores_of,
    topology_of,
)
from gcsr.utils.errors import InputError
from helpers import CPU, dense, one_network, plain_logits, planted_graph, random_adjacency

H, N, C, D = 8, 9, 3, 12


@pytest.fixture(scope="module")
def graph():
    return planted_graph(noise=2.0)


@pytest.fixture(scope="module")
def small(graph):
    """A little graph to train on: features, A', class shares."""
    rows = graph.train[torch.arange(0, 21, 2)][:N]
    y = graph.y[rows]
    a = random_adjacency(N, seed=3).float() + torch.eye(N)
    return graph.x[rows], a, torch.nn.functional.one_hot(y, C).float()


def fitted(graph, small, name="gcn", networks=range(2), seed=0, **recipe):
    x, a, targets = small
    model = model_named(name, H)
    topology = SparseTopology(graph.adjacency, CPU)
    return fit(
        model,
        model.prepare(x, topology_of(a)),
        targets,
        model.prepare(graph.x, topology, graph.val),
        graph.y[graph.val],
        features=D,
        recipe=TrainingRecipe(**({"epochs": 24, "lr": 0.02} | recipe)),
        networks=networks,
        seed=seed,
    )


def initial(graph, small, name, networks=range(2)):
    """Weights before training: one epoch at a rate that moves nothing."""
    return fitted(graph, small, name, networks, epochs=1, lr=1e-30).params


@pytest.mark.parametrize("name", ["gcn", "sgc", "mlp", "appnp", "cheby-paper", "sage"])
def test_best_epoch_is_that_of_a_plain_loop(graph, small, name):
    found = fitted(graph, small, name)
    x, a, targets = (t.double() for t in small)
    real, real_x, labels = dense(graph.adjacency), graph.x.double(), graph.y[graph.val]
    for run in range(2):
        params = [p.requires_grad_() for p in one_network(initial(graph, small, name), run)]
        adam = torch.optim.Adam(params, lr=0.02, weight_decay=5e-4)
        best, kept, best_epoch = -1.0, params, -1
        for epoch in range(24):
            if epoch == 12:
                adam = torch.optim.Adam(params, lr=0.002, weight_decay=5e-4)
            adam.zero_grad()
            scores = plain_logits(name, params, x, a)
            torch.nn.functional.cross_entropy(scores, targets.argmax(1)).backward()
            adam.step()
            with torch.no_grad():
                predicted = plain_logits(name, params, real_x, real)[graph.val].argmax(1)
            score = (predicted == labels).double().mean().item()
            if score > best:
                best, best_epoch = score, epoch
                kept = [p.detach().clone() for p in params]
        assert int(found.epoch[run]) == best_epoch
        assert float(found.validation[run]) == pytest.approx(best)
        for ours, theirs in zip(one_network(found.params, run), kept, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


def test_the_first_of_equal_epochs_is_kept(graph, small):
    """At a rate that moves nothing every epoch is equally good."""
    assert fitted(graph, small, lr=1e-30).epoch.tolist() == [0, 0]


def test_networks_do_not_depend_on_their_batch(graph, small):
    five, two = fitted(graph, small, networks=range(5)), fitted(graph, small, networks=range(2))
    late = fitted(graph, small, networks=range(3, 5))
    torch.testing.assert_close(five.validation[:2], two.validation)
    torch.testing.assert_close(five.validation[3:], late.validation)
    for many, first, last in zip(five.params, two.params, late.params, strict=True):
        torch.testing.assert_close(many[:2], first, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(many[3:], last, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["gcn", "sgc", "sgc-linear", "mlp", "appnp", "cheby-paper", "sage"]
)
def test_graphs_of_a_batch_are_fitted_as_one_at_a_time(graph, small, name):
    x, _, targets = small
    graphs = [small, (x.flip(0), random_adjacency(N, seed=8).float(), targets.flip(0))]
    model = model_named(name, H)
    validate = model.prepare(graph.x, SparseTopology(graph.adjacency, CPU), graph.val)

    def run(x, a, targets, networks):
        return fit(
            model,
            model.prepare(x, topology_of(a)),
            targets,
            validate,
            graph.y[graph.val],
            features=D,
            recipe=TrainingRecipe(epochs=24, lr=0.02),
            networks=networks,
            seed=0,
        )

    stacked = [torch.stack(parts).repeat_interleave(2, 0) for parts in zip(*graphs, strict=True)]
    together = run(*stacked, range(4))
    for g, parts in enumerate(graphs):
        alone = run(*parts, range(2 * g, 2 * g + 2))
        assert torch.equal(together.validation[2 * g : 2 * g + 2], alone.validation)
        assert torch.equal(together.epoch[2 * g : 2 * g + 2], alone.epoch)
        for many, one in zip(together.params, alone.params, strict=True):
            torch.testing.assert_close(many[2 * g : 2 * g + 2], one, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"epochs": 0}, "epochs must be .*, got 0"),
        ({"validate_every": 0}, "validate_every must be .*, got 0"),
        ({"lr": 0.0}, "lr must be .*, got 0.0"),
        ({"lr": float("nan")}, "lr must be .*, got nan"),
        ({"weight_decay": -1.0}, "weight_decay must be .*, got -1.0"),
        ({"dropout": 1.0}, "dropout must be .*, got 1.0"),
    ],
)
def test_recipes_that_cannot_be_are_refused(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        TrainingRecipe(**changes)


def test_seed_decides(graph, small):
    ours, again, other = (fitted(graph, small, seed=s).params for s in (0, 0, 1))
    assert all(torch.equal(a, b) for a, b in zip(ours, again, strict=True))
    assert not torch.equal(ours[0], other[0])


def test_dropout_changes_training_and_is_seeded(graph, small):
    ours, again = (fitted(graph, small, dropout=0.5).params for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(ours, again, strict=True))
    assert not torch.equal(ours[0], fitted(graph, small).params[0])


def test_validating_less_often_keeps_one_of_those_epochs(graph, small):
    found = fitted(graph, small, validate_every=5, epochs=23)
    assert all(epoch % 5 == 4 or epoch == 22 for epoch in found.epoch.tolist())


def test_every_epoch_is_reported(graph, small):
    x, a, targets = small
    model, seen = model_named("mlp", H), []
    prepared = model.prepare(x, topology_of(a))
    fit(
        model,
        prepared,
        targets,
        prepared,
        targets.argmax(1),
        features=D,
        recipe=TrainingRecipe(epochs=4),
        networks=range(1),
        seed=0,
        on_epoch=seen.append,
    )
    assert seen == [1, 2, 3, 4]


@pytest.mark.parametrize("at_once", [1, 2, 5, 100])
def test_scoring_in_portions_changes_nothing(graph, small, at_once):
    model = model_named("gcn", H)
    params = fitted(graph, small, networks=range(5), epochs=2).params
    prepared = model.prepare(graph.x, SparseTopology(graph.adjacency, CPU), graph.test)
    found = model.logits(params, prepared).argmax(-1)
    labels = graph.y[graph.test]
    share = [
        sum(int(p == y) for p, y in zip(row, labels, strict=True)) / len(labels) for row in found
    ]
    scores = scores_of(model, params, prepared, labels, at_once=at_once)
    assert scores.tolist() == pytest.approx(share)
    assert networks_at_once(model, prepared) >= 1


def test_identity_needs_no_products():
    assert isinstance(topology_of(torch.eye(4)), EmptyTopology)
    assert isinstance(topology_of(2 * torch.eye(4)), DenseTopology)
    assert isinstance(topology_of(torch.zeros(4, 4)), DenseTopology)
