"""Names of before version 0.2: settings are refused with the new name, files are read."""

from __future__ import annotations

import numpy as np
import pytest

import gcsr
from gcsr import models
from gcsr.benchmarking.cells import Protocol
from gcsr.cli.data import recorded
from gcsr.methods.registry import build
from gcsr.paper.experiments import EXPERIMENTS
from gcsr.reporting.results import command
from gcsr.utils.errors import InputError
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
def test_an_old_setting_is_refused_with_its_new_name(method, old, new):
    sentence = f"{next(iter(old))} is called {next(iter(new))} since version 0.1"
    with pytest.raises(InputError, match=sentence):
        build(method, {"nodes": 9, **old})
    build(method, {"nodes": 9, **new})


def test_numbers_of_numpy_are_numbers():
    assert gcsr.TrainingRecipe(epochs=np.int64(2)) == gcsr.TrainingRecipe(epochs=2)
    assert type(gcsr.GCSR(nodes=np.int64(9), alpha=np.float32(0.5)).alpha) is float


def test_files_with_the_old_name_of_a_feature_scaling_are_read(tmp_path):
    graph = planted_graph()
    with pytest.raises(InputError, match=r"got 'standardise' \(did you mean standardize\?\)"):
        graph.scaled("standardise")
    now = graph.scaled("standardize")
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
