"""The automatic mode beside its references (``automatic.toml`` and what its comments name)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from gcsr.auto.automatic import PARTS
from gcsr.evaluation.intervals import Difference, compare
from gcsr.paper.published import TABLE2
from rows import Row, accuracy_of, code_of, table, with_code, with_interval

# Ten nodes per class: name, cell, and where its whole graph is.
FEW_LABELS = {
    "Cora, 70": ("cora:70", "cora"),
    "Citeseer, 60": ("citeseer:60", "citeseer"),
    "PubMed, 30": ("pubmed:30", "pubmed"),
    "amazon-computers, 100": ("amazon-computers:100", "amazon-computers"),
    "facebook-pagepage, 40": ("facebook-pagepage.npz:40", "facebook-pagepage.npz"),
    "digits, 100": ("digits:100", "digits"),
}
MANY_LABELS = {
    "WordNet, 440": ("wordnet.npz:440", "wordnet.npz"),
    "facebook-pagepage 60/20/20, 40": (
        "facebook-pagepage-rich.npz:40",
        "facebook-pagepage-rich.npz",
    ),
    "amazon-computers 60/20/20, 100": (
        "amazon-computers-rich.npz:100",
        "amazon-computers-rich.npz",
    ),
    "actor, 50": ("actor.npz:50", "actor.npz"),
    "ogbn-arxiv stand-in, 454": ("ogbn-arxiv-standin.npz:454", "ogbn-arxiv-standin.npz"),
    "facebook-pagepage, 40, inductive": (
        "facebook-pagepage.npz:40:inductive=true",
        "facebook-pagepage.npz:inductive=true",
    ),
}
GRAPHS = FEW_LABELS | MANY_LABELS
# Fifty nodes per class.
LARGER = {
    "WordNet, 2200": "wordnet.npz:2200",
    "facebook-pagepage 60/20/20, 200": "facebook-pagepage-rich.npz:200",
    "amazon-computers 60/20/20, 500": "amazon-computers-rich.npz:500",
    "actor, 250": "actor.npz:250",
    "ogbn-arxiv stand-in, 2270": "ogbn-arxiv-standin.npz:2270",
}
SIZES = [("cora", n) for n in (35, 70, 140)] + [("citeseer", n) for n in (30, 60, 120)]
# Networks of other architectures, on three graphs and on what they were condensed from.
MODELS = ("mlp", "sgc", "gcn", "sage", "appnp", "cheby", "gat")
TRANSFER = ("Cora, 70", "facebook-pagepage 60/20/20, 40", "WordNet, 440")
# CPU rows of the leaderboard.
ONE_CORE = "automatic, one CPU core"
# The ablation leaves the stand-in and the inductive graph out.
ABLATED = tuple(name for name in GRAPHS if "stand-in" not in name and "inductive" not in name)
# Columns of the README.
README = (
    *("Cora, 70", "Citeseer, 60", "PubMed, 30", "digits, 100", "WordNet, 440"),
    *("facebook-pagepage 60/20/20, 40", "amazon-computers 60/20/20, 100", "actor, 50"),
)
# Parts switched off in turn, as settings of a cell.
OFF = {f"without {name}: {what}": f"disable={name}" for name, (_, _, what) in PARTS.items()}
OFF_BILEVEL = "disable=bilevel"


def with_settings(cell: str, part: str) -> str:
    """Settings come after the size and before what concerns the data."""
    dataset, nodes, *rest = cell.split(":")
    return ":".join([dataset, nodes, part, *rest])


def automatic_section(
    rows: list[Row], alone: Sequence[list[Row]], leaderboard: list[Row]
) -> list[str]:
    """Accuracy in both label regimes; ``alone``: seconds on an idle H200 and on an idle CPU core."""
    known = {row["cell"]: row for row in rows}
    idle = [{row["cell"]: row for row in one} for one in alone]
    core = _on_cpu(leaderboard)

    def shown(cell: str) -> str:
        return with_interval(known.get(cell))

    def measured(cell: str) -> bool:
        return f"auto/default/{cell}/gcn" in known

    def row(name: str, cell: str, whole: str, *, pseudo: bool) -> list[str]:
        found = known.get(f"auto/default/{cell}/gcn")
        columns = [
            shown(f"auto/default/{cell}/gcn"),
            with_interval(core.get(f"auto/default/{cell}/gcn")),
            shown(f"random/default/{cell}/gcn"),
            shown(f"herding/default/{cell}/gcn"),
            shown(f"whole/default/{whole}/gcn"),
        ]
        if pseudo:
            trained = known.get(f"pseudo/default/{whole}/gcn")
            themselves = "-" if trained is None else f"{trained['pseudo_labels']['test']:.1f}"
            columns += [shown(f"pseudo/default/{whole}/gcn"), themselves]
        columns.append(against(known, cell, whole))
        if pseudo:
            columns.append(against(known, cell, whole, "pseudo"))
        device = "" if found is None else f", {_device(found)}"
        columns[0] += device
        start = known.get(f"auto/default/{with_settings(cell, OFF_BILEVEL)}/gcn")
        return [name, *columns, _chosen(found, start), *(_took(one.get(cell)) for one in idle)]

    heads = ["graph, nodes", "automatic", ONE_CORE, "Random", "Herding", "whole graph"]
    less = "automatic less whole graph"
    tail = ["chosen", "seconds, H200 alone", "seconds, one idle CPU core"]
    lines = ["Few labels. A condensed graph that beats a plain GCN on the whole graph does so by"]
    lines += [
        "learning from unlabeled nodes, so two more references are fair: the same GCN trained on"
    ]
    lines += ["the whole graph with the pseudo-labels, and the pseudo-labels themselves.", ""]
    pseudo = ("whole graph with pseudo-labels", "pseudo-labels")
    lines += table(
        [*heads, *pseudo, less, f"{less} with pseudo-labels", *tail],
        [
            row(name, *found, pseudo=True)
            for name, found in FEW_LABELS.items()
            if measured(found[0])
        ],
    )
    lines += [
        "",
        "Many labels (the inductive graph has few, but all of its visible nodes have one):",
    ]
    many = [
        row(name, *found, pseudo=False) for name, found in MANY_LABELS.items() if measured(found[0])
    ]
    lines += ["", *table([*heads, less, *tail], many)]
    lines += ["", *verdicts(known)]
    if any("standin" in cell for cell in known):
        lines += [
            "",
            "The stand-in has the real graph and labels of ogbn-arxiv and random features.",
        ]
    larger = [
        (name, shown(f"auto/default/{cell}/gcn")) for name, cell in LARGER.items() if measured(cell)
    ]
    if larger:
        lines += ["", "Fifty nodes per class:", "", *table(("graph, nodes", "automatic"), larger)]
    lines += ["", "Without any leak, beside the paper's GCSR, which counts test labels:", ""]
    ours = [shown(f"auto/default/{d}:{n}/gcn") for d, n in SIZES]
    paper = [str(TABLE2["gcsr"][d, n][0]) for d, n in SIZES]
    columns = ["", *(f"{d.capitalize()} {n}" for d, n in SIZES)]
    small = [with_interval(core.get(f"auto/default/{d}:{n}/gcn")) for d, n in SIZES]
    lines += table(columns, [["automatic", *ours], [ONE_CORE, *small], ["GCSR, published", *paper]])
    return with_code([*lines, *_transfer(known)])


def _transfer(known: dict[str, Row]) -> list[str]:
    """Networks of other architectures, on what was condensed and on the whole graph."""
    labels = known.get("pseudo/default/cora/gcn")
    head = "Tested with other architectures."
    if labels is not None:
        test = labels["pseudo_labels"]["test"]
        head += f" The pseudo-labels of Cora themselves have {test:.1f} % on the test nodes."
    rows = []
    for name in TRANSFER:
        cell, whole = GRAPHS[name]
        if f"auto/default/{cell}/gcn" not in known:
            continue
        for title, each in (
            (name, f"auto/default/{cell}"),
            ("... whole", f"whole/default/{whole}"),
            ("... whole with pseudo-labels", f"pseudo/default/{whole}"),
        ):
            found = [known.get(f"{each}/{model}") for model in MODELS]
            rows += [[title, *map(with_interval, found)]] if any(found) else []
    return ["", head, "", *table(["trained on", *MODELS], rows)]


def difference(
    known: dict[str, Row], cell: str, whole: str, reference: str = "whole"
) -> Difference | None:
    """The automatic mode less training on the whole graph (``pseudo``: with pseudo-labels)."""
    ours = known.get(f"auto/default/{cell}/gcn")
    theirs = known.get(f"{reference}/default/{whole}/gcn")
    return compare(accuracy_of(ours), accuracy_of(theirs)) if ours and theirs else None


def against(known: dict[str, Row], cell: str, whole: str, reference: str = "whole") -> str:
    """:func:`difference` with its interval, and in a word."""
    found = difference(known, cell, whole, reference)
    return "-" if found is None else f"{found} {found.direction}"


def verdicts(known: dict[str, Row]) -> list[str]:
    """Where the automatic mode is above and below training on the whole graph."""
    lines = []
    for reference, graphs, what in (
        ("whole", GRAPHS, "a GCN trained on the whole graph"),
        ("pseudo", FEW_LABELS, "a GCN trained on the whole graph with the pseudo-labels"),
    ):
        words: dict[str, list[str]] = {"above": [], "below": [], "not distinguishable": []}
        for name, cells in graphs.items():
            found = difference(known, *cells, reference)
            if found is not None:
                words[found.direction].append(name)
        counts = [
            f"{word} on {len(names)} ({'; '.join(names)})" for word, names in words.items() if names
        ]
        if counts:
            lines.append(f"- Against {what}: {', '.join(counts)}.")
    return lines


def readme_table(rows: list[Row], leaderboard: list[Row]) -> list[str]:
    """The table of the README: some graphs as columns."""
    known = {row["cell"]: row for row in rows}
    cells = {name: GRAPHS[name] for name in README}
    core = _on_cpu(leaderboard)

    def line(title: str, shown: Callable[[str, str, str], str]) -> list[str]:
        return [title, *(shown(name, *found) for name, found in cells.items())]

    def ours(name: str, cell: str, whole: str) -> str:
        row = known.get(f"auto/default/{cell}/gcn")
        return with_interval(row) + ("" if row is None else f", {_device(row)}")

    def themselves(name: str, cell: str, whole: str) -> str:
        row = known.get(f"pseudo/default/{whole}/gcn")
        return "-" if row is None else f"{row['pseudo_labels']['test']:.1f}"

    def fair(name: str, cell: str, whole: str) -> str:
        return against(known, cell, whole, "pseudo" if name in FEW_LABELS else "whole")

    lines = [
        line("automatic mode", ours),
        line(
            "the same on one CPU core",
            lambda _, cell, __: with_interval(core.get(f"auto/default/{cell}/gcn")),
        ),
        line("Random", lambda _, cell, __: with_interval(known.get(f"random/default/{cell}/gcn"))),
        line("whole graph", lambda *c: with_interval(known.get(f"whole/default/{c[2]}/gcn"))),
        line(
            "whole graph with pseudo-labels",
            lambda *c: with_interval(known.get(f"pseudo/default/{c[2]}/gcn")),
        ),
        line("pseudo-labels themselves", themselves),
        line("automatic mode less its reference", fair),
    ]
    return with_code(table(["", *(name.split(",")[0] for name in cells)], lines))


def _device(row: Row) -> str:
    # Rows of ``gcsr benchmark`` name the kind of device, and the machine beside it.
    return "H200" if "H200" in f"{row.get('device')} {row.get('machine')}" else "CPU"


def _on_cpu(rows: list[Row]) -> dict[str, Row]:
    return {row["cell"]: row for row in rows if _device(row) == "CPU"}


def fewer_steps(leaderboard: list[Row], rows: list[Row]) -> str:
    """A sentence on the cells that both files have, the one of a CPU and the other of an H200."""
    here = {row["key"]: _steps(row) for row in leaderboard if _device(row) == "CPU"}
    there = {row.get("key"): _steps(row) for row in rows if _device(row) == "H200"}
    both = [key for key in here if here[key] and there.get(key)]
    fewer = sum(here[key] < there[key] for key in both)
    return (
        f"On the CPU there are fewer outer steps than on an H200 in {fewer} of the {len(both)} cells"
        f" that are measured on both, and as many in {sum(here[key] == there[key] for key in both)}."
    )


def _steps(row: Row) -> int:
    """Outer steps of bilevel condensation, 0 where no graph of the row has any."""
    chosen = row.get("chosen") or []
    return max((one["settings"].get("iterations", 0) for one in chosen), default=0)


def ablation_section(rows: list[Row]) -> list[str]:
    """Every part switched off in turn; nothing where no row is there."""
    known = {row["cell"]: row for row in rows}
    cells = {name: GRAPHS[name][0] for name in ABLATED}
    whole = {name: f"auto/default/{cell}/gcn" for name, cell in cells.items()}
    off = {
        title: {
            name: f"auto/default/{with_settings(cell, part)}/gcn" for name, cell in cells.items()
        }
        for title, part in OFF.items()
    }
    if not any(cell in known for each in off.values() for cell in each.values()):
        return []

    def line(title: str, each: dict[str, str]) -> list[str]:
        found = [known.get(each[name]) for name in ABLATED]
        base = [known.get(whole[name]) for name in ABLATED]
        numbers = [_ablated(*pair) for pair in zip(found, base, strict=True)]
        few = _mean([row for row, name in zip(found, ABLATED, strict=True) if name in FEW_LABELS])
        many = _mean([row for row, name in zip(found, ABLATED, strict=True) if name in MANY_LABELS])
        return [title, *numbers, few, many]

    heads = ["", *ABLATED, "mean, few labels", "mean, many labels"]
    lines = [line(title, each) for title, each in off.items()]
    return with_code(table(heads, [*lines, line("automatic", whole)]))


def _ablated(row: Row | None, base: Row | None) -> str:
    if row is None:
        return "-"
    single = base is None or row["graphs"] == 1
    sign = 0 if single else compare(accuracy_of(row), accuracy_of(base)).sign
    few = "" if row["graphs"] == 3 else f" ({row['graphs']} of 3 graphs)"
    return f"{row['mean']:.1f}{code_of(row)}{('', ' ↑', ' ↓')[sign]}{few}"


def budget_section(rows: list[Row]) -> list[str]:
    """Accuracy and seconds by budget: rows of one graph each on one core."""
    if not rows:
        return []
    budgets = sorted({row["budget"] for row in rows})
    # Older rows have the name of the graph alone as their cell.
    rows = [{"graph": row["cell"], **row} for row in rows]
    known = {(row["graph"], row["budget"]): row for row in rows}

    def cell(name: str, budget: float) -> str:
        row = known.get((name, budget))
        if row is None:
            return "-"
        shown = with_interval({**row, "graphs": 1})
        return f"{shown}, {row['seconds']:.0f} s, {row['iterations']} steps"

    heads = ["graph, nodes", *(f"{budget:g} s" for budget in budgets)]
    names = dict.fromkeys(row["graph"] for row in rows)
    lines = [[name, *(cell(name, budget) for budget in budgets)] for name in names]
    sections = with_code(table(heads, lines))
    devices = dict.fromkeys(row.get("machine") or row["device"] for row in rows)
    return [*sections, "", f"Measured on: {'; '.join(devices)}."]


def _mean(rows: list[Row | None]) -> str:
    found = [row["mean"] for row in rows if row is not None]
    return f"{sum(found) / len(found):.1f}" if len(found) == len(rows) else "-"


def _took(row: Row | None) -> str:
    if row is None:
        return "-"
    return f"{row['seconds']:.1f} s, {row['peak_memory_bytes'] / 2**30:.1f} GiB"


def _chosen(row: Row | None, start: Row | None) -> str:
    """What was chosen per graph; ``start``: the row whose results are the starts.

    Bilevel condensation keeps its best iterate. Where this is the first one, its scores are those of
    the start.
    """
    if row is None:
        return "-"
    names = []
    for place, one in enumerate(row["chosen"]):
        same = start is not None and _graph_scores(row, place) == _graph_scores(start, place)
        name = "start" if one["settings"].get("iterations") == 0 else one["method"]
        names.append("bilevel, first iterate" if name == "bilevel" and same else name)
    return "; ".join(f"{name} {count}x" for name, count in Counter(names).items())


def _graph_scores(row: Row, place: int) -> list[float]:
    runs: int = row["runs"]
    return list(row["scores"][place * runs : (place + 1) * runs])
