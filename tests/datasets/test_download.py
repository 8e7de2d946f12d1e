"""Downloads against a local server: whole files or none, and never a long wait."""

from __future__ import annotations

import http.server
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator

import pytest

from gcsr.datasets import download
from gcsr.datasets.download import DownloadError, fetch, fetch_missing

REAL_URLOPEN = urllib.request.urlopen
CONTENT = b"0123456789" * 1000


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        page = self.path == "/page"
        self.send_header("Content-Type", "text/html" if page else "application/octet-stream")
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[:100] if self.path == "/cut" else CONTENT)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(download.urllib.request, "urlopen", REAL_URLOPEN)
    monkeypatch.setenv("no_proxy", "*")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def test_file_arrives_whole(server, tmp_path):
    path = tmp_path / "new" / "folder" / "file.npz"
    fetch(f"{server}/file", path)
    assert path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("page", "reason"),
    [("cut", "100 of 10000|IncompleteRead"), ("page", "web page"), ("missing", "Not Found")],
)
def test_failure_leaves_nothing(server, tmp_path, page, reason):
    with pytest.raises(DownloadError, match=reason):
        fetch(f"{server}/{page}", tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_only_missing_files_are_fetched(server, tmp_path):
    (tmp_path / "a").write_bytes(b"mine")
    fetch_missing({"a": f"{server}/missing", "b": f"{server}/file"}, tmp_path)
    assert (tmp_path / "a").read_bytes() == b"mine"
    assert (tmp_path / "b").read_bytes() == CONTENT


def test_closed_port_is_an_error_and_makes_no_folder(server, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(DownloadError, match="refused"):
        fetch(f"http://127.0.0.1:{port}/file", tmp_path / "folder" / "file")
    assert list(tmp_path.iterdir()) == []


def test_silent_server_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "CONNECT_SECONDS", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        begin = time.monotonic()
        with pytest.raises(DownloadError, match="no answer"):
            fetch(f"http://127.0.0.1:{silent.getsockname()[1]}/file", tmp_path / "file")
        assert time.monotonic() - begin < 5
    assert list(tmp_path.iterdir()) == []


def test_unwritable_folder_is_a_download_error(server, tmp_path):
    (tmp_path / "file").write_text("in the way of a folder")
    with pytest.raises(DownloadError):
        fetch(f"{server}/file", tmp_path / "file" / "inside")
