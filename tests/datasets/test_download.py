"""Downloads against a local server: whole files or none, and never a long wait."""

from __future__ import annotations

import http.server
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcsr.cli.app import main
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


@pytest.mark.parametrize(
    "words",
    [
        ("condense", "cora", "--nodes", "70", "--out", "small.safetensors"),
        ("evaluate", "--full", "--data", "cora"),
        ("tune", "cora", "--nodes", "70"),
        ("robustness", "cora", "--nodes", "70"),
        ("convert", "cora", "folder"),
        ("benchmark", "--data", "cora", "--method", "random", "--nodes", "70"),
        ("reproduce", "table5", "--dataset", "cora", "--quick"),
    ],
)
def test_every_command_follows_one_rule(words, tmp_path, monkeypatch, capsys):
    """A dataset that is named is downloaded unless --no-download is given."""
    asked: list[str] = []

    def fail(urls: dict[str, str], folder: Path) -> None:
        asked.append(str(folder))
        raise download.DownloadError("no network")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GCSR_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("gcsr.datasets.loading.fetch_missing", fail)
    assert main([*words, "--no-download"]) == 2
    refused = capsys.readouterr().err
    assert "downloads are turned off" in refused and asked == []
    if words[0] not in ("benchmark", "reproduce"):  # their cells name no folder
        assert "ind.cora.x, ind.cora.tx" in refused and str(Path("data/Cora/raw")) in refused
        assert "name another data folder with --root FOLDER or GCSR_DATA." in refused
    assert main([*words]) == 2
    assert "could not be downloaded (no network)" in capsys.readouterr().err and len(asked) == 1
