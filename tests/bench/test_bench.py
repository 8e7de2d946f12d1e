"""Every bench on tiny cases: the same numbers on both sides, and rows that say what was run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.__main__ import main
from benchmarks.speed import cases, evaluate, experts, scale
from benchmarks.speed.bilevel import BILEVEL_CASES
from benchmarks.speed.cases import CASES, Case, step_inputs
from benchmarks.speed.growth import GROWTHS, Growth, bench_growth
from benchmarks.speed.planted import Planted
from benchmarks.speed.protocol import Work
from benchmarks.speed.reference import condensing_loss
from benchmarks.speed.row import BenchRow, relative_error
from benchmarks.speed.run import BENCHES, run_bench
from benchmarks.speed.standin import graph_of, standin
from benchmarks.speed.step import bench_step, engine_step

import gcsr
from gcsr import CondensedGraph, Graph, load
from gcsr.data.stored_graph import open_folder
from gcsr.utils.errors import InputError

CPU = torch.device("cpu")
# Fewer condensed nodes than features, and more of them: the two forms of a student.
WIDE = Case("cora", 9, 40, 3, 30, 20, 30, 120, 600, changed={"iterations": 4, "experts": 3})
TALL = Case("ogbn-arxiv", 24, 10, 4, 60, 30, 40, 160, 900, changed={"student_steps": 7})
INDUCTIVE = Case("flickr", 8, 12, 3, 60, 30, 40, 150, 800, inductive=True)
TINY = {"wide": WIDE, "tall": TALL, "inductive": INDUCTIVE}
KEYS = {
    "bench",
    "case",
    "device",
    "reference_ms",
    "engine_ms",
    "ratio",
    "loss_error",
    "gradient_error",
    "unit",
    "note",
    "machine",
    "versions",
    "command",
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, shape in TINY.items():
        monkeypatch.setitem(cases.CASES, name, shape)
    monkeypatch.setattr(experts, "EPOCHS", 6)
    monkeypatch.setattr(evaluate, "EPOCHS", {"cpu": 4})
    monkeypatch.setattr(evaluate, "RUNS", 3)


@pytest.mark.parametrize("shape", [WIDE, TALL], ids=["wide", "tall"])
def test_reference_step_equals_engine(shape: Case) -> None:
    inputs = step_inputs(shape, 2, CPU, torch.float64)
    s = shape.settings
    losses, (gradients,), adjacencies = engine_step(shape, inputs).loss_and_gradients(
        inputs.start, inputs.goal
    )
    for g in range(2):
        x = inputs.x[g].clone().requires_grad_()
        loss, adjacency = condensing_loss(
            x,
            inputs.targets[g].argmax(-1),
            inputs.prior[g],
            inputs.history[g],
            tuple(p[g] for p in inputs.start),
            tuple(p[g] for p in inputs.goal),
            alpha=s["alpha"],
            beta=s["beta"],
            steps=s["student_steps"],
            rate=s["student_lr"],
        )
        (gradient,) = torch.autograd.grad(loss, x)
        assert relative_error(losses[g], loss.detach()) < 1e-10
        assert relative_error(gradients[g], gradient) < 1e-10
        assert relative_error(adjacencies[g], adjacency.detach()) < 1e-10


def test_a_wrong_engine_would_show() -> None:
    """The errors of a row are not zero by construction."""
    inputs = step_inputs(TALL, 1, CPU, torch.float64)
    longer = replace(TALL, changed={"student_steps": 8})
    (loss, (gradient,), _), (right, (right_gradient,), _) = (
        engine_step(shape, inputs).loss_and_gradients(inputs.start, inputs.goal)
        for shape in (longer, TALL)
    )
    assert relative_error(loss, right) > 1e-6
    assert relative_error(gradient, right_gradient) > 1e-6


@pytest.mark.parametrize("name", ["wide", "tall"])
def test_step_row(name: str) -> None:
    row = bench_step(name, TINY[name], CPU, dtype=torch.float64, repeats=1)
    assert row.loss_error < 1e-10 and row.gradient_error < 1e-10
    assert math.isclose(row.ratio, row.reference_ms / row.engine_ms)


@pytest.mark.parametrize("name", TINY)
def test_experts_row(name: str) -> None:
    (row,) = run_bench("experts", [name], device=CPU, repeats=1)
    assert row.loss_error < 1e-4 and row.gradient_error < 1e-2
    assert "stand-in" in row.note and row.engine_ms > 0


@pytest.mark.parametrize("name", TINY)
def test_evaluate_row(name: str) -> None:
    (row,) = run_bench("evaluate", [name], device=CPU, repeats=1)
    assert row.loss_error < 0.05 and row.gradient_error < 0.05
    assert "3 runs x 4 epochs" in row.note


def test_gradient_row() -> None:
    (row,) = run_bench("gradient", ["wide"], device=CPU, repeats=1)
    assert row.loss_error < 1e-4 and row.gradient_error < 1e-3
    assert "20 outer steps x 15 training steps" in row.note and row.engine_ms > 0
    with pytest.raises(InputError, match="case: 'tall' is not measured by gradient"):
        run_bench("gradient", ["tall"], device=CPU, repeats=1)


def test_protocol_row() -> None:
    (row,) = run_bench("protocol", ["wide"], device=CPU, repeats=1, fraction=0.05)
    assert row.unit == "5 % of the protocol"
    assert "1 experts, 5 graphs x 1 iterations, 50 networks x 30 epochs" in row.note
    assert "extrapolated" in row.note and row.reference_ms > 0 and row.engine_ms > 0


def test_checkpoint_row(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["checkpoint", "--case=wide", "--repeats=1", "--fraction=0.5", "--json"]
    assert main(argv) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["bench"] == "checkpoint" and row["iterations"] == 2
    assert row["same_bytes"] is True
    assert 0 <= row["writing_share"] < 1 and row["seconds_with"] > 0 < row["seconds_without"]
    assert math.isclose(1 + row["overhead"], row["seconds_with"] / row["seconds_without"])
    assert main([*argv, "--dtype=float64"]) == 2
    assert main([word.replace("0.5", "2") for word in argv]) == 2


def test_work_of_a_fraction() -> None:
    whole = Work.of(CASES["cora-70"], 1.0)
    assert whole == Work(experts=100, expert_epochs=100, iterations=7000, epochs=600)
    assert Work.of(CASES["cora-70"], 1e-9) == Work(1, 100, 1, 1)
    for fraction in (0.0, 1.5, math.nan):
        with pytest.raises(InputError, match="fraction"):
            Work.of(CASES["cora-70"], fraction)


@pytest.mark.parametrize("shape", TINY.values(), ids=TINY)
def test_standin_has_the_counts_of_its_case(shape: Case) -> None:
    graph = standin(shape)
    assert (graph.num_nodes, graph.num_edges) == (shape.graph_nodes, shape.graph_edges)
    assert (graph.num_features, graph.num_classes) == (shape.features, shape.classes)
    sizes = tuple(split.numel() for split in (graph.train, graph.val, graph.test))
    assert sizes == (shape.train, shape.val, shape.test)
    assert graph.inductive == shape.inductive
    assert standin(shape).content_hash == graph.content_hash
    sources, targets = graph.adjacency.nonzero()
    within = (graph.y[sources] == graph.y[targets]).double().mean()
    assert within > 1.5 / shape.classes


def test_standin_refuses_what_it_cannot_draw() -> None:
    with pytest.raises(InputError, match="edges"):
        standin(replace(WIDE, graph_edges=120 * 119))


def test_real_graphs_are_preferred(shared_data: Path, tmp_path: Path) -> None:
    shape = CASES["cora-70"]
    graph, origin = graph_of(shape, shared_data)
    assert origin == "real cora" and graph.num_nodes == shape.graph_nodes
    assert graph.num_edges == shape.graph_edges and graph.train.numel() == shape.train
    assert graph_of(shape, tmp_path)[1] == "generated stand-in for cora"
    assert not list(tmp_path.iterdir())


def test_growth() -> None:
    def small(growth: Growth) -> Growth:
        shape: Callable[[int], Case] = growth.shape
        sizes = {"n'": (4, 8), "d": (8, 16), "N": (1, 2), "nodes": (4000, 8000)}
        return replace(growth, sizes=sizes.get(growth.against, (5000, 10000)), shape=shape)

    rows = bench_growth(CPU, [small(growth) for growth in GROWTHS])
    assert [row.what for row in rows] == ["step"] * 3 + ["experts"] * 2 + ["evaluate"] * 2
    for row in rows:
        (first, last), (a, b) = row.ms, row.sizes
        assert math.isclose(row.exponent, math.log(last / first) / math.log(b / a), rel_tol=1e-6)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(list(words))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("bench", ["step", "experts", "evaluate"])
def test_json(capsys: pytest.CaptureFixture[str], bench: str) -> None:
    words = ("--case", "wide", "--case", "tall", "--device", "cpu", "--repeats", "1", "--json")
    code, out, err = run(capsys, bench, *words)
    assert (code, err) == (0, "")
    rows = json.loads(out)
    assert [row["case"] for row in rows] == ["wide", "tall"]
    for row in rows:
        assert set(row) == KEYS and row["bench"] == bench and row["device"] == "cpu"
        assert math.isclose(row["ratio"], row["reference_ms"] / row["engine_ms"])


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "step", "--case", "wide", "--device", "cpu", "--repeats", "1")
    assert (code, err) == (0, "")
    for word in ("wide", "ratio", "loss error", "gradient error", "wide: 1 graph together"):
        assert word in out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["step", "--case", "karate-3"], "karate-3"),
        (["walk"], "walk"),
        (["step", "--dtype", "float16"], "float16"),
        (["experts", "--dtype", "float64"], "float64"),
        (["step", "--fraction", "0.5"], "fraction"),
        (["protocol", "--case", "wide", "--fraction", "2"], "fraction"),
        (["step", "--device", "tpu"], "tpu"),
        (["step", "--repeats", "0"], "repeats"),
        (["growth", "--case", "cora-70"], "--case"),
        (["scale", "--case", "cora-70"], "--case"),
        (["scale", "--nodes", "10"], "--nodes"),
        (["scale", "--memory", "lots"], "--memory"),
        (["step", "--nodes", "1000"], "--nodes"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], words: list[str], named: str) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("error:") and named in err and err.count("\n") == 1


def test_default_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole graphs of gigabytes are measured only when asked for."""
    seen: list[str] = []

    def fake(name: str, *rest: object, **options: object) -> BenchRow:
        seen.append(name)
        return BenchRow("b", name, "cpu", 1, 1, 0, 0, "u")

    for bench in BENCHES:
        monkeypatch.setattr(f"benchmarks.speed.run.bench_{bench}", fake)
    for bench in BENCHES[1:]:
        seen.clear()
        run_bench(bench, device=CPU)
        expected = ["cora-70", "citeseer-60", "arxiv-454"][: 2 if bench == "gradient" else 3]
        assert seen == (list(BILEVEL_CASES) if bench == "bilevel" else expected)
    seen.clear()
    run_bench("step", device=CPU)
    assert {"flickr-223", "reddit-153"} < set(seen)


