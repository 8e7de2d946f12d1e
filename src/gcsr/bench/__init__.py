"""Speed, measured against the published loops written plainly, in the same run."""

from gcsr.bench.cases import CASES
from gcsr.bench.growth import GrowthRow, bench_growth
from gcsr.bench.row import BenchRow
from gcsr.bench.run import BENCHES, run_bench

__all__ = ["BENCHES", "CASES", "BenchRow", "GrowthRow", "bench_growth", "run_bench"]
