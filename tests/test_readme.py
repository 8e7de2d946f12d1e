"""The README's code runs as printed; its commands run with fewer iterations."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
COMMANDS = [
    line.split("#")[0].removeprefix("$ ").strip()
    for language, text in BLOCKS
    if language == "console"
    for line in text.splitlines()
    if line.startswith("$ gcsr")
]
# Appended to a verb so that the README's commands take seconds; the last option given wins.
SHORTER = {
    "condense": "--set iterations=20 --set experts=2",
    "evaluate": "--runs 2 --epochs 20",
    "cost": "--runs 1 --epochs 20 --sparsify top-k=4",
    "reproduce": "--quick",
    "bench": "--repeats 2",
}


def environment(**extra: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", **extra}


def test_the_python_blocks_run_in_order_as_one_session(tmp_path: Path) -> None:
    assert len(PYTHON) >= 3
    # Placeholders are words in capitals with an underscore.
    assert not re.search(r"\b[A-Z]+_TABLE\b", README.read_text(encoding="utf-8"))
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(PYTHON)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "% on digits (gcn trained on 50 nodes" in done.stdout
    assert (tmp_path / "digits-50.safetensors").is_file()


def test_the_commands_run_in_order(tmp_path: Path, shared_data: Path) -> None:
    assert len(COMMANDS) >= 6
    for command in COMMANDS:
        words = shlex.split(command)
        words += shlex.split(SHORTER.get(words[1], ""))
        done = subprocess.run(
            [sys.executable, "-m", "gcsr.cli", *words[1:]],
            cwd=tmp_path,
            env=environment(GCSR_DATA=str(shared_data)),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)
        assert done.stdout.strip(), command


@pytest.mark.parametrize("target", ["run", "test", "test-all", "lint", "bench", "setup"])
def test_make_targets_exist(target: str) -> None:
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)
