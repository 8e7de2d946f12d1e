from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from inspect import cleandoc
from pathlib import Path
from typing import Any

import pytest
import torch
from cli_helpers import TINY, Run

from gcsr import CondensedGraph, api
from gcsr.cli import demo, options
from gcsr.cli.listing import plain_text
from gcsr.evaluation.origin import PSEUDO_LABELS_NOTE
from gcsr.methods.registry import methods
from gcsr.models.registry import MODELS
from gcsr.version import __version__


def test_version(gcsr: Run) -> None:
    assert gcsr("--version").out == f"gcsr {__version__}\n"
    assert gcsr("--version", "no-command").out == f"gcsr {__version__}\n"


@pytest.mark.parametrize(
    "verb",
    ["demo", "datasets", "methods", "condense", "evaluate", "inspect", "report", "reproduce"],
)
def test_every_verb_has_help(gcsr: Run, verb: str) -> None:
    result = gcsr(verb, "--help")
    assert result.code == 0 and "--json" in result.out
    assert verb in gcsr().out


def test_help_lists_every_model_that_can_be_tested(gcsr: Run) -> None:
    assert [*options.MODEL_NAMES] == [name for name in MODELS if not name.endswith("-linear")]
    shown = re.sub(r"[│|\s]", "", gcsr("evaluate", "--help").out)  # also folded at hyphens
    plain, linear = re.findall(r"Thenetworktotrainandtest:(.*?);(.*?)alsowith-linear", shown)[0]
    assert plain.replace("or", ",").split(",") == [*options.MODEL_NAMES]
    names = [f"{name}-linear" for name in linear.replace("and", ",").split(",")]
    assert names == [name for name in MODELS if name.endswith("-linear")]


def test_methods(gcsr: Run) -> None:
    listed = gcsr("methods", "--json").json
    by_name = {one["name"]: one for one in listed}
    assert {"gcsr", "mtt", "random"} <= by_name.keys()
    assert all(one["summary"] for one in listed)
    settings = by_name["gcsr"]["settings"]
    assert settings["alpha"] == 1.0 and settings["expert_memory"] is None
    assert "nodes" not in settings
    text = gcsr("methods").out
    assert "gcsr" in text and "alpha=1.0" in text and "N = student_steps" in text


def test_one_method_is_explained(gcsr: Run) -> None:
    done = gcsr("methods", "gcond")
    assert done.code == 0
    for word in ("structure_lr", "threshold", "aligned", "feature_lr=", "ratio"):
        assert word in done.out
    assert done.out.count("Settings:") == 1 and done.out.count("    feature_lr: ") == 1
    wrong = gcsr("methods", "gcon")
    assert wrong.code == 2
    assert "got 'gcon' (did you mean gcond?)" in wrong.err


@pytest.mark.parametrize("name", sorted(methods()))
def test_a_method_is_explained_in_plain_text(gcsr: Run, name: str) -> None:
    text = gcsr("methods", name).out
    assert "`" not in text and "\\" not in text and "Args:" not in text
    assert not re.search(r":[a-z]+:", text)


def test_markup_becomes_plain_text() -> None:
    document = """Centers of :math:`A^k X`; see :class:`~gcsr.condense.Condenser`.

    It takes ``k``.

    Args:
        k: hops (:mod:`gcsr.data.views`).
        pins: pairs,
            handed on.
        a, b: numbers.
    """
    assert plain_text(cleandoc(document), {"k", "b"}) == (
        "Centers of A^k X; see Condenser.\n\nIt takes 'k'.",
        {"k": "    k: hops (views).", "a, b": "    a, b: numbers."},
    )


def test_what_cannot_be_set_is_not_listed(gcsr: Run) -> None:
    (auto,) = gcsr("methods", "auto", "--json").json
    assert auto["settings"] == {"budget": 240.0, "disable": ""}
    text = gcsr("methods", "auto").out
    assert "fixed" not in text and "settings: budget=240.0, disable=''\n" in text
    assert "any setting of bilevel" in text
    assert "fixed" not in gcsr("methods").out


