from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, f1_score
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, GraphConv, TransformerConv

import gcsr
from gcsr import CondensedGraph, InputError, Random, TrainingRecipe, View
from gcsr.evaluation.networks import metrics_of, multi_label_metrics_of
from helpers import planted_graph, with_other_test_labels

QUICK = {"recipe": TrainingRecipe(epochs=30, lr=0.02), "runs": 2, "device": "cpu"}


class Net(nn.Module):
    """A user's own network."""

    def __init__(self, hidden_channels: int = 16, dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.second = GCNConv(12, hidden_channels), GCNConv(hidden_channels, 3)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        hidden = self.dropout(self.first(x, edge_index, edge_weight).relu())
        return self.second(hidden, edge_index, edge_weight)


@pytest.fixture(scope="module", params=[False, True], ids=["transductive", "inductive"])
def graph(request):
    return planted_graph(noise=1.5, inductive=request.param)


@pytest.fixture(scope="module")
def small(graph) -> CondensedGraph:
    return Random(nodes=12).condense(graph)


def test_module_is_trained_and_tested(graph, small):
    found = gcsr.evaluate(small, graph, model=Net(), **QUICK)
    assert found.model == "Net"
    assert len(found.scores) == 2
    assert found.mean > 50
    assert found.scores == gcsr.evaluate(small, graph, model=Net(), **QUICK).scores


def test_unlabeled_nodes_are_context_and_nothing_else(graph, small):
    """An isolated node without a label changes nothing, for a user's module and for ours."""
    x = torch.cat([small.x, torch.randn(3, 12, generator=torch.Generator().manual_seed(0))])
    padded = torch.nn.functional.pad(small.adjacency, (0, 3, 0, 3))
    y = torch.cat([small.y, torch.full((3,), -1)])
    more = CondensedGraph(x, padded, y, 3, small.provenance)
    for model in (Net(), "gcn"):
        ours, theirs = (gcsr.evaluate(g, graph, model=model, **QUICK) for g in (small, more))
        assert ours.scores == pytest.approx(theirs.scores)
        assert ours.validation == pytest.approx(theirs.validation)


def test_module_given_is_left_untrained(graph, small):
    module = Net()
    before = {key: value.clone() for key, value in module.state_dict().items()}
    gcsr.evaluate(small, graph, model=module, **QUICK)
    for key, value in module.state_dict().items():
        assert torch.equal(value, before[key])


def test_function_class_and_partial_make_modules(graph, small):
    def make() -> nn.Module:
        return Net()

    found = [
        gcsr.evaluate(small, graph, model=model, **QUICK) for model in (make, Net, partial(Net))
    ]
    assert [f.model for f in found] == ["make", "Net", "partial"]
    assert found[0].scores == found[1].scores == found[2].scores


def test_runs_start_from_different_weights(graph, small):
    starts = []

    def make() -> nn.Module:
        module = Net()
        starts.append(module.first.lin.weight.detach().clone())
        return module

    gcsr.evaluate(small, graph, model=make, **QUICK)
    assert not torch.equal(*starts)


def test_global_random_state_is_left_alone(graph, small):
    torch.manual_seed(0)
    state = torch.get_rng_state()
    ours = gcsr.evaluate(small, graph, model=partial(Net, dropout=0.5), **QUICK).scores
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(1)
    assert gcsr.evaluate(small, graph, model=partial(Net, dropout=0.5), **QUICK).scores == ours


def test_scores_are_those_of_a_plain_loop(graph, small):
    """The same module trained here with torch alone, best validation epoch kept."""
    made = []

    def make() -> nn.Module:
        torch.manual_seed(7)
        made.append(Net())
        return made[-1]

    found = gcsr.evaluate(small, graph, model=make, **(QUICK | {"runs": 1}))
    torch.manual_seed(7)
    module = Net()
    data = small.to_pyg()
    validation, test = View(graph).validation(), View(graph).test()

    def accuracy(target) -> float:
        coo = target.adjacency.tocoo()
        index = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
        with torch.no_grad():
            logits = module(target.x, index, torch.from_numpy(coo.data.copy()))
        return (logits[target.nodes].argmax(1) == target.labels).double().mean().item()

    adam = torch.optim.Adam(module.parameters(), lr=0.02, weight_decay=5e-4)
    best, score = -1.0, 0.0
    for epoch in range(30):
        if epoch == 15:
            adam = torch.optim.Adam(module.parameters(), lr=0.002, weight_decay=5e-4)
        adam.zero_grad()
        logits = module(data.x, data.edge_index, data.edge_weight)
        nn.functional.cross_entropy(logits, data.y).backward()
        adam.step()
        if accuracy(validation) > best:
            best, score = accuracy(validation), accuracy(test)
    assert found.validation == pytest.approx([100 * best])
    assert found.scores == pytest.approx([100 * score])


def test_test_labels_are_read_once_after_all_modules_are_trained(graph, small, monkeypatch):
    events, test = [], View.test

    class Watching(Net):
        def forward(self, *inputs: Tensor) -> Tensor:
            events.append("trained" if self.training else "scored")
            return super().forward(*inputs)

    monkeypatch.setattr(View, "test", lambda self: events.append("test labels") or test(self))
    two = [small, Random(nodes=12).condense(graph, seed=1)]
    gcsr.evaluate(two, graph, model=Watching, **QUICK)
    assert events.count("test labels") == 1
    after = events[events.index("test labels") + 1 :]
    assert after == ["scored"] * 4


def test_module_sees_train_and_eval_mode(graph, small):
    modes = []

    class Watching(Net):
        def forward(self, *inputs: Tensor) -> Tensor:
            modes.append((self.training, inputs[0].shape[0]))
            return super().forward(*inputs)

    gcsr.evaluate(small, graph, model=Watching, **QUICK)
    assert {rows for training, rows in modes if training} == {12}
    assert all(not training for training, rows in modes if rows != 12)


def test_test_labels_decide_test_scores_only(graph, small):
    ours = gcsr.evaluate(small, graph, model=Net, **QUICK)
    other = with_other_test_labels(graph)
    theirs = gcsr.evaluate(small, other, model=Net, check_origin=False, **QUICK)
    assert ours.validation == theirs.validation
    assert ours.scores != theirs.scores


def test_soft_labels_and_double_precision_are_accepted(graph, small):
    ours = gcsr.evaluate(small, graph, model=Net, **QUICK).scores
    soft = CondensedGraph(small.x.double(), small.adjacency.double(), small.targets, 3)
    assert gcsr.evaluate(soft, graph, model=Net, **QUICK).scores == ours


def test_function_that_makes_no_module_is_refused(graph, small):
    with pytest.raises(InputError, match=r"model must return a torch\.nn\.Module, got int"):
        gcsr.evaluate(small, graph, model=lambda: 3, **QUICK)
    with pytest.raises(InputError, match=r"GCNConv\(\) raised TypeError: .* missing 2 required"):
        gcsr.evaluate(small, graph, model=GCNConv, **QUICK)


def test_module_without_parameters_to_train_is_refused(graph, small):
    class Fixed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[:, :3]

    for model in (Fixed(), Net().requires_grad_(False)):
        sentence = f"^model must have parameters to train, got {type(model).__name__} without any"
        with pytest.raises(InputError, match=sentence):
            gcsr.evaluate(small, graph, model=model, **QUICK)


def test_module_with_wrong_output_is_refused(graph, small):
    class Wrong(Net):
        def forward(self, *inputs: Tensor) -> Tensor:
            return super().forward(*inputs)[:, :2]

    with pytest.raises(InputError, match=r"must return scores of shape \(12, 3\), got \(12, 2\)"):
        gcsr.evaluate(small, graph, model=Wrong, **QUICK)


class Unweighted(nn.Module):
    """A network without edge weights, as most of PyG's examples are."""

    def __init__(self, conv: type[nn.Module] = GCNConv) -> None:
        super().__init__()
        self.first, self.second = conv(12, 16), conv(16, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


class OfData(Unweighted):
    def forward(self, data: Data) -> Tensor:
        assert "y" not in data
        return super().forward(data.x, data.edge_index)


class WithAttributes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = TransformerConv(12, 16, edge_dim=1), GCNConv(16, 3)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        return self.second(self.first(x, edge_index, edge_attr).relu(), edge_index)


class Ignoring(Unweighted):
    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        return super().forward(x, edge_index)


@pytest.fixture(scope="module")
def weighted(graph, small) -> CondensedGraph:
    """Every pair of nodes is joined by a weight; those of one class by a large one."""
    same = (small.y[:, None] == small.y).float()
    chosen = {"unweighted_edges": {"threshold": 0.1}}
    return CondensedGraph(small.x, same + 0.01, small.y, 3, small.provenance | chosen)


def test_all_forms_of_forward_are_called_as_they_want(graph, small):
    ours = gcsr.evaluate(small, graph, model=Net, **QUICK).scores
    for form in (Unweighted, OfData, Ignoring):
        assert gcsr.evaluate(small, graph, model=form, **QUICK).scores == ours
    assert gcsr.evaluate(small, graph, model=WithAttributes, **QUICK).mean > 50


@pytest.mark.parametrize(
    "layer", [GATConv(12, 3), GATv2Conv(12, 3), TransformerConv(12, 3), GraphConv(12, 3)]
)
def test_layers_of_pyg_are_networks(graph, weighted, layer, recwarn):
    """Their parameters return_attention_weights and, without edge_dim, edge_attr are left out."""
    assert len(gcsr.evaluate(weighted, graph, model=layer, **QUICK).scores) == 2
    assert ("ignores" in "".join(str(w.message) for w in recwarn)) == ("Graph" not in str(layer))


def test_module_of_features_alone(graph, weighted, recwarn):
    found = gcsr.evaluate(weighted, graph, model=nn.Sequential(nn.Linear(12, 3)), **QUICK)
    target = View(graph).test()
    assert found.scores == gcsr.evaluate(weighted, graph, model=nn.Linear(12, 3), **QUICK).scores
    assert found.mean > 40 and target.labels.numel() > 0
    assert not [w for w in recwarn if "edge weights" in str(w.message)]


@pytest.mark.parametrize("form", [Unweighted, OfData, Ignoring])
def test_module_that_ignores_weights_gets_the_edges_that_it_can_use(graph, weighted, form):
    with pytest.warns(
        gcsr.InputWarning, match="ignores edge weights, so it is trained with the .* edges"
    ):
        found = gcsr.evaluate(weighted, graph, model=form, **QUICK)
    data = weighted.to_pyg()
    plain = (
        torch.zeros(12, 12).index_put(tuple(data.edge_index), torch.tensor(1.0)).fill_diagonal_(0)
    )
    same = gcsr.evaluate(replace(weighted, adjacency=plain), graph, model=Unweighted, **QUICK)
    assert found.scores == same.scores


def test_self_loops_that_are_left_are_said(graph, weighted):
    bare = replace(weighted, adjacency=torch.full((12, 12), 0.01))
    assert bare.to_pyg().num_edges == 12
    with pytest.warns(gcsr.InputWarning, match="trained with no edges but self-loops of"):
        gcsr.evaluate(bare, graph, model=Unweighted, **QUICK)


@pytest.mark.parametrize("form", [Net, WithAttributes])
def test_module_that_uses_weights_gets_all_of_them(graph, weighted, form, recwarn):
    seen = set()

    class Counting(form):
        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
            seen.add((x.shape[0], edge_index.shape[1]))
            return super().forward(x, edge_index, edge_weight.view(len(edge_weight), -1).squeeze(1))

    gcsr.evaluate(weighted, graph, model=Counting if form is Net else form, **QUICK)
    assert not [w for w in recwarn if "edge weights" in str(w.message)]
    assert form is not Net or (12, 144) in seen


def test_error_of_a_module_is_told_with_its_own_traceback(graph, small):
    class Broken(Unweighted):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return super().forward(x, self.no_such_edges)

    with pytest.raises(InputError, match=r"Broken\.forward\(x, edge_index\) raised Attrib") as told:
        gcsr.evaluate(small, graph, model=Broken, **QUICK)
    assert isinstance(told.value.__cause__, AttributeError)
    assert told.traceback and "no_such_edges" in str(told.value.__cause__)


def test_modules_are_trained_on_the_whole_graph_too(graph):
    found = gcsr.evaluate_full(graph, model=Unweighted, **QUICK)
    assert (found.model, found.trained_on) == ("Unweighted", "whole graph")
    assert found.mean > 60
    with pytest.raises(InputError, match="model must be a name, a torch"):
        gcsr.evaluate_full(graph, model=3, **QUICK)


@pytest.mark.parametrize("model", [Net, "gcn", "gat", "sage"])
def test_trained_networks_have_the_scores_that_were_reported(graph, small, model):
    found = gcsr.evaluate(small, graph, model=model, return_models=True, metrics=True, **QUICK)
    target = View(graph).test()
    coo = target.adjacency.tocoo()
    edges = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
    weights = torch.from_numpy(coo.data.copy())
    for module, score, predicted in zip(found.models, found.scores, found.predictions, strict=True):
        with torch.no_grad():
            classes = module(target.x, edges, weights)[target.nodes].argmax(1)
        assert torch.equal(classes, predicted)
        assert 100 * (classes == target.labels).double().mean().item() == pytest.approx(score)
    whole = gcsr.evaluate_full(graph, model=model, return_models=True, **QUICK)
    assert len(whole.models) == 2 and whole.metrics is None


def test_metrics_are_those_of_scikit_learn(graph, small):
    found = gcsr.evaluate(small, graph, metrics=True, **QUICK)
    assert found.scores == gcsr.evaluate(small, graph, **QUICK).scores
    labels, predicted = View(graph).test().labels, found.predictions[0]
    assert found.metrics["macro_f1"][0] == pytest.approx(
        100 * f1_score(labels, predicted, average="macro")
    )
    assert found.metrics["balanced_accuracy"][0] == pytest.approx(
        100 * balanced_accuracy_score(labels, predicted)
    )
    assert all(50 < area <= 100 for area in found.metrics["auc"])
    assert "predictions" not in found.to_dict() and found.to_dict()["metrics"] == found.metrics


def test_metrics_of_given_probabilities():
    shares = np.array([[0.9, 0.1, 0], [0.8, 0.2, 0], [0.3, 0.7, 0], [0.6, 0.4, 0]])
    found = metrics_of(shares, np.array([0, 0, 1, 1]))
    assert found["auc"] == 100 and found["balanced_accuracy"] == 75
    assert found["calibration_error"] == pytest.approx(100 * (0.1 + 0.2 + 0.3 + 0.6) / 4)


def test_metrics_of_a_network_that_diverged(graph, small):
    shares = np.full((4, 3), np.nan)
    assert metrics_of(shares, np.array([0, 0, 1, 1]))["auc"] == 50
    assert multi_label_metrics_of(shares, np.eye(4)[:, :3])["auc"] == 50
    recipe = TrainingRecipe(epochs=5, lr=1e30)
    assert gcsr.evaluate(small, graph, metrics=True, **QUICK | {"recipe": recipe}).metrics


@pytest.mark.parametrize("model", [Net, "gcn"])
def test_train_scales_the_real_graph_as_the_condensed_one_was(model):
    graph = planted_graph(noise=1.5)
    shifted = replace(graph, x=10 * graph.x + 50 * torch.arange(12))
    small = gcsr.condense(shifted, nodes=12, method="random", features="standardize")
    settings = {"recipe": QUICK["recipe"], "device": "cpu"}
    network = gcsr.train(small, model, shifted, **settings)
    same = gcsr.train(small, model, shifted.scaled("standardize"), **settings)
    for a, b in zip(network.parameters(), same.parameters(), strict=True):
        assert torch.equal(a, b)


def test_pyg_data_in_place_of_the_real_graph(graph, small):
    if graph.inductive:
        pytest.skip("a PyG Data does not say that it is inductive")
    data = graph.to_pyg()
    assert gcsr.evaluate_full(data, **QUICK).scores == gcsr.evaluate_full(graph, **QUICK).scores
    networks = [gcsr.train(small, "gcn", real, recipe=QUICK["recipe"]) for real in (data, graph)]
    for a, b in zip(*(network.parameters() for network in networks), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("model", [Net, "gcn"])
def test_train_returns_the_first_network_of_an_evaluation(graph, small, model):
    settings = {"recipe": QUICK["recipe"], "device": "cpu"}
    ours = gcsr.train(small, model, graph, **settings)
    theirs = gcsr.evaluate(small, graph, model=model, return_models=True, **QUICK).models[0]
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(a, b)
    for wrong in ({"small": [small]}, {"model": 3}, {"hidden_channels": 0}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))} must be"):
            gcsr.train(**{"small": small} | wrong)
    last = gcsr.train(small, model, **settings)
    data = small.to_pyg()
    scores = last(data.x, data.edge_index, data.edge_weight)
    assert not last.training and (scores.argmax(1) == data.y).double().mean() > 0.9
