"""The rows of a benchmark as tables, ranks and wins.

A case is a graph, a size and a test model. Test accuracy is compared; what was selected or tuned was so
by validation accuracy. Methods that leak test labels are shown and marked, and compared with nothing.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np
from scipy.stats import rankdata

from gcsr.benchmarking.cells import PSEUDO_LABELS, WHOLE_GRAPH
from gcsr.benchmarking.store import Row, Store, failed_row
from gcsr.evaluation.intervals import Accuracy, compare
from gcsr.methods.registry import BUILT_IN, method
from gcsr.utils.formatting import byte_count, counted

Case = tuple[str, int, str]
REFERENCES = (WHOLE_GRAPH, PSEUDO_LABELS)
RESAMPLES = 2000
FAILED = "failed"
OUTDATED = "Measured with an earlier revision of the method"
COLUMNS = (
    *("label", "method", "dataset", "nodes", "test", "mean", "low", "high", "std"),
    *("validation_mean", "graphs", "runs", "state", "reason", "leaks_test_labels"),
    *("condense_seconds_per_graph", "evaluate_seconds", "peak_memory_bytes", "bytes", "given"),
    *("tuned", "preset", "device", "machine", "data", "key", "command"),
)


@dataclass(frozen=True)
class Rank:
    """Average rank of a method over graphs (1 is best), with a bootstrap interval of 95 %.

    There is no interval of a single graph.
    """

    label: str
    mean: float
    low: float | None
    high: float | None

    @property
    def interval(self) -> str:
        """The interval as text."""
        return "-" if self.low is None else f"{self.low:.2f} to {self.high:.2f}"


@dataclass(frozen=True, eq=False)
class Results:
    """The newest row of every method and case; ``missing`` cells were not begun."""

    found: Mapping[tuple[str, Case], Row] = field(repr=False)
    missing: int = 0
    faults: Sequence[str] = ()

    def __repr__(self) -> str:
        cells = f"{counted(len(self.rows), 'row')}, {self.missing} missing"
        return f"Results({cells}: {', '.join(self.methods)} on {', '.join(self.datasets)})"

    @classmethod
    def of(
        cls, rows: Iterable[Row] | Store, missing: int = 0, faults: Sequence[str] = ()
    ) -> Results:
        """From rows, of which those that are no part of a benchmark are left out."""
        found: dict[tuple[str, Case], Row] = {}
        for row in rows:
            known = all(isinstance(row.get(name), str) for name in ("label", "dataset", "test"))
            if known and (failed_row(row) or _complete(row)):
                place = row["dataset"], row.get("nodes") or 0, row["test"]
                found[row["label"], place] = row
        return cls(found, missing, faults)

    @cached_property
    def rows(self) -> list[Row]:
        """All rows."""
        return list(self.found.values())

    def row(self, label: str, case: Case) -> Row | None:
        """The row of a method in a case; a reference has no size."""
        return self.found.get((label, case)) or self.found.get((label, (case[0], 0, case[2])))

    @cached_property
    def model(self) -> str:
        """The test model of most rows."""
        return (
            Counter(row["test"] for row in self.rows).most_common(1)[0][0] if self.rows else "gcn"
        )

    @cached_property
    def references(self) -> list[str]:
        """Labels of what was trained on the whole graph."""
        return _labels(row for row in self.rows if row.get("method") in REFERENCES)

    @cached_property
    def methods(self) -> list[str]:
        """Labels of all methods, in the order of their rows."""
        return _labels(row for row in self.rows if row.get("method") not in REFERENCES)

    @cached_property
    def fair(self) -> list[str]:
        """Methods that leak no test labels."""
        leak = {row["label"] for row in self.rows if row.get("leaks_test_labels")}
        return [label for label in self.methods if label not in leak]

    @cached_property
    def datasets(self) -> list[str]:
        """Graphs, in the order of their rows."""
        return list(dict.fromkeys(row["dataset"] for row in self.rows))

    def cases(self, model: str | None = None) -> list[Case]:
        """Cases of a test model, by default the main one: graph by graph, sizes ascending.

        Without methods they are the whole graphs, of size 0.
        """
        found = {
            case
            for _, case in self.found
            if case[2] == (model or self.model) and bool(case[1]) == bool(self.methods)
        }
        return sorted(found, key=lambda case: (self.datasets.index(case[0]), case[1]))

    def by_size(self) -> list[list[Case]]:
        """Cases of the main model by place of their size: the smallest of every graph first."""
        cases = self.cases()
        graphs = [[case for case in cases if case[0] == name] for name in self.datasets]
        return [[case for case in place if case] for place in zip_longest(*graphs)]

    def best(self, case: Case) -> set[str]:
        """The best method of a case, and those that are not distinguishable from it (95 %)."""
        found = {label: accuracy_of(self.row(label, case)) for label in self.fair}
        scores = {label: one for label, one in found.items() if one is not None}
        if not scores:
            return set()
        first = max(scores.values(), key=lambda one: one.mean)
        compared = {label: compare(first, one) for label, one in scores.items()}
        if len(scores) > 1 and not any(one.interval for one in compared.values()):
            return set()  # a single graph and network distinguishes no methods
        return {
            label
            for label, one in scores.items()
            if one.mean == first.mean
            or (compared[label].interval is not None and compared[label].sign == 0)
        }

    def common_cases(self) -> list[Case]:
        """Cases of the main model in which every fair method has a row."""
        return [c for c in self.cases() if all(self.row(label, c) for label in self.fair)]

    @cached_property
    def ranks(self) -> list[Rank]:
        """Average ranks over the common cases, the best first; a failure has the last rank.

        Ranks are averaged over the sizes of a graph, then over graphs. Intervals resample graphs,
        with all methods of a graph together (paired).
        """
        cases = self.common_cases()
        if not cases or len(self.fair) < 2:
            return []
        means = [[_mean(self.row(label, case)) for label in self.fair] for case in cases]
        ranks = np.array([rankdata([-value for value in row]) for row in means])
        names = [case[0] for case in cases]
        graphs = np.array(
            [ranks[[one == name for one in names]].mean(0) for name in dict.fromkeys(names)]
        )
        drawn = np.random.default_rng(0).integers(0, len(graphs), (RESAMPLES, len(graphs)))
        low, high = np.percentile(graphs[drawn].mean(1), [2.5, 97.5], axis=0)
        ends = [one.tolist() if len(graphs) > 1 else [None] * len(one) for one in (low, high)]
        found = zip(self.fair, graphs.mean(0).tolist(), *ends, strict=True)
        return sorted((Rank(*one) for one in found), key=lambda rank: rank.mean)

    @cached_property
    def wins(self) -> dict[tuple[str, str], int]:
        """In how many cases of the main model the first method is above the second (95 %)."""
        found: dict[tuple[str, str], int] = {}
        for case in self.cases():
            scores = {label: accuracy_of(self.row(label, case)) for label in self.fair}
            for one, first in scores.items():
                for other, second in scores.items():
                    if first and second and one != other and compare(first, second).sign > 0:
                        found[one, other] = found.get((one, other), 0) + 1
        return found

    @property
    def failures(self) -> dict[str, list[str]]:
        """Labels and cases of every reason."""
        found: dict[str, list[str]] = {}
        for row in self.rows:
            if failed_row(row):
                place = f"{row['label']} on {row['dataset']}, {row.get('nodes') or 'all'} nodes"
                places = found.setdefault(str(row.get("reason", "")), [])
                places += [place] * (place not in places)
        return found

    @property
    def changed(self) -> dict[str, str]:
        """Settings that were given, by method: what is not its default."""
        found = {row["label"]: row["given"] for row in self.rows if row.get("given")}
        return {
            label: ", ".join(f"{key} = {value}" for key, value in given.items())
            for label, given in found.items()
        }

    @cached_property
    def outdated(self) -> dict[str, int]:
        """How many rows of a method were measured before its results changed."""
        found = Counter(row["label"] for row in self.rows if outdated_methods(row))
        return dict(found)

    # -- as text -------------------------------------------------------------------------------------

    def matrix(self, cases: Sequence[Case], bold: tuple[str, str] = ("", "")) -> list[list[str]]:
        """A heading and a line per method: accuracies in percent with half of their interval."""
        heads = [f"{short_name(name)} {nodes or ''}".rstrip() for name, nodes, _ in cases]
        lines = [["method", *heads]]
        best = {case: self.best(case) for case in cases}
        for label in (*self.methods, *self.references):
            line = [label]
            for case in cases:
                text = cell_text(self.row(label, case))
                line.append(f"{bold[0]}{text}{bold[1]}" if label in best[case] else text)
            if any(text != "-" for text in line[1:]):
                lines.append(line)
        return lines

    def csv(self) -> str:
        """One line per row, unrounded."""
        stream = io.StringIO()
        writer = csv.DictWriter(stream, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in self.rows:
            own: dict[str, Any] = {}
            if (found := accuracy_of(row)) is not None:
                low, high = found.interval or (None, None)
                own = {"mean": found.mean, "low": low, "high": high}
                if (validation := row.get("validation")) and None not in validation:
                    own["validation_mean"] = float(np.mean(validation))
                own["condense_seconds_per_graph"] = seconds_of(row)
            writer.writerow({"state": "done", **row, **own})
        return stream.getvalue()

    def latex(self) -> str:
        """A booktabs table for each size; best and within-noise methods are bold."""
        parts = ["% needs \\usepackage{booktabs}"]
        for cases in self.by_size():
            head, *lines = self.matrix(cases, ("\\textbf{", "}"))
            parts.append(f"\\begin{{tabular}}{{l{'c' * len(cases)}}}\n\\toprule")
            parts.append(" & ".join(map(_tex, head)) + " \\\\\n\\midrule")
            parts += [" & ".join(map(_tex, line)) + " \\\\" for line in lines]
            parts.append("\\bottomrule\n\\end{tabular}\n")
        return "\n".join(parts)

    def tables(self, bold: tuple[str, str]) -> Iterator[tuple[str, str, list[list[str]]]]:
        """Titles, sentences and lines: accuracies by size and by other test models, ranks, wins."""
        sizes = self.by_size()
        names = [f"Size {place + 1}" for place in range(len(sizes))]
        if len(sizes) == 3:
            names = ["Smallest", "Middle", "Largest"]
        if not self.methods:
            names = ["Whole graphs"] * len(sizes)
        for name, cases in zip(names, sizes, strict=True):
            yield f"{name}: test accuracy (%)", "", self.matrix(cases, bold)
        for model in dict.fromkeys(row["test"] for row in self.rows):
            if model != self.model and (cases := self.cases(model)):
                yield f"Tested with {model}", "", self.matrix(cases, bold)
        if self.ranks:
            yield "Average ranks", self.rank_sentence, self.rank_table()
            yield "Wins", WINS, self.win_table()

    @cached_property
    def epochs(self) -> dict[int, list[str]]:
        """Epochs of test networks, and whose rows have them."""
        found: dict[int, dict[str, None]] = {}
        for row in self.rows:
            epochs = row.get("recipe", {}).get("epochs")
            if epochs and not failed_row(row):
                found.setdefault(epochs, {})[row["label"]] = None
        return {epochs: list(labels) for epochs, labels in found.items()}

    def remarks(self) -> Iterator[tuple[str, list[str]]]:
        """Titles and sentences: rows of other epochs or revisions, changed settings, and failures."""
        if len(self.epochs) > 1:
            lines = [
                f"{epochs} epochs: {', '.join(labels)}" for epochs, labels in self.epochs.items()
            ]
            yield "Not comparable: test networks trained for different epochs", lines
        if self.changed:
            lines = [f"{label}: {settings}" for label, settings in self.changed.items()]
            yield "Settings that are not the defaults", lines
        if self.outdated:
            lines = [f"{label}: {counted(count, 'row')}" for label, count in self.outdated.items()]
            yield OUTDATED, lines
        if self.failures:
            yield "Failed", [f"{'; '.join(places)}: {why}" for why, places in self.failures.items()]

    def markdown(self) -> str:
        """Tables, ranks, wins, changed settings and failures as sections of a page."""
        parts = []
        for title, sentence, lines in self.tables(("**", "**")):
            table = markdown_table(lines, range(1, len(lines[0])))
            parts += [f"## {title}", *([sentence] if sentence else []), table]
        for title, sentences in self.remarks():
            parts += [f"## {title}", "\n".join(f"- {one}" for one in sentences)]
        return "\n\n".join(parts) + "\n"

    @property
    def rank_sentence(self) -> str:
        """What ranks are over."""
        cases = self.common_cases()
        graphs = len({case[0] for case in cases})
        return (
            f"Over {counted(len(cases), 'case')} of {counted(graphs, 'graph')} with {self.model}, in"
            " which every method has a row; 1 is best, a failure is last."
            + (" Intervals (95 %) resample graphs." if graphs > 1 else "")
        )

    def rank_table(self) -> list[list[str]]:
        """Ranks, mean accuracy, seconds and bytes over the common cases."""
        lines = [["method", "rank", "95 % interval", "mean accuracy", "seconds", "bytes"]]
        for one in self.ranks:
            rows = [self.row(one.label, case) for case in self.common_cases()]
            done = [row for row in rows if row is not None and not failed_row(row)]
            mean = f"{np.mean([_mean(row) for row in done]):.1f}" if len(done) == len(rows) else "-"
            seconds = [found for row in done if (found := seconds_of(row)) is not None]
            sizes = [row["bytes"] for row in done if row.get("bytes") is not None]
            lines.append(
                [
                    *(one.label, f"{one.mean:.2f}", one.interval, mean),
                    f"{np.median(seconds):.3g}" if seconds else "-",
                    byte_count(float(np.median(sizes))) if sizes else "-",
                ]
            )
        return lines

    def win_table(self) -> list[list[str]]:
        """Wins of the method of a line over that of a column."""
        order = [one.label for one in self.ranks] or self.fair
        lines = [["", *order]]
        for one in order:
            wins = {other: str(self.wins.get((one, other), 0)) for other in order} | {one: ""}
            lines.append([one, *wins.values()])
        return lines


WINS = (
    "In how many cases the method of the line is above the method of the column beyond the 95 %"
    " interval of their difference (Welch)."
)


def outdated_methods(row: Row) -> list[str]:
    """Methods of a row whose results have changed since: their revision is another one now."""
    revisions = row.get("revisions") or {}
    return [
        name
        for name, revision in revisions.items()
        if name in BUILT_IN and method(name).revision != revision
    ]


def short_name(dataset: str) -> str:
    """The name of a graph in tables: of a path the last part, without its suffix."""
    return dataset.rpartition("/")[2].replace(".npz", "")


def _labels(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row["label"] for row in rows))


def _complete(row: Row) -> bool:
    scores, graphs = row.get("scores"), row.get("graphs")
    if not (isinstance(scores, list) and scores and isinstance(graphs, int) and graphs > 0):
        return False
    return None not in scores and len(scores) % graphs == 0


def accuracy_of(row: Row | None) -> Accuracy | None:
    """The scores of a row, if it has any."""
    if row is None or failed_row(row):
        return None
    return Accuracy.of(row["scores"], row["graphs"])


def _mean(row: Row | None) -> float:
    found = accuracy_of(row)
    return float("-inf") if found is None else found.mean


def seconds_of(row: Row) -> float | None:
    """Seconds of condensing one graph, from the real graph on."""
    seconds, graphs = row.get("condense_seconds"), row.get("graphs")
    return None if seconds is None or not graphs else seconds / graphs


def cell_text(row: Row | None) -> str:
    """Mean and half of the interval; a leak is marked."""
    if row is None:
        return "-"
    found = accuracy_of(row)
    leak = " †" if row.get("leaks_test_labels") else ""
    return FAILED if found is None else f"{str(found).removesuffix(' %')}{leak}"


def markdown_table(lines: Sequence[Sequence[str]], numeric: Container[int]) -> str:
    """The first line is the head; columns of numbers are flush right."""
    head, *rest = ([text.replace("|", "\\|") for text in line] for line in lines)
    rule = "|".join("---:" if place in numeric else "---" for place in range(len(head)))
    first, *others = ("| " + " | ".join(line) + " |" for line in (head, *rest))
    return "\n".join([first, f"|{rule}|", *others])


def _tex(text: str) -> str:
    for sign in "&%_#":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("±", "$\\pm$").replace("†", "$\\dagger$")
