"""Options that several commands share, and values of options as Python values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcsr.utils.errors import InputError, require, suggestion
from gcsr.utils.formatting import parse_bytes

if TYPE_CHECKING:
    import torch

# A name, or several, and its text of several lines in the ``Args`` of a docstring.
ENTRY = re.compile(r"^ {4}(\w+(?:, \w+)*): (.+(?:\n {8}.+)*)\n?", re.MULTILINE)
_MATH = re.compile(r":math:`([^`]*)`")
_ROLE = re.compile(r":[a-z:]+:`~?([^`]*)`")
_LITERAL = re.compile(r"``([^`]*)``")
# The models that can be tested but for those with -linear at the end. A literal, as importing the
# registry would import torch; a test compares them.
MODEL_NAMES = ("mlp", "sgc", "gcn", "sage", "sage-paper", "appnp", "cheby", "cheby-paper", "gat")


def without_markup(document: str, quote: str = "") -> str:
    """A docstring as plain text; ``quote`` is put around what was marked as code."""
    text = _MATH.sub(r"\1", document)
    text = _ROLE.sub(lambda found: found[1].rsplit(".", 1)[-1], text)
    return _LITERAL.sub(rf"{quote}\1{quote}", text)


def described_args(document: str | None) -> dict[str, str]:
    """The entries of ``Args`` of a docstring, each in one line."""
    _, _, entries = (document or "").partition("Args:\n")
    return {
        name: " ".join(text.split())
        for names, text in ENTRY.findall(entries)
        for name in names.split(", ")
    }


def library_args(command: str) -> dict[str, str]:
    """The same of the public function of that name; of ``benchmark`` also those of its grid.

    They are read from the source: importing the function would import torch.
    """
    package = Path(__file__).parents[1]
    stub = (package / "__init__.pyi").read_text(encoding="utf-8")
    place = re.search(rf"^from gcsr\.(\S+) import {command} as", stub, re.MULTILINE)
    if place is None:
        return {}
    source = package.joinpath(*place[1].split(".")).with_suffix(".py").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for name in (command, "Grid"):
        document = re.search(rf'^(?:def|class) {name}\b.*?"""(.*?)"""', source, re.DOTALL | re.M)
        for key, text in described_args(cleandoc(document[1]) if document else "").items():
            named = re.sub(r":func:`gcsr\.(\w+)`", r"`gcsr \1`", text)
            found.setdefault(key, without_markup(named[0].upper() + named[1:]))
    return found


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print results and errors, no progress or warnings.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print what is done, and its seconds, on stderr.")
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda; auto takes CUDA where there is one.")]
Data = Annotated[
    str, typer.Argument(metavar="DATA", help="A dataset's name, a graph file or folder.")
]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A condensed graph.")]
Nodes = Annotated[int | None, typer.Option(help="Number of condensed nodes.")]
Ratio = Annotated[float | None, typer.Option(help="The same, as a share of the visible nodes.")]
Runs = Annotated[int, typer.Option(min=1, help="Networks per graph.")]
Count = Annotated[int, typer.Option(min=1)]
CountOrNone = Annotated[int | None, typer.Option(min=1)]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the method; repeatable."),
]
InputFile = Annotated[Path | None, typer.Option(metavar="FILE")]
Dimensions = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=...")]
Size = Annotated[str | None, typer.Option(metavar="SIZE")]
Rule = Annotated[str, typer.Option("--sparsify", metavar="RULE")]
Method = Annotated[str, typer.Option(help="See `gcsr methods`.")]
Model = Annotated[
    str,
    typer.Option(
        help=f"The network to train and test: {', '.join(MODEL_NAMES[:-1])} or {MODEL_NAMES[-1]};"
        " sgc, gcn, sage-paper and appnp also with -linear at the end."
    ),
]
Epochs = Annotated[int, typer.Option(min=1, help="Epochs per network.")]
Root = Annotated[
    Path | None,
    typer.Option(help="Folder of the datasets' files; by default $GCSR_DATA or the user's cache."),
]
Download = Annotated[
    bool,
    typer.Option(
        "--download/--no-download",
        help="Whether a dataset that you name is downloaded if its files are not in the folder.",
    ),
]


@dataclass(frozen=True)
class Loading:
    """How the real graph is loaded. A command with such a parameter has every field as an option.

    Args:
        features: keep, rows or standardize; by default what is usual for the dataset.
        undirected: Add the reverse edges of a directed graph.
        inductive: Whether validation and test nodes are hidden while condensing; by default as is
            usual for the dataset.
    """

    root: Root = None
    features: str | None = None
    undirected: bool = False
    inductive: Annotated[bool | None, typer.Option("--inductive/--transductive")] = None
    download: Download = True

    @property
    def options(self) -> dict[str, object]:
        """The same for :func:`~gcsr.utils.formatting.command_line`."""
        return {
            "features": self.features,
            "undirected": self.undirected,
            "inductive": self.inductive,
            "transductive": self.inductive is False,
            "root": self.root,
        }


LOADING = Loading()


@dataclass(frozen=True)
class NetworkOptions:
    """How networks are trained and tested."""

    model: Model = "gcn"
    runs: Runs = 5
    epochs: Epochs = 600
    seed: Seed = 0
    device: Device = "auto"

    def arguments(self, cluster: str | None = None) -> dict[str, Any]:
        """The same for the library; an unknown model and a missing device are refused."""
        from gcsr.models.registry import testing_model
        from gcsr.training.fit import TrainingRecipe

        testing_model(self.model)
        given = {"model": self.model, "runs": self.runs, "seed": self.seed}
        recipe = TrainingRecipe(epochs=self.epochs)
        return given | {"recipe": recipe, "device": checked_device(self.device, cluster)}


FIVE_RUNS, THREE_RUNS, TEN_RUNS = (NetworkOptions(runs=runs) for runs in (5, 3, 10))


Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="local|HOST:PORT",
        help="Run on Ray (extra cluster): on this machine, or on the cluster with that head."
        " Results are the same bytes. [default: this process]",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory for work on a graph folder (2GiB); a graph that needs more stays on disk and"
        " is worked on in blocks. By default half of what is free.",
    ),
]
MadeFrom = Annotated[
    str | None,
    typer.Option(
        # Some versions of typer would name the option after its metavar.
        "--data",
        metavar="DATA",
        help="A dataset's name, a graph file or folder; by default what FILE was made from, if it is"
        " a known dataset that is here.",
    ),
]
AnyGraph = Annotated[
    bool,
    typer.Option("--no-check-origin", help="Accept data that FILE was not made from."),
]


@dataclass(frozen=True)
class ExpertBounds:
    """Memory and disk of trained experts.

    Args:
        expert_memory: Memory for the experts' trajectories (500MB, 2GiB); by default a quarter of
            what is free.
        expert_disk: Disk for trained experts, where later runs find them ($GCSR_CACHE or the user's
            cache), and for trajectories that memory cannot hold; by default none.
    """

    expert_memory: Size = None
    expert_disk: Size = None

    @property
    def settings(self) -> dict[str, int]:
        """The same in bytes, for the library."""
        return {
            key: parse_bytes(f"--{key.replace('_', '-')}", text)
            for key, text in vars(self).items()
            if text is not None
        }


EXPERT_BOUNDS = ExpertBounds()
# Settings that have options of their own.
SIZES = ("nodes", "ratio")
ASSIGNMENT = "key=value (for example alpha=0.5)"


def checked_device(device: str, cluster: str | None) -> str | torch.device:
    """The device, or that of the machines of a cluster; a missing one is refused."""
    from gcsr.distributed.start import check_cluster
    from gcsr.utils.devices import pick_device

    if cluster is None:
        return pick_device(device)
    check_cluster(cluster)
    return device


def parse_settings(method: str, assignments: Sequence[str] | None) -> dict[str, Any]:
    """Values of ``--set`` by the name of the setting; the library refuses unknown names."""
    from gcsr.methods.registry import method as find_method
    from gcsr.methods.registry import setting_kinds, value_of

    kinds = setting_kinds(find_method(method))
    found = _split(assignments, ASSIGNMENT)
    for key, (given, _) in found.items():
        require(key not in SIZES, f"--set does not take {given!r}; use --{key}.")
    return {
        key: value_of(given, text, kinds[key]) if key in kinds else text
        for key, (given, text) in found.items()
    }


def parse_common_settings(
    methods: Sequence[str], assignments: Sequence[str] | None
) -> dict[str, dict[str, Any]]:
    """Values of ``--set`` for several methods; one that a method does not have is refused."""
    from gcsr.methods.registry import method as find_method
    from gcsr.methods.registry import setting_kinds

    known = {name: setting_kinds(find_method(name)).keys() - set(SIZES) for name in methods}
    every = sorted(set().union(*known.values()))
    for key, (given, _) in _split(assignments, ASSIGNMENT).items():
        lacking = [name for name, settings in known.items() if key not in settings]
        having = [name for name in methods if name not in lacking]
        if len(methods) == 1 or key in SIZES or not lacking:
            continue  # that a single method does not have it, the library explains
        if not having:
            raise InputError(
                f"{given} is not a setting of {', '.join(lacking)}{suggestion(key, every)}; accepted:"
                f" {', '.join(every)}."
            )
        raise InputError(
            f"{given} is not a setting of {', '.join(lacking)}, only of {', '.join(having)}; --set is"
            " for every --method, and FILE may have settings of single methods."
        )
    return {name: parse_settings(name, assignments) for name in methods}


def parse_dimensions(assignments: Sequence[str] | None) -> dict[str, object]:
    """What ``--set`` searches or fixes, as text by the name of the setting."""
    found = _split(assignments, "name=low..high, name=a,b,c or name=value")
    return {name: text for name, (_, text) in found.items()}


def _split(assignments: Sequence[str] | None, accepted: str) -> dict[str, tuple[str, str]]:
    """The name as given and the text of every ``--set`` by the name of the setting."""
    from gcsr.methods.registry import setting_name

    found: dict[str, tuple[str, str]] = {}
    for assignment in assignments or ():
        given, equals, text = (part.strip() for part in assignment.partition("="))
        require(bool(equals and given), f"--set must be {accepted}, got {assignment!r}.")
        name = setting_name(given)
        require(name not in found, f"--set must have every setting once, got {given!r} twice.")
        found[name] = given, text
    return found
