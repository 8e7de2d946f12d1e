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
from gcsr.benchmarking.own_code import code_hash
from gcsr.benchmarking.store import Row, Store, failed_row
from gcsr.evaluation.intervals import Accuracy, compare
from gcsr.methods.registry import BUILT_IN, method
from gcsr.utils.formatting import byte_count, counted

Case = tuple[str, int, str]
# Condensed graphs per cell, networks per graph, and their epochs.
Repeated = tuple[int | None, int | None, int | None]
REFERENCES = (WHOLE_GRAPH, PSEUDO_LABELS)
RESAMPLES = 2000
FAILED = "failed"
# What intervals over few condensed graphs lack.
FEW_GRAPHS = {
    1: "of 1 graph do not include the variation between condensed graphs",
    2: "over 2 graphs are wide",
}
OUTDATED = "Measured with an earlier revision of the method"
COLUMNS = (
    *("label", "method", "dataset", "nodes", "test", "mean", "low", "high", "std"),
    *("validation_mean", "graphs", "runs", "epochs", "state", "reason", "leaks_test_labels"),
    *("condense_seconds_per_graph", "evaluate_seconds", "peak_memory_bytes", "bytes", "given"),
    *("tuned", "preset", "device", "machine", "jobs", "data", "key", "command"),
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
    """A row of every method and case; ``missing`` cells were not begun.

    Of several rows it is the newest of the present code of ``module:Class`` and of the protocol of the
    case, which is that of most of its rows. Only rows of the protocol are compared.
    """

    found: Mapping[tuple[str, Case], Row] = field(repr=False)
    missing: int = 0
    faults: Sequence[str] = ()
    hidden: Sequence[str] = ()
    protocols: Mapping[Case, Repeated] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        cells = f"{counted(len(self.rows), 'row')}, {self.missing} missing"
        return f"Results({cells}: {', '.join(self.methods)} on {', '.join(self.datasets)})"

    @classmethod
    def of(
        cls,
        rows: Iterable[Row] | Store,
        missing: int = 0,
        faults: Sequence[str] = (),
        hidden: Sequence[str] = (),
    ) -> Results:
        """From rows, of which those that are no part of a benchmark are left out."""
        known = [row for row in rows if benchmark_row(row)]
        places: dict[tuple[str, Case], list[Row]] = {}
        for row in known:
            places.setdefault((row["label"], _case(row)), []).append(row)
        for place, several in places.items():
            if len(several) > 1:
                places[place] = list(filter(_is_present, several)) or several
        protocols = _protocols([row for several in places.values() for row in several])
        found = {
            (label, case): next(
                (row for row in reversed(several) if _is_of(row, protocols[case])), several[-1]
            )
            for (label, case), several in places.items()
        }
        shown = {id(row) for row in found.values()}
        left_out = [one for one in known if id(one) not in shown and not outdated_methods(one)]
        if left_out:
            count, labels = counted(len(left_out), "row"), "; ".join(_labels(left_out))
            why = "of other versions of the method, or of other seeds or epochs"
            hidden = [*hidden, f"not shown: {count} of {labels}: {why}"]
        return cls(found, missing, faults, hidden, protocols)

    @cached_property
    def rows(self) -> list[Row]:
        """All rows."""
        return list(self.found.values())

    def row(self, label: str, case: Case) -> Row | None:
        """The row of a method in a case; a reference has no size."""
        return self.found.get((label, case)) or self.found.get((label, (case[0], 0, case[2])))

    def compared_row(self, label: str, case: Case) -> Row | None:
        """The same, if it is of the protocol of the case."""
        row = self.row(label, case)
        return row if row is not None and _is_of(row, self.protocols[case]) else None

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
    def compared(self) -> list[str]:
        """Those of them that have rows of the protocols of their cases."""
        own = {row["label"] for row in self.rows if _is_of(row, self.protocols[_case(row)])}
        return [label for label in self.fair if label in own]

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
        """Cases of the main model by nodes per class; if one is no integer, by place of the size.

        The smallest come first.
        """
        cases = self.cases()
        sizes = {case: self._per_class(case) for case in cases}
        known = {size for size in sizes.values() if size}
        if all(sizes.values()):
            return [[case for case in cases if sizes[case] == size] for size in sorted(known)]
        graphs = [[case for case in cases if case[0] == name] for name in self.datasets]
        return [[case for case in place if case] for place in zip_longest(*graphs)]

    def best(self, case: Case) -> set[str]:
        """The best method of a case, and those that are not distinguishable from it (95 %)."""
        found = {label: accuracy_of(self.compared_row(label, case)) for label in self.compared}
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
        """Cases of the main model in which every compared method has a row."""
        return [c for c in self.cases() if all(self.compared_row(one, c) for one in self.compared)]

    @cached_property
    def ranks(self) -> list[Rank]:
        """Average ranks over the common cases, the best first; a failure has the last rank.

        Ranks are averaged over the sizes of a graph, then over graphs. Intervals resample graphs,
        with all methods of a graph together (paired).
        """
        cases = self.common_cases()
        if not cases or len(self.compared) < 2:
            return []
        means = [[_mean(self.row(label, case)) for label in self.compared] for case in cases]
        ranks = np.array([rankdata([-value for value in row]) for row in means])
        names = [case[0] for case in cases]
        graphs = np.array(
            [ranks[[one == name for one in names]].mean(0) for name in dict.fromkeys(names)]
        )
        drawn = np.random.default_rng(0).integers(0, len(graphs), (RESAMPLES, len(graphs)))
        low, high = np.percentile(graphs[drawn].mean(1), [2.5, 97.5], axis=0)
        ends = [one.tolist() if len(graphs) > 1 else [None] * len(one) for one in (low, high)]
        found = zip(self.compared, graphs.mean(0).tolist(), *ends, strict=True)
        return sorted((Rank(*one) for one in found), key=lambda rank: rank.mean)

    @cached_property
    def wins(self) -> dict[tuple[str, str], int]:
        """In how many cases of the main model the first method is above the second (95 %)."""
        found: dict[tuple[str, str], int] = {}
        for case in self.cases():
            scores = {one: accuracy_of(self.compared_row(one, case)) for one in self.compared}
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
            own: dict[str, Any] = {"epochs": _repeated(row)[2]}
            if (found := accuracy_of(row)) is not None:
                low, high = found.interval or (None, None)
                own |= {"mean": found.mean, "low": low, "high": high}
                if (validation := row.get("validation")) and None not in validation:
                    own["validation_mean"] = float(np.mean(validation))
                own["condense_seconds_per_graph"] = seconds_of(row)
            writer.writerow({"state": "done", **row, **own})
        return stream.getvalue()

    def latex(self) -> str:
        """A booktabs table for each size and other test model; best and within-noise are bold."""
        parts = [TEX_HEAD]
        for title, (head, *lines) in self.accuracies(("\\textbf{", "}")):
            parts.append(f"% {' '.join(_tex(title).split())}")
            parts.append(f"\\begin{{tabular}}{{l{'c' * len(head[1:])}}}\n\\toprule")
            parts.append(" & ".join(map(_tex, head)) + " \\\\\n\\midrule")
            signs = [
                [_tex(line[0]), *(one.translate(_TEX_SIGNS) for one in line[1:])] for line in lines
            ]
            parts += [" & ".join(line) + " \\\\" for line in signs]
            parts.append("\\bottomrule\n\\end{tabular}\n")
        return "\n".join(parts)

    def size_name(self, cases: Sequence[Case]) -> str:
        """Nodes per class where they are the same in all cases, else nodes."""
        if not self.methods:
            return "Whole graphs"
        sizes = {self._per_class(case) for case in cases}
        if len(sizes) == 1 and None not in sizes:
            return f"{sizes.pop()} per class"
        low, high = min(case[1] for case in cases), max(case[1] for case in cases)
        return counted(low, "node") if low == high else f"{low} to {high} nodes"

    @cached_property
    def _classes(self) -> dict[str, int]:
        return {row["dataset"]: row["classes"] for row in self.rows if row.get("classes")}

    def _per_class(self, case: Case) -> int | None:
        """Nodes per class, if that is an integer."""
        size, rest = divmod(case[1], self._classes.get(case[0], case[1] + 1))
        return None if rest else size

    def accuracies(self, bold: tuple[str, str]) -> Iterator[tuple[str, list[list[str]]]]:
        """Titles and lines: accuracies by size and by other test models."""
        for cases in self.by_size():
            yield f"{self.size_name(cases)}: test accuracy (%)", self.matrix(cases, bold)
        for model in dict.fromkeys(row["test"] for row in self.rows):
            if model != self.model and (cases := self.cases(model)):
                yield f"Tested with {model}", self.matrix(cases, bold)

    def tables(self, bold: tuple[str, str]) -> Iterator[tuple[str, str, list[list[str]]]]:
        """Titles, sentences and lines: accuracies, ranks, wins."""
        for title, lines in self.accuracies(bold):
            yield title, "", lines
        if self.ranks:
            yield "Average ranks", self.rank_sentence, self.rank_table()
            yield "Wins", WINS, self.win_table()

    @property
    def notes(self) -> list[str]:
        """What is not shown or not ranked, and whether there are too few condensed graphs."""
        found, others = [*self.hidden], dict[Repeated, list[Row]]()
        for row in self.rows if self.methods else ():
            if not _is_of(row, protocol := self.protocols[_case(row)]):
                others.setdefault(protocol, []).append(row)
        for (graphs, runs, epochs), rows in others.items():
            labels, names = (", ".join(one) for one in (_labels(rows), _datasets(rows)))
            most = f"{counted(graphs or 0, 'graph')} x {counted(runs or 0, 'network')}, {epochs} epochs"
            why = f"rows of {labels} on {names} that are not of {most}"
            found.append(f"neither ranked nor compared: {why}")
        counts = {protocol[0] for case, protocol in self.protocols.items() if case[1]}
        for graphs, wide in FEW_GRAPHS.items():
            if graphs in counts:
                found.append(f"intervals {wide}; 5 seeds or more make them useful")
        return found

    def remarks(self) -> Iterator[tuple[str, list[str]]]:
        """Titles and sentences: notes, changed settings, rows of earlier revisions, failures."""
        if self.notes:
            yield "Notes", self.notes
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
        order = [one.label for one in self.ranks] or self.compared
        lines = [["", *order]]
        for one in order:
            wins = {other: str(self.wins.get((one, other), 0)) for other in order} | {one: ""}
            lines.append([one, *wins.values()])
        return lines


WINS = (
    "In how many cases the method of the line is above the method of the column beyond the 95 %"
    " interval of their difference (Welch). A failure neither wins nor loses."
)
TEX_HEAD = """% needs \\usepackage{booktabs}
% bold: the best method, and those that are not distinguishable from it (95 %)
% $\\pm$: half of the 95 % interval of the mean over condensed graphs"""


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


def _datasets(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(short_name(row["dataset"]) for row in rows))


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


def benchmark_row(row: Row) -> bool:
    """Whether a row is a part of a benchmark."""
    known = all(isinstance(row.get(name), str) for name in ("label", "dataset", "test"))
    return known and (failed_row(row) or _complete(row))


def _repeated(row: Row) -> Repeated:
    return row.get("graphs"), row.get("runs"), row.get("recipe", {}).get("epochs")


def _case(row: Row) -> Case:
    return row["dataset"], row.get("nodes") or 0, row["test"]


def _protocols(rows: Sequence[Row]) -> dict[Case, Repeated]:
    """Of every case that of most rows, and of several the one with the most graphs and networks.

    Failed rows and references count where there are no others. A reference has the protocol of most
    rows of its graph and test model.
    """
    places: dict[Case, list[Row]] = {}
    for row in rows:
        case = _case(row)
        for place in {case, (case[0], 0, case[2])}:
            places.setdefault(place, []).append(row)
    return {place: _most_frequent(several) for place, several in places.items()}


def _most_frequent(rows: Sequence[Row]) -> Repeated:
    ranks = [(row.get("method") in REFERENCES, failed_row(row)) for row in rows]
    first = [row for row, rank in zip(rows, ranks, strict=True) if rank == min(ranks)]
    counts = Counter(map(_repeated, first))
    return max(counts, key=lambda one: (counts[one], *(value or 0 for value in one)))


def _is_of(row: Row, protocol: Repeated) -> bool:
    """Whether a row is of the protocol; a reference has no condensed graphs."""
    first = int(row.get("method") in REFERENCES)
    return _repeated(row)[first:] == protocol[first:]


def _is_present(row: Row) -> bool:
    """Whether ``module:Class`` was as its files are now. They are read and not run."""
    return row.get("code") is None or row["code"] == code_hash(str(row.get("method")))


_TEX_SIGNS = str.maketrans({"±": "$\\pm$", "†": "$\\dagger$"})
_TEX = _TEX_SIGNS | str.maketrans(
    {sign: f"\\{sign}" for sign in "&%_#${}"}
    | {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
)


def _tex(text: str) -> str:
    return text.translate(_TEX)
