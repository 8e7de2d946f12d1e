"""Whatever is wrong: exit code 2, one sentence that names it, no traceback, nothing written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cli_helpers import TINY, Run, folder_content, small_graph
from safetensors.numpy import save_file

from gcsr import Condenser
from gcsr.evaluation.trial import NetworkTester


@dataclass(frozen=True)
class Bench:
    folder: Path
    data: Path
    made: Path

    def condense(self, data: object = None, *more: object, size: Any = ("--nodes", 6)) -> list[Any]:
        out = ("--out", self.folder / "out.safetensors")
        return ["condense", data or self.data, *size, *TINY, *out, *more]

    def changed(self, **arrays: Any) -> Path:
        """The graph file with other arrays in it; ``None`` removes one."""
        with np.load(self.data) as archive:
            content = dict(archive) | arrays
        path = self.folder / "changed.npz"
        np.savez(path, **{key: value for key, value in content.items() if value is not None})
        return path

    def array(self, name: str) -> np.ndarray:
        with np.load(self.data) as archive:
            return archive[name]

    def file(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path

    def cut(self) -> Path:
        return self.file("cut.safetensors", self.made.read_bytes()[:-40])

    def foreign(self) -> Path:
        path = self.folder / "foreign.safetensors"
        save_file({"weight": np.ones(3, np.float32)}, path)
        return path

    def other(self) -> Path:
        return small_graph(seed=1).to_npz(self.folder / "other.npz")


@pytest.fixture
def bench(data: Path, made: Path, tmp_path: Path) -> Bench:
    return Bench(tmp_path, data, made)


def _nan(b: Bench) -> np.ndarray:
    x = np.zeros((60, 8), np.float32)
    x[3, 2] = np.nan
    return x


def _directed(b: Bench) -> dict[str, np.ndarray]:
    return {
        "adj_indptr": np.minimum(np.arange(61), 1),
        "adj_indices": np.array([1]),
        "adj_data": None,
    }


def _label(b: Bench, value: int) -> np.ndarray:
    y = b.array("y").copy()
    y[0] = value
    return y


Case = tuple[Callable[[Bench], list[Any]], list[str]]
CASES: dict[str, Case] = {
    # -- the data ------------------------------------------------------------------------------
    "wrong dataset name": (lambda b: b.condense("corra"), ["corra", "cora"]),
    "missing file": (lambda b: b.condense(b.folder / "none.npz"), ["none.npz", "no such file"]),
    "no archive": (lambda b: b.condense(b.file("text.npz", b"hello")), ["text.npz"]),
    "NaN features": (lambda b: b.condense(b.changed(x=_nan(b))), ["x must be finite", "NaN"]),
    "label below -1": (lambda b: b.condense(b.changed(y=_label(b, -7))), ["y must be", "-7"]),
    "string labels": (
        lambda b: b.condense(b.changed(y=b.array("y").astype(str))),
        ["y must be", "texts such as"],
    ),
    "one class": (
        lambda b: b.condense(b.changed(y=np.zeros(60, int))),
        ["y must have at least two classes"],
    ),
    "empty split": (
        lambda b: b.condense(b.changed(train=np.array([], int))),
        ["train must have at least one node"],
    ),
    "overlapping split": (
        lambda b: b.condense(b.changed(val=b.array("train"))),
        ["train and val must be disjoint"],
    ),
    "split beyond the nodes": (
        lambda b: b.condense(b.changed(test=np.array([99]))),
        ["test", "99"],
    ),
    "pickle inside": (
        lambda b: b.condense(b.changed(extra=np.array([{"a": 1}], object))),
        ["changed.npz", "pickled object", "(array.astype('float32') makes one"],
    ),
    "mismatched shapes": (
        lambda b: b.condense(b.changed(x=np.ones((59, 8), np.float32))),
        ["changed.npz", "59"],
    ),
    "missing array": (lambda b: b.condense(b.changed(train=None)), ["changed.npz", "lacks train"]),
    "directed": (
        lambda b: b.condense(b.changed(**_directed(b))),
        ["directed", "pass --undirected to add"],
    ),
    "unknown scaling": (
        lambda b: b.condense(None, "--features", "log"),
        ["error: --features must be", "'log'"],
    ),
    # -- the size ------------------------------------------------------------------------------
    "nodes that are no number": (
        lambda b: b.condense(size=("--nodes", "abc")),
        ["--nodes must be an integer, got 'abc'."],
    ),
    "a seed below 0": (lambda b: b.condense(None, "--seed=-1"), ["--seed must be >= 0, got '-1'."]),
    "nodes below classes": (
        lambda b: b.condense(size=("--nodes", 2)),
        ["error: --nodes must be >= 3", "got 2"],
    ),
    "nodes above what there is": (
        lambda b: b.condense(size=("--nodes", 61)),
        ["error: --nodes must be <= 60", "61"],
    ),
    "nodes zero": (lambda b: b.condense(size=("--nodes", 0)), ["nodes must be", "got 0"]),
    "nodes not a number": (lambda b: b.condense(size=("--nodes", "many")), ["--nodes"]),
    "ratio 0": (lambda b: b.condense(size=("--ratio", 0)), ["ratio must be", "got 0"]),
    "ratio above 1": (
        lambda b: b.condense(size=("--ratio", 1.5)),
        ["error: --ratio must be", "got 1.5"],
    ),
    "ratio not finite": (
        lambda b: b.condense(size=("--ratio", "nan")),
        ["ratio must be", "got nan"],
    ),
    "both sizes": (
        lambda b: b.condense(size=("--nodes", 6, "--ratio", 0.1)),
        ["exactly one of --nodes and --ratio must be given"],
    ),
    "no size": (
        lambda b: b.condense(size=()),
        ["exactly one of --nodes and --ratio must be given"],
    ),
    # -- settings ------------------------------------------------------------------------------
    "unknown setting": (lambda b: b.condense(None, "--set", "alhpa=1"), ["alhpa", "alpha", "tau"]),
    "setting without =": (lambda b: b.condense(None, "--set", "alpha"), ["'alpha'", "key=value"]),
    "setting twice": (
        lambda b: b.condense(None, "--set", "iterations=5"),
        ["'iterations'", "twice"],
    ),
    "size as a setting": (lambda b: b.condense(None, "--set", "nodes=5"), ["'nodes'", "--nodes"]),
    "setting not a number": (
        lambda b: b.condense(None, "--set", "tau=much"),
        ["tau must be a number, got 'much'"],
    ),
    "setting not whole": (
        lambda b: b.condense(None, "--set", "num_hops=1.5"),
        ["num_hops must be an integer, got '1.5'"],
    ),
    "unknown choice": (
        lambda b: b.condense(None, "--set", "prior=test"),
        ["prior must be one of", "got 'test'"],
    ),
    "negative alpha": (
        lambda b: b.condense(None, "--set", "alpha=-1"),
        ["error: alpha must be", "got -1"],
    ),
    "alpha + beta = 0": (
        lambda b: b.condense(None, "--set", "alpha=0", "--set", "beta=0"),
        ["alpha + beta must be > 0, got 0.0 + 0.0"],
    ),
    "experts too short": (
        lambda b: b.condense(None, "--set", "expert-steps=9"),
        ["expert_steps = 9", "expert_epochs = 4"],
    ),
    "unknown method": (
        lambda b: b.condense(None, "--method", "magic"),
        ["error: --method must be one of", "mtt", "got 'magic'"],
    ),
    "unknown preset": (
        lambda b: b.condense(None, "--preset", "best"),
        ["error: --preset must be one of", "got 'best'"],
    ),
    "preset without the dataset": (
        lambda b: b.condense(None, "--preset", "paper"),
        ["preset 'paper'", "'small'", "cora"],
    ),
    "negative seed": (lambda b: b.condense(None, "--seed", -1), ["--seed"]),
    "no graphs": (lambda b: b.condense(None, "--graphs", 0), ["--graphs"]),
    "unknown device": (lambda b: b.condense(None, "--device", "abacus"), ["got 'abacus'"]),
    "unknown option": (lambda b: b.condense(None, "--sieve", "0"), ["--sieve"]),
    # -- where it goes -------------------------------------------------------------------------
    "too small a ratio": (
        lambda b: b.condense(None, size=("--ratio", 0.01)),
        [
            "error: --ratio must be >= 0.0417, which is 3 of 60 nodes: one for each class",
            "got 0.01.",
        ],
    ),
    "too small a ratio of the automatic mode": (
        lambda b: ["condense", b.data, "--ratio", 0.01, "--out", b.folder / "out.safetensors"],
        ["error: --ratio must be >= 0.0417", "got 0.01."],
    ),
    "no output named": (
        lambda b: ["condense", b.data, "--nodes", 6],
        ["--out is needed: the file to write."],
    ),
    "no data named for an update": (
        lambda b: ["update", b.made, "--out", b.folder / "out.safetensors"],
        ["error: --data is needed: a dataset's name or a graph file."],
    ),
    "a real graph inspected": (
        lambda b: ["inspect", b.data],
        ["small.npz", "the command gcsr condense"],
    ),
    "missing folder": (
        lambda b: b.condense(None, "--out", b.folder / "no" / "out.safetensors"),
        ["--out: ", "does not exist"],
    ),
    "folder that is a file": (
        lambda b: b.condense(None, "--out", b.data / "out.safetensors"),
        ["--out: ", "small.npz", "not a folder"],
    ),
    "output that is a folder": (
        lambda b: b.condense(None, "--out", b.folder),
        ["--out must be a file", "is a folder"],
    ),
    "unwritable folder of a demo": (
        lambda b: ["demo", "--out", b.folder / "no" / "out.safetensors"],
        ["--out: ", "does not exist"],
    ),
    # -- condensed graphs ----------------------------------------------------------------------
    "no condensed file": (lambda b: ["inspect", b.folder / "none.safetensors"], ["none.safet"]),
    "inspect corrupt": (lambda b: ["inspect", b.cut()], ["cut.safetensors", "not a readable"]),
    "evaluate corrupt": (lambda b: ["evaluate", b.cut(), "--data", b.data], ["cut.safetensors"]),
    "inspect foreign": (
        lambda b: ["inspect", b.foreign()],
        ["foreign", "must be a condensed graph"],
    ),
    "evaluate foreign": (lambda b: ["evaluate", b.foreign(), "--data", b.data], ["foreign"]),
    "another graph": (
        lambda b: ["evaluate", b.made, "--data", b.other()],
        ["error: --data: ", "content hash", "other", "or --no-check-origin."],
    ),
    "another kind of graph": (lambda b: ["evaluate", b.made, "--data", "digits"], ["64", "8"]),
    "unknown model": (
        lambda b: ["evaluate", b.made, "--data", b.data, "--model", "gnn"],
        ["'gnn'"],
    ),
    "no data named": (
        lambda b: ["evaluate", b.made],
        ["small is not a registered dataset; give its file or folder with --data"],
    ),
    "no data named for the whole graph": (lambda b: ["evaluate", "--full"], ["--data is needed"]),
    "cost without data": (
        lambda b: ["cost", b.made],
        ["small is not a registered dataset", "--data"],
    ),
    "nothing to evaluate": (lambda b: ["evaluate", "--data", b.data], ["FILE", "--full"]),
    "two things to evaluate": (
        lambda b: ["evaluate", b.made, "--full", "--data", b.data],
        ["FILE"],
    ),
    "no runs": (lambda b: ["evaluate", b.made, "--data", b.data, "--runs", 0], ["--runs"]),
    "no epochs": (lambda b: ["evaluate", b.made, "--data", b.data, "--epochs", 0], ["--epochs"]),
    "all dropped": (
        lambda b: ["evaluate", b.made, "--data", b.data, "--dropout", 1],
        ["error: --dropout must be a number >= 0 and < 1, got 1.0"],
    ),
    # -- analysing -----------------------------------------------------------------------------
    "analyze no file": (
        lambda b: ["analyze", b.folder / "none.safetensors", "--data", b.data],
        ["none.safetensors", "no such file"],
    ),
    "analyze corrupt": (lambda b: ["analyze", b.cut(), "--data", b.data], ["cut.safetensors"]),
    "analyze nothing": (lambda b: ["analyze", "--data", b.data], ["FILE"]),
    "analyze without data": (lambda b: ["analyze", b.made], ["--data"]),
    "analyze another graph": (
        lambda b: ["analyze", b.made, "--data", b.other()],
        ["content hash", "or --no-check-origin."],
    ),
    "unknown space": (
        lambda b: ["analyze", b.made, "--data", b.data, "--space", "latent"],
        ["error: --space must be one of", "propagated", "got 'latent'"],
    ),
    "too many neighbors": (
        lambda b: ["analyze", b.made, "--data", b.data, "--nearest", 21],
        ["error: --nearest must be", "<= 20, got 21"],
    ),
    "threshold not finite": (
        lambda b: ["analyze", b.made, "--data", b.data, "--threshold", "nan"],
        ["error: --threshold must be a finite number >= 0, got nan"],
    ),
    "negative sample": (
        lambda b: ["analyze", b.made, "--data", b.data, "--tsne-nodes", -1],
        ["--tsne-nodes"],
    ),
    "figures into a file": (
        lambda b: ["analyze", b.made, "--data", b.data, "--figures", b.data],
        ["error: --figures: ", "not a folder"],
    ),
    "figures into no folder": (
        lambda b: ["analyze", b.made, "--data", b.data, "--figures", b.folder / "no" / "figures"],
        ["error: --figures: ", "does not exist"],
    ),
    # -- the verb ------------------------------------------------------------------------------
    "unknown verb": (lambda b: ["condence", b.data], ["condence"]),
}


def _assert_refused(gcsr: Run, bench: Bench, argv: list[Any], named: list[str]) -> None:
    before = folder_content(bench.folder)
    result = gcsr(*argv)
    assert result.code == 2, result
    assert result.out == ""
    assert result.err.startswith("error: ") and result.err.endswith("\n")
    assert len(result.err.splitlines()) == 1, result.err
    assert "Traceback" not in result.err
    for word in named:
        assert word in result.err, result.err
    assert folder_content(bench.folder) == before


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_sentence(gcsr: Run, bench: Bench, case: str) -> None:
    make, named = CASES[case]
    _assert_refused(gcsr, bench, make(bench), named)


@pytest.mark.parametrize("verb", ["cost", "evaluate", "privacy", "robustness", "benchmark"])
def test_a_graph_without_test_nodes_is_refused_before_anything_is_trained(
    gcsr: Run, bench: Bench, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NetworkTester, "train", None)
    monkeypatch.setattr(Condenser, "_condense", None)
    untested = bench.changed(test=np.arange(0))
    argv = [verb, bench.made, "--data", untested, "--no-check-origin"]
    if verb == "robustness":
        argv = [verb, untested, "--nodes", 6]
    elif verb == "benchmark":
        argv = [verb, "--data", untested, "--out", bench.folder / "rows.jsonl"]
        argv += ["--method", "random", "--nodes", 6]
    _assert_refused(gcsr, bench, argv, ["test must have at least one labeled node to test on"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("verb", ["condense", "evaluate"])
def test_no_cuda_when_asked_for(gcsr: Run, bench: Bench, verb: str) -> None:
    argv = (
        bench.condense() if verb == "condense" else ["evaluate", bench.made, "--data", bench.data]
    )
    _assert_refused(gcsr, bench, [*argv, "--device", "cuda"], ["got 'cuda'"])


def test_json_does_not_change_how_errors_are_told(gcsr: Run, bench: Bench) -> None:
    _assert_refused(gcsr, bench, bench.condense("corra", "--json"), ["corra"])


@pytest.mark.parametrize("given", [["--itreations", 5], ["--itreations=5"]])
def test_a_setting_given_as_an_option_is_shown_as_set(gcsr: Run, given: list[object]) -> None:
    result = gcsr("condense", "digits", "--nodes", 20, *given, "--out", "out.safetensors")
    assert (result.code, result.out) == (2, "")
    assert "--itreations is not an option of gcsr condense (did you mean --set iterations=5?)" in (
        result.err
    )
