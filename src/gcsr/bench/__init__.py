"""Speed, measured against the published loops written plainly, in the same run."""

from gcsr.bench.cases import CASES
from gcsr.bench.checkpoint import CheckpointRow, bench_checkpoint
from gcsr.bench.growth import GrowthRow, bench_growth
from gcsr.bench.row import BenchRow
from gcsr.bench.run import BENCHES, run_bench

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
