"""Studies of ``gcsr tune``."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from fuzz.containers import Database
from fuzz.target import Target
from fuzz.targets.small import small_graph, written
from gcsr.tuning.search import open_search
from gcsr.tuning.space import space_for
from gcsr.tuning.study import StudySpec, open_study


@functools.cache
def _asked() -> StudySpec:
    space = space_for("gcsr", None, {"alpha": "0.1..1:log", "model": "sgc,gcn"})
    return StudySpec.of(small_graph(), nodes=2, method="gcsr", space=space)


@functools.cache
def _seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.sqlite"
        asked = _asked()
        with open_study(path, asked.identity()) as study:
            for value in (0.5, 0.7):
                trial = study.ask(asked.space.distributions())
                trial.report(value, 1)
                trial.set_user_attr("note", "a note")
                study.tell(trial, value)
            study.ask()
        return [path.read_bytes()]


def _read(data: bytes, folder: Path) -> object:
    with open_search(_asked(), study=written(folder, "a.sqlite", data), device="cpu") as search:
        return search.result().to_dict()


TARGETS = (Target("study", "studies of `gcsr tune` (SQLite)", _seeds, _read, Database()),)
