"""``gcsr bench``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from gcsr.cli import options
from gcsr.cli.bars import progress_bars
from gcsr.cli.output import console, print_json, table
from gcsr.errors import require

if TYPE_CHECKING:
    from gcsr.bench import BenchRow, GrowthRow

GROWTH = "growth"


def bench(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT", help="step, experts, evaluate, protocol, gradient or growth."
        ),
    ],
    case: Annotated[
        list[str] | None,
        typer.Option(help="cora-70, citeseer-60, arxiv-454, flickr-223, reddit-153; repeatable."),
    ] = None,
    device: options.Device = "auto",
    dtype: Annotated[str, typer.Option(help="float32, or float64 (step only).")] = "float32",
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Times each is measured; the median counts.")
    ] = None,
    fraction: Annotated[
        float | None,
        typer.Option(help="Share of the protocol to run; by default all on CUDA, 0.01 on a CPU."),
    ] = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """Measure the engines against the published loops, in one run and on one CPU thread each.

    `growth` measures how the engines' time grows with size instead.
    """
    from gcsr.bench import BENCHES, bench_growth, run_bench  # noqa: PLC0415 - imports torch
    from gcsr.devices import pick_device  # noqa: PLC0415
    from gcsr.errors import require_one_of  # noqa: PLC0415

    require_one_of("bench", what, (*BENCHES, GROWTH))
    target = pick_device(device)
    if what == GROWTH:
        given = {"--case": case, "--repeats": repeats, "--fraction": fraction, "--root": root}
        for option, value in given.items():
            require(value is None, f"{option}: growth has sizes of its own and does not take it.")
        require(dtype == "float32", f"dtype: {dtype!r} is measured by the step alone.")
        with progress_bars() as progress:
            growths = bench_growth(target, progress=progress)
        if as_json:
            print_json([growth.to_dict() for growth in growths])
        else:
            _tell_growth(growths)
        return
    with progress_bars() as progress:
        rows = run_bench(
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
        print_json([row.to_dict() for row in rows])
    else:
        _tell(rows)


def _tell(rows: Sequence[BenchRow]) -> None:
    numbers = ("reference", "engine", "ratio", "loss error", "gradient error")
    shown = table("case", "device", "unit", *numbers, numbers=numbers)
    for row in rows:
        shown.add_row(
            row.case,
            row.device,
            row.unit,
            _duration(row.reference_ms),
            _duration(row.engine_ms),
            f"{row.ratio:.1f}",
            f"{row.loss_error:.1e}",
            f"{row.gradient_error:.1e}",
        )
    console().print(shown)
    for row in rows:
        print(f"{row.case}: {row.note}")


def _tell_growth(rows: Sequence[GrowthRow]) -> None:
    numbers = ("exponent", "sizes", "times")
    shown = table("what", "against", *numbers, "fixed", numbers=numbers)
    for row in rows:
        shown.add_row(
            row.what,
            row.against,
            f"{row.exponent:.2f}",
            " ".join(f"{size:,}" for size in row.sizes),
            " ".join(_duration(ms) for ms in row.ms),
            row.fixed,
        )
    console().print(shown)


def _duration(ms: float) -> str:
    """Milliseconds for people."""
    return f"{ms:.3g} ms" if ms < 1000 else f"{ms / 1000:.3g} s"
