"""The commands of the program, and its exit codes."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from gcsr.cli import (
    analyze,
    benchmark,
    condense,
    convert,
    demo,
    evaluate,
    inspect,
    listing,
    measure,
    report,
    reproduce,
    tune,
)
from gcsr.cli.output import forget_written, interrupted, show_warning, with_options
from gcsr.utils.errors import InputError, InputWarning, suggestion
from gcsr.utils.formatting import printable
from gcsr.version import __version__

USER_ERROR = 2
# What Typer's sentences about values say, in all versions that are supported, and what we say.
_VALUES = {
    "valid integer": "an integer",
    "valid (number|float)": "a number",
    r"(x>=|greater than or equal to )(\d+)": r">= \2",
}
INTERRUPTED = 130

app = typer.Typer(
    name="gcsr",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"gcsr {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Condense a graph into a tiny one that trains a GNN about as well; `gcsr demo` shows it."""
    del version  # the callback has printed it
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "datasets": listing.datasets,
    "methods": listing.methods,
    "convert": convert.convert,
    "condense": condense.condense,
    "update": condense.update,
    "evaluate": evaluate.evaluate,
    "cost": measure.cost,
    "inspect": inspect.inspect,
    "analyze": analyze.analyze,
    "privacy": measure.privacy,
    "robustness": measure.robustness,
    "tune": tune.tune,
    "search": measure.search,
    "report": report.report,
    "benchmark": benchmark.benchmark,
    "reproduce": reproduce.reproduce,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(with_options(_command))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 2 (the user's error) or 130 (Ctrl-C)."""
    return run(app, argv, "gcsr")


def run(commands: typer.Typer, argv: Sequence[str] | None, prog_name: str) -> int:
    """Run a command of any program; errors of the user become one sentence."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    forget_written()
    # click itself reads the arguments of the program: on Windows it expands patterns of files.
    arguments = None if argv is None else list(argv)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", InputWarning)
            warnings.showwarning = partial(show_warning, warnings.showwarning)
            command = typer.main.get_command(commands)
            code = command.main(args=arguments, prog_name=prog_name, standalone_mode=False)
        sys.stdout.flush()
    except InputError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        # Python flushes stdout once more on exit and would complain about the pipe there.
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.close()
        sys.stdout = io.StringIO()
        return 1
    except OSError as error:
        # A name that the system refuses, a folder that may not be read, a disk that is gone.
        place = "" if error.filename is None else f"{printable(error.filename)}: "
        return _refuse(f"{place}{error.strerror or error}.")
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        # Usage errors: typer has moved their class between versions, the method stayed.
        if not hasattr(error, "format_message"):
            raise
        return _refuse(_sentence(error, sys.argv[1:] if arguments is None else arguments))
    if code == INTERRUPTED:
        print(interrupted(), file=sys.stderr)
    return code if isinstance(code, int) else 0


def _sentence(error: Any, arguments: Sequence[str]) -> str:
    """The sentence of a usage error; about the value of an option in our words."""
    sentence: str = error.format_message()
    context = getattr(error, "ctx", None)
    if context is not None and hasattr(error, "option_name"):
        known = [
            word
            for param in context.command.params
            for word in (*param.opts, *param.secondary_opts)
            if word.startswith("-")  # no names of arguments
        ]
        wrong = str(error.option_name)
        return (
            f"{wrong} is not an option of {context.command_path}{suggestion(wrong, known)}; see"
            f" {context.command_path} --help."
        )
    options = getattr(getattr(error, "param", None), "opts", ())
    for place, word in reversed(list(enumerate(arguments))):  # of several the last counts
        name, equals, given = word.partition("=")
        for pattern, accepted in _VALUES.items() if name in options else ():
            if found := re.search(pattern, sentence):
                given = given if equals else arguments[place + 1]
                return f"{name} must be {found.expand(accepted)}, got {given!r}."
    return sentence


def _refuse(sentence: str) -> int:
    print("error:", printable(" ".join(sentence.split())), file=sys.stderr)
    return USER_ERROR
