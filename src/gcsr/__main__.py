"""``python -m gcsr`` and the command ``gcsr``: Ctrl-C ends cleanly even while modules are imported."""

from __future__ import annotations

import sys


def main() -> int:
    """Import the command line and run it."""
    try:
        from gcsr.cli.app import main as run  # noqa: PLC0415 - importing is what may be interrupted
    except KeyboardInterrupt:
        print("interrupted; nothing was written", file=sys.stderr)
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
