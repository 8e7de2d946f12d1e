"""Names of before version 0.2 are accepted with a warning, and mean the same."""

from __future__ import annotations

import pytest
import torch

import gcsr
from gcsr import models
from gcsr.cli.data import recorded
from gcsr.methods.registry import build
from gcsr.paper.cells import Protocol
from gcsr.paper.experiments import EXPERIMENTS
from gcsr.reporting.text import command
from helpers import planted_graph


@pytest.mark.parametrize(
    ("method", "old", "new"),
    [
        ("gcsr", {"k": 1}, {"num_hops": 1}),
        ("gcsr", {"feature_rate": 0.1}, {"feature_lr": 0.1}),
        ("gcsr", {"regulariser": "random"}, {"regularizer": "random"}),
        ("gcsr", {"initialise": "clusters"}, {"init": "clusters"}),
        ("gcsr", {"K": 3}, {"iterations": 3}),
        ("gcond", {"initial": "released"}, {"label_order": "released"}),
        ("sfgc", {"initial": "random"}, {"selection": "random"}),
        ("herding", {"hidden": 8}, {"hidden_channels": 8}),
        ("clusters", {"teacher": "gcn"}, {"pseudo_labels": "gcn"}),
        ("auto", {"without": "hops"}, {"disable": "hops"}),
        ("auto", {"k": 2}, {"num_hops": 2}),
    ],
)
def test_old_settings_warn_and_mean_the_same(method, old, new):
    with pytest.warns(DeprecationWarning, match=f"is called {next(iter(new))} now"):
        before = build(method, {"nodes": 9, **old})
    assert before == build(method, {"nodes": 9, **new})


def test_old_values_mean_the_same():
    assert build("clusters", {"nodes": 9, "grouping": "halves"}).grouping == "bisection"
    assert gcsr.SGDD(nodes=9, structure_loss="stabilised") == gcsr.SGDD(nodes=9)


def test_old_keywords_of_functions_and_classes():
    with pytest.warns(DeprecationWarning, match="rate is called lr now"):
        recipe = gcsr.TrainingRecipe(epochs=2, rate=0.5)
    assert recipe == gcsr.TrainingRecipe(epochs=2, lr=0.5)
    graph = planted_graph()
    with pytest.warns(DeprecationWarning, match="feature_scaling"):
        assert graph.features == graph.feature_scaling
    small = gcsr.condense(graph, nodes=9, method="random", device="cpu")
    asked = {"runs": 1, "recipe": recipe, "device": "cpu"}
    with pytest.warns(DeprecationWarning, match="hidden is called hidden_channels now"):
        before = gcsr.evaluate(small, graph, hidden=4, **asked)
    assert before.scores == gcsr.evaluate(small, graph, hidden_channels=4, **asked).scores
    with pytest.warns(DeprecationWarning, match="check_origin=False"):
        gcsr.evaluate(small, graph.renamed("other"), any_graph=True, **asked)
    with pytest.warns(DeprecationWarning, match=r"gcsr\.analyse is called gcsr\.analyze now"):
        assert gcsr.analyse is gcsr.analyze


def test_the_old_name_of_a_feature_scaling_warns_and_means_the_same(tmp_path):
    graph = planted_graph()
    with pytest.warns(DeprecationWarning, match="called 'standardize' now"):
        before = graph.scaled("standardise")
    now = graph.scaled("standardize")
    assert before.feature_scaling == "standardize" and torch.equal(before.x, now.x)
    with pytest.warns(DeprecationWarning, match="called 'standardize' now"):
        assert gcsr.load("digits", features="standardise").feature_scaling == "standardize"
        made = gcsr.condense(graph, nodes=10, method="random", features="standardise")
        assert made.provenance["dataset"]["features"] == "standardize"
    # Folders and condensed graphs of older versions say standardise.
    folder = now.to_folder(tmp_path / "old")
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace("standardize", "standardise"))
    assert gcsr.load(folder, features="standardize").feature_scaling == "standardize"
    small = gcsr.condense(now, nodes=9, method="random", device="cpu")
    assert small.provenance["dataset"]["features"] == "standardize"
    small.provenance["dataset"]["features"] = "standardise"
    assert recorded([small], "features", str) == "standardize"
    assert "--features standardize" in command(small, "out.safetensors")


def test_models_are_what_their_names_say():
    with pytest.warns(DeprecationWarning, match="sage-textbook is called sage now"):
        assert models.testing_model("sage-textbook") == models.testing_model("sage")
    assert type(models.testing_model("sage")).__name__ == "SAGE"
    assert type(models.testing_model("sage-paper")).__name__ == "GCN"
    assert {"sage", "sage-paper", "cheby", "cheby-paper"} <= set(models.MODELS)


def test_no_setting_differs_from_another_by_case_alone():
    from gcsr.methods.registry import ALIASES, methods, setting_kinds

    for method in methods().values():
        names = [*setting_kinds(method), *ALIASES]
        assert len({name.lower() for name in names}) == len(set(names)), method.name


def test_the_tables_of_the_paper_keep_the_keys_of_their_rows():
    """A row that was recorded before is found again."""
    cell = next(c for c in EXPERIMENTS["table4"].cells if c.test == "sage-paper")
    recorded = cell.recorded(Protocol())
    assert recorded["test"] == "sage" and recorded["recipe"]["rate"] == 0.01
    assert {"k", "hidden", "feature_rate"} <= set(recorded["settings"])
