"""Benches by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.speed.bilevel import BILEVEL_CASES, bench_bilevel
from benchmarks.speed.cases import CASES, case
from benchmarks.speed.evaluate import bench_evaluate
from benchmarks.speed.experts import bench_experts
from benchmarks.speed.gradient import bench_gradient
from benchmarks.speed.protocol import bench_protocol
from benchmarks.speed.row import BenchRow
from benchmarks.speed.step import bench_step
from gcsr.utils.errors import require, require_one_of
from gcsr.utils.progress import Progress, silent

BENCHES = ("step", "experts", "evaluate", "protocol", "gradient", "bilevel")
DTYPES = {"float32": torch.float32, "float64": torch.float64}
# The other cases take minutes and gigabytes once a whole graph is involved: on request only.
MODERATE = ("cora-70", "citeseer-60", "arxiv-454")
DEFAULT = {
    "step": tuple(CASES),
    "gradient": ("cora-70", "citeseer-60"),
    "bilevel": tuple(BILEVEL_CASES),
}
REPEATS = {"step": 10, "experts": 3, "evaluate": 3, "protocol": 5, "gradient": 3, "bilevel": 3}


def run_bench(
    bench: str,
    cases: Sequence[str] = (),
    *,
    device: torch.device,
    dtype: str = "float32",
    repeats: int | None = None,
    root: Path | None = None,
    fraction: float | None = None,
    progress: Progress = silent,
) -> list[BenchRow]:
    """One row per case; without cases, all of them for a step and moderate graphs otherwise."""
    require_one_of("bench", bench, BENCHES)
    require_one_of("dtype", dtype, DTYPES)
    require(
        dtype == "float32" or bench in ("step", "bilevel"),
        f"dtype: {dtype!r} is measured by step and bilevel alone; {bench} runs in float32.",
    )
    require(
        fraction is None or bench == "protocol",
        f"fraction: only the protocol is run in part, not {bench}.",
    )
    require(repeats is None or repeats >= 1, f"repeats: {repeats} is not accepted; >= 1 is.")
    work: Callable[..., BenchRow] = {
        "step": bench_step,
        "experts": bench_experts,
        "evaluate": bench_evaluate,
        "protocol": bench_protocol,
        "gradient": bench_gradient,
        "bilevel": bench_bilevel,
    }[bench]
    options: dict[str, Any] = {"repeats": repeats or REPEATS[bench]}
    options |= {"dtype": DTYPES[dtype]} if bench in ("step", "bilevel") else {"root": root}
    if bench == "protocol":
        options["fraction"] = fraction
    names = list(cases) or list(DEFAULT.get(bench, MODERATE))
    shapes = [() if bench == "bilevel" else (case(name),) for name in names]
    rows = []
    for done, (name, shape) in enumerate(zip(names, shapes, strict=True)):
        progress(f"bench {bench}", done, len(names))
        rows.append(work(name, *shape, device, **options))
    progress(f"bench {bench}", len(names), len(names))
    return rows
