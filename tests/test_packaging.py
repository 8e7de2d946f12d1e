"""What a wheel and a source distribution contain."""

from __future__ import annotations

import email
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from setuptools.build_meta import {0}; print({0}(sys.argv[1]))"


@pytest.fixture(scope="module")
def files() -> list[str]:
    """What belongs to the project: ignored files do not."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout: nobody tells which files belong to the project")
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def source(files, tmp_path_factory) -> Path:
    """A copy to build in: setuptools writes beside the sources."""
    pytest.importorskip("setuptools", minversion="77")
    folder: Path = tmp_path_factory.mktemp("source")
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def built(source: Path, what: str) -> Path:
    done = subprocess.run(
        [sys.executable, "-c", BUILD.format(what), "dist"],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return source / "dist" / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(source) -> Path:
    return built(source, "build_wheel")


def test_wheel_has_the_package_and_nothing_else(wheel, files):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = f"{wheel.name.removesuffix('-py3-none-any.whl')}.dist-info"
    # No tests and no benchmarks, in the package or beside it.
    assert {name.split("/")[0] for name in names} == {"gcsr", about}
    wanted = {name.removeprefix("src/") for name in files if name.startswith("src/")}
    assert {name for name in names if name.startswith("gcsr/")} == wanted
    assert "gcsr/py.typed" in wanted
    assert any(name.startswith("gcsr/reporting/assets/") for name in wanted)


def test_description_of_the_wheel_can_be_read_anywhere(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        told = email.message_from_bytes(archive.read(name))
    text = told.get_payload()
    assert told["Description-Content-Type"] == "text/markdown"
    targets = re.findall(r"\]\(([^)]*)\)", text)
    assert targets
    assert all(target.startswith("https://") for target in targets)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    # The blocks of README.md are run by tests/docs.
    assert all(block in readme for block in re.findall(r"```python\n.*?```", text, re.DOTALL))


@pytest.mark.slow
def test_source_distribution_is_complete(source, files):
    with tarfile.open(built(source, "build_sdist")) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert set(files) - inside == set()


def test_lowest_versions_are_those_of_the_dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    floors = dict(wanted.replace("_", "-").split(">=") for wanted in project["dependencies"])
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    lowest = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert lowest.keys() == floors.keys()
    for name, floor in floors.items():
        assert lowest[name] in (floor, f"{floor}.0"), name
