"""``gcsr benchmark``: what is measured, what a row has, limits, and outputs."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

import gcsr
from gcsr.benchmarking.grid import Grid, estimate
from gcsr.benchmarking.measurement import Data, resplit, variant_of
from gcsr.benchmarking.results import Results
from gcsr.benchmarking.store import Store
from gcsr.cli.app import main
from gcsr.engines.result import CondensationResult, Context
from helpers import planted_graph

BRIEF: dict[str, Any] = {"seeds": 2, "runs": 2, "epochs": 3, "device": "cpu"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    planted_graph(per_class=20).renamed("one").to_npz(tmp_path / "one.npz")
    return tmp_path


@dataclass(frozen=True, kw_only=True)
class Slow(gcsr.Condenser):
    """Reports progress and fails."""

    name: ClassVar[str] = "slow"
    summary: ClassVar[str] = "fails"
    fault: str = "limit"

    def run(self, ctx: Context) -> list[CondensationResult]:
        if self.fault == "error":
            raise RuntimeError("no such thing")
        if self.fault == "memory":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried 2 GiB. GPU 0 has 3 processes")
        while True:
            ctx.progress("steps", 1, 2)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_benchmark_has_references_rows_and_tables_and_continues(data, capsys, monkeypatch):
    monkeypatch.chdir(data)
    out = data / "out" / "rows.jsonl"
    argv = "benchmark --data one.npz --method random,kcenter --nodes 6,3 --more-model sgc --seeds 2"
    argv += f" --runs 2 --epochs 3 --device cpu --out {out}"
    assert main(argv.split()) == 0
    shown = capsys.readouterr().out
    found = rows(out)
    # Two references with two models; two methods at two sizes, the first with two models.
    assert len(found) == 2 * 2 + 2 * (2 + 1)
    one = next(row for row in found if row["label"] == "random" and row["test"] == "sgc")
    assert one["nodes"] == 6 and len(one["scores"]) == 4 and len(one["validation"]) == 4
    needed = ("bytes", "peak_memory_bytes", "condense_seconds", "evaluate_seconds", "settings")
    assert all(name in one for name in (*needed, "data", "versions", "revisions", "machine"))
    assert "whole graph, pseudo-labels" in shown and "average ranks" in shown
    table = list(csv.DictReader(out.with_suffix(".csv").open()))
    assert len(table) == len(found) and float(table[-1]["mean"]) == found[-1]["mean"]
    assert "\\toprule" in out.with_suffix(".tex").read_text()
    page = out.with_suffix(".html").read_text()
    panels = ("Average ranks", "Wins", "Accuracy against size", "Accuracy against seconds", "bytes")
    assert all(name in page for name in panels) and "src=" not in page
    before = out.read_bytes()
    assert main(argv.split()) == 0 and out.read_bytes() == before
    # The command of a row measures it again.
    capsys.readouterr()
    for row in (one, found[0]):
        again = data / "again.jsonl"
        assert main([*row["command"].split()[1:], "--out", str(again), "--device", "cpu"]) == 0
        keys = {other["key"]: other["scores"] for other in rows(again)}
        assert keys[row["key"]] == row["scores"]


def test_references_alone_are_shown(data, capsys, monkeypatch):
    monkeypatch.chdir(data)
    argv = "benchmark --data one.npz --runs 2 --epochs 3 --device cpu --out rows.jsonl"
    assert main(argv.split()) == 0
    shown = capsys.readouterr().out
    assert shown.count("whole graph") == 2 and "±" in shown
    page, means = Path("rows.md").read_text(), [row["mean"] for row in rows(Path("rows.jsonl"))]
    assert "## Whole graphs: test accuracy (%)\n\n| method | one |" in page
    assert all(f"{mean:.1f} ±" in page for mean in means)
    assert "Whole graphs" in Path("rows.html").read_text()


def test_data_may_be_paths(data):
    small = {"methods": ["random"], "nodes": [6]}
    for given in (data / "one.npz", [data / "one.npz"]):
        assert Grid(data=given, **small).data == (str(data / "one.npz"),)
    for wrong in (3, [3], {"one.npz": 1}, [data, None]):
        with pytest.raises(gcsr.InputError, match=r"^data must be names of datasets or paths"):
            Grid(data=wrong, **small)
    with pytest.raises(gcsr.InputError, match=r"^method must be the name of a method"):
        gcsr.robustness(planted_graph(), nodes=6, method=gcsr.Random(nodes=6))


def test_a_class_of_a_module_and_entries_with_settings(data, monkeypatch):
    monkeypatch.chdir(data)
    source = (
        "from gcsr.methods.selection import Random\n"
        "class Mine(Random):\n    name = 'mine'\n    summary = 'a test'\n"
    )
    (data / "my_method.py").write_text(source)
    entry = {"method": "clusters", "name": "short", "num_hops": 1}
    found = gcsr.benchmark(data="one.npz", methods=["my_method:Mine", entry], nodes=6, **BRIEF)
    assert repr(found) == "Results(4 rows, 0 missing: mine, short on one.npz)"
    assert found.methods == ["mine", "short"] and found.changed == {"short": "num_hops = 1"}
    with pytest.raises(gcsr.InputError, match=r"'my_method:Other' cannot be imported"):
        Grid(data=["one.npz"], methods=["my_method:Other"], nodes=[6])
    (data / "half_written.py").write_text("class Mine(\n")
    with pytest.raises(gcsr.InputError, match=r"half_written:Mine.*never closed"):
        Grid(data=["one.npz"], methods=["half_written:Mine"], nodes=[6])
    # A class is measured again once its file has changed.
    options: dict[str, Any] = {"data": "one.npz", "methods": "my_method:Mine", "nodes": 6, **BRIEF}
    before = len(rows(data / "benchmark.jsonl"))
    (data / "my_method.py").write_text(source + "# changed\n")
    gcsr.benchmark(**options)
    assert len(rows(data / "benchmark.jsonl")) == before + 1
    # Tables have the rows of this call, also where others are newer.
    gcsr.benchmark(**options | {"epochs": 2})
    found = gcsr.benchmark(**options)
    assert [r["recipe"]["epochs"] for r in found.rows if r["label"] == "mine"] == [BRIEF["epochs"]]


def test_failures_and_cells_over_the_limit_are_rows_until_they_are_retried(data, monkeypatch):
    monkeypatch.chdir(data)
    name = f"{__name__}:Slow"
    options: dict[str, Any] = {"data": "one.npz", "nodes": 6, "cell_limit": 0.2, **BRIEF}
    gcsr.benchmark(data="one.npz", **BRIEF)  # the references, without a limit
    faults = ("limit", "error", "memory")
    entries = [{"method": name, "name": fault, "fault": fault} for fault in faults]
    found = gcsr.benchmark(methods=entries, **options)
    reasons = [why.partition(" (test_benchmark.py:")[0] for why in found.failures]
    assert reasons == [
        "over the limit of 0.2 seconds (steps).",
        "RuntimeError: no such thing",
        "OutOfMemoryError: CUDA out of memory. Tried 2 GiB.",
    ]
    assert len(rows(data / "benchmark.jsonl")) == 5
    gcsr.benchmark(methods=entries, **options)
    assert len(rows(data / "benchmark.jsonl")) == 5
    monkeypatch.setattr(Slow, "run", lambda self, ctx: gcsr.Random(nodes=6).run(ctx))
    assert (
        gcsr.benchmark(methods=entries, retry=True, **{**options, "cell_limit": None}).failures
        == {}
    )


@pytest.mark.needs("optuna")
def test_tuned_settings_are_chosen_by_validation_and_recorded(data, monkeypatch):
    monkeypatch.chdir(data)
    found = gcsr.benchmark(data="one.npz", methods="kcenter", nodes=6, tune=2, **BRIEF)
    row = next(row for row in found.rows if row["label"] == "kcenter")
    assert row["tuned"] == 2 and row["tuning"]["seconds"] > 0
    assert "--tune 2" in row["command"] and row["settings"]["nodes"] == 6


def test_no_cell_begins_after_the_time_limit(data, monkeypatch):
    monkeypatch.chdir(data)
    found = gcsr.benchmark(data="one.npz", methods="random", nodes=[6, 3], time_limit=1e-9, **BRIEF)
    assert found.rows == [] and found.missing == 4


def test_variants_of_a_graph():
    assert variant_of("a:b.npz:60-20-20:inductive") == (
        "a:b.npz",
        (60, 20, 20),
        {"inductive": True},
    )
    assert variant_of("cora:rows") == ("cora", None, {"features": "rows"})
    graph = planted_graph(per_class=20)
    other = resplit(graph, (60, 20, 20), "x")
    parts = [other.train, other.val, other.test]
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(graph.num_nodes))
    assert [len(part) for part in parts] == [
        36,
        12,
        12,
    ] and other.content_hash != graph.content_hash
    with pytest.raises(gcsr.InputError, match=r"three shares > 0 of 100"):
        variant_of("cora:60-20-30")


def _row(label: str, dataset: str, scores: list[float], **more: Any) -> dict[str, Any]:
    return {
        "key": f"{label} {dataset}",
        "method": label,
        "label": label,
        "dataset": dataset,
        "nodes": 6,
        "test": "gcn",
        "graphs": 2,
        "scores": scores,
        **more,
    }


def test_ranks_wins_and_what_is_bold():
    found = [
        _row(label, dataset, [mean - 0.1, mean + 0.1])
        for dataset in ("a", "b", "c")
        for label, mean in (("good", 80.0), ("bad", 60.0))
    ]
    found += [_row("leak", "a", [99.0, 99.0], leaks_test_labels=True)]
    found += [{**_row("broken", d, []), "state": "failed", "reason": "no"} for d in "abc"]
    results = Results.of(found)
    assert [(rank.label, rank.mean, rank.low, rank.high) for rank in results.ranks] == [
        ("good", 1.0, 1.0, 1.0),
        ("bad", 2.0, 2.0, 2.0),
        ("broken", 3.0, 3.0, 3.0),
    ]
    assert results.wins == {("good", "bad"): 3}
    assert results.best(("a", 6, "gcn")) == {"good"}
    assert "**80.0 ± 1.3**" in results.markdown() and "99.0 ± 0.0 †" in results.markdown()


def test_rows_may_lack_fields_and_have_the_right_types(tmp_path):
    path = tmp_path / "rows.jsonl"

    def results(**more: Any) -> Results:
        path.write_text(json.dumps(_row("one", "a", [1.0, 2.0], **more)) + "\n")
        return Results.of(Store(path))

    for validation in ({}, {"validation": []}, {"validation": [None, 1.0]}):
        (line,) = csv.DictReader(results(**validation).csv().splitlines())
        assert line["validation_mean"] == "" and line["mean"] == "1.5"
    wrong = ({"recipe": "x"}, {"recipe": {"epochs": [1]}}, {"bytes": -1}, {"condense_seconds": -1})
    for more in (*wrong, {"revisions": ["one"]}):
        with pytest.raises(gcsr.InputError, match="line 1 is no row"):
            results(**more)


def test_within_noise_is_not_told_from_the_best():
    rows = [_row("one", "a", [70.0, 80.0]), _row("two", "a", [69.0, 79.0])]
    found = Results.of(rows)
    assert found.best(("a", 6, "gcn")) == {"one", "two"}
    assert {rank.low for rank in found.ranks} == {None}  # one graph has no interval
    assert [line[2] for line in found.rank_table()] == ["95 % interval", "-", "-"]


def test_estimate_uses_measured_rows(data, monkeypatch, capsys):
    monkeypatch.chdir(data)
    grid = Grid(data=["one.npz"], methods=["random"], nodes=[6, 3], seeds=2, runs=2, epochs=3)
    gcsr.benchmark(grid, nodes=[6], device="cpu")
    store = Store(data / "benchmark.jsonl")
    [(cell, seconds)] = estimate(grid, store, Data())
    measured = next(row for row in store if row["label"] == "random")
    assert cell.nodes == 3 and seconds == measured["condense_seconds"]
    argv = "benchmark --data one.npz --method random --nodes 3 --device cpu --estimate"
    assert main(argv.split()) == 0
    assert "seconds of training test networks are not counted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "--data digits --method random",
            "exactly one of --nodes, --per-class and --ratio must be given",
        ),
        ("--data digits --method randm --nodes 5", "--method must be one of"),
        (
            "--data digits --method random --nodes 20,5",
            "--nodes must be >= 10, the number of classes with training nodes, got 5 (random on digits"
            " with 5 nodes).",
        ),
        ("--data digits --method random --nodes 9999", "--nodes must be <= 1797"),
        (
            "--data digits --method random --ratio 0.001",
            "--ratio must be >= 0.00529, which is 10 of 1797 nodes: one for each class with training"
            " nodes, got 0.001 (random on digits with 2 nodes).",
        ),
        (
            "--data digits --method random,mtt,gcsr --nodes 20 --set tu=0.5",
            "tu is not a setting of random, mtt, gcsr (did you mean tau?); accepted: alpha, ",
        ),
        (
            "--data digits --method random,mtt,gcsr --nodes 20 --set tau=0.5",
            "tau is not a setting of random, mtt, only of gcsr; --set is for every --method",
        ),
        (
            "--data digits --method mtt --nodes 20 --set tau=0.5",
            "tau is not a setting of mtt",
        ),
        ("--data digits --method random --nodes five", "--nodes must be numbers such as 35,70"),
        ("--data digits --method random,random --nodes 5", "--method must have different names"),
        ("--data nosuch --method random --nodes 5", "dataset must be one of"),
        ("--data digits --method random --nodes 5 --model gnn", "--model must be one of"),
        ("--data digits --method random --nodes 5 --out x.csv", "--out must end in .jsonl"),
        ("--data digits --method random --nodes 20 40", "FILE must be a TOML file, got 40"),
        ("nosuch.toml", "nosuch.toml cannot be read"),
        ("", "benchmark.jsonl: there are no rows"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    assert main(["benchmark", *words.split()]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "rows.jsonl",
            '{"a": 1}\n',
            "rows.jsonl: line 1 is no row of a benchmark or a reproduction; move the file away, or"
            " name another file or folder.",
        ),
        ("rows.md", "mine", "--out: rows.md exists and rows.jsonl does not; name another file"),
    ],
)
def test_other_files_are_not_replaced(tmp_path, monkeypatch, capsys, name, content, sentence):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(content)
    argv = "benchmark --data digits --method random --nodes 10 --out rows.jsonl"
    assert main(argv.split()) == 2
    assert sentence in capsys.readouterr().err
    assert Path(name).read_text() == content and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("finished", "said"),
    [
        (0, "no row was finished; the same command begins again"),
        (1, "1 row is kept in rows.jsonl; the same command continues"),
        (2, "2 rows are kept in rows.jsonl; the same command continues"),
    ],
)
def test_ctrl_c_tells_how_to_go_on(data, monkeypatch, capsys, finished, said):
    monkeypatch.chdir(data)
    append = Store.append

    def interrupted(store, row):
        if len(store) == finished:
            raise KeyboardInterrupt
        append(store, row)

    monkeypatch.setattr(Store, "append", interrupted)
    argv = "benchmark --data one.npz --method random --nodes 6 --seeds 1 --runs 1 --epochs 2"
    assert main([*argv.split(), "--device", "cpu", "--out", "rows.jsonl"]) == 130
    assert capsys.readouterr().err == f"interrupted; {said}\n"


def test_a_file_says_what_is_measured(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(
        'data = ["digits"]\nmethods = ["random", {method = "dcg", epochs = 2}]\nnodes = [5]\n'
    )
    grid = Grid.read(path, runs=1)
    assert [cell.settings for cell in grid.entries()] == [(), (("epochs", 2),)] and grid.runs == 1
    path.write_text("datas = []")
    with pytest.raises(
        gcsr.InputError, match=r"datas is not a field of a grid \(did you mean data\?\)"
    ):
        Grid.read(path)


def test_the_pages_of_the_leaderboard_have_its_rows(tmp_path):
    root = Path(__file__).parents[2]
    rows, page = root / "results" / "leaderboard.jsonl", root / "docs" / "leaderboard.md"
    if not rows.exists():
        pytest.skip("the leaderboard was not measured")
    charts = tmp_path / "charts.html"
    made = subprocess.run(
        [sys.executable, root / "benchmarks" / "leaderboard_page.py", "--charts", charts],
        capture_output=True,
        check=True,
        text=True,
    )
    assert page.read_text(encoding="utf-8") == made.stdout, "run benchmarks/leaderboard_page.py"
    shown = page.with_name("leaderboard-charts.html").read_text(encoding="utf-8")
    assert shown == charts.read_text(encoding="utf-8")


def test_rows_of_other_epochs_are_shown_and_not_compared() -> None:
    means = {"one": 60.0, "two": 70.0, "six": 50.0, "long": 90.0}
    rows = [
        _row(label, dataset, [mean - 0.1, mean + 0.1], runs=1, recipe={"epochs": len(label)})
        for dataset in ("a", "b")
        for label, mean in means.items()
    ]
    results = Results.of(rows)
    assert results.methods == ["one", "two", "six", "long"]
    assert [rank.label for rank in results.ranks] == ["two", "one", "six"]
    wins = {("two", "one"): 2, ("two", "six"): 2, ("one", "six"): 2}
    assert results.wins == wins and results.best(("a", 6, "gcn")) == {"two"}
    note = (
        "neither ranked nor compared: rows of long on a, b that are not of 2 graphs x 1 network, 3"
        " epochs"
    )
    assert f"- {note}" in results.markdown() and "90.0 ±" in results.markdown()
    assert [line["epochs"] for line in csv.DictReader(results.csv().splitlines())][:4] == list(
        "3334"
    )
    # On one graph a method has only a row of the other epochs.
    mixed = [
        row | {"recipe": {"epochs": 9}} if (row["label"], row["dataset"]) == ("two", "b") else row
        for row in rows
    ]
    assert Results.of(mixed).wins == wins | {("two", "one"): 1, ("two", "six"): 1}
    assert Results.of(mixed).common_cases() == [("a", 6, "gcn")]
    # Of a method with rows of both, those of most rows are shown, though they are older.
    other = _row("one", "a", [99.0, 99.0], runs=1, recipe={"epochs": 4})
    again = Results.of([*rows, other])
    assert again.row("one", ("a", 6, "gcn")) is rows[0]
    assert again.notes[0].startswith("not shown: 1 row of one: ")


def test_every_case_has_a_protocol_of_its_own() -> None:
    seeds = {"a": 5, "b": 5, "c": 3}
    rows = [
        _row(label, name, [mean - 0.1, mean, mean + 0.1][: 3 if count == 3 else 2] * count, **more)
        for name, count in seeds.items()
        for label, mean in (("one", 60.0), ("two", 70.0))
        for more in ({"graphs": count, "runs": 2 if count == 5 else 3},)
    ]
    whole = [
        _row("whole graph", name, [80.0] * runs, method="whole", nodes=None, graphs=1, runs=runs)
        for name, runs in {"a": 2, "b": 2, "c": 3}.items()
    ]
    results = Results.of([*whole, *rows])
    assert results.notes == [] and results.best(("c", 6, "gcn")) == {"two"}
    assert results.wins == {("two", "one"): 3} and len(results.common_cases()) == 3
    # A failure has no vote, and of as many rows those of more graphs are the protocol.
    failure = {"state": "failed", "reason": "no", "graphs": 5, "runs": 2}
    failures = [{**_row(name, "c", []), **failure} for name in ("x", "y", "z")]
    assert Results.of([*rows, *failures]).best(("c", 6, "gcn")) == {"two"}
    few = _row("one", "d", [1.0, 2.0, 3.0], graphs=3, runs=1)
    many = _row("two", "d", [1.0, 2.0, 3.0, 4.0], graphs=4, runs=1)
    for pair in ([few, many], [many, few]):
        (note,) = Results.of([*rows, *pair]).notes
        assert "rows of one on d that are not of 4 graphs x 1 network" in note


def test_a_grid_shows_its_own_cells_alone(data, monkeypatch, capsys):
    monkeypatch.chdir(data)
    gcsr.benchmark(data="one.npz", methods=["random", "kcenter"], nodes=6, **BRIEF | {"epochs": 5})
    argv = (
        "benchmark --data one.npz --method clusters,random --nodes 6 --seeds 2 --runs 2 --epochs 3"
    )
    assert main([*argv.split(), "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert (
        "4 rows of other cells in benchmark.jsonl; `gcsr benchmark --out benchmark.jsonl`" in shown
    )
    assert "kcenter" not in shown and "kcenter" not in Path("benchmark.html").read_text()
    found = gcsr.benchmark(data="one.npz", methods="clusters", nodes=6, **BRIEF)
    assert found.methods == ["clusters"]
    capsys.readouterr()
    assert main(["benchmark"]) == 0
    assert "kcenter" in capsys.readouterr().out


def test_few_graphs_are_said():
    def notes(graphs: int) -> list[str]:
        return Results.of([_row("one", "a", [1.0, 2.0] * graphs, graphs=graphs)]).notes

    assert notes(2) == ["intervals over 2 graphs are wide; 5 seeds or more make them useful"]
    lacking = "intervals of 1 graph do not include the variation between condensed graphs"
    assert notes(1) == [f"{lacking}; 5 seeds or more make them useful"] and notes(3) == []
    page = Path(__file__).parents[2] / "docs" / "benchmark.md"
    assert "(5 or more: intervals over 2 are wide)" in page.read_text(encoding="utf-8")


def test_headings_name_sizes():
    rows = [
        _row("one", name, [1.0, 2.0], classes=classes, nodes=nodes)
        for name, classes, sizes in (("a", 3, (6, 7, 10)), ("b", 4, (8, 9, 10)))
        for nodes in sizes
    ]
    titles = [title for title, _ in Results.of(rows).accuracies(("", ""))]
    sizes = ["2 per class", "7 to 9 nodes", "10 nodes"]
    assert titles == [f"{size}: test accuracy (%)" for size in sizes]
    assert "## 2 per class: test accuracy (%)" in Results.of(rows).markdown()
    unknown = [row for row in rows if row["nodes"] == 6]
    assert Results.of(unknown).size_name([("a", 6, "gcn")]) == "2 per class"
    unknown[0].pop("classes")
    assert Results.of(unknown).size_name([("a", 6, "gcn")]) == "6 nodes"


def test_latex_has_all_test_models_and_escaped_names():
    name = r"a\b_{c} ~50%"
    rows = [_row(name, "a", [1.0, 2.0], test=model) for model in ("gcn", "gcn", "sgc")]
    rows.append(_row("two", "a", [1.0, 2.0]))
    text = Results.of(rows).latex()
    assert text.count("\\begin{tabular}{lc}") == 2 and "% Tested with sgc" in text
    assert r"a\textbackslash{}b\_\{c\} \textasciitilde{}50\% & \textbf{1.5 $\pm$ 6.4} \\" in text
    assert "% bold: the best method" in text


def test_rows_of_an_earlier_revision_are_said(tmp_path: Path, monkeypatch: Any) -> None:
    grid = {"data": ["digits"], "nodes": [20], "seeds": 1, "runs": 1, "epochs": 3}
    out = tmp_path / "rows.jsonl"
    gcsr.benchmark(methods=["random", "clusters"], out=out, **grid)
    assert not Results.of(Store(out)).outdated
    monkeypatch.setattr(gcsr.Clusters, "revision", gcsr.Clusters.revision + 1)
    results = Results.of(Store(out))
    assert results.outdated == {"clusters": 1}
    assert "earlier revision of the method\n\n- clusters: 1 row" in results.markdown()


def test_cases_are_grouped_by_nodes_per_class():
    sizes = {"a": (6, 3), "b": (20, 2), "c": (10, 2)}
    found = [
        _row("one", name, [1.0, 2.0], classes=classes) | {"nodes": nodes}
        for name, (nodes, classes) in sizes.items()
    ]
    found.append(_row("one", "a", [1.0, 2.0], classes=3) | {"nodes": 30, "key": "more"})
    first, *others = Results.of(found).by_size()
    assert first == [("a", 6, "gcn")]
    assert others == [[("c", 10, "gcn")], [("a", 30, "gcn"), ("b", 20, "gcn")]]
    unknown = Results.of([*found, _row("one", "d", [1.0, 2.0])])  # no number of classes
    assert [case[0] for case in unknown.by_size()[0]] == ["a", "b", "c", "d"]
