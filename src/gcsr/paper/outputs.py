"""The files of a reproduced experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gcsr.errors import InputError
from gcsr.files import write_atomically
from gcsr.paper.cells import Experiment, Protocol
from gcsr.paper.compare import Compared
from gcsr.paper.figures import FORMATS, draw, image
from gcsr.paper.portraits import portraits
from gcsr.paper.render import csv_text, markdown
from gcsr.untrusted import reason


def rows_file(folder: Path, protocol: Protocol) -> Path:
    """Where finished cells of all experiments are kept; a smoke run has a file of its own."""
    return folder / f"rows{_mark(protocol)}.jsonl"


def graphs_folder(folder: Path, protocol: Protocol) -> Path:
    """Where condensed graphs are kept if that is asked for."""
    return folder / f"graphs{_mark(protocol)}"


def prepare_folder(folder: Path) -> None:
    """Make the folder now rather than find out after hours that it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"out: {folder} cannot be made a folder ({error.strerror}).") from None


def write_outputs(
    folder: Path, experiment: Experiment, compared: Sequence[Compared], protocol: Protocol
) -> list[Path]:
    """Markdown, CSV and, where there is something to draw, a figure as PNG and SVG.

    No other process may write them meanwhile (:meth:`Store.outputs`).
    """
    stem = f"{experiment.name}{_mark(protocol)}"
    files = {
        f"{stem}.md": markdown(experiment, compared, protocol).encode(),
        f"{stem}.csv": csv_text(experiment, compared, protocol).encode(),
    }
    if experiment.drawn:
        drawing = portraits if experiment.look else draw
        try:
            figure = drawing(experiment, compared, protocol)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(
                f"{rows_file(folder, protocol)}: a row of {experiment.name} cannot be drawn"
                f" ({reason(error)})."
            ) from None
        files |= {f"{stem}.{kind}": image(figure, kind) for kind in FORMATS}
    for name, blob in files.items():
        for unfinished in folder.glob(f".{name}.*"):  # of a process that was killed
            unfinished.unlink(missing_ok=True)
        write_atomically(folder / name, blob)
    return [folder / name for name in files]


def _mark(protocol: Protocol) -> str:
    return "-quick" if protocol.quick else ""
