"""Locks on files, and a system that has none."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from gcsr.utils.safe_io import lock_byte, lock_file, unlock_byte

# What Windows lacks is taken away after everybody else has imported it.
WITHOUT = """
import importlib, json, os, pkgutil, sys
import matplotlib.figure, sklearn.datasets, torch, torch_geometric.datasets
for name in ("fcntl", "resource"):
    sys.modules[name] = None
for name in ("preadv", "pread", "pwrite", "posix_fadvise", "posix_fallocate", "sysconf", "O_CLOEXEC"):
    delattr(os, name)
import gcsr
for found in pkgutil.walk_packages(gcsr.__path__, "gcsr."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
from pathlib import Path
from gcsr.benchmarking.store import Store
from gcsr.tuning.study import _locked
graph = gcsr.load("digits")
small = gcsr.condense(graph, nodes=20, method="random")
here = Path(sys.argv[1])
said = []
for work in (
    lambda: gcsr.condense(graph, nodes=20, method="random", checkpoint=here / "state"),
    lambda: Store(here / "rows.jsonl").claim("a").__enter__(),
    lambda: _locked(here / "study").__enter__(),
):
    try:
        work()
    except gcsr.InputError as error:
        said.append(str(error))
same = gcsr.load(graph.to_folder(here / "folder")).content_hash == graph.content_hash
print(json.dumps([small.num_nodes, same, said]))
"""


def test_a_system_without_posix_locks_condenses_and_refuses_the_rest_in_one_sentence(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    nodes, same, said = json.loads(done.stdout.splitlines()[-1])
    assert nodes == 20 and same
    assert [sentence.split(" (")[0] for sentence in said] == [
        f"checkpoint must be a folder that can be written, got {tmp_path / 'state'}",
        f"{tmp_path / 'rows.lock'}: cannot be locked",
        f"study: {tmp_path / 'study'} cannot be locked",
    ]
    assert all("no POSIX file locks" in sentence for sentence in said)
    assert "checkpoint=None" in said[0]


def test_a_file_is_locked_until_it_is_closed(tmp_path):
    first, second = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    lock_file(first, wait=False)
    with pytest.raises(BlockingIOError):
        lock_file(second, wait=False)
    os.close(first)
    lock_file(second, wait=False)
    os.close(second)


OTHER = """
import os, sys
from gcsr.utils.safe_io import lock_byte
handle = os.open(sys.argv[1], os.O_RDWR)
for place in (7, 8):
    try:
        lock_byte(handle, place, wait=False)
        print("mine")
    except BlockingIOError:
        print("taken")
"""


def test_bytes_of_one_file_are_locked_one_by_one(tmp_path):
    path = tmp_path / "locks"
    handle = os.open(path, os.O_RDWR | os.O_CREAT)

    def other() -> list[str]:
        command = [sys.executable, "-c", OTHER, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    lock_byte(handle, 7, wait=False)
    assert other() == ["taken", "mine"]
    unlock_byte(handle, 7)
    assert other() == ["mine", "mine"]
    os.close(handle)
