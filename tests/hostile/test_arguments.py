"""Whatever is typed: exit code 0 or 2, and never a traceback."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from fuzz.target import survives
from fuzz.targets import TARGETS
from gcsr.cli.app import app

TARGET = TARGETS["command-line"]
VERBS = sorted(command.name or "" for command in app.registered_commands)
NUMBERS = ("0", "-1", "1", "3.7", "1e309", "nan", "9" * 30, "", "-inf", "0x10", "１")
WORDS = st.one_of(
    st.sampled_from(
        (
            "digits",
            "cora",
            "a.safetensors",
            "graph.npz",
            "x" * 300,
            "paper",
            "gcsr",
            "auto",
            *NUMBERS,
        )
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="/\0~"), max_size=12),
)


def options(verb: str) -> list[str]:
    """Every option of a verb, as its help lists them."""
    said = CliRunner().invoke(app, [verb, "--help"], terminal_width=200, color=False).output
    return sorted({word for word in said.replace("|", " ").split() if word.startswith("--")})


@pytest.mark.parametrize("verb", VERBS)
def test_any_value_of_any_option(verb):
    known = options(verb)
    assert "--help" in known

    @settings(max_examples=12, deadline=None, derandomize=True)
    @given(
        st.lists(WORDS, max_size=2),
        st.lists(st.tuples(st.sampled_from(known), WORDS), max_size=4),
    )
    def holds(places: list[str], given_options: list[tuple[str, str]]) -> None:
        words = [verb, *places]
        for name, value in given_options:
            words += [name] if value == "" else [name, value]
        survives(TARGET, "\n".join(words).encode())

    holds()
