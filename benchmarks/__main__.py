"""``python -m benchmarks WHAT``: speed against the published loops, in one run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcsr.cli import options
from gcsr.cli.app import run as run_app
from gcsr.cli.output import print_json, print_table, progress_bars
from gcsr.utils.errors import require
from gcsr.utils.formatting import byte_count, parse_bytes
from gcsr.utils.progress import prefixed

if TYPE_CHECKING:
    import torch

    from benchmarks.speed.checkpoint import CheckpointRow
    from benchmarks.speed.growth import GrowthRow
    from benchmarks.speed.row import BenchRow
    from benchmarks.speed.scale import ScaleRow

GROWTH, CHECKPOINT, SCALE = "growth", "checkpoint", "scale"


def bench(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="step, experts, evaluate, protocol, gradient, bilevel, growth, checkpoint or scale.",
        ),
    ],
    case: Annotated[
        list[str] | None,
        typer.Option(
            help="cora-70, citeseer-60, arxiv-454, flickr-223, reddit-153 (bilevel: cora-70,"
            " citeseer-60, facebook-40, wordnet-440); repeatable."
        ),
    ] = None,
    device: options.Device = "auto",
    dtype: Annotated[str, typer.Option(help="float32, or float64 (step and bilevel).")] = "float32",
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Times each is measured; the median counts.")
    ] = None,
    fraction: Annotated[
        float | None,
        typer.Option(help="Share of the protocol to run; by default all on CUDA, 0.01 on a CPU."),
    ] = None,
    root: options.Root = None,
    nodes: Annotated[
        list[int] | None,
        typer.Option(help="Sizes of the graphs of scale; repeatable. [default: 1e5, 1e6, 1e7]"),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="What the blocks of scale may take. [default: 6GiB]"),
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="What scale condenses by: auto or gcsr. [default: auto]")
    ] = None,
    in_memory: Annotated[
        bool, typer.Option("--in-memory", help="Read the graphs of scale into memory first.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Measure the engines against the published loops, in one run and on one CPU thread each.

    `growth` measures how the engines' time grows with size instead, `checkpoint` what it costs to
    write down how far a run is, and `scale` every stage from a generated graph on disk to accuracies,
    with its memory; --root is where its files lie meanwhile.
    """
    from benchmarks.speed import cases, checkpoint, growth, run, scale  # noqa: PLC0415 - import torch
    from gcsr.utils.devices import pick_device  # noqa: PLC0415
    from gcsr.utils.errors import require_one_of  # noqa: PLC0415

    require_one_of("bench", what, (*run.BENCHES, GROWTH, CHECKPOINT, SCALE))
    target = pick_device(device)
    if what in (GROWTH, CHECKPOINT, SCALE):
        require(dtype == "float32", f"dtype: {dtype!r} is measured by the step alone.")
    sizeless = {"--case": case, "--repeats": repeats, "--fraction": fraction}
    if what in (GROWTH, SCALE):
        for option, value in (sizeless | ({"--root": root} if what == GROWTH else {})).items():
            require(value is None, f"{option}: {what} has sizes of its own and does not take it.")
    others = {"--nodes": nodes, "--memory": memory, "--method": method, "--in-memory": in_memory}
    for option, value in others.items():
        require(what == SCALE or not value, f"{option}: is for scale, not for {what}.")
    bound = scale.MEMORY if memory is None else parse_bytes("--memory", memory)
    rows: Sequence[Any]
    with progress_bars() as progress:
        if what == SCALE:
            rows = scale.bench_scale(
                nodes or scale.SIZES,
                method=method or "auto",
                device=target.type,
                in_memory=in_memory,
                memory=bound,
                folder=root,
                progress=progress,
            )
        elif what == GROWTH:
            rows = growth.bench_growth(target, progress=progress)
        elif what == CHECKPOINT:
            shapes = [(name, cases.case(name)) for name in case or checkpoint.DEFAULT]
            rows = [
                checkpoint.bench_checkpoint(
                    name,
                    shape,
                    target,
                    repeats=repeats or checkpoint.REPEATS,
                    fraction=1.0 if fraction is None else fraction,
                    root=root,
                    progress=prefixed(progress, name),
                )
                for name, shape in shapes
            ]
        else:
            rows = run.run_bench(
                what,
                case or (),
                device=target,
                dtype=dtype,
                repeats=repeats,
                root=root,
                fraction=fraction,
                progress=progress,
            )
    if as_json:
        print_json(_tied(rows, target))
        return
    shown = {SCALE: _tell_scale, GROWTH: _tell_growth, CHECKPOINT: _tell_checkpoints}
    shown.get(what, _tell)(rows)


