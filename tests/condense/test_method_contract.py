"""What every registered method promises."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

import gcsr
import gcsr.auto as gcsr_auto
import gcsr.methods as gcsr_methods
from gcsr import GCSR, CondensedGraph, Condenser, Graph, InputError, check_leaks
from gcsr.auto.update import Update
from gcsr.data.views import View
from gcsr.engines.iterates import QuickScore
from gcsr.engines.result import CondensationResult
from gcsr.methods import register, validation_score
from gcsr.methods.registry import (
    _REGISTERED,
    BUILT_IN,
    build,
    methods,
    setting_kinds,
    value_of,
)
from gcsr.methods.selection import Random, embed_training_nodes
from gcsr.training.fit import TrainingRecipe
from helpers import planted_graph

METHODS = methods()
# With an SGC, class means of embeddings need no random network, and the first epochs of GCDM leave X'
# as it is. Two seeds that choose the same nodes of a tiny graph then give the same X'.
ONLY_NODES_ARE_RANDOM = ("dm", "gcdm-x", "gcdm")
# Small values for settings that cost time; a method takes those that it knows or hands on.
TINY = {
    "iterations": 4,
    "experts": 2,
    "hidden_channels": 8,
    "student_steps": 2,
    "expert_steps": 2,
    "max_start": 4,
    "expert_epochs": 8,
    "iterate": "last",
    "epochs": 4,
    "outer": 2,
    "inner": 2,
    "embedding_epochs": 4,
    "teacher_epochs": 4,
    "teacher_hidden_channels": 8,
    "generator_hidden_channels": 8,
    "budget": 0.001,
    "students": 2,
    "window": 2,
    "burn_in": 1,
    "longest": 7,
}
BUDGET = [4, 3, 3]
PROVENANCE = (Path(__file__).parents[2] / "docs" / "provenance.md").read_text(encoding="utf-8")


@pytest.fixture(params=[False, True], ids=["transductive", "inductive"])
def graph(request) -> Graph:
    return planted_graph(inductive=request.param)


@pytest.fixture(autouse=True)
def brief_teachers_and_judges(monkeypatch):
    """Networks that teach or judge are trained for a moment: how well is no matter here."""
    # By name: the package's own attribute ``condense`` is the function.
    teachers = importlib.import_module("gcsr.starts.pseudo_labels")
    for name in ("SUPERVISED_RECIPE", "CONSISTENT_RECIPE"):
        monkeypatch.setattr(teachers, name, TrainingRecipe(epochs=4, dropout=0.5))
    for name in ("bilevel", "auto"):
        module = importlib.import_module(
            {"bilevel": "gcsr.methods.bilevel", "auto": "gcsr.auto.automatic"}[name]
        )
        monkeypatch.setattr(module, "QUICK", TrainingRecipe(epochs=4, validate_every=2))
        monkeypatch.setattr(module, "QUICK_HIDDEN", 8)
    monkeypatch.setattr(module, "BRIEF_EMBEDDING", {"hidden_channels": 8, "epochs": 4})
    monkeypatch.setitem(QuickScore.score.__kwdefaults__, "recipe", module.QUICK)


@pytest.fixture(params=METHODS)
def name(request) -> str:
    return request.param


def tiny(name: str, **settings: Any) -> Condenser:
    known = setting_kinds(METHODS[name])
    chosen = {key: value for key, value in TINY.items() if key in known}
    size = {} if "ratio" in settings else {"nodes": 10}
    return build(name, chosen | size | settings)


MADE: dict[tuple[str, bool], CondensedGraph] = {}


def shared(name: str, graph: Graph) -> CondensedGraph:
    """What the method makes of one of the two graphs, once for tests that do not change it."""
    key = (name, graph.inductive)
    if key not in MADE:
        MADE[key] = tiny(name).condense(graph, device="cpu")
    return MADE[key]


def fresh(graph: Graph) -> Graph:
    """A copy whose hash is computed anew."""
    return replace(graph, x=graph.x.clone(), y=graph.y.clone())


def story(small: CondensedGraph) -> dict[str, Any]:
    """The provenance without what is measured with a clock."""
    return {key: value for key, value in small.provenance.items() if key != "measured"}


def assert_same(first: CondensedGraph, second: CondensedGraph) -> None:
    for part in ("x", "adjacency", "y"):
        assert torch.equal(getattr(first, part), getattr(second, part)), part


def test_no_method_is_left_out():
    found = set()
    for package in (gcsr_methods, gcsr_auto):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            members = vars(importlib.import_module(module.name)).values()
            found |= {
                member
                for member in members
                if inspect.isclass(member)
                and issubclass(member, Condenser)
                and hasattr(member, "name")
                and member.__module__ == module.name
            }
    # It needs an earlier condensed graph, and so has no settings for a name.
    assert found - {Update} <= set(methods().values())
    assert set(methods()) == set(METHODS)
    assert list(methods())[: len(BUILT_IN)] == [*BUILT_IN]


def test_name_and_summary(name):
    assert METHODS[name].name == name
    assert len(METHODS[name].summary) > 10


def test_time_and_memory_are_estimated(name, graph):
    condenser = build(name, {"nodes": 10})
    if name not in BUILT_IN and condenser._work(10) is None:
        pytest.skip("a method of another package need not know how much work it is")
    found = condenser.estimate(graph)
    assert found.seconds > 0 and found.memory_bytes > 0


def test_class_budget_is_exact(name, graph):
    small = shared(name, graph)
    assert small.num_nodes == 10
    if METHODS[name].exact_class_budget:
        assert torch.bincount(small.classes, minlength=3).tolist() == BUDGET
    classes = small.classes[small.labeled]
    assert torch.equal(classes, classes.sort().values)
    assert small.x.shape == (10, graph.num_features)
    assert small.num_classes == 3


def test_result_is_finite_symmetric_and_on_the_cpu(name, graph):
    small = shared(name, graph)
    for part in (small.x, small.adjacency, small.y):
        assert part.device.type == "cpu"
        assert not part.requires_grad
        assert torch.isfinite(part).all()
    assert small.x.dtype == torch.float32
    assert (small.adjacency >= 0).all()
    assert torch.equal(small.adjacency, small.adjacency.T)


def test_same_seed_same_bytes(name, graph, tmp_path):
    files = []
    for i in range(2):
        small = tiny(name).condense(fresh(graph), seed=3, device="cpu")
        files.append(CondensedGraph.load(small.save(tmp_path / f"{i}.safetensors")))
    assert_same(*files)
    assert story(files[0]) == story(files[1])


def test_other_seed_other_graph(name, graph):
    ours, theirs = shared(name, graph), tiny(name).condense(graph, seed=1, device="cpu")
    if METHODS[name].seed_matters:
        seeds = (2, 3, 4) if name in ONLY_NODES_ARE_RANDOM else ()
        others = [tiny(name).condense(graph, seed=seed, device="cpu") for seed in seeds]
        assert any(not torch.equal(ours.x, other.x) for other in [theirs, *others])
    else:
        assert_same(ours, theirs)
    assert ours.provenance["seed"] == 0
    assert theirs.provenance["seed"] == 1


def test_global_random_state_has_no_say_and_is_left_alone(name, graph):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    ours = tiny(name).condense(graph, device="cpu")
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert_same(ours, tiny(name).condense(graph, device="cpu"))


def test_graph_is_left_as_it_was(name, graph):
    before = fresh(graph).content_hash
    small = tiny(name).condense(graph, device="cpu")
    assert fresh(graph).content_hash == before
    small.x.add_(1)
    small.adjacency.add_(1)
    assert fresh(graph).content_hash == before


def test_several_seeds_together_are_each_alone(name, graph):
    together = tiny(name).condense_many(graph, seeds=[5, 6, 7], device="cpu")
    for seed, small in zip((5, 6, 7), together, strict=True):
        alone = tiny(name).condense(graph, seed=seed, device="cpu")
        torch.testing.assert_close(small.x, alone.x, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(small.adjacency, alone.adjacency, rtol=1e-3, atol=1e-4)
        if small.y.is_floating_point():
            torch.testing.assert_close(small.y, alone.y, rtol=1e-3, atol=1e-5)
        else:
            assert torch.equal(small.y, alone.y)
        assert small.provenance["seed"] == seed


# -- test labels -------------------------------------------------------------------------------------

# The automatic mode with every part: pseudo-labels, all starts, outer steps, the final comparison.
EVERY_PART = {"budget": 1e6, "iterations": 3, "iterate": "best-val"}


def few_labels(inductive: bool) -> Graph:
    return planted_graph(train_per_class=5, noise=2.0, inductive=inductive)


def test_test_labels_change_nothing(name, graph):
    """Methods of other packages that are installed here are among those that are tested."""
    default = getattr(METHODS[name], "iterate", None)
    check_leaks(tiny(name) if default is None else tiny(name, iterate=default), graph)


@pytest.mark.parametrize("inductive", [False, True])
def test_test_labels_change_no_part_of_the_automatic_mode(inductive):
    found = check_leaks(tiny("auto", **EVERY_PART), few_labels(inductive)).provenance
    candidates = found["automatic"]["candidates"]
    steps = [one["settings"].get("iterations") for one in candidates]
    assert [one["method"] for one in candidates] == ["random", "herding", *["bilevel"] * 4]
    assert steps == [None, None, 0, 0, 0, 3] and found["automatic"]["left_out"] == []
    labelers = set() if inductive else {"consistent", "gcn"}
    told = [one["validation"].get("final") for one in candidates]
    assert sum(score is not None for score in told) == 4
    # Only a candidate that was learned tells who labeled.
    small = tiny("bilevel", iterations=3).condense(few_labels(inductive), device="cpu")
    assert set(small.provenance.get("pseudo_labels", {}).get("validation", ())) == labelers


@pytest.mark.parametrize("structure", ["none", "self-expressive"])
def test_test_labels_change_no_pseudo_label(structure):
    settings = {"iterations": 3, "iterate": "best-val", "structure": structure}
    for labeler in ("consistent", "gcn", "appnp"):
        check_leaks(tiny("bilevel", pseudo_labels=labeler, **settings), few_labels(inductive=False))


@pytest.mark.parametrize("inductive", [False, True])
def test_a_leak_that_is_asked_for_by_name_is_seen_and_marked(inductive):
    small = check_leaks(tiny("gcsr", prior="all"), planted_graph(inductive=inductive))
    assert small.leaks_test_labels is not inductive


class Peeking(Random):
    """Keeps the graph it is given, and puts the labels of its test nodes into the features."""

    name, summary = "peeking", "a method that reads test labels"

    def condense_many(self, source, **options):
        vars(self)["labels"] = source.y[source.test]
        return super().condense_many(source, **options)

    def run(self, ctx):
        mean = self.labels.double().mean()
        return [replace(made, x=made.x + mean) for made in super().run(ctx)]


@pytest.fixture
def every_label_in_the_embedding(monkeypatch):
    """Herding and K-Center train their embedding on the labels of all nodes."""

    def embed(view, **settings):
        everyone = torch.arange(view.visible.num_nodes)
        seen = replace(view.visible, labels=view.every_label, train=everyone)
        return embed_training_nodes(replace(view, visible=seen), **settings)[view.visible.train]

    seen = lambda self, graph: View(graph).condensing(leak_every_label=True)  # noqa: E731
    monkeypatch.setattr(Condenser, "_seen", seen)
    monkeypatch.setattr(
        importlib.import_module("gcsr.methods.selection"), "embed_training_nodes", embed
    )


@pytest.mark.parametrize("leaking", ["herding", "kcenter"])
def test_an_embedding_of_every_label_is_caught(leaking, every_label_in_the_embedding):
    with pytest.raises(AssertionError, match=f"{leaking} reads test labels: x differs"):
        check_leaks(tiny(leaking), planted_graph())


def test_a_leak_of_a_registered_method_is_caught(graph):
    register(Peeking)
    try:
        assert methods()["peeking"] is Peeking
        with pytest.raises(
            AssertionError, match="peeking reads test labels: x differs if one-class"
        ):
            check_leaks(build("peeking", {"nodes": 10}), graph)
    finally:
        del _REGISTERED["peeking"]


def test_a_mark_must_be_right(monkeypatch):
    """A leak that is declared and is none, and one that is not declared in the result."""
    monkeypatch.setattr(Random, "leaks_test_labels", True)
    with pytest.raises(AssertionError, match="random declares leaks_test_labels and reads no test"):
        check_leaks(Random(nodes=10), planted_graph())
    told = {"leaks_test_labels": False}
    honest = GCSR.condense_many

    def unmarked(self, *args, **given):
        made = honest(self, *args, **given)
        return [replace(small, provenance=small.provenance | told) for small in made]

    monkeypatch.setattr(GCSR, "condense_many", unmarked)
    with pytest.raises(
        AssertionError, match="leaks_test_labels must be True in the provenance of gcsr"
    ):
        check_leaks(tiny("gcsr", prior="all"), planted_graph())


def test_test_nodes_of_one_class_prove_nothing():
    graph = planted_graph()
    same = replace(graph, y=graph.y.index_fill(0, graph.test, 0))
    with pytest.raises(InputError, match="graph must have test nodes of more than one class"):
        check_leaks(Random(nodes=10), same)


def test_round_trip(name, graph, tmp_path):
    small = shared(name, graph)
    again = CondensedGraph.load(small.save(tmp_path / "small.safetensors"))
    assert_same(small, again)
    assert again.provenance == small.provenance
    assert again.leaks_test_labels is small.leaks_test_labels is False


def test_provenance_tells_how_it_was_made(name, graph):
    condenser = tiny(name, ratio=10 / visible_nodes(graph))
    small = condenser.condense(graph, seed=2, device="cpu")
    told = json.loads(json.dumps(small.provenance))
    assert told["method"] == name
    assert told["seed"] == 2
    assert told["dataset"]["content_hash"] == graph.content_hash
    assert told["dataset"]["inductive"] is graph.inductive
    # Bounds on memory and disk cannot change a result and are no part of how it came about.
    # Settings that are handed on to others have their own names there.
    bounds = {"expert_memory", "expert_disk", "fixed"}
    handed_on = set(dict(getattr(condenser, "fixed", ())))
    own = {field.name for field in fields(METHODS[name])} - bounds
    assert set(told["settings"]) == own | handed_on
    assert told["nodes"] == 10
    assert told["ratio"] == pytest.approx(10 / visible_nodes(graph))
    assert told["measured"]["seconds"] > 0
    assert told["measured"]["peak_memory_bytes"] > 0
    assert told["revision"] == METHODS[name].revision
    assert {"gcsr", "torch", "numpy", "python"} <= set(told["versions"])
    if name not in BUILT_IN:
        return  # a method of another package may add keys of its own
    for key in (*told, *(f"measured.{name}" for name in told["measured"])):
        assert re.search(rf"`{re.escape(key)}[`.]", PROVENANCE), f"docs/provenance.md lacks {key}"


def visible_nodes(graph: Graph) -> int:
    return graph.train.numel() if graph.inductive else graph.num_nodes


def test_settings_rebuild_the_method(name, graph):
    small = shared(name, graph)
    settings = json.loads(json.dumps(small.provenance["settings"]))
    assert_same(small, build(name, settings).condense(graph, device="cpu"))


def test_progress_is_reported_to_the_end(name, graph):
    calls: list[tuple[str, int, int]] = []
    tiny(name).condense(graph, device="cpu", progress=lambda *call: calls.append(call))
    assert calls
    for stage in {call[0] for call in calls}:
        steps = [(done, total) for named, done, total in calls if named == stage]
        assert [done for done, _ in steps] == sorted(done for done, _ in steps)
        assert steps[-1][0] == steps[-1][1]


def test_interrupt_gets_out(name, graph):
    def interrupt(stage: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny(name).condense(graph, device="cpu", progress=interrupt)


def test_more_nodes_than_a_class_has_is_said(name, graph):
    if not METHODS[name].exact_class_budget:
        pytest.skip("labels fall where they fall")
    if METHODS[name].beyond_training_nodes:
        pytest.skip("a class may have more nodes than training nodes")
    small = tiny(name, nodes=21).condense(graph, device="cpu")
    assert small.provenance["notes"] == []
    lopsided = replace(graph, train=torch.cat([graph.train[:7], graph.train[14:16]]))
    if not lopsided.inductive:
        small = tiny(name, nodes=18).condense(lopsided, device="cpu")
        assert torch.bincount(small.classes, minlength=3).tolist() == [14, 0, 4]
        assert any("with jitter" in note for note in small.provenance["notes"])


def test_too_few_and_too_many_nodes_are_refused(name, graph):
    with pytest.raises(InputError, match=r"nodes must be >= 3, .*, got 2"):
        tiny(name, nodes=2).condense(graph, device="cpu")
    with pytest.raises(InputError, match=f"nodes must be <= {visible_nodes(graph)}, .* got 999"):
        tiny(name, nodes=999).condense(graph, device="cpu")


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        ({}, "exactly one of nodes and ratio"),
        ({"nodes": 5, "ratio": 0.1}, "exactly one of nodes and ratio"),
        ({"nodes": 0}, "nodes must be .*, got 0"),
        ({"nodes": 2.5}, "nodes must be .*, got 2.5"),
        ({"nodes": True}, "nodes must be .*, got True"),
        ({"ratio": 0.0}, "ratio must be .*, got 0.0"),
        ({"ratio": 1.5}, "ratio must be .*, got 1.5"),
        ({"ratio": float("nan")}, "ratio must be .*, got nan"),
        ({"ratio": "half"}, "ratio must be .*, got 'half'"),
    ],
)
def test_sizes_that_cannot_be_are_refused_before_any_data(name, size, sentence):
    with pytest.raises(InputError, match=sentence):
        build(name, size)


@pytest.mark.parametrize("seeds", [[-1], [0.5], ["one"], [True], []])
def test_seeds_that_cannot_be_are_refused(name, graph, seeds):
    with pytest.raises(InputError, match="seed"):
        tiny(name).condense_many(graph, seeds=seeds, device="cpu")


def test_unknown_setting_is_explained(name):
    with pytest.raises(
        InputError, match=rf"^nods is not a setting of {name} \(did you mean nodes\?\);"
    ):
        build(name, {"nods": 10})


def test_settings_cannot_be_changed_afterwards(name):
    with pytest.raises(AttributeError):
        tiny(name).nodes = 3


def test_scikit_learn_clones_it(name):
    condenser = tiny(name)
    copy = clone(condenser)
    assert copy == condenser and copy is not condenser
    assert hash(copy) == hash(condenser)
    assert type(copy)(**copy.get_params()) == condenser
    assert set(copy.get_params(deep=False)) == {field.name for field in fields(METHODS[name])}


def test_fit_keeps_what_condense_makes(name, graph):
    condenser = tiny(name)
    with pytest.raises(AttributeError, match="fit"):
        _ = condenser.condensed_
    before = hash(condenser)
    assert condenser.fit(graph, None, seed=3, device="cpu") is condenser
    assert_same(condenser.condensed_, tiny(name).condense(graph, seed=3, device="cpu"))
    # What came out is no part of what a condenser is.
    assert condenser == tiny(name) and hash(condenser) == before
    assert not hasattr(clone(condenser), "condensed_")


def test_set_params_is_a_copy_with_other_settings(name, graph):
    condenser = tiny(name).fit(graph, device="cpu")
    for params, sentence in (
        ({"nodes": 11, "nods": 3}, rf"^nods is not a setting of {name} \(did you mean nodes\?\);"),
        ({"nodes": 0}, "nodes must be .*, got 0"),
        ({"nodes": 5, "ratio": 0.5}, "exactly one of nodes and ratio"),
    ):
        with pytest.raises(InputError, match=sentence):
            condenser.set_params(**params)
        assert condenser == tiny(name) and hasattr(condenser, "condensed_")
    other = condenser.set_params(nodes=None, ratio=0.5)
    assert other == tiny(name, ratio=0.5) and other.get_params()["ratio"] == 0.5
    # Settings never change in place, and the result of other settings is not shown as that of these.
    assert condenser == tiny(name) and hasattr(condenser, "condensed_")
    assert not hasattr(other, "condensed_")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: gcsr.GCSR(nodes=14, alfa=1),
            r"^alfa is not a setting of gcsr \(did you mean alpha",
        ),
        (lambda: gcsr.GCSR(14), "^settings of gcsr must be given by name, got the bare 14"),
        (
            lambda: gcsr.TrainingRecipe(epoch=5),
            r"^epoch is not a setting of gcsr.TrainingRecipe \(did you mean epochs",
        ),
        (lambda: gcsr.Random(nodes=14.5), "^nodes must be an integer >= 1, got 14.5"),
    ],
)
def test_constructors_refuse_in_one_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


@pytest.mark.parametrize("nodes", [14.0, np.float32(14), torch.tensor(14.0)])
def test_a_whole_number_of_nodes_may_be_a_float(nodes):
    condenser = gcsr.Random(nodes=nodes)
    assert condenser == gcsr.Random(nodes=14) and type(condenser.nodes) is int


def test_a_class_is_a_method(graph):
    made = gcsr.condense(graph, nodes=6, method=gcsr.Random, seed=2)
    assert_same(made, gcsr.condense(graph, nodes=6, method="random", seed=2))

    class Other(gcsr.Random):
        name = "other"

    with pytest.raises(InputError, match=r"got the class Other; call it: method=Other\(nodes=6\)"):
        gcsr.condense(graph, nodes=6, method=Other)
    with pytest.raises(
        InputError, match=r"\(nodes=50\), .* it: gcsr\.methods\.register\(Other\)\.$"
    ):
        gcsr.condense(graph, method=Other)


class OwnResult(CondensationResult):
    """A method of another package may add to the result."""


@dataclass(frozen=True, kw_only=True)
class Foreign(gcsr.Random):
    """A method of another package, with a setting that a method of this one had until 0.1."""

    name = "foreign"
    container: str = "list"
    window: str = "sliding"

    def run(self, ctx):
        found = super().run(ctx)
        if self.container == "generator":
            return (one for one in found)
        if self.container == "short":
            return found[1:]
        own = [OwnResult(**{f.name: getattr(one, f.name) for f in fields(one)}) for one in found]
        return tuple(own) if self.container == "tuple" else own


@pytest.mark.parametrize("container", ["list", "tuple"])
def test_a_method_may_return_a_tuple_and_results_of_its_own_class(graph, container):
    made = Foreign(nodes=6, container=container).condense_many(graph, seeds=[2, 3], device="cpu")
    for one, seed in zip(made, (2, 3), strict=True):
        assert_same(one, gcsr.Random(nodes=6).condense(graph, seed=seed, device="cpu"))


@pytest.mark.parametrize("container", ["generator", "short"])
def test_a_method_that_returns_something_else_is_refused(graph, container):
    with pytest.raises(InputError, match="run of 'foreign' must return a list with one Conden"):
        Foreign(nodes=6, container=container).condense(graph, device="cpu")


WRONG_RESULTS: dict[str, tuple[Callable[[CondensationResult], dict[str, Any]], str]] = {
    "fewer nodes": (
        lambda made: {"x": made.x[:3], "adjacency": torch.eye(3), "y": made.y[:3]},
        r"x must have one row per condensed node, 6 \(Context.nodes\), got shape \(3, ",
    ),
    "fewer columns": (
        lambda made: {"x": made.x[:, :2]},
        r"x must have the \d+ columns .*, got 2\.",
    ),
    "a vector": (lambda made: {"x": made.x[:, 0]}, r"x must have one row .*got shape \(6,\)"),
    "an array": (
        lambda made: {"adjacency": made.adjacency.numpy()},
        r"adjacency must be a torch.Tensor, got a NumPy ndarray; torch.as_tensor\(adjacency\)",
    ),
    "nothing": (lambda made: {"y": None}, r"y must be a torch.Tensor, got None\."),
    "a sparse tensor": (
        lambda made: {"adjacency": made.adjacency.to_sparse()},
        r"adjacency must be a dense tensor, got torch.sparse_coo; adjacency.to_dense\(\)",
    ),
    "a gradient": (
        lambda made: {"x": made.x.clone().requires_grad_()},
        r"x must not require a gradient, .*return x.detach\(\)",
    ),
    "not finite": (
        lambda made: {"x": made.x * torch.nan},
        r"x must be finite floating-point numbers, got NaN or infinity",
    ),
    "integers": (
        lambda made: {"x": made.x.long()},
        r"x must be finite floating-point numbers, got torch.int64",
    ),
    "a negative entry": (lambda made: {"adjacency": -made.adjacency}, "adjacency must be >= 0"),
    "one note": (lambda made: {"notes": "done"}, "notes must be a tuple of texts, got 'done'"),
    "a list": (lambda made: {"details": ["loss"]}, "details must be a dictionary, got a list"),
    "a number as a key": (
        lambda made: {"details": {1: 2}},
        "details must have texts as keys, got 1",
    ),
    "a tensor in details": (
        lambda made: {"details": {"loss": torch.ones(1)}},
        r"details\['loss'\] must be plain JSON .* got a torch Tensor",
    ),
    "a number of NumPy": (
        lambda made: {"measured": {"steps": np.int64(3)}},
        r"measured\['steps'\] must be plain JSON .* got a NumPy int64 .*item\(\)",
    ),
    "NaN in details": (
        lambda made: {"details": {"loss": {"values": [float("nan")]}}},
        r"details\['loss'\] must be plain JSON",
    ),
    **{
        f"details overwrite {key}": (
            lambda made, key=key: {"details": {key: "mine"}},
            f"details must have other keys than those of every result, got '{key}'",
        )
        for key in ("method", "seed", "measured", "notes", "unweighted_edges", "leaks_test_labels")
    },
}


@pytest.mark.parametrize("wrong", WRONG_RESULTS)
def test_what_a_method_may_not_return_is_one_sentence_with_its_name(graph, wrong):
    changes, sentence = WRONG_RESULTS[wrong]

    class Wrong(gcsr.Random):
        name = "wrong"

        def run(self, ctx):
            return [replace(made, **changes(made)) for made in super().run(ctx)]

    with pytest.raises(InputError, match=rf"^run of 'wrong': {sentence}"):
        Wrong(nodes=6).condense(graph, device="cpu")


@pytest.mark.parametrize(
    "wrong", ["fewer columns", "a vector", "an array", "nothing", "a sparse tensor", "not finite"]
)
def test_the_score_of_such_a_result_is_one_sentence_too(graph, wrong):
    changes, sentence = WRONG_RESULTS[wrong]

    class Scored(gcsr.Random):
        name = "scored"

        def run(self, ctx):
            (made,) = super().run(ctx)
            own = replace(made, x=made.x.clone().requires_grad_())
            assert validation_score(ctx, own) == validation_score(ctx, made)
            with pytest.raises(InputError, match=rf"^validation_score: {sentence}"):
                validation_score(ctx, replace(made, **changes(made)))
            with pytest.raises(InputError, match=r"^validation_score: result must be a .* a list"):
                validation_score(ctx, [made])
            return [made]

    Scored(nodes=6).condense(graph, device="cpu")


@pytest.mark.parametrize("part", ["visible", "validation"])
@pytest.mark.parametrize("array", ["data", "indices", "indptr"])
def test_edges_cannot_be_written_to_and_others_in_their_place_are_noticed(graph, part, array):
    class Halved(gcsr.Random):
        name = "halved"

        def run(self, ctx):
            edges = getattr(ctx.view, part).adjacency
            with pytest.raises(ValueError, match="read-only"):
                getattr(edges, array)[:] = 0
            setattr(edges, array, getattr(edges, array).copy())
            return super().run(ctx)

    with pytest.raises(InputError, match=r"^run of 'halved' must not change the graph in place"):
        Halved(nodes=6).condense(graph, device="cpu")


def test_the_share_of_a_class_and_the_number_of_nodes_are_two_promises(graph):
    class Shares(gcsr.Random):
        name = "shares"
        exact_class_budget = False

        def run(self, ctx):
            return super().run(replace(ctx, nodes=4))

    sentence = (
        r"^run of 'shares': x must .*; may_have_fewer_nodes = True in the class accepts fewer"
    )
    with pytest.raises(InputError, match=sentence):
        Shares(nodes=6).condense(graph, device="cpu")
    assert [name for name in METHODS if METHODS[name].may_have_fewer_nodes] == ["bonsai"]


def test_a_method_may_return_fewer_nodes_or_an_asymmetric_structure(graph):
    class Small(gcsr.Random):
        name = "small"
        may_have_fewer_nodes = True

        def run(self, ctx):
            a = torch.eye(4)
            a[0, 1] = 0.5
            details = {"loss": [0.5, None], "leaks_test_labels": True}
            return [
                replace(made, x=made.x[:4], adjacency=a, y=made.y[:4], details=details)
                for made in super().run(ctx)
            ]

    small = Small(nodes=6).condense(graph, device="cpu")
    assert small.num_nodes == 4 and not torch.equal(small.adjacency, small.adjacency.T)
    assert small.provenance["loss"] == [0.5, None] and small.leaks_test_labels

    class Large(Small):
        name = "large"

        def run(self, ctx):
            return super().run(replace(ctx, nodes=6))

    sentence = r"^run of 'large': x must have .*, 1\.\.3 \(Context.nodes\), got shape \(4, \d+\)\.$"
    with pytest.raises(InputError, match=sentence):
        Large(nodes=3).condense(graph, device="cpu")


@dataclass(frozen=True, kw_only=True)
class Scoring(gcsr.Random):
    """Its details have the validation score of its result, and of the same with other labels."""

    name = "scoring"

    def run(self, ctx):
        (made,) = super().run(ctx)
        shares = torch.nn.functional.one_hot(made.y, ctx.view.visible.num_classes).float()
        unlabeled = made.y.clone()
        unlabeled[0] = -1
        tried = {
            "own": made,
            "again": made,
            "shares": replace(made, y=shares),
            "unlabeled": replace(made, y=unlabeled),
            "rolled": replace(made, y=(made.y + 1) % ctx.view.visible.num_classes),
        }
        scores = {name: validation_score(ctx, one) for name, one in tried.items()}
        with pytest.raises(InputError, match="networks must be an integer >= 1, got 0"):
            validation_score(ctx, made, networks=0)
        return [replace(made, details={"scores": scores})]


def test_a_method_can_score_its_results_on_the_validation_nodes(graph):
    found = check_leaks(Scoring(nodes=9), graph).provenance["scores"]
    assert found["own"] == found["again"] == found["shares"]
    assert found["rolled"] < 0.5 < found["own"] <= 1
    assert 0.5 < found["unlabeled"] <= 1


@pytest.mark.parametrize("missing", ["name", "summary"])
def test_a_method_without_a_name_or_a_summary_is_refused(missing):
    texts = {"name": "described", "summary": "has both"}
    del texts[missing]
    unnamed = type("Unnamed", (Condenser,), {"run": lambda self, ctx: [], **texts})
    sentence = f"^{missing} of the class Unnamed must be a text, got none"
    with pytest.raises(InputError, match=sentence):
        unnamed(nodes=6)
    with pytest.raises(InputError, match=sentence):
        register(unnamed)


@pytest.mark.parametrize("window", ["fixed", "expanding"])
def test_a_setting_of_another_package_may_have_a_removed_value(window):
    register(Foreign)
    try:
        assert build("foreign", {"nodes": 6, "window": window}).window == window
        assert value_of("window", window, str) == window
    finally:
        del _REGISTERED["foreign"]


def test_unknown_method_is_refused():
    known = f"{', '.join(METHODS)} or a class as module:Class, got 'gone'"
    with pytest.raises(InputError, match=f"method must be one of {known}"):
        build("gone", {"nodes": 3})


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_gives_what_the_cpu_gives(name, graph):
    ours, again = (tiny(name).condense(graph, device="cuda") for _ in range(2))
    assert_same(ours, again)
    assert ours.provenance["device"] == "cuda"
    if not METHODS[name].same_on_every_device:
        return
    there = tiny(name).condense(graph, device="cpu")
    torch.testing.assert_close(ours.x, there.x, rtol=2e-2, atol=2e-3)
    torch.testing.assert_close(ours.adjacency, there.adjacency, rtol=2e-2, atol=2e-2)
    assert torch.equal(ours.y, there.y)


def test_sparse_features_give_the_same_result(name, monkeypatch):
    """Within rounding; no row is unfolded for being few."""
    monkeypatch.setattr("gcsr.starts.clusters.UNFOLDED", 0)
    graph = planted_graph(features=150)
    graph = replace(graph, x=graph.x.where(graph.x > 2.5, 0.0))
    sparse = replace(graph, x=graph.x.to_sparse_csr())
    expected, found = (tiny(name).condense(one, device="cpu") for one in (graph, sparse))
    for part in ("x", "adjacency", "y"):
        torch.testing.assert_close(
            getattr(found, part), getattr(expected, part), rtol=1e-3, atol=1e-4
        )
