"""What can be searched, and how it is written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcsr import InputError, Random
from gcsr.methods import Bounds, Rate, registry
from gcsr.methods.registry import methods
from gcsr.tuning.space import (
    NAMED,
    Choices,
    Range,
    Space,
    around_defaults,
    dimension,
    named_space,
    space_for,
)

numbers = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=1e-300, max_value=1e300)


@given(st.lists(numbers, min_size=1, unique=True))
def test_choices_of_numbers_are_read_as_they_are_written(values):
    written = Choices(tuple(values))
    assert dimension("alpha", str(written), float) == written


@given(st.lists(st.none() | st.integers(), min_size=1, unique=True))
def test_choices_with_none_are_read_as_they_are_written(values):
    written = Choices(tuple(values))
    assert dimension("gntk_nodes", str(written), int | None) == written


@given(st.tuples(positive, positive).filter(lambda ends: ends[0] < ends[1]), st.booleans())
def test_ranges_are_read_as_they_are_written(ends, log):
    written = Range(*ends, log=log)
    assert dimension("alpha", str(written), float) == written


@given(st.tuples(st.integers(), st.integers()).filter(lambda ends: ends[0] < ends[1]))
def test_whole_ranges_stay_whole(ends):
    found = dimension("num_hops", f"{ends[0]}..{ends[1]}", int)
    assert found == Range(*ends, whole=True)
    assert found.count == ends[1] - ends[0] + 1


@given(numbers, numbers)
def test_a_range_upside_down_is_refused(low, high):
    low, high = max(low, high), min(low, high)
    with pytest.raises(InputError, match="a range whose first end is below the second"):
        dimension("alpha", f"{low!r}..{high!r}", float)


@given(st.text(max_size=12))
def test_any_text_is_a_dimension_or_a_sentence(text):
    try:
        found = dimension("alpha", text, float)
    except InputError as error:
        assert str(error).startswith("alpha")
    else:
        assert all(isinstance(end, float) and math.isfinite(end) for end in found.ends)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("alpha=0..1:log", "alpha must begin above 0 for :log, got '0..1:log'"),
        ("alpha=1..2:lin", "alpha must be a value, a,b,c, .*, got '1..2:lin'"),
        ("alpha=1..two", "alpha.*'two'"),
        ("alpha=1..inf", "a range whose first end is below the second"),
        ("alpha=1,nan", "alpha must be finite, got 'nan'"),
        ("alpha=1,,2", "alpha.*''"),
        ("alpha=1,1.0", "alpha: 1 is given twice"),
        ("num_hops=1..2.5", "num_hops.*'2.5'"),
        ("model=sgc..gcn", "model must be a,b,c, .*, got 'sgc..gcn'"),
        ("alfa=1,2", r"alfa is not a setting of gcsr \(did you mean alpha\?\); accepted: "),
        ("nodes=10,20", "nodes cannot be searched"),
    ],
)
def test_what_cannot_be_searched_is_one_sentence(text, sentence):
    name, _, value = text.partition("=")
    with pytest.raises(InputError, match=f"^{sentence}|{sentence}"):
        Space.of("gcsr", {name: value})


def test_letters_of_the_paper_name_dimensions_too():
    space = Space.of("gcsr", {"N": "5,20", "expert-steps": [1, 2], "tau": 0.9})
    assert list(space.dimensions) == ["student_steps", "expert_steps", "tau"]
    assert space.fixed == {"tau": 0.9} and space.count == 4
    with pytest.raises(InputError, match="student_steps must be given once"):
        Space.of("gcsr", {"N": "5,20", "student_steps": 3})


def test_a_file_says_the_same_as_the_command_line(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text('alpha = "0.1..10:log"\nstudent_steps = [5, 20]\nmodel = "gcn"\nbeta = 1\n')
    said = {"alpha": "0.1..10:log", "student_steps": "5,20", "model": "gcn", "beta": "1"}
    assert named_space("gcsr", str(path)) == Space.of("gcsr", said)
    path.write_text("alpha = [")
    with pytest.raises(InputError, match=r"space: .* is not TOML"):
        named_space("gcsr", str(path))
    path.write_text("alpha = {low = 1}")
    with pytest.raises(InputError, match=r"alpha must be a value, .*, got"):
        named_space("gcsr", str(path))
    with pytest.raises(InputError, match=r"gone.toml cannot be read"):
        named_space("gcsr", str(tmp_path / "gone.toml"))
    with pytest.raises(InputError, match="space must be paper, wide or a TOML file, got 'papier'"):
        named_space("gcsr", "papier")


def test_the_papers_grid_is_the_papers():
    """The section on hyper-parameters of the paper, number by number."""
    assert named_space("gcsr", "paper").dimensions == {
        "student_steps": Choices((5, 20, 50, 100)),
        "expert_steps": Choices((1, 2)),
        "feature_lr": Choices((1e-5, 1e-4, 1e-3, 1e-2)),
        "student_lr": Choices((0.01,)),
        "alpha": Range(0.1, 1000, log=True),
        "beta": Range(0.1, 1000, log=True),
        "tau": Range(0.9, 1.0),
        "gamma": Choices((0.5,)),
    }


@pytest.mark.parametrize("method", methods())
@pytest.mark.parametrize("name", NAMED)
def test_every_method_has_both_spaces_and_accepts_their_ends(method, name):
    chosen = methods()[method]
    for setting, one in named_space(method, name).dimensions.items():
        for end in one.ends:
            chosen(nodes=10, **{setting: end})


@pytest.mark.parametrize("method", methods())
def test_a_method_without_a_grid_is_searched_around_its_defaults(method):
    chosen = methods()[method]
    for setting, one in around_defaults(method).dimensions.items():
        assert one.low <= getattr(chosen(nodes=10), setting) <= one.high
        for end in one.ends:
            chosen(nodes=10, **{setting: end})


@dataclass(frozen=True, kw_only=True)
class Own(Random):
    """A method of a user."""

    name = "own"
    slope: Annotated[float, Bounds(least=1.0, most=20.0)] = 6.0
    sharp: Annotated[float, Bounds(least=1.0, most=20.0)] = 6.0
    width: Annotated[int, Bounds(least=5)] = 8
    depth: Annotated[int, Bounds(least=3, most=6)] = 4
    share: Annotated[int, Bounds(above=True, most=100, below=True)] = 60
    rate: Rate = 0.05
    slant: Annotated[float, Bounds(least=-math.inf)] = 1.0
    mode: Literal["relu", "tanh", "gone"] = "relu"
    blocks: Literal[1, 2] = 1
    remark: str = "text"

    def _check(self):
        if self.sharp < 2 or self.mode == "gone":
            raise ValueError("not together")


def test_an_own_method_is_searched_within_its_bounds_and_literals(monkeypatch):
    monkeypatch.setitem(registry._REGISTERED, "own", Own)
    assert around_defaults("own").dimensions == {
        "slope": Range(1.0, 20.0, log=True),
        "sharp": Range(6.0, 20.0, log=True),
        "width": Range(5, 16, log=True, whole=True),
        "depth": Range(3, 6, log=True, whole=True),
        "share": Range(30, 99, log=True, whole=True),
        "rate": Range(0.005, 0.5, log=True),
        "slant": Range(0.1, 10.0, log=True),
        "mode": Choices(("relu", "tanh")),
    }


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"depth": 7}, "depth must be an integer >= 3 and <= 6, got 7."),
        ({"depth": 2}, "depth must be an integer >= 3 and <= 6, got 2."),
        ({"share": 100}, "share must be an integer >= 1 and <= 99, got 100."),
        ({"share": 0}, "share must be an integer >= 1 and <= 99, got 0."),
        ({"width": 4}, "width must be an integer >= 5, got 4."),
    ],
)
def test_both_bounds_of_an_integer_are_checked(settings, sentence):
    with pytest.raises(InputError) as caught:
        Own(nodes=6, **settings)
    assert str(caught.value) == sentence


def test_literals_and_bounds_of_our_methods_do_not_change_saved_studies():
    assert list(around_defaults("gecc").dimensions) == ["alpha", "beta", "restarts", "balance"]
    assert "distance" not in around_defaults("doscond").dimensions


def test_what_is_searched_by_default():
    paper = named_space("gcsr", "paper")
    assert space_for("gcsr", None, {}) == paper
    assert space_for("gcsr", None, {"num_hops": "3"}).searched == paper.searched
    assert list(space_for("gcsr", None, {"num_hops": "0..3"}).dimensions) == ["num_hops"]
    assert space_for("gcsr", "paper", {"tau": "0.5"}).fixed["tau"] == 0.5
