"""Where the command begins: Ctrl-C must end cleanly even while the library is being imported."""

from __future__ import annotations

import sys


def main() -> int:
    """Import the command line and run it."""
    try:
        from gcsr.cli import main as run  # noqa: PLC0415 - importing is what may be interrupted
    except KeyboardInterrupt:
        print("interrupted; nothing was written", file=sys.stderr)
        return 130
    return run()
