"""What people see: tables, files, figures, and the command line."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from paper_helpers import ABSENT, QUICK, TINY, Run

import gcsr as library
from gcsr.analysis.figures import figure_bytes
from gcsr.benchmarking import measurement
from gcsr.benchmarking.cells import Cell, Protocol, cell
from gcsr.benchmarking.measurement import Outcome
from gcsr.paper.experiments import Axis, Experiment, Line
from gcsr.paper.figures import draw, write_outputs
from gcsr.paper.tables import compare, csv_text, markdown, reasons, tally, verdict

PAPER = Protocol()
TAU, FAIR = TINY.cells[0], TINY.cells[1]


def done(mean: float, std: float | None = 0.5, *, leaks: bool = False) -> Outcome:
    row = {"mean": mean, "std": std, "leaks_test_labels": leaks, "graphs": 5, "runs": 10}
    return Outcome("done", row)


def outcomes() -> dict[Cell, Outcome]:
    found = {one: Outcome("absent", reason="no file.") for one in TINY.cells}
    found |= {one: Outcome("not run") for one in TINY.cells if one.dataset == "cora"}
    random, mlp = cell("random", "cora", 6), cell("random", "cora", 6, test="mlp")
    return found | {
        TAU: done(61.34, leaks=True),
        FAIR: done(59.0),
        random: done(40.0),
        mlp: done(50.0),
    }


def written(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_one_score_has_no_deviation():
    row = {"mean": 58.4, "std": 0.0, "scores": [58.4], "graphs": 1, "runs": 1}
    compared = compare(TINY, outcomes() | {FAIR: Outcome("done", row)})
    page = markdown(TINY, compared, Protocol(1, 1))
    assert "| 61.3 ± 0.5 † | +1.3 | 58.4 | -1.6 |" in page
    assert "(ours 58.4, published 60.0 ± 1.5)" in page
    assert written(csv_text(TINY, compared, PAPER))[0]["without_leak_std"] == ""
    # Two that agree have one, and it is zero.
    twice = Outcome("done", row | {"scores": [58.4, 58.4], "runs": 2})
    page = markdown(TINY, compare(TINY, outcomes() | {FAIR: twice}), Protocol(1, 2))
    assert "| 58.4 ± 0.0 | -1.6 |" in page


def test_markdown():
    page = markdown(TINY, compare(TINY, outcomes()), PAPER)
    assert page.startswith("# tiny: A tiny table\n") and "uick" not in page and "QUICK" not in page
    heads, *table = [line for line in page.splitlines() if line.startswith("| ")]
    assert heads == (
        "| dataset | nodes | what | published | ours | difference | without leak | its difference"
        " | graphs x runs |"
    )
    assert table == [
        "| cora | 6 | tau = 0.5 | 60.0 ± 1.5 | 61.3 ± 0.5 † | +1.3 | 59.0 ± 0.5 | -1.0 | 5 x 10 |",
        "| cora | 6 | tau = 0.9 | 60.0 ± 1.5 | not run |  | not run |  | - |",
        "| ogbn-arxiv | 6 | tau = 0.5 | 60.0 ± 1.5 | absent |  | absent |  | - |",
        "| cora | 6 | random | - | 40.0 ± 0.5 |  |  |  | 5 x 10 |",
        "| cora | 6 | random, average | 50.0 | 45.0 | -5.0 |  |  | 5 x 10 |",
    ]
    assert "A note." in page and "- ogbn-arxiv: absent: no file." in page


def test_how_many_lie_within_one_deviation():
    """Published 60 ± 1.5: 61.34 and 59 lie within, 58.4 does not; averages have no deviation."""
    compared = compare(TINY, outcomes())
    assert (tally(compared).within, tally(compared).counted) == (1, 1)
    sentence, outside = verdict(compared, PAPER)
    assert outside == []
    assert sentence == [
        "1 of 1 cells lie within the published mean ± one std with the paper's prior (†);"
        " 1 of 1 without the leak."
    ]
    tau = [c for c in TINY.cells if dict(c.settings).get("tau") == 0.9 and c.dataset == "cora"]
    found = outcomes() | {tau[0]: done(61.5, leaks=True), tau[1]: done(58.4)}  # the border counts
    page = markdown(TINY, compare(TINY, found), PAPER)
    assert "2 of 2 cells lie within" in page and "1 of 2 without the leak." in page
    assert (
        "Outside:\n\n- cora, 6 nodes, tau = 0.9: -1.6 (ours 58.4 ± 0.5, published 60.0 ± 1.5)"
    ) in page
    found |= {TAU: done(70.0, leaks=True)}
    assert "- cora, 6 nodes, tau = 0.5: +10.0 (ours 70.0 ± 0.5 †, published" in markdown(
        TINY, compare(TINY, found), PAPER
    )
    # Nothing is published with a deviation, so nothing is counted.
    one = cell("random", "cora", 6)
    table = Experiment("t", "T", (Line("cora", 6, "random", 61.3, cells=(one,)),))
    assert verdict(compare(table, {one: done(61.3)}), PAPER) == ([], [])


def test_what_is_not_supported_is_a_line_of_its_own():
    one = Line("cora", 70, "gcond with appnp", 73.5, 2.4, missing="no such learner")
    page = markdown(Experiment("t", "T", (one,)), compare(Experiment("t", "T", (one,)), {}), PAPER)
    assert "| cora | 70 | gcond with appnp | 73.5 ± 2.4 | not supported |  | - |" in page
    assert "- cora, gcond with appnp: not supported: no such learner" in page


def test_csv():
    first, second, third, *_ = written(csv_text(TINY, compare(TINY, outcomes()), PAPER))
    assert first["quick"] == "no" and first["experiment"] == "tiny" and first["what"] == "tau = 0.5"
    assert float(first["published"]) == 60 and float(first["ours_mean"]) == 61.34
    assert float(first["ours_difference"]) == pytest.approx(1.34)
    assert (first["ours_graphs"], first["ours_runs"], first["ours_leaks"]) == ("5", "10", "True")
    assert float(first["without_leak_difference"]) == -1 and first["without_leak_leaks"] == "False"
    assert (second["ours_state"], second["ours_mean"]) == ("not run", "")
    assert third["ours_state"] == "absent"


def test_nothing_leaks_no_columns_of_the_leak():
    one = cell("random", "cora", 6)
    table = Experiment("t", "T", (Line("cora", 6, "random", 61.34, cells=(one,)),))
    page = markdown(table, compare(table, {one: done(61.3)}), PAPER)
    assert "leak" not in page and "| +0.0 |" in page  # not -0.0


def test_numbers_that_are_there_stay_in_the_files():
    found = outcomes()
    lines = [one.line for one in compare(TINY, found, [ABSENT])]
    assert {line.dataset for line in lines} == {ABSENT}
    kept = [one.line.label for one in compare(TINY, found, [ABSENT], known_too=True)]
    assert kept == ["tau = 0.5", "tau = 0.5", "random", "random, average"]


def test_a_failed_cell_counts_before_an_absent_one():
    found = outcomes() | {cell("random", "cora", 6): Outcome("failed", reason="bad.")}
    compared = compare(TINY, found)
    assert [one.ours.state for one in compared][-2:] == ["failed", "failed"]
    assert "cora, random; random, average: failed: bad." in reasons(compared)


@pytest.mark.parametrize("axis", [None, Axis("tau")])
def test_figures_tell_ours_published_difference_and_size(axis):
    table = Experiment("tiny", "A tiny table", TINY.lines, axis=axis)
    compared = compare(table, outcomes())
    svg = figure_bytes(draw(table, compared, PAPER), "svg").decode()
    for text in ("published", "ours", "without leak", "+1.3", "-1.0", "†", "ogbn-arxiv (absent)"):
        assert text in svg, text
    assert "5 graphs x 10" in svg and "QUICK" not in svg


def test_the_same_figure_gives_the_same_files():
    compared = compare(TINY, outcomes())
    first, second = (draw(TINY, compared, QUICK) for _ in range(2))
    svg = figure_bytes(first, "svg")
    assert svg == figure_bytes(second, "svg") and b"QUICK SMOKE RUN" in svg
    assert figure_bytes(first, "png").startswith(b"\x89PNG")


def test_a_figure_shows_the_numbers():
    compared = compare(TINY, outcomes())
    left, _ = draw(TINY, compared, PAPER).axes
    heights = {round(float(y), 2) for line in left.get_lines() for y in line.get_ydata()}
    assert {60.0, 61.34, 59.0} <= heights
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["0.5", "0.9", "1", "2"]


def test_files_of_a_table_without_a_figure(tmp_path):
    table = Experiment("t", "T", TINY.lines, drawn=False)
    files = write_outputs(tmp_path, table, compare(table, outcomes()), QUICK)
    assert [path.name for path in files] == ["t-quick.md", "t-quick.csv"]


# -- the command line --------------------------------------------------------------------------------


def test_list(gcsr: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = gcsr("reproduce", "--list")
    assert text.code == 0 and "table2" in text.out and "init-curves" in text.out
    listed = {one["name"]: one for one in gcsr("reproduce", "--list", "--json").json}
    assert listed["tau"]["datasets"] == ["citeseer"] and listed["tau"]["cells"] == 10
    assert list(tmp_path.iterdir()) == []


def test_end_to_end(gcsr: Run, tiny: None, loads: list[str], tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    first = gcsr("reproduce", "tiny", "--quick", "--no-download", "--out", out)
    assert (first.code, first.err) == (0, "")
    assert "QUICK SMOKE RUN of tiny" in first.out and "no results" in first.out
    assert "absent: ogbn-arxiv: its files are not in the data folder, and downloads" in first.out
    assert sorted(path.name for path in out.iterdir()) == [
        "rows-quick.jsonl",
        "rows-quick.lock",
        "tiny-quick.csv",
        "tiny-quick.md",
        "tiny-quick.png",
        "tiny-quick.svg",
    ]
    assert "QUICK" in (out / "tiny-quick.md").read_text()
    assert "QUICK" in (out / "tiny-quick.svg").read_text()
    rows = written((out / "tiny-quick.csv").read_text())
    assert {row["quick"] for row in rows} == {"yes"}
    before = {path: path.read_bytes() for path in out.iterdir()}
    again = gcsr("reproduce", "tiny", "--quick", "--no-download", "--out", out)
    assert again.out == first.out
    assert {path: path.read_bytes() for path in out.iterdir()} == before

    told = gcsr("reproduce", "tiny", "--quick", "--dataset", "cora", "--out", out, "--json").json
    assert told["quick"] is True and (told["graphs"], told["runs"]) == (1, 1)
    assert [line["dataset"] for line in told["lines"]] == ["cora"] * 4
    ours = told["lines"][0]["ours"]
    assert ours["leaks"] is True and told["lines"][0]["without_leak"]["leaks"] is False
    assert ours["difference"] == pytest.approx(ours["mean"] - 60)
    # What was shortened is not judged, here or in a file.
    assert told["within_one_std"] is None
    for said in (first.out, (out / "tiny-quick.md").read_text()):
        assert "not held against the published ones" in said
        assert "cells lie within" not in said and "utside" not in said


def test_a_run_that_was_not_shortened_is_judged(
    gcsr: Run, tiny: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = outcomes() | {TAU: done(70.0, leaks=True)}
    monkeypatch.setattr("gcsr.paper.experiments.reproduce", lambda *_, **__: found)
    argv = ["reproduce", "tiny", "--dataset", "cora", "--out", tmp_path]
    first = gcsr(*argv)
    assert "not held against" not in first.out
    counts = gcsr(*argv, "--json").json["within_one_std"]
    assert (counts["ours"]["within"], counts["ours"]["counted"]) == (0, 1)
    assert (counts["without_leak"]["within"], counts["without_leak"]["counted"]) == (1, 1)
    assert "0 of 1 cells lie within the published mean ± one std" in first.out
    assert f"  outside: {counts['ours']['outside'][0]}" in first.out


def test_table1(gcsr: Run, loads: list[str], tmp_path: Path) -> None:
    told = gcsr("reproduce", "table1", "--quick", "--out", tmp_path)
    assert told.code == 0
    nodes = next(line for line in told.out.splitlines() if "cora" in line and "nodes" in line)
    assert nodes.split() == ["cora", "-", "nodes", "2,708", "90", "-2,618", "-"]
    assert "absent" in told.out
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"rows-quick.jsonl", "rows-quick.lock", "table1-quick.md", "table1-quick.csv"}


def test_other_sizes(gcsr: Run, tiny: None, loads: list[str], tmp_path: Path) -> None:
    argv = ["reproduce", "tiny", "--quick", "--dataset", "cora", "--out", tmp_path, "--json"]
    told = gcsr(*argv, "--graphs", 2, "--runs", 3).json
    ours = told["lines"][0]["ours"]
    assert (ours["graphs"], ours["runs"]) == (2, 3)


def test_kept_graphs_of_a_smoke_run_say_so(
    gcsr: Run, tiny: None, loads: list[str], tmp_path: Path
) -> None:
    gcsr("reproduce", "tiny", "--quick", "--dataset", "cora", "--out", tmp_path, "--keep-graphs")
    assert len(list((tmp_path / "graphs-quick").glob("*.safetensors"))) == 5


def test_ctrl_c(
    gcsr: Run, tiny: None, loads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def evaluate(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return library.evaluate(*args, **options)

    monkeypatch.setattr(measurement, "evaluate", evaluate)
    result = gcsr("reproduce", "tiny", "--quick", "--out", tmp_path)
    rows = tmp_path / "rows-quick.jsonl"
    assert (result.code, result.out) == (130, "")
    assert result.err == f"interrupted; written before that: {rows}\n"
    assert len(rows.read_text().splitlines()) == 2


def test_a_failed_cell_is_told_by_the_exit_code(
    gcsr: Run, loads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gcsr.paper.experiments import EXPERIMENTS

    table = Experiment("t", "T", (Line("cora", 91, "large", cells=(cell("random", "cora", 91),)),))
    monkeypatch.setitem(EXPERIMENTS, "t", table)
    result = gcsr("reproduce", "t", "--quick", "--out", tmp_path)
    assert result.code == 1 and "cora, large: failed: nodes must be <= 90" in result.out


BAD: dict[str, tuple[list[str], list[str]]] = {
    "no name": ([], ["NAME", "table1", "--list"]),
    "unknown name": (["table9"], ["got 'table9'", "table2"]),
    "a name and the list": (["table1", "--list"], ["NAME", "'table1'", "--list"]),
    "unknown dataset": (
        ["tau", "--dataset", "corra"],
        ["dataset must be one of citeseer", "'corra'"],
    ),
    "dataset of another table": (
        ["tau", "--dataset", "cora"],
        ["dataset must be one of citeseer", "'cora'"],
    ),
    "no graphs": (["tau", "--graphs", "0"], ["--graphs"]),
    "no runs": (["tau", "--runs", "0"], ["--runs"]),
    "no jobs": (["tau", "--jobs", "0"], ["--jobs"]),
    "unknown device": (["tau", "--device", "abacus"], ["got 'abacus'"]),
    "out is a file": (["table1", "--out", "file"], ["out: file"]),
    "rows of something else": (["table1", "--out", "other"], ["rows.jsonl", "line 1"]),
    "out that cannot be made": (["table1", "--out", "file/below"], ["out: file/below"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(
    gcsr: Run, loads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "rows.jsonl").write_text("mine\n")
    before = sorted(tmp_path.rglob("*"))
    argv, named = BAD[case]
    result = gcsr("reproduce", *argv)
    assert (result.code, result.out, loads) == (2, "", [])
    assert result.err.startswith("error: ") and len(result.err.splitlines()) == 1
    for word in named:
        assert word in result.err, result.err
    assert sorted(tmp_path.rglob("*")) == before


def test_without_data_no_folder_is_left_behind(gcsr: Run, tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    words = ("reproduce", "table5", "--quick", "--no-download", "--dataset", "cora")
    done = gcsr(*words, "--root", tmp_path, "--out", out)
    assert done.code == 2
    assert done.err == (
        "error: cora: its files are not in the data folder, and downloads are turned off.\n"
    )
    wrong = gcsr(*words[:2], "--method", "gnc", "--out", out)
    assert wrong.code == 2 and wrong.err.startswith("error: --method must be one of gcsr, mtt, got")
    assert list(tmp_path.iterdir()) == []
