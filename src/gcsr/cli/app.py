"""The commands of the program, and its exit codes."""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import fields, is_dataclass
from functools import partial, wraps
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo

from gcsr.cli import (
    analyze,
    benchmark,
    condense,
    convert,
    demo,
    evaluate,
    listing,
    measure,
    options,
    report,
    reproduce,
    tune,
)
from gcsr.cli import inspect as inspect_file
from gcsr.cli.output import (
    LogHandler,
    forget_written,
    in_options,
    interrupted,
    log,
    show_warning,
)
from gcsr.utils.errors import InputError, InputWarning, require, suggestion
from gcsr.utils.formatting import printable
from gcsr.version import __version__

USER_ERROR = 2
INTERRUPTED = 130
# What Typer's sentences about values say, in all versions that are supported, and what we say.
_VALUES = {
    "valid integer": "an integer",
    "valid (number|float)": "a number",
    r"(x>=|greater than or equal to )(\d+)": r">= \2",
}
# What is missing where a needed option is not given.
_NEEDED = {"--out": ": the file to write", "--data": ": a dataset's name or a graph file"}
# Parameters that --set fills.
_SETTINGS = ("assignments", "set_")

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


def _with_options(name: str, command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer needs it, with ``--quiet`` and ``--verbose``.

    Every parameter is an option, but for those that are declared as arguments. One that is a
    dataclass becomes an option per field. The help of an option is in ``Args`` of the command, in
    those of the dataclass, in the declaration, or in ``Args`` of the function of the library.
    """
    helps: dict[str, str] = {}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {}
    added: list[tuple[str, Any, Any]] = []
    for one in signature.parameters.values():
        if is_dataclass(one.annotation):
            groups[one.name] = one.annotation
            helps |= options.described_args(inspect.getdoc(one.annotation))
            hints = get_type_hints(one.annotation, include_extras=True)
            added += [(field, value, hints[field]) for field, value in vars(one.default).items()]
        else:
            added.append((one.name, one.default, one.annotation))
    helps |= options.described_args(inspect.getdoc(command))
    library = options.library_args(name)
    added += [("quiet", False, options.Quiet), ("verbose", False, options.Verbose)]
    parameters = []
    for field, default, hint in added:
        annotation = _declared(field, default, hint)
        info = get_args(annotation)[1]
        info.help = helps.get(field) or info.help or library.get(field) or library.get(f"{field}s")
        parameters.append(inspect.Parameter(field, kind, default=default, annotation=annotation))
    spelling = {one.name: _spelling(one.name, one.annotation) for one in parameters}
    # The library may have the option's name where the command has another.
    spelling |= {text.strip("-").replace("-", "_"): text for text in spelling.values()}

    @wraps(command)
    def run(*args: Any, quiet: bool, verbose: bool, **given: Any) -> None:
        require(not (quiet and verbose), "--quiet cannot be used with --verbose.")
        handler, level = LogHandler(), log.level
        if quiet or verbose:
            handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
            log.setLevel(logging.ERROR if quiet else logging.DEBUG)
        log.addHandler(handler)
        for group_name, group in groups.items():
            given[group_name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        settings = [one for name in _SETTINGS for one in given.get(name) or ()]
        try:
            command(*args, **given)
        except InputError as error:
            from gcsr.methods.registry import setting_name

            named = {setting_name(one.partition("=")[0].strip()) for one in settings}
            raise InputError(in_options(str(error), spelling, named)) from None
        finally:
            log.removeHandler(handler)
            log.setLevel(level)

    run.__doc__ = (inspect.getdoc(command) or "").partition("Args:\n")[0].rstrip()
    vars(run)["__signature__"] = signature.replace(parameters=parameters)
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _spelling(name: str, annotation: Any) -> str:
    """An option as it is written, or the name of an argument in the help."""
    info = get_args(annotation)[1]
    if isinstance(info, ArgumentInfo):
        return (info.metavar or name.upper()).strip("[].")
    # In annotations the first declaration is where a default value would be.
    declared = (info.default, *(info.param_decls or ()), f"--{name.replace('_', '-')}")
    return next(text for text in declared if isinstance(text, str) and text.startswith("-"))


def _declared(name: str, default: Any, hint: Any) -> Any:
    """The annotation of an option; a truth value that is false by default has no --no-... form."""
    if get_origin(hint) is Annotated:
        plain, info = get_args(hint)
        return Annotated[plain, copy(info)]
    option = f"--{name.replace('_', '-')}"
    both = option if default is False else f"{option}/--no-{name.replace('_', '-')}"
    truth = bool in (hint, *get_args(hint))
    return Annotated[hint, typer.Option(both) if truth else typer.Option()]


_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "datasets": listing.datasets,
    "methods": listing.methods,
    "convert": convert.convert,
    "condense": condense.condense,
    "update": condense.update,
    "evaluate": evaluate.evaluate,
    "cost": measure.cost,
    "inspect": inspect_file.inspect,
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
    app.command(_name)(_with_options(_name, _command))


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
    """The sentence of a usage error; about options and their values in our words."""
    sentence: str = error.format_message()
    context = getattr(error, "ctx", None)
    if context is not None and hasattr(error, "option_name"):
        meant = _meant_option(str(error.option_name), context.command.params, arguments)
        command = context.command_path
        return f"{error.option_name} is not an option of {command}{meant}; see {command} --help."
    known = getattr(getattr(error, "param", None), "opts", ())
    if found := re.match(r"Missing option '(--[\w-]+)'", sentence):
        return f"{found[1]} is needed{_NEEDED.get(found[1], '')}."
    for place, text in reversed(list(enumerate(arguments))):  # of several the last counts
        name, equals, given = text.partition("=")
        for pattern, accepted in _VALUES.items() if name in known else ():
            if found := re.search(pattern, sentence):
                given = given if equals else arguments[place + 1]
                return f"{name} must be {found.expand(accepted)}, got {given!r}."
    return sentence


def _meant_option(wrong: str, params: Sequence[Any], arguments: Sequence[str]) -> str:
    """The option or the setting of a method that is spelled like a wrong option."""
    names = [
        name
        for param in params
        for name in (*param.opts, *param.secondary_opts)
        if name.startswith("-")  # no names of arguments
    ]
    settings: dict[str, str] = {}
    if {"--set", "--method"} <= set(names):
        from gcsr.methods.registry import methods, setting_kinds

        known = {name for one in methods().values() for name in setting_kinds(one)}
        settings = {f"--{name.replace('_', '-')}": name for name in sorted(known)}
    meant = suggestion(wrong, [*names, *(option for option in settings if option not in names)])
    option = meant.removeprefix(" (did you mean ").removesuffix("?)")
    if option in names or option not in settings:
        return meant
    found = [place for place, text in enumerate(arguments) if text.partition("=")[0] == wrong]
    value = "VALUE"
    for place in found[:1]:
        _, equals, given = arguments[place].partition("=")
        value = given if equals else "".join(arguments[place + 1 : place + 2]) or value
    return f" (did you mean --set {settings[option]}={value}?)"


def _refuse(sentence: str) -> int:
    print("error:", printable(" ".join(sentence.split())), file=sys.stderr)
    return USER_ERROR
