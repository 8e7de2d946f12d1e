"""``python -m gcsr.cli`` is the same as ``gcsr``."""

import sys

from gcsr.cli.app import main

sys.exit(main())
