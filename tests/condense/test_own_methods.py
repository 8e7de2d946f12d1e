"""Methods of users: what is said of classes and modules that are not as they must be."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field

import pytest

import gcsr
from gcsr import InputError
from gcsr.cli.app import main
from gcsr.methods import Condenser, Count, register, registry
from gcsr.methods.registry import method
from helpers import planted_graph


@dataclass(frozen=True, kw_only=True)
class NoName(Condenser):
    summary = "does nothing"

    def run(self, ctx):
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class NoRun(Condenser):
    name = "no-run"


@dataclass(frozen=True, kw_only=True)
class Clash(NoName):
    name = "random"


@dataclass(frozen=True, kw_only=True)
class Required(NoName):
    name = "required"
    steps: Count


class Undecorated(NoName):
    name = "undecorated"
    steps: Count = 3


@dataclass(frozen=True, kw_only=True)
class Below(Undecorated):
    name = "below"


@dataclass(frozen=True, kw_only=True)
class Annotated(NoName):
    name: str = "annotated"


class NotAMethod:
    name = "not-a-method"


DECORATOR = "Undecorated must have @dataclass(frozen=True, kw_only=True) for its settings (steps)."
WRONG = {
    NoName: "name of the class NoName must be a text, got none;"
    ' name = "..." in the class gives it one.',
    NoRun: "NoRun must define run(self, ctx).",
    Clash: "name of Clash must be new, got 'random', which is another method.",
    Required: "steps must have a default, Required has none for it.",
    Undecorated: DECORATOR,
    Below: DECORATOR,
    Annotated: "name of Annotated must not be a setting; remove the annotation of name.",
    NotAMethod: f"method must be a subclass of gcsr.Condenser, got {NotAMethod!r}.",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of the command; its modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_class_that_is_no_complete_method_is_refused_at_once(wrong, monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", {})
    for attempt in (register, lambda one: method(f"{__name__}:{one.__name__}")):
        with pytest.raises(InputError) as caught:
            attempt(wrong)
        assert str(caught.value) == WRONG[wrong]
    assert registry._REGISTERED == {}


@pytest.mark.parametrize("wrong", [NoName, Annotated, Undecorated])
def test_an_instance_of_such_a_class_is_refused_too(wrong):
    graph = planted_graph()
    for attempt in (
        lambda: gcsr.condense(graph, method=wrong(nodes=6)),
        lambda: gcsr.condense(graph, method=wrong, nodes=6),
        lambda: gcsr.check_leaks(wrong(nodes=6), graph),
    ):
        with pytest.raises(InputError, match=re.escape(WRONG[wrong])):
            attempt()


def test_an_instance_may_be_called_like_another_method():
    class Same(gcsr.Random):
        summary = "takes the name of its base"

    graph = planted_graph()
    alone = Same(nodes=6).condense(graph, device="cpu")
    small = gcsr.condense(graph, method=Same(nodes=6), device="cpu")
    assert small.provenance["method"] == alone.provenance["method"] == "random"
    gcsr.check_leaks(Same(nodes=6), graph)
    with pytest.raises(InputError, match=r"^name of Same must be new, got 'random'"):
        register(Same)


def test_a_field_that_is_no_argument_and_an_annotated_name_are_accepted(monkeypatch):
    @dataclass(frozen=True, kw_only=True)
    class Computed(gcsr.Random):
        name = "computed"
        found: int = field(init=False)

    class Plain(gcsr.Random):
        name: str = "plain"
        summary: str = "annotated, and no dataclass of its own"

    monkeypatch.setattr(registry, "_REGISTERED", {})
    for one in (Computed, Plain):
        assert method(register(one).name) is one


def test_an_instance_may_have_settings_without_a_default():
    with pytest.raises(NotImplementedError):
        gcsr.condense(planted_graph(), method=Required(nodes=6, steps=2), device="cpu")


def test_our_classes_are_accepted_wherever_they_are_named():
    for place in registry.BUILT_IN.values():
        assert f"{method(place).__module__}:{method(place).__name__}" == place


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (
            "./mine.py:Mine",
            "method must be module:Class such as mine:Mine, got './mine.py:Mine' (no",
        ),
        ("../mine:Mine", "such as mine:Mine, got '../mine:Mine' (no path and no .py)."),
        ("mine.py:Mine", "such as mine:Mine, got 'mine.py:Mine' (no path and no .py)."),
        ("C:\\a\\mine.py:Mine", "such as mine:Mine, got "),
        (".mine:Mine", "such as mine:Mine, got '.mine:Mine'"),
        (
            "gone:Mine",
            "method: 'gone:Mine' cannot be imported (No module named 'gone'; run the command in the"
            " folder of gone.py, or install it).",
        ),
        ("gone.inner:Mine", "(No module named 'gone'; run the command in the folder of gone, or"),
        ("mine:Gone", "cannot be imported (module 'mine' has no attribute 'Gone')."),
        ("broken:Mine", "(ZeroDivisionError: division by zero, {folder}/broken.py line 2)."),
        ("above:Mine", "(ZeroDivisionError: division by zero, {folder}/broken.py line 2)."),
        ("needs:Mine", "(ModuleNotFoundError: No module named 'gone', {folder}/needs.py line 1)."),
        ("thawed:Mine", "a frozen one, {folder}/thawed.py line 3)."),
        ("leaves:Mine", "(SystemExit: 3, {folder}/leaves.py line 2)."),
    ],
)
def test_a_module_that_cannot_be_imported_is_named_in_one_sentence(folder, place, said):
    sources = {
        "mine": "",
        "broken": "zero = 0\n1 / zero\n",
        "above": "import broken\n",
        "needs": "import gone\n",
        "thawed": "from dataclasses import dataclass\nimport gcsr\n@dataclass\n"
        "class Mine(gcsr.Random): pass\n",
        "leaves": "import sys\nsys.exit(3)\n",
    }
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source)
    with pytest.raises(InputError) as caught:
        method(place)
    assert said.format(folder=folder) in str(caught.value)
    assert "\n" not in str(caught.value)


@dataclass(frozen=True, kw_only=True)
class Together(gcsr.Random):
    name = "together"
    own: bool = False

    def _check(self):
        if self.own:
            raise gcsr.methods.InputError("own sentence.")
        raise ValueError("sharp must be >= 2, got 1.0.")


def test_a_value_error_of_check_is_invalid_input(monkeypatch, capsys):
    with pytest.raises(InputError, match=r"^sharp must be >= 2, got 1\.0\.$"):
        Together(nodes=6)
    with pytest.raises(InputError, match=r"^own sentence\.$") as caught:
        Together(nodes=6, own=True)
    assert caught.value.__cause__ is None
    monkeypatch.setitem(registry._REGISTERED, "together", Together)
    words = "condense digits --nodes 6 --method together --out small.safetensors"
    assert main(words.split()) == 2
    assert capsys.readouterr().err == "error: sharp must be >= 2, got 1.0.\n"
