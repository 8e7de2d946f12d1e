"""Speed, measured against the published loops written plainly, in the same run."""

from gcsr.bench.cases import CASES
from gcsr.bench.row import BenchRow

__all__ = ["CASES", "BenchRow"]
