"""Every code block of the documentation runs, and what it is said to print is what it prints."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

from gcsr import CondensedGraph, evaluate, load
from gcsr.starts import pseudo_labels
from gcsr.training.fit import TrainingRecipe
from pages import PAGES, PLAIN, ROOT, RUN, blocks, commands, run_page

ALL = [block for page in PAGES for block in blocks(page)]
TRAINED: dict[tuple[object, ...], pseudo_labels.LabelShares] = {}
# What a reader could only wait for, or what changes the machine. One more needs a reason here too.
NOT_RUN = {
    "README.md": "they install packages",
    "docs/index.md": "they install packages",
    "docs/cluster.md": "starts Ray",
    "docs/fuzzing.md": "minutes to hours",
    "docs/mutants.md": "minutes to hours",
    "docs/reproduce.md": "hours on a CPU, and datasets to download",
    "docs/your-graph.md": "pandas is no dependency of gcsr",
    "docs/benchmark.md": "hours",
    "docs/coming-from.md": "needs DGL",
    "docs/scale.md": "needs a GPU",
}


@pytest.fixture
def real_data(request) -> Path | None:
    """The real datasets, where there are any: blocks that need them are left out elsewhere."""
    try:
        folder: Path = request.getfixturevalue("shared_data")
    except pytest.skip.Exception:
        return None
    return folder


@pytest.fixture
def labelers_trained_once(monkeypatch):
    """Pages condense the same graphs; a pseudo-labeler is trained by the first of them."""
    train = pseudo_labels.train_labeler

    def known(view, *how):
        key = (view.source.content_hash, view.source.inductive, *map(str, how[:-1]))  # no progress
        if key not in TRAINED:
            TRAINED[key] = train(view, *how)
        return TRAINED[key]

    monkeypatch.setattr(pseudo_labels, "train_labeler", known)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.needs("optuna")] if page.stem == "tune" else [])
        for page in PAGES
        if blocks(page)
    ],
    ids=named,
)
def test_every_block_runs(page, tmp_path, monkeypatch, real_data, labelers_trained_once):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        run_page(page, tmp_path, monkeypatch, real_data)
    finally:
        torch.set_num_threads(threads)
    left_out = [block.place for block in blocks(page) if block.needs_data and real_data is None]
    if left_out:
        pytest.skip(f"the other blocks ran; no real datasets for {', '.join(left_out)}")
    if page.name == "write-a-method.md":
        method = sys.modules.pop("means").Means(nodes=20, iterations=3)
        steps: list[int] = []
        told = lambda stage, done, total: steps.append(done)  # noqa: E731
        method.condense_many(load("digits"), seeds=[0, 1], device="cpu", progress=told)
        assert steps == [1, 2, 3, 4, 5, 6]  # --cell-limit acts within a seed
        small = CondensedGraph.load(tmp_path / "small.safetensors")
        assert small.provenance["method"] == "means"
        outcome = evaluate(small, load("digits"), runs=1, recipe=TrainingRecipe(epochs=100))
        assert outcome.mean > 90


def test_blocks_are_of_known_kinds():
    for block in ALL:
        assert block.language in (*RUN, *PLAIN), f"{block.place}: {block.language!r}"
        if block.language == "console":
            assert block.text.startswith("$ "), f"{block.place}: a command begins with $"


def test_blocks_that_are_not_run_are_few_and_say_why():
    left_out = {named(block.page): block.not_run for block in ALL if block.not_run is not None}
    assert left_out == NOT_RUN
    blocks = Counter(named(block.page) for block in ALL if block.not_run is not None)
    several = {"docs/cluster.md": 5, "docs/coming-from.md": 2}
    assert blocks == {page: several.get(page, 1) for page in NOT_RUN}


def test_what_needs_real_data_is_the_exception():
    assert sum(block.needs_data for block in ALL) <= 5


def test_the_picture_shows_the_accuracy_of_the_first_example():
    """`benchmarks/picture.py` writes the evaluation that it shows into the file."""
    picture = (ROOT / "docs/images/digits.png").read_bytes()
    shown = picture.split(b"Description\0", 1)[1].split(b" % on digits", 1)[0].decode("latin-1")
    assert (
        f"{shown} % on digits (gcn trained on 50 nodes, 3 runs" in (ROOT / "README.md").read_text()
    )


def test_make_and_pip_are_never_run():
    for block in ALL:
        if block.language in ("console", "bash") and block.not_run is None:
            words = {command.split()[0] for command, _ in commands(block)}
            assert words <= {"gcsr"}, block.place


def test_the_example_of_a_method_is_as_short_as_it_says():
    block, *_ = [b for b in ALL if b.page.name == "write-a-method.md" and b.language == "python"]
    lines = block.text.splitlines()
    assert len(lines) <= 70 and len([line for line in lines if line.strip()]) <= 60


class TestHelper:
    """The helper sees what is wrong: it would be of no use otherwise."""

    @pytest.fixture
    def run(self, tmp_path, monkeypatch):
        def attempt(text: str) -> str:
            page = tmp_path / "page.md"
            page.write_text(text, encoding="utf-8")
            return run_page(page, tmp_path, monkeypatch, None)

        return attempt

    def test_blocks_share_a_namespace(self, run):
        page = "```python\na = 1\n```\n\n```python\nprint(a + 1)\n```\n\n```text\n2\n```\n"
        assert run(page).split() == ["2"]

    @pytest.mark.parametrize(
        "wrong",
        [
            "```python\nprint(1)\n```\n\n```text\n2\n```\n",
            "```python\nprint(1)\nprint(2)\n```\n\n```text\n1\n```\n",
            "```console\n$ gcsr --version\ngcsr 99\n```\n",
            "```console\n$ gcsr nonsense\n```\n",
            "```console\n$ gcsr --version\nerror: of some kind\n```\n",
            "```console\n$ false\n```\n",
            "```python\nprint(1)\n",
        ],
    )
    def test_what_is_wrong_is_found(self, run, wrong):
        with pytest.raises(AssertionError):
            run(wrong)

    def test_dots_stand_for_anything(self, run):
        run("```python\nprint('a 1 b')\nprint(2)\nprint(3)\n```\n\n```text\na ... b\n...\n3\n```\n")

    def test_accuracies_are_compared_roughly_and_seconds_not_at_all(self, run):
        shown = "```\n\n```text\n96.0 ± 0.1 % in 4.5 s\n```\n"
        run(f"```python\nprint('95.2 ± 1.3 % in 12.0 s')\n{shown}")
        for wrong in ("91.0 ± 0.1 % in 4.5 s", "96.0 % in 4.5 s", "96.0 ± 0.1 % in time"):
            with pytest.raises(AssertionError):
                run(f"```python\nprint('{wrong}')\n{shown}")

    def test_the_accuracy_of_one_run_is_compared_roughly_too(self, run):
        shown = "```\n\n```text\n96.0 % on digits, 2.7 % of it\n```\n"
        run(f"```python\nprint('95.2 % on digits, 2.7 % of it')\n{shown}")
        for wrong in ("91.0 % on digits, 2.7 % of it", "96.0 % on digits, 2.8 % of it"):
            with pytest.raises(AssertionError):
                run(f"```python\nprint('{wrong}')\n{shown}")

    def test_a_failure_that_is_shown_is_fine(self, run):
        run("```console\n$ gcsr inspect absent.safetensors\nerror: absent.safetensors: ...\n```\n")

    def test_lines_of_a_shell_block_are_commands(self, run):
        assert run("```bash\n# why\nprintf a\nprintf b\n```\n").split() == ["a", "b"]

    def test_a_marked_block_is_not_run(self, run):
        assert run("<!-- not run: dangerous -->\n```console\n$ false\n```\n") == ""

    def test_commands_that_need_a_shell_get_one(self, run):
        told = run("```console\n$ gcsr --version | tr g G\n```\n")
        assert told.startswith("Gcsr ")
        assert os.environ["OMP_NUM_THREADS"] == "1"


@pytest.mark.parametrize(
    "target", ["run", "test", "test-all", "test-cuda", "lint", "bench", "mutants", "docs", "setup"]
)
def test_make_targets_exist(target):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)
