"""The command line, up to where the work begins."""

from __future__ import annotations

import contextlib
import functools
import io
import os
from pathlib import Path
from unittest import mock

import typer

from fuzz.containers import Lines
from fuzz.target import FindingError, Target
from fuzz.targets.small import file_bytes, small_condensed, small_graph, written
from gcsr import InputError
from gcsr.cli.app import main

_COMMANDS = """
condense cora --nodes 70 --set alpha=0.5 --sparsify auto --dtype float16 --seed 1 --out a.safetensors
condense graph.npz --ratio 0.1 --method mtt --preset paper --features rows --undirected --json
condense digits --nodes 20 --method auto --budget 30 --expert-memory 1GB --expert-disk 2GiB
evaluate a.safetensors --data graph.npz --model gcn --runs 2 --epochs 3 --no-check-origin
inspect a.safetensors --json
inspect a.safetensors
analyze a.safetensors --data graph.npz --json
cost a.safetensors --data cora
report a.safetensors --out page.html --no-evaluate
tune graph.npz --nodes 4 --set alpha=0.1..10:log --trials 3 --study s.sqlite --plot p.png
reproduce table2 --quick --dataset cora --jobs 2 --out reproduced
reproduce --list --json
bench step --case cora-70 --device cpu --repeats 1
datasets --json
methods --json
demo --json
--version
condense --help
"""


def _seeds() -> list[bytes]:
    return [b"\n".join(line.encode().split()) for line in _COMMANDS.strip().splitlines()]


# Built from the verbs' signatures, which takes longer than all the rest.
_command = functools.cache(typer.main.get_command)


def _stop(*_: object, **__: object) -> object:
    raise InputError("enough: the work would begin here.")


@functools.cache
def _files() -> dict[str, bytes]:
    return {"a.safetensors": file_bytes(small_condensed()), "graph.npz": file_bytes(small_graph())}


def _read(data: bytes, folder: Path) -> object:
    # One word per line, as the system would hand them over; no file outside the folder is named.
    words = [os.fsdecode(word.replace(b"\0", b"")) for word in data.split(b"\n")]
    if any("/" in word or ".." in Path(word).parts or word.startswith("~") for word in words):
        return None
    for name, content in _files().items():
        written(folder, name, content)
    before, said = Path.cwd(), io.StringIO()
    os.chdir(folder)
    try:
        with (
            mock.patch.object(typer.main, "get_command", _command),
            mock.patch("gcsr.datasets.loading.load", _stop),
            mock.patch("gcsr.paper.experiments.reproduce", _stop),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(said),
        ):
            code = main(words)
    finally:
        os.chdir(before)
    if code not in (0, 2):
        raise FindingError(f"exit code {code}: {said.getvalue()[-500:]}")
    if code == 2:
        sentence = said.getvalue().strip()
        if not sentence.startswith("error: "):
            raise FindingError(f"more than a sentence: {sentence[:500]!r}")
        raise InputError(sentence.removesuffix(".") + ".")  # typer's own have no full stop
    return None


TARGETS = (
    Target(
        "command-line",
        "arguments of `gcsr`",
        _seeds,
        _read,
        Lines(),
        (
            b"--set",
            b"--nodes",
            b"--out",
            b"--json",
            b"--device",
            b"cuda:9",
            b"-1",
            b"1e309",
            b"nan",
        ),
    ),
)
