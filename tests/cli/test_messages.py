"""Arguments of the library in messages of the command line."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from gcsr.cli.output import (
    LogHandler,
    forget_written,
    in_options,
    interrupted,
    new_notes,
    remember_unfinished,
)

OPTIONS = {
    "nodes": "--nodes",
    "ratio": "--ratio",
    "per_class": "--per-class",
    "model": "--model",
    "data": "DATA",
    "root": "--root",
    "features": "--features",
    "undirected": "--undirected",
    "inductive": "--inductive/--transductive",
    "any_graph": "--no-check-origin",
    "no_checkpoint": "--no-checkpoint",
    "seed": "--seed",
}


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("nodes must be >= 3, got 2.", "--nodes must be >= 3, got 2."),
        ("models must be one.", "--model must be one."),
        (
            "exactly one of nodes, per_class and ratio must be given.",
            "exactly one of --nodes, --per-class and --ratio must be given.",
        ),
        ("data: no such file.", "DATA: no such file."),
        ("alpha must be > 0, got nodes.", "alpha must be > 0, got nodes."),
        ("mine.npz: nodes must be 3.", "mine.npz: nodes must be 3."),
        ("pass undirected=True to add.", "pass --undirected to add."),
        (
            "made with inductive=False, loaded with inductive=True.",
            "made with --transductive, loaded with --inductive.",
        ),
        ("or check_origin=False.", "or --no-check-origin."),
        ("or features='keep', root=FOLDER.", "or --features keep, --root FOLDER."),
        ("data.x = torch.ones(3), tau=1.", "data.x = torch.ones(3), tau=1."),
        ("; checkpoint=None does without.", "; --no-checkpoint does without."),
        ("for nodes=5, got 'pure'.", "for --nodes 5, got 'pure'."),
    ],
)
def test_arguments_become_options(sentence: str, shown: str) -> None:
    assert in_options(sentence, OPTIONS) == shown


@pytest.mark.parametrize(
    "sentence",
    [
        "seed=3/nodes=70.safetensors: no such file.",
        "runs/seed=3/small: no such file.",
        "nodes=70: is there already.",
        "out: must be a folder, got '/runs/seed=3'.",
        "name must be a dataset, got 'nodes=70'.",
        r"C:\\runs\\nodes=70.npz: no such file.",
    ],
)
def test_paths_and_quoted_texts_stay(sentence: str) -> None:
    assert in_options(sentence, OPTIONS) == sentence


def test_settings_are_no_options() -> None:
    sentence = "nodes must be >= 3, got 2."
    assert in_options(sentence, OPTIONS, {"nodes"}) == sentence


def test_the_message_after_an_interruption_names_what_is_there(tmp_path):
    forget_written()
    assert interrupted() == "interrupted; nothing was written"
    remember_unfinished(tmp_path)  # a checkpoint has not been written yet
    assert interrupted() == (
        "interrupted; nothing was written; the same command starts from the beginning"
    )
    (tmp_path / "0.part").touch()
    assert interrupted() == f"interrupted; the same command continues from {tmp_path}"
    forget_written()


def test_a_warning_is_printed_on_the_stderr_of_the_moment(monkeypatch):
    """Progress bars replace ``sys.stderr`` while they are shown."""
    handler, shown = LogHandler(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    forget_written()
    handler.handle(logging.LogRecord("gcsr", logging.WARNING, "", 0, "%s steps.", (3,), None))
    assert shown.getvalue() == "3 steps.\n"
    assert new_notes(["3 steps", "others"]) == ["others"]
