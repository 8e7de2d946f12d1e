"""Ray where it is asked for: started on this machine, or an address joined, without its noise."""

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
# Nothing is sent home, and no advice about GPUs is printed.
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
# Ray's name for: a machine that is alone has the address of the loopback, where nobody else reaches it.
_ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
_TOKENS = {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}


class ClusterError(InputError):
    """A cluster cannot be had, or was lost; the message says how to go on."""


def check_cluster(address: object) -> None:
    """Refuse what cannot be used, before anything is read or computed."""
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    fine = address == LOCAL or (found is not None and 0 < int(found["port"]) < 2**16)
    require(fine, f"cluster: {address!r} is not accepted; local or the head's HOST:PORT is.")
    import_ray(alone=address == LOCAL)
    if address != LOCAL and not reachable(str(address)):
        # Ray itself would try for long.
        raise ClusterError(f"cluster: nobody answers at {address}; is the head running?")


def import_ray(*, alone: bool) -> Any:
    """Ray, or a sentence that says how to get it."""
    # Ray reads these while it is imported, and hands them on to the processes it starts.
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
    check_cluster(address)
    alone = address == LOCAL
    ray = import_ray(alone=alone)
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
        options |= {
            "num_cpus": _cpus(),
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
        }
    else:
        options |= {"address": address}
    try:
        with hushed():
            ray.init(**options)
    except Exception as error:
        raise ClusterError(
            f"cluster: {address} cannot be used ({_first_line(error)}); a machine that gives work to"
            " a cluster must be one of its nodes (`ray start --address=...`)."
            if not alone
            else f"cluster: Ray cannot be started on this machine ({_first_line(error)})."
        ) from None
    # Ray tells of lost workers on stdout, which is for results; there is no option against it.
    vars(ray._private.worker)["_worker_logs_enabled"] = False
    return ray


def stop_ray(ray: Any) -> None:
    """Disconnect, and end what was started."""
    with hushed(), suppress(Exception):
        ray.shutdown()


@contextmanager
def hushed() -> Iterator[None]:
    """No error stream meanwhile: parts of Ray write there whatever Python's own is."""
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


def reachable(address: str, within: float = REACHED_WITHIN) -> bool:
    """Whether somebody accepts connections there."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), within):
            return True
    except OSError:
        return False


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")


def _cpus() -> int:
    """Those that this process may use, where the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
