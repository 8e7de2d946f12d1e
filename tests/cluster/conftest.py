"""Ray on this machine alone: loopback, a token of this session, nothing sent anywhere."""

from __future__ import annotations

import os
import secrets

# Read by Ray when it is imported, which no test does before this.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# Workers are polite by default and would starve beside other tests.
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