def test_datasets(gcsr: Run, tmp_path: Path) -> None:
    listed = gcsr("datasets", "--json", "--root", tmp_path).json
    by_name = {one["name"]: one for one in listed}
    assert by_name["digits"]["available"] is True and by_name["cora"]["available"] is False
    assert by_name["cora"]["nodes"] == 2708 and by_name["cora"]["folder"] == str(tmp_path)
    text = gcsr("datasets", "--root", tmp_path).out
    assert str(tmp_path) in text and "2,708" in text and "inductive" in text
    assert f"such as {tmp_path / 'Cora' / 'raw' / 'ind.cora.x'}." in text


def test_datasets_that_are_there(gcsr: Run, shared_data: Path, tmp_path: Path) -> None:
    listed = gcsr("datasets", "--json", "--root", shared_data).json
    assert {"cora", "citeseer", "pubmed"} <= {one["name"] for one in listed if one["available"]}
    out = tmp_path / "cora.safetensors"
    root = ["--root", shared_data]
    made = gcsr("condense", "cora", "--ratio", 0.013, *root, *TINY, "--out", out, "--json").json
    assert made["nodes"] == 35 and made["dataset"] == "cora"
    got = gcsr("evaluate", out, "--data", "cora", *root, "--runs", 1, "--epochs", 3, "--json").json
    assert got["dataset"] == "cora" and got["nodes"] == 35


@pytest.fixture
def quick_demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    settings = {"iterations": 2, "hidden_channels": 8, "disable": "pseudo-labels", "budget": 240.0}
    monkeypatch.setattr(demo, "SETTINGS", settings)
    monkeypatch.setattr(demo, "EPOCHS", 3)
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    yield tmp_path
    torch.set_num_threads(threads)


def test_demo(gcsr: Run, quick_demo: Path) -> None:
    result = gcsr("demo", "--runs", 1)
    assert (result.code, result.err) == (0, "")
    wrote, look = result.out.splitlines()[-2:]
    assert wrote == "wrote digits-50.safetensors"
    assert look == "make a page of it: gcsr report digits-50.safetensors --out digits-50.html"
    assert "condensed, automatic mode (240 s of a reference core)" in result.out
    for word in ("random subset", "whole graph", "1,797", "±", "kB"):
        assert word in result.out
    assert "(1 run per graph)" in result.out and "training per network" in result.out
    # Three subsets are three scores; one network on one graph has no deviation.
    deviating = [line.split("(")[0].strip() for line in result.out.splitlines() if "±" in line]
    assert deviating == ["random subset"]
    assert [path.name for path in quick_demo.iterdir()] == ["digits-50.safetensors"]


def test_demo_compares_with_pseudo_labels_where_they_were_used(
    gcsr: Run, quick_demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = api.condense_many

    def helped(*arguments: Any, **settings: Any) -> list[CondensedGraph]:
        made = make(*arguments, **settings)
        told = {"pseudo_labels": {"pseudo_labels": "consistent"}}
        return [replace(one, provenance=one.provenance | told) for one in made]

    monkeypatch.setattr(api, "condense_many", helped)
    monkeypatch.setattr(demo, "SETTINGS", {"method": "random"})
    shown = gcsr("demo", "--runs", 2, "--nodes", 20)
    assert (shown.code, shown.err) == (0, "")
    whole, trained, alone = (
        next(line.split() for line in shown.out.splitlines() if line.strip().startswith(name))
        for name in ("whole graph ", "whole graph with pseudo-labels", "pseudo-labels themselves")
    )
    assert "±" in whole and "±" in trained and "±" not in alone and alone[-2:] == ["-", "-"]
    assert PSEUDO_LABELS_NOTE in shown.out


def test_demo_json(gcsr: Run, quick_demo: Path) -> None:
    result = gcsr("demo", "--runs", 1, "--nodes", 20, "--out", "mine.safetensors", "--json")
    got = result.json
    assert got["out"] == "mine.safetensors" and (quick_demo / "mine.safetensors").is_file()
    small, subsets, whole = got["rows"][:3]
    assert small["nodes"] == subsets["nodes"] == 20 and whole["nodes"] == 1797
    assert small["bytes"] < whole["bytes"] and len(subsets["scores"]) == demo.RANDOM_SUBSETS
    assert small["condensing_seconds"] > 0
    networks = [row["training_seconds"] / row["network_seconds"] for row in got["rows"][:3]]
    assert networks == pytest.approx([1, demo.RANDOM_SUBSETS, 1])
