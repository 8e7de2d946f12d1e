"""Speed, measured against the published loops written plainly, in the same run."""

from benchmarks.speed.cases import CASES
from benchmarks.speed.checkpoint import CheckpointRow, bench_checkpoint
from benchmarks.speed.growth import GrowthRow, bench_growth
from benchmarks.speed.row import BenchRow
from benchmarks.speed.run import BENCHES, run_bench

__all__ = [
    "BENCHES",
    "CASES",
    "BenchRow",
    "CheckpointRow",
    "GrowthRow",
    "bench_checkpoint",
    "bench_growth",
    "run_bench",
]
