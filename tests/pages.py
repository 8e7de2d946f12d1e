"""Pages of documentation as programs: what a reader would type is run, what is shown is compared.

- ``python`` blocks of a page run in order in one namespace; a ``text`` block that follows one directly
  is what it prints.
- ``console`` blocks: lines after ``$`` are commands, the others what the command above prints. A
  command may fail only if the page shows its ``error:``. In ``bash`` blocks every line is a command.
- In shown output ``...`` stands for anything, on a line of its own for any lines. An accuracy
  (``96.0 ± 0.1 %``, or ``96.0 % on`` for one run) may be a few points off on another machine;
  deviations (``std 0.1``) and seconds are never compared.
- All blocks of a page share a fresh folder. A block with ``title="name"`` is also a file in it; a
  ``toml`` block with entry points is installed there, as pip would leave it.
- ``<!-- not run: reason -->`` before a block leaves it out; ``<!-- needs data: cora -->`` asks for the
  real datasets.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = ("python", "console", "bash")
PLAIN = ("text", "toml", "bibtex", "json", "csv")
FENCE = re.compile(
    r"(?:<!-- (?P<mark>not run|needs data): (?P<why>[^>]*?) -->\n)?"
    r"^```(?P<language>[^\s`]*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
# Parts of shown output that differ between machines.
SEVERAL, ONE = r"\d+\.\d ± \d+\.\d %", r"\d+\.\d %"  # scores
ACCURACY = rf"{SEVERAL}|{ONE}(?= on )"
VARYING = re.compile(rf"(\.\.\.|{ACCURACY}|std \d+\.\d|\b\d+\.\d s\b)")
# Progress of commands that take long on this machine.
RUN_LINE = re.compile(r": \d+ of \d+ runs, \d+ s$")
POINTS = 3.0
SHELL = re.compile(r"[|<>&;*$`]")


@dataclass(frozen=True)
class Block:
    """A fenced block: ``line`` is where its text begins, ``output`` what it is said to print."""

    page: Path
    line: int
    language: str
    text: str
    title: str | None
    not_run: str | None
    needs_data: bool
    output: str | None

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page in order."""
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    assert len(re.findall(r"^\s*```", text, re.MULTILINE)) == 2 * len(found), f"{page.name}: fences"
    made = []
    for match, after in zip_longest(found, found[1:]):
        shown = None
        if after is not None and after["language"] == "text" and match["language"] == "python":
            between = text[match.end() : after.start()]
            shown = after["text"] if not between.strip() else None
        made.append(
            Block(
                page,
                text.count("\n", 0, match.start("text")) + 1,
                match["language"],
                match["text"],
                match["title"],
                match["why"] if match["mark"] == "not run" else None,
                match["mark"] == "needs data",
                shown,
            )
        )
    return made


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Commands of a block and what each is said to print; ``\\`` continues a line."""
    text = block.text.replace("\\\n", " ")
    if block.language == "bash":
        yield from ((line, "") for line in text.splitlines() if line.strip() and line[0] != "#")
        return
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def run_page(page: Path, folder: Path, patch: pytest.MonkeyPatch, data: Path | None) -> str:
    """Run all blocks of a page in ``folder``; returns everything they printed."""
    patch.chdir(folder)
    patch.syspath_prepend(str(folder))
    patch.setenv("GCSR_DATA", str(data or folder / "no-data"))
    patch.setenv("OMP_NUM_THREADS", "1")
    module = types.ModuleType(f"page_{page.stem.replace('-', '_').lower()}")
    patch.setitem(sys.modules, module.__name__, module)
    printed = []
    for block in blocks(page):
        if block.not_run is not None or (block.needs_data and data is None):
            continue
        if block.title is not None:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        if block.language == "python":
            printed.append(_run_python(block, module))
            _compare(block.place, block.output, printed[-1])
        elif block.language in ("console", "bash"):
            for command, shown in commands(block):
                code, told = run_command(command, folder)
                assert (code != 0) == ("error:" in shown), (block.place, command, code, told)
                _compare(f"{block.place}: {command}", shown, told)
                printed.append(told)
        elif block.language == "toml" and "project" in tomllib.loads(block.text):
            _install(tomllib.loads(block.text), folder)
    return "\n".join(printed)


def _run_python(block: Block, module: types.ModuleType) -> str:
    # Line numbers in a traceback are those of the page.
    program = compile("\n" * (block.line - 1) + block.text, block.place, "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(program, module.__dict__)
    return out.getvalue()


def run_command(command: str, folder: Path) -> tuple[int, str]:
    """Exit code and output. Plain ``gcsr`` commands go through the installed entry in this process."""
    words = shlex.split(command, comments=True)
    if words[0] == "gcsr" and not SHELL.search(" ".join(words)):
        return _run_entry(words)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def _run_entry(words: list[str]) -> tuple[int, str]:
    (entry,) = entry_points(group="console_scripts", name=words[0])
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = entry.load()()
    return code, out.getvalue()


def _install(project: dict[str, object], folder: Path) -> None:
    groups = project["project"]["entry-points"]  # type: ignore[index]
    info = folder / "documented-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: documented\nVersion: 0.1\n")
    lines = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{name} = {where}" for name, where in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def _compare(place: str, shown: str | None, told: str) -> None:
    """Every shown line is told, in this order, with nothing between but where ``...`` says so."""
    wanted = [_plain(line) for line in (shown or "").splitlines() if line.strip()]
    if not wanted:
        return
    lines = [
        _plain(line) for line in told.splitlines() if line.strip() and not RUN_LINE.search(line)
    ]
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else _pattern(line) for line in wanted)
    found = re.fullmatch(pattern, "".join(f"{line}\n" for line in lines))
    assert found, f"{place} prints\n{told}\nand not\n{shown}"
    accuracies = re.findall(ACCURACY, "\n".join(wanted))
    for said, measured in zip(accuracies, found.groups(), strict=True):
        apart = float(said.split()[0]) - float(measured.split()[0])
        assert abs(apart) <= POINTS, f"{place} measures {measured} and not {said}"


def _pattern(line: str) -> str:
    def part(text: str) -> str:
        if text == "...":
            return ".*?"
        for scores in (SEVERAL, ONE):
            if re.fullmatch(scores, text):
                return f"({scores})"
        if text.startswith("std "):
            return r"std \d+\.\d"
        return r"\d+\.\d s" if VARYING.fullmatch(text) else re.escape(text)

    return "".join(map(part, VARYING.split(line))) + "\n"


def _plain(line: str) -> str:
    return " ".join(line.split())
