"""Settings as text: ``--set``, ``--sparsify``, sizes, and the spaces of ``gcsr tune``."""

from __future__ import annotations

from pathlib import Path

from fuzz.containers import Lines
from fuzz.target import Target
from fuzz.targets.small import small_graph, written
from gcsr import InputError
from gcsr.api import make_condenser
from gcsr.cli.options import SIZES, parse_settings
from gcsr.evaluation.sparsify import Sparsifier
from gcsr.methods.registry import methods
from gcsr.tuning.space import named_space
from gcsr.tuning.study import StudySpec
from gcsr.utils.formatting import parse_bytes

_GRAPH = small_graph()


def _seeds() -> list[bytes]:
    """A method, a preset, a rule, a size, and settings: every one that the method has."""
    rules = ("threshold=0.05", "top-k=8", "auto", "none")
    found = []
    for number, (name, kind) in enumerate(methods().items()):
        made = kind(nodes=4)
        own = [f"{key}={value}" for key, value in made.settings.items() if key not in SIZES]
        lines = [name, "default", rules[number % len(rules)], f"{number}.5GiB", *own]
        found.append("\n".join(lines).encode())
    return found


def _read(data: bytes, folder: Path) -> object:
    """All that is said of settings; the last refusal stands for all of them."""
    words = data.decode("utf-8", "replace").split("\n")
    method, preset, rule, size, *lines = [*words, "", "", "", ""]
    refused: InputError | None = None
    for attempt in (
        lambda: _condenser(method, preset, lines),
        lambda: Sparsifier(rule=rule),
        lambda: parse_bytes("--expert-memory", size),
    ):
        try:
            attempt()
        except InputError as error:
            refused = error
    if refused is not None:
        raise refused
    return None


def _condenser(method: str, preset: str, lines: list[str]) -> object:
    given = parse_settings(method, [line for line in lines if "=" in line])
    return make_condenser(_GRAPH, nodes=4, ratio=None, method=method, preset=preset, settings=given)


def _space_seeds() -> list[bytes]:
    return [
        b'alpha = "0.1..10:log"\nbeta = [0.1, 1]\nmodel = "sgc,gcn"\niterations = "10..20"\n',
        b"alpha = 0.5\nbeta = 1_000\nfixed-prior = true\n",
    ]


def _read_space(data: bytes, folder: Path) -> object:
    space = named_space("gcsr", str(written(folder, "space.toml", data)))
    return StudySpec.of(_GRAPH, nodes=4, method="gcsr", space=space).identity()


TARGETS = (
    Target(
        "settings",
        "`--set`, `--sparsify`, sizes",
        _seeds,
        _read,
        Lines(),
        (b"=nan", b"=-1", b"1e999", b"top-k=", b"auto", b"none", b"official", b"TiB"),
    ),
    Target(
        "space",
        "spaces of `gcsr tune` (TOML)",
        _space_seeds,
        _read_space,
        Lines(),
        (b'"""', b"[[", b"..", b":log", b"1979-05-27", b"0x", b"inf", b"nan", b"prior = "),
    ),
)