@pytest.mark.parametrize("method", ["gcsr", "auto"])
def test_scale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, method: str) -> None:
    """Every stage is there with its time and memory, and the graph is one that can be learned."""
    brief = {
        "gcsr": {"iterations": 5, "experts": 2, "iterate": "last"},
        "auto": {"iterations": 5, "window": 4, "burn_in": 4},
    }[method]

    def condense(graph: Graph, **asked: Any) -> CondensedGraph:
        return gcsr.condense(graph, **{**asked, **brief, "nodes": 40})

    monkeypatch.setattr(scale, "condense", condense)
    monkeypatch.setattr(
        scale, "_in_a_process", lambda n, how, _: scale.measure(n, tmp_path / str(n), **how)
    )
    rows = scale.bench_scale([1200, 2400], memory=10**5, method=method)
    assert [row.what for row in rows] == [*scale.STAGES[method], "total"]
    for row in rows:
        assert row.sizes == [1200, 2400] and min(row.seconds) > 0 and min(row.peak_bytes) > 2**24
        assert row.exponent is not None
        # Half of the pairs that are drawn, in both directions, less those that repeat.
        assert all(9 * n < edges <= 10 * n for n, edges in zip(row.sizes, row.edges, strict=True))
    assert rows[-1].seconds[0] == pytest.approx(sum(row.seconds[0] for row in rows[:-1]))
    accuracy = float(rows[0].fixed.split("tested: ")[1].split(",")[0].split()[0])
    assert accuracy > 30, "chance is 5 %"


@pytest.mark.slow
def test_scale_in_processes_of_their_own() -> None:
    rows = scale.bench_scale([1200], memory=10**6, method="gcsr")
    assert rows[-1].sizes == [1200] and rows[-1].exponent is None


def test_planted_graphs_are_the_same_every_time(tmp_path: Path) -> None:
    first, second = (Planted(1500).write(tmp_path / name) for name in ("first", "second"))
    hashes = {open_folder(path, memory=10**6).content_hash for path in (first, second)}
    assert len(hashes) == 1
    graph = load(first)
    y, edges = graph.y.numpy(), graph.adjacency.tocoo()
    assert 0.75 < (y[edges.row] == y[edges.col]).mean() < 0.87
    assert torch.bincount(graph.y[graph.train]).tolist() == [20] * 20
