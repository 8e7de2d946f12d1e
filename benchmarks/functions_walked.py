"""The functions of the library that `gcsr.condense` calls, after one call in the same process.

Comprehensions and lambdas are not counted.

    python benchmarks/functions_walked.py                    # the automatic mode
    python benchmarks/functions_walked.py --method clusters
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections import defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

import gcsr

PACKAGE = Path(gcsr.__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", help="by default that of gcsr.condense")
    method = parser.parse_args().method
    graph = gcsr.load("digits")
    gcsr.condense(graph, nodes=70, method=method, device="cpu")
    walked: dict[str, set[str]] = defaultdict(set)

    def called(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        named = not frame.f_code.co_name.startswith("<")
        if event == "call" and named and path.is_relative_to(PACKAGE):
            walked[str(path.relative_to(PACKAGE))].add(frame.f_code.co_qualname)

    threading.setprofile(called)
    sys.setprofile(called)
    gcsr.condense(graph, nodes=70, method=method, device="cpu")
    sys.setprofile(None)
    for path in sorted(walked):
        print(f"{path} ({len(walked[path])}): {', '.join(sorted(walked[path]))}")
    print(f"{sum(map(len, walked.values()))} functions in {len(walked)} files")


if __name__ == "__main__":
    main()
