"""Progress bars of Python calls, the logger, --quiet, --verbose and shell completion."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

import gcsr
from gcsr.cli.app import main
from gcsr.utils import progress as module
from helpers import planted_graph


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def graph():
    return planted_graph()


def condensed(graph, **options):
    return gcsr.condense(graph, nodes=9, method="gcond", epochs=2, **options)


@pytest.mark.parametrize(
    ("stream", "option", "shows"),
    [
        (Terminal, {}, True),
        (Terminal, {"progress": False}, False),
        (io.StringIO, {}, False),
        (io.StringIO, {"progress": True}, True),
    ],
)
def test_a_bar_on_a_terminal_and_none_in_a_pipe(monkeypatch, graph, stream, option, shows):
    screen = stream()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    condensed(graph, **option)
    assert bool(screen.getvalue()) is shows


def test_a_notebook_has_one_line_of_text(monkeypatch, graph):
    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    small = condensed(graph)
    gcsr.evaluate(small, graph, runs=1, recipe=gcsr.TrainingRecipe(epochs=2))
    text = screen.getvalue()
    assert text.startswith("\r") and text.count("\n") == 2 and text.endswith("\n")
    assert "[####################]" in text and "\x1b" not in text


def test_a_function_is_called_and_its_result_is_the_same(graph):
    seen = []
    ours = condensed(graph, progress=lambda *report: seen.append(report))
    assert seen and all(len(report) == 3 for report in seen)
    assert condensed(graph, progress=False).x.equal(ours.x)
    fitted = gcsr.Random(nodes=9).fit(graph, progress=False).condensed_
    assert fitted.num_nodes == 9
    with pytest.raises(gcsr.InputError, match="progress must be True, False, None or a function"):
        condensed(graph, progress="yes")


def test_calls_inside_a_call_show_nothing_of_their_own(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with module.shown(False), module.shown(None) as inner:
        assert inner is module.silent
    with module.shown(None) as outer, module.shown(None) as inner:
        assert isinstance(outer, module.Stages) and inner is module.silent


def test_stages_are_logged(graph, caplog):
    with caplog.at_level(logging.INFO, logger="gcsr"):
        condensed(graph)
    assert {record.name.split(".")[0] for record in caplog.records} == {"gcsr"}
    assert any("gcond: 9 nodes, seeds [0]" in text for text in caplog.messages)
    assert any(text.endswith(" s") and " of 2, " in text for text in caplog.messages)


def test_quiet_and_verbose(tmp_path, capsys, monkeypatch, graph):
    data, out = graph.to_npz(tmp_path / "graph.npz"), tmp_path / "out.safetensors"
    # All training nodes, so that the file is not smaller and a warning is due.
    words = ["condense", str(data), "--inductive", "--nodes", str(graph.train.numel())]
    words += ["--method=mtt", "--set=iterations=0", "--out", str(out)]
    assert main(words) == 0
    usual = capsys.readouterr()
    assert "warning: the condensed graph takes" in usual.err
    assert main([*words, "--quiet"]) == 0
    quiet = capsys.readouterr()
    assert quiet.err == "" and "wrote" in quiet.out
    assert "note: the condensed graph takes" in quiet.out
    assert main([*words, "-v"]) == 0
    assert "gcsr.methods.base: mtt:" in capsys.readouterr().err
    assert not logging.getLogger("gcsr").handlers
    assert main([*words, "--quiet", "--verbose"]) == 2
    assert "--quiet cannot be used with --verbose." in capsys.readouterr().err
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main([*words, "--quiet"]) == 0
    assert sys.stderr.getvalue() == ""


def test_completion_names_commands_without_torch(tmp_path):
    code = (
        "import sys\n"
        "from gcsr.cli.app import main\n"
        "try:\n    main([])\n"
        "finally:\n    print('torch' in sys.modules, file=sys.stderr)\n"
    )
    asked = {"_GCSR_COMPLETE": "complete_bash", "COMP_WORDS": "gcsr con", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **asked, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert set(done.stdout.split()) == {"condense", "convert"}
    assert done.stderr.split()[-1] == "False"


def test_completion_can_be_installed(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "--install-completion" in shown and "--show-completion" in shown


def test_a_program_without_a_console_shows_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    for option in (None, True):
        assert (
            gcsr.condense(planted_graph(), nodes=6, method="random", progress=option).num_nodes == 6
        )
