"""Starts Ray on this machine or connects to a cluster, without its log output."""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from gcsr.utils.errors import InputError, require

LOCAL = "local"
_ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")
# Seconds that a head may take to accept a connection.
REACHED_WITHIN = 5.0
# No usage statistics, and no advice about GPUs.
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
# Keeps Ray on a single machine on the loopback address, where no other machine reaches it.
_ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
_TOKENS = {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}


class ClusterError(InputError):
    """A cluster cannot be used, or was lost; the message says how to go on."""


def check_cluster(address: object) -> Any:
    """Ray; refuses an address that cannot be used, before anything is read or computed."""
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    fine = address == LOCAL or (found is not None and 0 < int(found["port"]) < 2**16)
    require(fine, f"cluster must be local or the head's HOST:PORT, got {address!r}.")
    ray = _import_ray(alone=address == LOCAL)
    if address != LOCAL and not reachable(str(address)):
        # Ray itself would try for a long time.
        raise ClusterError(f"cluster: no answer from {address}; is the head running?")
    return ray


def _import_ray(*, alone: bool) -> Any:
    # Ray reads these while it is imported, and passes them on to the processes it starts.
    for name, value in (_QUIET | (_ALONE if alone else {})).items():
        os.environ.setdefault(name, value)
    if alone and not os.environ.keys() & _TOKENS:
        # Otherwise Ray would write one into the user's home.
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    try:
        import ray  # noqa: PLC0415 - an extra
    except ImportError:
        raise ClusterError(
            'cluster: Ray is not installed; `pip install "gcsr[cluster]"` brings it.'
        ) from None
    return ray


def start_ray(address: str) -> Any:
    """Ray, connected; raises :class:`ClusterError` where that fails."""
    ray, alone = check_cluster(address), address == LOCAL
    require(
        not ray.is_initialized(),
        "cluster: this process is connected to a Ray cluster already; call ray.shutdown() first.",
    )
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    options: dict[str, Any] = {
        "log_to_driver": False,
        "configure_logging": False,
        "logging_level": logging.CRITICAL,
    }
    if alone:
        # Not a cluster that RAY_ADDRESS names or that runs on this machine already.
        options["address"] = "local"
        # CPUs that this process may use, where the system tells.
        own = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
        options["num_cpus"] = len(own) or os.cpu_count() or 1
        options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    else:
        options["address"] = address
    try:
        with hushed():
            ray.init(**options)
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        why = lines[0].rstrip(".")
        raise ClusterError(
            f"cluster: Ray cannot be started on this machine ({why})."
            if alone
            else f"cluster: {address} cannot be used ({why}); this machine must be one of its nodes"
            " (`ray start --address=...`)."
        ) from None
    # Ray prints lost workers on stdout, which is for results; there is no option against it.
    vars(ray._private.worker)["_worker_logs_enabled"] = False
    return ray


def stop_ray(ray: Any) -> None:
    """Disconnect, and end what was started."""
    with hushed(), suppress(Exception):
        ray.shutdown()


@contextmanager
def hushed() -> Iterator[None]:
    """No output on file descriptor 2 in the block: parts of Ray bypass sys.stderr."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def reachable(address: str) -> bool:
    """Whether the address accepts connections."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), REACHED_WITHIN):
            return True
    except OSError:
        return False
