"""Benchmarks of a method of the user: its faults cost its own cells, and its code counts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import gcsr
from gcsr.benchmarking import measurement, own_code, runner
from gcsr.benchmarking.cells import Cell
from gcsr.benchmarking.measurement import failed
from gcsr.benchmarking.own_code import code_hash, forget_code
from gcsr.benchmarking.results import Results
from gcsr.cli.app import main
from gcsr.distributed.worker import Shared
from gcsr.methods.selection import Random
from gcsr.utils.progress import silent
from helpers import planted_graph

BRIEF: dict[str, Any] = {"nodes": 6, "seeds": 2, "runs": 2, "epochs": 3, "device": "cpu"}
SOURCE = """import os, time
from gcsr.methods.selection import Random

class Mine(Random):
    name = "mine"
    summary = "a test"

    def run(self, ctx):
        {body}
        return super().run(ctx)
"""
Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any) -> Write:
    """Writes a method to the working directory, where a graph is; returns its place."""
    planted_graph(per_class=20).renamed("one").to_npz(tmp_path / "one.npz")
    monkeypatch.chdir(tmp_path)
    name = re.sub(r"\W", "_", f"own_{request.node.name}")

    def written(body: str) -> str:
        Path(f"{name}.py").write_text(SOURCE.format(body=body))
        return f"{name}:Mine"

    return written


def rows(path: str = "benchmark.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


@pytest.mark.parametrize(
    "body",
    [
        "visible.x[:] = 0",
        "visible.adjacency.setdiag(1)",
        "visible.adjacency.data = ctx.view.visible.adjacency.data * 0.001",
        "visible.adjacency.indices = ctx.view.visible.adjacency.indices[::-1].copy()",
    ],
)
@pytest.mark.filterwarnings("ignore:Changing the sparsity structure")
def test_a_method_that_changes_the_graph_costs_its_own_cell(write, body):
    place = write(f"ctx.view.{body}")
    found = gcsr.benchmark(data="one.npz", methods=[place, "random"], **BRIEF)
    ((why, places),) = found.failures.items()
    assert why.startswith("run of 'mine' must not change the graph in place")
    assert places == ["mine on one.npz, 6 nodes"]
    alone = gcsr.benchmark(data="one.npz", methods=["random"], out="alone.jsonl", **BRIEF)
    case = ("one.npz", 6, "gcn")
    assert found.found["random", case]["scores"] == alone.found["random", case]["scores"]
    with pytest.raises(gcsr.InputError, match=r"^run of 'mine' must not change the graph"):
        gcsr.condense(planted_graph(), nodes=6, method=place, device="cpu")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{}['abc']", "KeyError: 'abc' (FILE:9, run)"),
        ("raise SystemExit(3)", "SystemExit: 3 (FILE:9, run)"),
        ("ctx.view.visible.x @ ctx.view.visible.x", "(FILE:9, run)"),
    ],
)
def test_a_failure_names_the_line_of_the_method(write, body, reason):
    place = write(body)
    found = gcsr.benchmark(data="one.npz", methods=[place], **BRIEF)
    (why,) = found.failures
    assert why.endswith(reason.replace("FILE", place.replace(":Mine", ".py")))
    assert str(Path.cwd()) not in why


def test_a_cell_that_reports_no_progress_is_over_the_limit_too(write):
    gcsr.benchmark(data="one.npz", **{**BRIEF, "nodes": ()})
    place = write("made = super().run(ctx); time.sleep(0.4); return made")
    found = gcsr.benchmark(data="one.npz", methods=[place], cell_limit=0.3, **BRIEF)
    (why,) = found.failures
    assert why.startswith("over the limit of 0.3 seconds (took 0.")


def test_a_dead_process_names_its_cell_and_rows_name_the_jobs(write):
    place = write("os._exit(9)")
    options: dict[str, Any] = {"data": "one.npz", "methods": [place, "random"], **BRIEF}
    found = gcsr.benchmark(jobs=2, **options)
    died = "mine on one.npz, 6 nodes, gcn: the worker process died (exit code 9); run it again."
    assert found.faults == [died]
    assert {row["jobs"] for row in rows()} == {2} and len(rows()) == 3
    alone = gcsr.benchmark(**options | {"methods": "random", "out": "alone.jsonl"})
    assert {row["key"] for row in alone.rows} == {row["key"] for row in rows()}
    assert not any("jobs" in row for row in alone.rows)


def test_no_method_pays_for_the_first_optimizer_of_a_process(write, monkeypatch):
    order: list[str] = []
    run = Random.run
    monkeypatch.setattr(measurement, "warm_up", lambda _: order.append("warm"))
    monkeypatch.setattr(Random, "run", lambda self, ctx: order.append("run") or run(self, ctx))
    gcsr.benchmark(data="one.npz", methods=[write("pass")], **BRIEF)
    assert order[:1] == ["warm"] and "run" in order


def test_after_the_first_optimizer_nothing_is_imported():
    step = "torch.optim.Adam([w]).step()"
    lines = f"""import sys, torch
