"""Downloads that end within seconds on a closed network and never leave half a file."""

from __future__ import annotations

import shutil
import threading
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from gcsr.utils.safe_io import is_file, replacing

CONNECT_SECONDS = 10.0
STALL_SECONDS = 20.0


class DownloadError(Exception):
    """A file could not be fetched; the message says why."""


def fetch_missing(urls: Mapping[str, str], folder: Path) -> None:
    """Download every file of ``urls`` that ``folder`` does not hold yet."""
    for file, url in urls.items():
        if not is_file(folder / file):
            fetch(url, folder / file)


def fetch(url: str, path: Path) -> None:
    """Download ``url`` to ``path``, which appears whole or not at all."""
    try:
        with _open(url) as response:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as stream:
                # File hosts answer "quota exceeded" and the like with a page and status 200.
                if response.headers.get_content_type() == "text/html":
                    raise OSError("the server sent a web page instead of the file")
                shutil.copyfileobj(response, stream, 1 << 20)
                received, announced = stream.tell(), response.headers.get("Content-Length")
                if announced is not None and received != int(announced):
                    raise OSError(f"the connection ended after {received} of {announced} bytes")
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DownloadError(f"{url}: {reason}") from None


def _open(url: str) -> HTTPResponse:
    """The response, once its headers are there.

    Name resolution has no timeout of its own and several addresses are tried one after another,
    so the whole exchange happens in a thread that can be left behind.
    """
    outcome: list[HTTPResponse | BaseException] = []

    def connect() -> None:
        try:
            outcome.append(
                urllib.request.urlopen(url, timeout=STALL_SECONDS)  # noqa: S310 - own constants
            )
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(CONNECT_SECONDS)
    if not outcome:
        raise OSError(f"no answer within {CONNECT_SECONDS:g} seconds")
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
