"""What a search found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from gcsr.cluster import Cluster
from gcsr.condensed import CondensedGraph
from gcsr.errors import InputError
from gcsr.graph import Graph
from gcsr.progress import Progress, silent
from gcsr.tune.question import JUDGE, Question
from gcsr.tune.space import Value
from gcsr.wording import counted

# A combination of settings that the method refuses counts as pruned, and its note says why.
State = Literal["complete", "pruned"]


@dataclass(frozen=True)
class Trial:
    """One candidate: what was searched, and how the graphs made with it validated.

    ``curve`` has the validation accuracy of iterates by iteration; ``score`` is ``None`` if it was
    pruned.
    """

    number: int
    state: State
    settings: dict[str, Value]
    score: float | None
    curve: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True, eq=False)
class Tuning:
    """The trials of a search and what follows from them."""

    question: Question
    trials: Sequence[Trial]
    study: Path | None = None

    @property
    def ranked(self) -> list[Trial]:
        """Complete trials, the best first, the earliest of equals."""
        complete = [trial for trial in self.trials if trial.score is not None]
        return sorted(complete, key=lambda trial: -(trial.score or 0.0))

    @property
    def best(self) -> Trial:
        """The trial that validates best."""
        ranked = self.ranked
        if not ranked:
            notes = [trial.note for trial in self.trials if trial.note]
            why = f" ({notes[0].rstrip('.')})" if notes else ""
            raise InputError(
                f"tune: none of {counted(len(self.trials), 'trial')} was completed{why}."
            )
        return ranked[0]

    @property
    def score(self) -> float:
        """Its validation accuracy."""
        return self.best.score or 0.0

    @property
    def settings(self) -> dict[str, Value]:
        """Its settings, for :func:`gcsr.condense`: what was searched and what was fixed."""
        return {**self.question.space.fixed, **self.best.settings}

    def condense(
        self,
        graph: Graph | None = None,
        *,
        device: str | torch.device = "auto",
        progress: Progress = silent,
        cluster: str | Cluster | None = None,
    ) -> list[CondensedGraph]:
        """The winner's graphs again; their provenance says that they were tuned.

        Another ``graph`` than the one that was searched on may be given, and a ``cluster``.
        """
        asked = self.question
        condenser, preset = asked.condenser(self.best.settings)
        tuned = {
            "study": None if self.study is None else self.study.name,
            "trials": len(self.trials),
            "trial": self.best.number,
            "space": asked.space.to_dict(),
            "validation": self.score,
            "judge": JUDGE,
            "content_hash": asked.graph.content_hash,
        }
        return condenser.condense_many(
            asked.graph if graph is None else graph,
            seeds=asked.seeds,
            device=device,
            progress=progress,
            context={"preset": preset, "tuned": tuned},
            cluster=cluster,
        )

    def plot(self, path: str | Path) -> Path:
        """Draw the trials and every parameter into a PNG or SVG file."""
        from gcsr.tune.figure import save_figure  # noqa: PLC0415 - imports matplotlib

        return save_figure(self, Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        complete = bool(self.ranked)
        return {
            **self.question.identity(),
            "study": None if self.study is None else str(self.study),
            "best": asdict(self.best) if complete else None,
            "settings": self.settings if complete else None,
            "trials": [asdict(trial) for trial in self.trials],
        }