from gcsr.benchmarking.measurement import warm_up
warm_up(torch.device("cpu"))
before = set(sys.modules)
w = torch.zeros(1, requires_grad=True)
w.sum().backward()
{step}
print(sorted(set(sys.modules) - before))
"""
    made = [sys.executable, "-c", lines]
    assert subprocess.run(made, capture_output=True, check=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize("own", [False, True])
def test_after_a_failure_of_an_own_method_alone_the_graph_is_read_again(write, monkeypatch, own):
    read, load = [], measurement.load
    monkeypatch.setattr(measurement, "load", lambda *a, **k: read.append(a) or load(*a, **k))
    place = write("raise ValueError('no')")
    if not own:
        monkeypatch.setattr(Random, "run", lambda *_: {}["no"])
    methods = [place if own else "random"]
    found = gcsr.benchmark(data="one.npz", methods=methods, **BRIEF | {"nodes": [6, 3]})
    assert len(found.failures) == 1 and len(read) == (2 if own else 1)


@pytest.mark.parametrize("own", [False, True])
def test_a_worker_of_a_cluster_reads_a_graph_again_for_own_methods_alone(own):
    told: list[str] = []

    class Stored:
        def get(self) -> None:
            return None

        def forget(self) -> None:
            told.append("forget")

    class Failing:
        def outcomes(self, cells: list[Cell], *_: Any) -> Any:
            return failed(cells, "no")

    cell = Cell("mine:Mine" if own else "random", "one", 6)
    runner._unit(cast("Any", Stored()), cast("Any", Failing()), [cell], None, silent)
    assert told == ["forget"] * own


def test_a_forgotten_object_is_read_again():
    read: list[int] = []

    class Ref:
        def hex(self) -> str:
            return "one"

    class Counted(Shared):
        def read(self) -> int:
            read.append(1)
            return len(read)

    one = Counted(Ref())
    assert (one.get(), one.get()) == (1, 1)
    one.forget()
    assert one.get() == 2
    one.forget()


def test_finished_cells_are_lines_of_verbose_runs_alone(write, capsys):
    argv = ["benchmark", "--data", "one.npz", "--method", write("{}['abc']"), "--nodes", "6"]
    argv += ["--seeds", "1", "--runs", "1", "--epochs", "2", "--device", "cpu"]
    assert main([*argv, "-v"]) == 1
    shown = capsys.readouterr().err
    assert "1 of 3: whole graph on one.npz, all nodes, gcn: done\n" in shown
    assert "3 of 3: mine on one.npz, 6 nodes, gcn: KeyError: 'abc' (" in shown
    assert main([*argv, "--out", "other.jsonl"]) == 1
    assert capsys.readouterr().err == ""


def test_the_hash_is_of_every_file_that_the_method_imports(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {
        "own_package/__init__.py": "",
        "own_package/core.py": "import numpy\nfrom own_package.scale import S\nfrom . import near",
        "own_package/scale.py": "S = 1",
        "own_package/near.py": "def f():\n    import own_helper\n    from gcsr import load\n",
        "own_helper.py": "import own_package.near",
    }
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)

    def now(place: str = "own_package.core:Mine") -> str | None:
        forget_code()
        return code_hash(place)

    seen = {now()}
    for name, text in files.items():
        Path(name).write_text(f"{text}\n# changed\n")
        seen.add(now())
    assert len(seen) == 1 + len(files) and None not in seen
    Path("own_package/other.py").write_text("")
    Path("own_plot.py").write_text("import own_package.core")
    assert now() in seen
    Path("own_helper.py").write_text("not Python")
    assert now() not in seen
    assert "own_package" not in sys.modules and now("own_gone:Mine") is None
    assert now("../own_package:Mine") is None and now("gcsr.api:Mine") is None


def test_rows_of_the_present_code_are_shown_and_others_counted(write):
    place = write("pass")
    first = gcsr.benchmark(data="one.npz", methods=[place], **BRIEF).rows[-1]
    write("'another'")
    second = gcsr.benchmark(data="one.npz", methods=[place], **BRIEF).rows[-1]
    assert first["code"] != second["code"]
    write("pass")  # as at first, whose row is not the newest
    forget_code()
    found = Results.of(rows())
    assert [row["key"] for row in found.rows if row["label"] == "mine"] == [first["key"]]
    (note, _) = found.notes
    assert note.startswith("not shown: 1 row of mine: of other versions of the method")


def installed(folder: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of packages that are installed."""
    folder = folder / "site-packages"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(folder)
    forget_code()
    return folder


def test_rows_make_nobody_read_installed_packages(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own_near.py").write_text("import own_far, torch\n")
    Path("own_far.py").write_text("")
    forget_code()
    read: list[str] = []
    imported = own_code._imported
    monkeypatch.setattr(
        own_code, "_imported", lambda source, name: read.append(source) or imported(source, name)
    )
    tops = ("torch", "torch.nn.functional", "scipy", "test.support", "json", "gcsr.api", "own_near")
    made = [
        {
            "label": "one",
            "method": f"{top}:A{number}",
            "dataset": "a",
            "nodes": 6,
            "test": "gcn",
            "graphs": 1,
            "scores": [1.0],
            "code": "0",
        }
        for top in tops
        for number in range(100)
    ]
    began = time.perf_counter()
    assert len(Results.of(made).rows) == 1
    assert time.perf_counter() - began < 1
    assert len(read) == 2  # own_near and own_far, once


def test_an_installed_method_has_the_hash_of_its_own_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {
        "own_installed/__init__.py": "",
        "own_installed/core.py": "import own_other\nfrom . import near",
        "own_installed/near.py": "",
        "own_installed/far.py": "",
        "own_other.py": "",
    }
    folder = installed(tmp_path, files, monkeypatch)

    def now() -> str | None:
        forget_code()
        return code_hash("own_installed.core:Mine", installed=True)

    seen = {}
    first = now()
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n# changed\n")
        seen[name] = now()
        (folder / name).write_text(text)
    assert first is not None and first == now()
    assert [name for name, found in seen.items() if found != first] == list(files)[:3]
    assert code_hash("own_installed.core:Mine") is None
    monkeypatch.setattr(own_code, "MOST_FILES", 2)
    assert now() is None
