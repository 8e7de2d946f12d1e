"""What was wrong once with the readers of condensed graphs, caches, rows, studies and arguments."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
import torch
from safetensors.torch import save, save_file

from fuzz.target import survives
from fuzz.targets import TARGETS
from fuzz.targets.small import file_bytes, small_condensed
from gcsr import InputError, report
from gcsr.benchmarking.store import Store
from gcsr.cli.app import main
from gcsr.data.condensed import MOST_SPARSE_NODES, stored_matrix_bytes
from gcsr.training.expert_cache import ExpertCache
from gcsr.tuning.space import named_space


def test_a_small_file_does_not_unfold_to_a_gigabyte(refused, tmp_path):
    n = MOST_SPARSE_NODES
    parts = {
        "x": torch.ones(n, 1, dtype=torch.float16),
        "y": torch.zeros(n).long(),
        "adjacency.pointers": torch.zeros(n + 1, dtype=torch.int32),
        "adjacency.columns": torch.zeros(0, dtype=torch.int16),
        "adjacency.values": torch.zeros(0),
    }
    told = {"format": "gcsr-condensed-graph/2", "num_classes": "2", "provenance": "{}"}
    refused("condensed", save(parts, told), "may unfold to at most")


def test_what_could_not_be_read_again_is_not_stored_sparsely():
    eye = torch.eye(6144)
    assert stored_matrix_bytes(eye, 4, beside=0) == eye.nbytes
    assert stored_matrix_bytes(eye, 4, beside=30_000) < eye.nbytes


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float8_e4m3fn, torch.complex64])
def test_numbers_that_nothing_computes_with_are_refused(refused, kind):
    parts = {"x": torch.ones(2, 2).to(kind), "adjacency": torch.eye(2), "y": torch.zeros(2).long()}
    told = {"format": "gcsr-condensed-graph/1", "num_classes": "2", "provenance": "{}"}
    refused("condensed", save(parts, told), "x must be|broken")


def test_numbers_of_any_length_in_the_history_make_a_page(tmp_path):
    small = small_condensed()
    small.provenance.update(
        ratio=10**400, measured={"seconds": 10**400, "peak_memory_bytes": -(10**400)}
    )
    small.provenance["loss"] = {"every": 10**400, "values": [10**400, 1]}
    small.provenance["bytes"] = {"original": 10**400}
    small.provenance["stored"] = {"validation": {"before": 10**400, "after": 1}}
    for listed in ("race", "candidates"):
        scores = {"final": 10**400, "quick": 10**308, "gcn": -(10**308), "text": "high"}
        told = {listed: [{"validation": scores}], "plan": {"hops": 10**400}}
        small.provenance["automatic"] = told
        assert "<html" in report(small)
        assert main(["inspect", str(small.save(tmp_path / "a.safetensors"))]) == 0
    small.provenance["ratio"] = 10**308
    assert "<html" in report(small)
    assert main(["inspect", str(small.save(tmp_path / "a.safetensors"))]) == 0


def test_numbers_beyond_every_number_are_refused(refused):
    """They could be read, and not be written and read again."""
    small = small_condensed()
    data = file_bytes(small).replace(b'\\"ratio\\": 0.5', b'\\"ratio\\":1e999')
    assert b"1e999" in data
    header = len(data) - len(file_bytes(small)) + int.from_bytes(data[:8], "little")
    refused("condensed", header.to_bytes(8, "little") + data[8:], "not finite|not a readable")


def test_texts_that_are_no_unicode_make_a_page(tmp_path, capsys):
    small = small_condensed()
    small.provenance["notes"] = ["\udcff"]
    path, page = small.save(tmp_path / "a.safetensors"), tmp_path / "page.html"
    assert main(["report", str(path), "--out", str(page)]) == 0
    assert page.stat().st_size > 1000


def test_cached_experts_of_another_type_count_as_absent(tmp_path):
    cache = ExpertCache(1 << 20, tmp_path)
    like = (torch.empty(2, 3, 2),)
    cache.folder.mkdir()
    told = {"format": "gcsr-experts/1", "checksum": "0"}
    save_file({"0": torch.ones(2, 3, 2).bfloat16()}, cache.path("key"), told)
    assert cache.load("key", like, prediction=False, device=torch.device("cpu")) is None


@pytest.mark.parametrize(
    "line",
    [
        '{"key": "a", "mean": ' + "9" * 400 + "}",
        '{"key": "a", "mean": NaN}',
        '{"key": "a", "mean": "80"}',
        '{"key": "a", "values": [1]}',
        '{"key": "a", "drawn": {"ccns": [[1], [1, 2]]}}',
        '{"key": "a", "leaks_test_labels": "no"}',
        '{"key": "a", "nodes": [1]}',
        '{"key": "a", "x": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"key": ["a"]}',
        "[]",
    ],
)
def test_rows_of_another_kind_are_a_sentence(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"key": "first"}\n' + line + "\n")
    with pytest.raises(InputError, match="line 2 is no row of a benchmark"):
        Store(path)


def test_settings_nested_without_end(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text("alpha = " + "[" * 50_000)
    with pytest.raises(InputError, match="is not TOML"):
        named_space("gcsr", str(path))


# -- studies -----------------------------------------------------------------------------------------


def study(*statements: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(TARGETS["study"].seeds()[0])
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        return connection.serialize()


STUDIES = {
    "a trigger": "CREATE TRIGGER t AFTER UPDATE ON trials BEGIN DELETE FROM studies; END",
    "a view": "CREATE VIEW v AS WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i FROM r)"
    " SELECT i FROM r",
    "a column that computes": "CREATE TABLE c (a, b AS (a || zeroblob(1000000000)))",
    "a check that computes": "CREATE TABLE c (a CHECK (length(randomblob(1000000000))))",
    "another state": "UPDATE trials SET state = 'GONE'",
    "another distribution": "UPDATE trial_params SET distribution_json = '{}'",
    "another search": "UPDATE trial_params SET param_name = 'beta' WHERE param_name = 'alpha'",
    "another kind of identity": "UPDATE study_user_attributes SET value_json = '[1]'",
    "a note that is none": "UPDATE trial_user_attributes SET value_json = '[1]'",
    "text that is no JSON": "UPDATE trial_user_attributes SET value_json = '{'",
    "an infinite score": "UPDATE trial_values SET value_type = 'INF_POS'",
    "no table": "DROP TABLE trial_values",
}


@pytest.mark.needs("optuna")
@pytest.mark.parametrize("what", STUDIES)
def test_studies_that_are_none_are_a_sentence(refused, what):
    refused("study", study(STUDIES[what]), "study: ")


@pytest.mark.needs("optuna")
def test_the_study_that_the_others_come_from_is_fine(tmp_path):
    assert survives(TARGETS["study"], study())


@pytest.mark.needs("optuna")
def test_a_study_with_a_page_overwritten_is_a_sentence(refused):
    data = bytearray(study())
    data[4096:12288] = b"\xff" * 8192
    refused("study", bytes(data), "study: ")


# -- the command line --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", "a" * 300],
        ["report", "a" * 300, "--out", "page.html"],
        ["condense", "a" * 300, "--nodes", "5", "--out", "a.safetensors"],
        ["condense", "~nobody-of-this-name/g.npz", "--nodes", "5", "--out", "a.safetensors"],
        ["condense", "digits", "--nodes", "5", "--out", "b" * 300 + ".safetensors"],
        ["condense", "digits", "--nodes", "5", "--graphs", "1000000000", "--out", "a.safetensors"],
        ["reproduce", "table2", "--quick", "--out", "c" * 300],
    ],
)
def test_names_and_numbers_that_the_system_refuses(words, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1
