"""Clusters that cannot be had are one sentence; none of this starts Ray."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import gcsr
from gcsr import InputError
from gcsr.cli.app import main
from gcsr.distributed.propagation import product_of_block, propagate, row_blocks
from gcsr.distributed.start import check_cluster
from gcsr.distributed.worker import Environment, Kept
from gcsr.models.sparse import SparseOperator
from helpers import CPU, planted_graph

NOBODY = "127.0.0.1:9"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    planted_graph().to_npz(tmp_path / "graph.npz")
    return tmp_path / "graph.npz"


def verbs(file: Path) -> list[list[str]]:
    small = gcsr.condense(gcsr.Graph.from_npz(file), nodes=6, method="random", device="cpu")
    small.save(file.with_name("small.safetensors"))
    return [
        ["condense", str(file), "--nodes=6", "--method=random", "--out=never.safetensors"],
        ["evaluate", str(file.with_name("small.safetensors")), f"--data={file}"],
        ["tune", str(file), "--nodes=6", "--study=never.sqlite", "--set=alpha=1,2"],
        ["reproduce", "table2", "--quick", "--out=never"],
    ]


@pytest.mark.needs("ray", "optuna")
@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("here", "cluster must be local or the head's HOST:PORT, got 'here'."),
        ("host:99999", "cluster must be local or the head's HOST:PORT, got 'host:99999'."),
        ("ray://host:1", "cluster must be local or the head's HOST:PORT, got 'ray://host:1'."),
        (NOBODY, f"cluster: no answer from {NOBODY}; is the head running?"),
    ],
)
def test_every_verb_refuses_a_cluster_that_cannot_be(
    address, sentence, file, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    for words in verbs(file):
        capsys.readouterr()
        assert main([*words, f"--cluster={address}"]) == 2, words
        assert capsys.readouterr().err == f"error: --{sentence}\n"
    assert not list(tmp_path.glob("never*"))


@pytest.mark.needs("optuna")
def test_without_ray_it_says_how_to_get_it(file, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    for words in verbs(file):
        capsys.readouterr()
        assert main([*words, "--cluster=local"]) == 2, words
        sentence = (
            'error: --cluster: Ray is not installed; `pip install "gcsr[cluster]"` brings it.\n'
        )
        assert capsys.readouterr().err == sentence


def test_verbs_without_a_cluster_import_no_ray(file):
    program = (
        "import sys, gcsr.cli.app; code = gcsr.cli.app.main(sys.argv[1:]); print('ray' in sys.modules);"
        " sys.exit(code)"
    )
    words = ["condense", str(file), "--nodes=6", "--method=random", f"--out={file}.safetensors"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("False\n")


@pytest.mark.needs("ray")
def test_jobs_and_a_cluster_do_not_go_together(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("gcsr.distributed.start.reachable", lambda address: True)
    words = [
        "reproduce",
        "table2",
        "--quick",
        f"--out={tmp_path}",
        "--jobs=2",
        f"--cluster={NOBODY}",
    ]
    assert main(words) == 2
    assert "jobs must be 1 with a cluster" in capsys.readouterr().err


def test_other_versions_are_refused_and_threads_are_taken_over():
    before = torch.get_num_threads()
    try:
        replace(Environment.here(), threads=2).apply()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    with pytest.raises(InputError, match=r"workers must have torch 1\.0, got .*; install"):
        replace(
            Environment.here(), versions={**Environment.here().versions, "torch": "1.0"}
        ).apply()


def test_the_last_thing_is_kept_and_no_other():
    made: list[int] = []
    kept = Kept()
    for key in (1, 1, 2, 1):
        assert kept.get(key, lambda key=key: made.append(key) or 10 * key) == 10 * key
    assert made == [1, 2, 1]


@pytest.mark.parametrize("rows", [1, 7, 50, 400])
def test_rows_of_a_product_are_the_bytes_of_the_whole(rows):
    """Any cut, with empty rows, weights of both signs and columns nobody reads."""
    rng = np.random.default_rng(rows)
    dense = np.where(rng.random((120, 120)) < 0.15, rng.standard_normal((120, 120)), 0)
    dense[[0, 60, 119]] = 0
    dense[:, 100:110] = 0
    matrix = sp.csr_array(dense)
    x = rng.standard_normal((120, 9)).astype(np.float32)
    whole = SparseOperator(matrix, CPU, torch.float32)(torch.from_numpy(x)).numpy()
    starts = range(0, 120, rows)
    parts = [(first, x[first : first + rows]) for first in starts]
    blocks = row_blocks(matrix, rows)
    found = np.concatenate([product_of_block(block, 9, parts) for block in blocks])
    assert found.tobytes() == whole.tobytes()
    assert np.abs(found - dense @ x).max() < 1e-5


@pytest.mark.needs("ray")
def test_blocks_that_cannot_be_are_refused():
    block = row_blocks(sp.csr_array(np.eye(4)), 4)
    for hops in (-1, 1.5, True):
        with pytest.raises(InputError, match="hops must be an integer"):
            list(propagate(block, [np.ones((4, 1), np.float32)], hops, cluster=NOBODY))
    with pytest.raises(InputError, match=r"x must have as many blocks as rows \(1\), got 0"):
        list(propagate(block, [], 1, cluster=NOBODY))
    with pytest.raises(InputError, match="no answer"):
        check_cluster(NOBODY)
