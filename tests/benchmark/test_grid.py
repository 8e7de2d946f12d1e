"""Fields of a benchmark: bad ones are one sentence, what is named twice is measured once."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

import gcsr
from gcsr.benchmarking import measurement, runner, store
from gcsr.benchmarking.cells import Cell, Protocol
from gcsr.benchmarking.measurement import ClaimedCells, Outcome
from gcsr.cli.app import main
from gcsr.methods.presets import preset_settings
from gcsr.methods.selection import Random
from helpers import planted_graph

BRIEF: dict[str, Any] = {"seeds": 1, "runs": 1, "epochs": 2, "device": "cpu"}
SMALL: dict[str, Any] = {"data": "digits", "methods": "random", "nodes": 20}
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Layered(Random):
    """Has a setting that is a list, and one that is text."""

    name: ClassVar[str] = "layered"
    summary: ClassVar[str] = "a test"
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {"remark": "a"}}
    layers: tuple[int, ...] = ()
    remark: str = ""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    planted_graph(per_class=20).renamed("one").to_npz(tmp_path / "one.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


ENTRY: dict[str, Any] = {"method": "clusters"}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"preset": "foo"}, "preset must be one of default, paper, official, got 'foo'."),
        ({"preset": "sizes"}, "preset must be one of default, paper, official, got 'sizes'."),
        ({"preset": 5}, "preset must be one of default, paper, official, got 5."),
        (
            {"methods": [{**ENTRY, "preset": "shared"}]},
            "preset must be one of default, paper, official, got 'shared'.",
        ),
        ({"nodes": (), "ratio": ["0.1"]}, "ratio must be a number > 0 and <= 1, got '0.1'."),
        ({"nodes": (), "ratio": "0.1"}, "ratio must be a number > 0 and <= 1, got '0.1'."),
        ({"nodes": (), "ratio": 1.5}, "ratio must be a number > 0 and <= 1, got 1.5."),
        ({"nodes": "6"}, "nodes must be an integer >= 1, got '6'."),
        ({"nodes": None}, "nodes must be integers >= 1, got None."),
        ({"methods": [5]}, "methods must be names or tables with a method, got 5."),
        (
            {"methods": [Layered]},
            "methods must be names or tables with a method, got <class 'test_grid.Layered'>; give"
            " 'test_grid:Layered'.",
        ),
        ({"methods": []}, "methods must be given with nodes: what condenses to that size, got []."),
        ({"data": []}, "data must have at least one graph, got []."),
        ({"models": []}, "models must have at least one test model, got []."),
        ({"methods": [{**ENTRY, "name": ""}]}, "name must be a text that is not empty, got ''."),
        ({"methods": [{**ENTRY, "name": 5}]}, "name must be a text that is not empty, got 5."),
        ({"methods": True}, "methods must be names or tables with a method, got True."),
        ({"methods": None}, "methods must be names or tables with a method, got None."),
        ({"methods": [["random"]]}, "methods must be names or tables with a method, got ["),
        ({"methods": [{**ENTRY, 5: 1}]}, "methods must be names or tables with a method, got {"),
        ({"methods": [{"method": 5}]}, "method must be the name of a method, got 5."),
        ({"methods": [{**ENTRY, "tune": "x"}]}, "tune must be an integer >= 0, got 'x'."),
        (
            {"methods": [{**ENTRY, "num_hops": {"a": 1}}]},
            "num_hops must be a number, a text, true or false, or a list of these, got {'a': 1}.",
        ),
        (
            {"methods": [{**ENTRY, "nodes": 5}]},
            "nodes cannot be given for one method; give nodes, per_class or ratio for all.",
        ),
        (
            {"methods": [{**ENTRY, "name": "a"}, {**ENTRY, "name": "b"}]},
            "methods must differ, got 'b' with the method and the settings of 'a'.",
        ),
        ({"models": None}, "models must be names of test models, got None."),
        ({"models": [5]}, "model must be one of mlp,"),
        ({"settings": 3}, "settings must be tables by method, got 3."),
        ({"settings": {"random": 5}}, "settings must have a table for random, got 5."),
        ({"settings": {"random": {5: 1}}}, "settings must have a table for random, got {5: 1}."),
        ({"seeds": 0}, "seeds must be an integer >= 1, got 0."),
        ({"runs": 0}, "runs must be an integer >= 1, got 0."),
        ({"epochs": 0}, "epochs must be an integer >= 1, got 0."),
        ({"time_limit": "x"}, "time_limit must be a number > 0, got 'x'."),
        ({"cell_limit": 0}, "cell_limit must be a number > 0, got 0."),
        ({"grid": 5}, "grid must be a Grid or the path of a TOML file, got 5."),
        ({"out": 5}, "out must be a path, got 5."),
        ({"keep_graphs": 5}, "keep_graphs must be a path, got 5."),
    ],
)
def test_bad_fields_are_one_sentence(tmp_path, monkeypatch, changes, sentence):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(gcsr.InputError, match=f"^{re.escape(sentence)}"):
        gcsr.benchmark(**{**SMALL, **changes})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('preset = "foo"', "grid.toml: preset must be one of default, paper, official, got 'foo'"),
        ("preset = 'sizes'", "grid.toml: preset must be one of default, paper, official, got 's"),
        ("settings = 3", "settings must be tables by method, got 3"),
        ("[settings]\nrandom = 5", "settings must have a table for random, got 5"),
        ("seeds = 0", "grid.toml: seeds must be an integer >= 1, got 0"),
        ("epochs = 0", "grid.toml: epochs must be an integer >= 1, got 0"),
        ("ratio = 0.1", "grid.toml: exactly one of nodes, per_class and ratio must be given"),
        ("models = ['gnn']", "grid.toml: models must be one of mlp,"),
        ("model = ['gcn']", "grid.toml: model is not a field of a grid (did you mean models?)"),
    ],
)
def test_bad_fields_of_a_file_are_one_sentence(tmp_path, monkeypatch, capsys, text, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text(
        f'data = ["digits"]\nmethods = ["random"]\nnodes = 20\n{text}\n'
    )
    assert main(["benchmark", "grid.toml"]) == 2
    assert sentence in capsys.readouterr().err


def test_fields_of_a_file_and_options_are_told_apart(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("e.toml").write_text('methods = ["random"]\nnodes = 5')
    for words, sentence in (
        ("", "e.toml: data must be given: names of datasets or paths of graphs."),
        ("--data digits", "e.toml: nodes must be >= 10, the number of classes with training nodes"),
        ("--data digits --nodes 4", "--nodes must be >= 10, the number of classes with training"),
        ("--data digits --nodes 20 --model gnn", "--model must be one of mlp,"),
    ):
        assert main(["benchmark", "e.toml", *words.split()]) == 2
        assert capsys.readouterr().err.startswith(f"error: {sentence}")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--method bilevel --set models=foo", "models must be one of"),
        ("--method gcond --set model=foo", "model must be one of"),
        ("--per-class 2 --ratio 0.1", "exactly one of --nodes, --per-class and --ratio must be"),
        ("--method bilevel --set models=gcn", "e.toml: seeds must be an integer >= 1, got 0"),
    ],
)
def test_a_value_of_an_option_is_no_fault_of_the_file(
    tmp_path, monkeypatch, capsys, words, sentence
):
    monkeypatch.chdir(tmp_path)
    seeds = 0 if "seeds" in sentence else 1
    Path("e.toml").write_text(
        f'data = ["digits"]\nmethods = ["random"]\nnodes = 20\nseeds = {seeds}'
    )
    assert main(["benchmark", "e.toml", *words.split(), "--device", "cpu"]) == 2
    assert capsys.readouterr().err.startswith(f"error: {sentence}")


def test_a_file_is_named_in_python_too(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text('data = ["digits"]\nmethods = ["random"]\nnodes = 20\nseeds = 0')
    with pytest.raises(gcsr.InputError, match=f"^{re.escape(str(path))}: seeds must be an integer"):
        gcsr.benchmark(path)
    with pytest.raises(gcsr.InputError, match=r"^runs must be an integer"):
        gcsr.benchmark(path, seeds=1, runs=0)


@pytest.mark.parametrize("preset", ["foo", "sizes", "default"])
def test_only_a_preset_has_published_settings(preset):
    with pytest.raises(gcsr.InputError, match="preset must be one of paper, official, got"):
        preset_settings(preset, "gcsr", "cora", 35)


def test_epochs_of_a_protocol_are_given_or_not():
    assert Protocol(epochs=None).recipe("").epochs > 1
    with pytest.raises(gcsr.InputError, match="epochs must be an integer >= 1, got 0"):
        Protocol(epochs=0)


@pytest.mark.parametrize(
    "twice",
    [
        {"data": ["one.npz", "one.npz"]},
        {"models": ["gcn", "gcn"]},
        {"models": ["gcn"], "more_models": ["gcn"]},
        {"nodes": [6, 6]},
        {"nodes": (), "ratio": [0.1, 0.101]},
    ],
)
def test_what_is_named_twice_is_measured_once(data, twice):
    found = gcsr.benchmark(**{**SMALL, "data": "one.npz", "nodes": 6, **twice, **BRIEF})
    assert len(found.rows) == 3 and found.missing == 0
    assert len(rows(data / "benchmark.jsonl")) == 3


@pytest.mark.parametrize("name", ["one.npz:half", "one.npz:60-40", "digits:60-20-20:row"])
def test_a_variant_that_does_not_exist_is_named(data, name):
    word = name.rpartition(":")[2]
    sentence = f"{name}: the variant must be shares such as 60-20-20, inductive, .*, got '{word}'"
    with pytest.raises(gcsr.InputError, match=f"^{sentence}"):
        gcsr.benchmark(**{**SMALL, "data": name, **BRIEF})


@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("/proc")])
def test_a_folder_of_graphs_that_cannot_be_written_is_refused_first(data, capsys, make):
    make(data / "graphs")
    argv = "benchmark --data one.npz --method random --nodes 6 --keep-graphs graphs"
    assert main(argv.split()) == 2
    assert "--keep-graphs: graphs cannot be" in capsys.readouterr().err
    assert not (data / "benchmark.jsonl").exists()


def test_graphs_that_cannot_be_kept_are_no_failure(data, monkeypatch):
    def full(*_: Any) -> None:
        raise gcsr.InputError("graphs/1.safetensors: cannot be written (No space left on device).")

    monkeypatch.setattr(measurement, "save_graphs", full)
    asked = {**SMALL, "data": "one.npz", "nodes": 6, "more_models": ["sgc"], **BRIEF}
    with pytest.raises(gcsr.InputError, match="No space left"):
        gcsr.benchmark(**asked, keep_graphs="graphs")
    found = rows(data / "benchmark.jsonl")
    assert len(found) == 6 and not any(map(store.failed_row, found))


def test_graphs_are_kept_before_they_are_tested(data, monkeypatch):
    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(measurement, "evaluate", killed)
    with pytest.raises(KeyboardInterrupt):
        gcsr.benchmark(**{**SMALL, "data": "one.npz", "nodes": 6, **BRIEF}, keep_graphs="graphs")
    assert len(list((data / "graphs").iterdir())) == 1


NAME = f"{__name__}:Layered"


@pytest.mark.parametrize(
    ("name", "entry", "begins"),
    [
        ("a b.npz", {"method": "clusters", "num_hops": 1}, "gcsr benchmark"),
        ("it's.npz", {"method": NAME, "remark": " two  words"}, "python -c"),
        ("one.npz", {"method": NAME, "remark": "$HOME; 'x'"}, "gcsr benchmark"),
        ("one.npz", {"method": NAME, "layers": [8, 4]}, "python -c"),
        ("a,b.npz", {"method": NAME, "preset": "paper"}, "python -c"),
        ("one.npz:60-20-20", {"method": NAME, "preset": "paper"}, "gcsr benchmark"),
    ],
)
def test_the_command_of_a_row_makes_it_again(data, monkeypatch, name, entry, begins):
    path = data / name.partition(":")[0]
    path.write_bytes((data / "one.npz").read_bytes())
    gcsr.benchmark(data=[name], methods=[entry], nodes=6, out="first.jsonl", **BRIEF)
    for row in rows(data / "first.jsonl"):
        words = shlex.split(row["command"])
        assert row["command"].startswith(begins) or row["method"] in ("whole", "pseudo-labels")
        if words[0] == "gcsr":
            assert main([*words[1:], "--device", "cpu"]) == 0
        else:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
            exec(words[2], {})
        again = {one["key"]: one["scores"] for one in rows(data / "benchmark.jsonl")}
        assert again[row["key"]] == row["scores"]


def test_keys_and_commands_of_the_leaderboard_stay():
    """A row is found again by its key: the text of a command is no part of it."""
    path = ROOT / "results" / "leaderboard.jsonl"
    if not path.exists():
        pytest.skip("the leaderboard was not measured")
    seen = 0
    for row in rows(path):
        cell = Cell(
            row["method"],
            row["dataset"],
            row.get("nodes"),
            test=row["test"],
            preset=row["preset"],
            label=row["label"],
        )
        words = row["command"].split()
        protocol = Protocol(int(words[words.index("--seeds") + 1]), row["runs"])
        if row.get("revisions") in (None, cell.identity(protocol).get("revisions")):
            seen += 1
            assert cell.key(protocol, row["data"]) == row["key"]
            assert cell.command(protocol) == row["command"]
    assert seen > 20


def test_a_claim_ends_with_a_run_on_a_cluster_that_is_closed():
    """Also where the run is closed while known outcomes are taken."""
    one = Cell("random", "one", 6)
    ended: list[str] = []

    class Unfinished:
        cpus = 1

        def put(self, graph: Any) -> Any:
            return graph

        def submit(self, *_: Any, **__: Any) -> str:
            return "unit"

        def cancel(self, units: list[Any]) -> None:
            ended.extend(units)

    class Claimed:
        measurement = measurement.Measurement(Protocol(), cast("Any", None))

        def claim(self, _: Any) -> ClaimedCells:
            claim = ExitStack()
            claim.callback(ended.append, "claim")
            known = [(one, Outcome("done", {}))]
            return ClaimedCells(known, [one], cast("Any", "graph"), claim)

        def kept(self, _: ClaimedCells) -> None:
            return None

    waiting = runner.Waiting([[one]], 60)
    running: Iterator[Any] = runner.measure_on_cluster(
        waiting, cast("Any", Claimed()), cast("Any", Unfinished())
    )
    next(running)
    cast("Any", running).close()
    assert ended == ["unit", "claim"]


def test_rows_with_the_authors_settings_have_costs_too(tmp_path):
    out = tmp_path / "rows.jsonl"
    gcsr.benchmark(**SMALL, preset="paper", out=out, **BRIEF)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    (row,) = (row for row in rows if row["method"] == "random")
    assert (row["label"], row["preset"], row["given"]) == ("random", "paper", {})
    assert row["bytes"] > 0 and row["condense_seconds"] > 0
