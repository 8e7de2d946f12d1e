"""A device whose memory does not suffice: half as many at a time once, then a sentence."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import pytest
import torch

from gcsr import GCSR, InputError, evaluate
from gcsr.data.views import View
from gcsr.engines.loop import advance_together
from gcsr.engines.result import CondensationResult, Context
from gcsr.evaluation import trial
from gcsr.evaluation.trial import NetworkTester
from gcsr.models.registry import condensing_model
from gcsr.models.registry import testing_model as network
from gcsr.training.expert_recipe import ExpertRecipe, ExpertRequest
from gcsr.training.experts import ExpertTrainer, MeanPrediction, train_experts
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.devices import within_memory
from gcsr.utils.progress import silent
from helpers import CPU, planted_graph

CUDA = torch.device("cuda")
SENTENCE = (
    r"^device must have memory for {}, got .* {} at a time are too many; .* need less of it\.$"
)
RECIPE = ExpertRecipe(
    count=5, epochs=6, trained_epochs=6, kept_epochs=6, lr=0.02, weight_decay=5e-4, seed=4
)


@pytest.fixture(scope="module")
def graph():
    return planted_graph()


def too_many(most: int, tried: list[int]) -> Callable[[int], str]:
    def work(size: int) -> str:
        tried.append(size)
        if size > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return f"done {size} at a time"

    return work


@pytest.mark.parametrize(
    ("most", "tried", "outcome"),
    [
        (9, [8], "done 8 at a time"),
        (4, [8, 4], "done 4 at a time"),
        (3, [8, 4], None),
    ],
)
def test_half_as_many_once(most, tried, outcome, caplog):
    seen: list[int] = []
    if outcome is None:
        with pytest.raises(InputError, match=SENTENCE.format("things", 4)) as refused:
            within_memory(too_many(most, seen), 8, "things")
        assert refused.value.__context__ is None or "CUDA" not in str(refused.value)
    else:
        assert within_memory(too_many(most, seen), 8, "things") == outcome
    assert seen == tried
    assert ("were too many; trying 4" in caplog.text) is (len(tried) > 1)


def test_one_has_no_half():
    seen: list[int] = []
    with pytest.raises(InputError, match=SENTENCE.format("things", 1)):
        within_memory(too_many(0, seen), 1, "things")
    assert seen == [1]


def test_other_failures_stay_what_they_are():
    def work(size: int) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(RuntimeError, match="illegal memory access"):
        within_memory(work, 8, "things")


def test_graphs_are_made_in_smaller_groups():
    groups = []

    def run(part: Context, group: slice) -> list[CondensationResult]:
        seeds = list(range(5))[group]
        assert seeds == list(part.seeds)
        groups.append(len(seeds))
        if len(seeds) > 2:
            raise torch.OutOfMemoryError
        return [
            CondensationResult(torch.full((1, 1), float(s)), torch.eye(1), torch.zeros(1))
            for s in seeds
        ]

    made = advance_together(run, Context(cast("Any", None), 1, range(5), CUDA))
    assert groups == [5, 2, 2, 1]
    assert [float(one.x) for one in made] == [0, 1, 2, 3, 4]


def test_a_graph_that_does_not_fit_is_one_sentence(graph, monkeypatch):
    def full(*args: Any, **more: Any) -> None:
        raise torch.OutOfMemoryError

    module = import_module("gcsr.methods.trajectory_matching")
    monkeypatch.setattr(module, "learn", full)
    small = GCSR(nodes=9, experts=1, expert_epochs=70, hidden_channels=8, iterations=2)
    with pytest.raises(InputError, match=SENTENCE.format("condensed graphs", 1)):
        small.condense(graph, device="cpu")


@pytest.mark.parametrize("most", [5, 2])
def test_experts_are_trained_in_smaller_groups(graph, monkeypatch, most):
    """The same experts, and every one of them counted once in their prediction."""
    visible, model = View(graph).condensing().visible, condensing_model("sgc", 8)
    counted = MeanPrediction(model, visible, CPU)
    request = ExpertRequest(model, RECIPE)
    usual = train_experts(request, visible, device=CPU, on_trained=counted)
    honest, groups = ExpertTrainer.states, []

    def states(self: ExpertTrainer, experts: range) -> Any:
        groups.append(len(experts))
        for epoch, state in honest(self, experts):
            if epoch == 3 and len(experts) > most:
                raise torch.OutOfMemoryError
            yield epoch, state

    monkeypatch.setattr(ExpertTrainer, "states", states)
    monkeypatch.setattr(ExpertTrainer, "group_size", property(lambda self: 5))
    again = MeanPrediction(model, visible, CPU)
    found = train_experts(request, visible, device=CPU, on_trained=again)
    assert groups == ([5] if most == 5 else [5, 2, 2, 1])
    for ours, theirs in zip(found.kept, usual.kept, strict=True):
        torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(again.mean, counted.mean)


@pytest.mark.parametrize("graphs", [1, 3])
def test_networks_are_trained_in_smaller_batches(graph, monkeypatch, graphs):
    made = GCSR(
        nodes=9, experts=1, expert_epochs=70, hidden_channels=8, iterations=2
    ).condense_many(graph, seeds=range(graphs), device="cpu")
    recipe = TrainingRecipe(epochs=5)
    usual = evaluate(made, graph, runs=4, recipe=recipe, hidden_channels=8, device="cpu")
    # Batches as they are on CUDA, and memory for four networks of one graph, or two.
    tester = NetworkTester(network("gcn", 8), graph, CPU, recipe, 0)
    tester.device = CUDA
    monkeypatch.setenv("GCSR_DEVICE_MEMORY", "1GB")
    monkeypatch.setattr(torch.Tensor, "to", _stays(torch.Tensor.to))
    batches = tester.condensed_batches(made, 4)
    assert [len(batch.networks) for batch in batches] == [4 * graphs]
    honest, sizes = trial.fit, []
    most = 2 if graphs == 1 else 4

    def fit(*args: Any, networks: range, **more: Any) -> Any:
        sizes.append(len(networks))
        if len(networks) > most:
            raise torch.OutOfMemoryError
        return honest(*args, networks=networks, **more)

    monkeypatch.setattr(trial, "fit", fit)
    found = tester.scores(batches, silent)
    assert sizes == ([4, 2, 2] if graphs == 1 else [12, 4, 4, 4])
    torch.testing.assert_close(100 * found.test.double(), torch.tensor(usual.scores).double())
    assert found.validation.shape == (4 * graphs,)


def _stays(honest: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Tensors that are sent to CUDA stay here."""

    def to(self: torch.Tensor, *args: Any, **more: Any) -> torch.Tensor:
        kept = [CPU if one == CUDA else one for one in args]
        return honest(self, *kept, **more)

    return to