def _tied(rows: Sequence[Any], device: torch.device) -> list[dict[str, Any]]:
    """Rows with what they were measured by: the command, the machine and the code."""
    from gcsr.methods.base import code_versions  # noqa: PLC0415 - imports torch
    from gcsr.utils.devices import machine_name  # noqa: PLC0415

    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    by = {"machine": machine_name(device), "versions": code_versions(), "command": command}
    return [{**row.to_dict(), **by} for row in rows]


def _tell_scale(rows: Sequence[ScaleRow]) -> None:
    numbers = ("nodes", "seconds", "processor seconds", "peak memory", "exponent")
    cells = [
        (
            row.what,
            "\n".join(f"{size:,}" for size in row.sizes),
            "\n".join(f"{seconds:.1f}" for seconds in row.seconds),
            "\n".join(f"{seconds:.1f}" for seconds in row.cpu_seconds),
            "\n".join(byte_count(peak) for peak in row.peak_bytes),
            "" if row.exponent is None else f"{row.exponent:.2f}",
        )
        for row in rows
    ]
    print_table(("stage", *numbers), cells, numbers)
    print(rows[0].fixed)


def _tell(rows: Sequence[BenchRow]) -> None:
    numbers = ("reference", "engine", "ratio", "loss error", "gradient error")
    cells = [
        (
            row.case,
            row.device,
            row.unit,
            _duration(row.reference_ms),
            _duration(row.engine_ms),
            f"{row.ratio:.1f}",
            f"{row.loss_error:.1e}",
            f"{row.gradient_error:.1e}",
        )
        for row in rows
    ]
    print_table(("case", "device", "unit", *numbers), cells, numbers)
    for row in rows:
        print(f"{row.case}: {row.note}")


def _tell_growth(rows: Sequence[GrowthRow]) -> None:
    numbers = ("exponent", "sizes", "times")
    cells = [
        (
            row.what,
            row.against,
            f"{row.exponent:.2f}",
            " ".join(f"{size:,}" for size in row.sizes),
            " ".join(_duration(ms) for ms in row.ms),
            row.fixed,
        )
        for row in rows
    ]
    print_table(("what", "against", *numbers, "fixed"), cells, numbers)


def _tell_checkpoints(rows: Sequence[CheckpointRow]) -> None:
    numbers = ("without", "with", "states", "writing", "share of time", "overhead", "state")
    cells = [
        (
            row.case,
            row.device,
            _duration(1e3 * row.seconds_without),
            _duration(1e3 * row.seconds_with),
            f"{row.writes:g}",
            _duration(1e3 * row.writing_seconds),
            f"{100 * row.writing_share:.2f} %",
            f"{100 * row.overhead:+.1f} %",
            byte_count(row.state_bytes),
            "yes" if row.same_bytes else "NO",
        )
        for row in rows
    ]
    print_table(("case", "device", *numbers, "same bytes"), cells, numbers)
    for row in rows:
        print(f"{row.case}: {row.note}")


def _duration(ms: float) -> str:
    """Milliseconds for people."""
    return f"{ms:.3g} ms" if ms < 1000 else f"{ms / 1000:.3g} s"


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(bench)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one measurement; returns the exit code."""
    return run_app(app, argv, "python -m benchmarks")


if __name__ == "__main__":
    sys.exit(main())
