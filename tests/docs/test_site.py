"""The site builds, its links lead somewhere, and nothing public is left out of it."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gcsr.methods
from gcsr.cli.app import app
from gcsr.methods.registry import BUILT_IN, methods
from gcsr.models.registry import MODELS
from gcsr.paper.experiments import EXPERIMENTS
from pages import PAGES, ROOT

TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^)\s]+)\)")
# Methods that authors published settings for.
# The methods of the GCSR paper's tables come first.
PUBLISHED = [*BUILT_IN][: [*BUILT_IN].index("gcsr") + 1]
DEFAULTS = "Every method, default settings, other graphs"
# Beside a number of other code; tables number them on their own.
CODE_MARK = re.compile(" [¹²³⁴⁵⁶⁷⁸⁹]")
EXTERNAL = ("https://", "http://", "mailto:")


def prose(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """Anchors of headings as GitHub and the site both make them from plain words."""
    headings = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    slugs = (re.sub(r"[^\w\- ]", "", heading.lower()).strip() for heading in headings)
    return {re.sub(r"[-\s]+", "-", slug) for slug in slugs}


def links() -> Iterator[tuple[Path, str]]:
    for page, text in TEXTS.items():
        for target in LINK.findall(prose(text)):
            if not target.startswith(EXTERNAL):
                yield page, target


def test_internal_links_and_anchors_resolve():
    seen = list(links())
    assert len(seen) > 40
    for page, target in seen:
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(file.read_text(encoding="utf-8")), f"{page.name}: {target}"


def test_every_page_is_in_the_navigation():
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES[1:]:
        assert re.search(rf": {page.name}$", config, re.MULTILINE), page.name


@pytest.mark.parametrize("verb", [one.name for one in app.registered_commands if not one.hidden])
def test_every_verb_is_documented(verb):
    assert f"## gcsr {verb}\n" in TEXTS[DOCS / "cli.md"]
    others = [text for page, text in TEXTS.items() if page.name != "cli.md"]
    assert any(f"gcsr {verb}" in text for text in others), verb


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_method_is_documented(name):
    method = methods()[name]
    assert f"| `{method.name}` |" in TEXTS[DOCS / "choose-a-method.md"]
    assert f"::: gcsr.{method.__name__}\n" in TEXTS[DOCS / "api.md"]


def test_every_model_is_named_where_networks_are_trained():
    named = re.search(r"have\s+the names (.*?)\.", TEXTS[DOCS / "train-your-own-gnn.md"], re.DOTALL)
    assert named and re.findall(r"`(\S+)`", named[1]) == [*MODELS]


def test_every_public_name_is_in_the_reference():
    reference = TEXTS[DOCS / "api.md"]
    for name in set(gcsr.__all__) - {"__version__"}:
        assert f"::: gcsr.{name}\n" in reference or f"heading: gcsr.{name}," in reference, name


def test_what_a_method_is_written_with_is_in_the_reference():
    page, reference = TEXTS[DOCS / "write-a-method.md"], TEXTS[DOCS / "api.md"]
    assert "(api.md#write-a-method)" in page
    lines = re.findall(r"^from gcsr\.methods import (.+)$", page, re.MULTILINE)
    names = ", ".join(lines).split(", ")
    found = [name for name in names if inspect.isroutine(getattr(gcsr.methods, name))]
    assert {"class_budget", "block_labels", "sample_training_rows"} <= {*found}
    for name in found:
        assert re.search(rf"^::: gcsr\.[\w.]*\b{name}$", reference, re.MULTILINE), name


def test_the_command_line_page_is_what_the_program_says():
    page = runpy.run_path(str(ROOT / "benchmarks" / "cli_page.py"))["page"]
    wanted = "run: python benchmarks/cli_page.py > docs/cli.md"
    assert TEXTS[DOCS / "cli.md"] == page(), wanted


def test_every_printed_equation_has_a_row():
    """The paper prints the numbers 1 to 18; an equation is shown with its code and a test of it."""
    text = section(DOCS / "architecture.md", "Where the equations are")
    numbered = [row for row in table_rows(text).values() if row[1][0].isdigit()]
    ends = [[int(number) for number in row[1].split("-")] for row in numbered]
    printed = [n for first, *last in ends for n in range(first, (last or [first])[0] + 1)]
    assert printed == [*range(1, 19)]
    for _, _, _, tests in numbered:
        for path in re.findall(r"`(\w+/\w+\.py)`", tests):
            source = (ROOT / "tests" / path).read_text(encoding="utf-8")
            for test in re.findall(r"`(test_\w+)`", tests):
                assert f"def {test}(" in source, test


def test_tables_that_a_page_names_exist():
    for text in TEXTS.values():
        for name in re.findall(r"gcsr reproduce ([a-z]\S*)", text):
            assert name in EXPERIMENTS, name


# -- figures are those of rows -------------------------------------------------------------------------


def table_rows(text: str) -> dict[str, list[str]]:
    """Rows of all tables by their first cell."""
    rows = [
        [c.strip() for c in CODE_MARK.sub("", line).strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    return {row[0].strip("`"): row for row in rows}


def section(page: Path, heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", TEXTS[page], re.M | re.S)
    assert found, heading
    return found[1]


def test_figures_of_the_methods_page_are_in_the_rows():
    measured = table_rows(
        section(DOCS / "results.md", "Every method, authors' settings, tested with GCN")
    )
    shown = table_rows(TEXTS[DOCS / "choose-a-method.md"].split("## Which one")[0])
    for method in PUBLISHED:
        *_, accuracy = shown[method]
        column = measured["method"].index("Cora 70")
        assert measured[method][column].startswith(accuracy), method


@pytest.mark.parametrize("prior", [2, 3], ids=["all", "predicted"])
def test_gcsr_has_one_of_the_four_highest_means_as_the_methods_page_says(prior):
    heading = "Every method, authors' settings, tested with GCN"
    rows = table_rows(section(DOCS / "results.md", heading))
    own = table_rows(section(DOCS / "results.md", "GCSR on Cora and Citeseer, tested with GCN"))
    others = [method for method in PUBLISHED if method != "gcsr"]
    for column, cell in enumerate(rows["method"][1:], 1):
        dataset, nodes = cell.split()
        ours = float(own[f"{dataset}, {nodes} nodes"][prior].split()[0])
        better = [m for m in others if float(rows[m][column].split()[0]) > ours]
        assert len(better) <= 3, (cell, better)


def test_other_claims_of_prose_are_in_the_rows():
    methods = PUBLISHED
    authors = table_rows(
        section(DOCS / "results.md", "Every method, authors' settings, tested with GCN")
    )
    default = table_rows(section(DOCS / "results.md", DEFAULTS))
    own = table_rows(section(DOCS / "results.md", "GCSR on Cora and Citeseer, tested with GCN"))
    page = " ".join(TEXTS[DOCS / "choose-a-method.md"].split())
    reached = [cell.removesuffix(" *") for cell in default["random"]]
    assert f"reaches {reached[1]} where the whole graph reaches {default['whole'][1]}" in page
    assert f"`facebook-pagepage` {reached[4]} of {default['whole'][4]}" in page
    for rows, columns in ((authors, (1, 2, 3)), (default, range(1, 6))):
        for column in columns:
            last = min(methods, key=lambda m: float(rows[m][column].split()[0]))
            assert last == "coarsening", column
    honest = " ".join(TEXTS[DOCS / "honest-evaluation.md"].split())
    leaking, fair = own["Citeseer, 120 nodes"][2:]
    assert f"paper's prior {leaking}, as published; without test labels {fair}" in honest


def test_winners_that_the_methods_page_names_won():
    rows = table_rows(section(DOCS / "results.md", DEFAULTS))
    methods = PUBLISHED
    count = len(rows["method"])
    columns = range(1, count)
    best = [max(methods, key=lambda m: float(rows[m][c].split()[0])) for c in columns]
    told = " ".join(TEXTS[DOCS / "choose-a-method.md"].split())
    names = re.search(r"highest mean came from (.*?) \(", told)
    assert names
    assert re.findall(r"`([^`]+)`", names[1]) == best
    equal = [sum("*" in rows[m][c] for m in methods) - 1 for c in columns]
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    assert f"On every graph {words[min(equal)]} to {words[max(equal)]} other methods" in told


def test_ratios_of_the_performance_page_are_in_the_rows():
    files = "step-cpu step-h200 experts-cpu experts-h200 evaluate-cpu evaluate-h200 protocol-h200"
    files += " gradient-cpu bilevel-h200 bilevel-cpu"
    measured = [
        (row["case"], row["ratio"])
        for file in files.split()
        for row in json.loads((ROOT / "results" / "bench" / f"{file}.json").read_text())
    ]
    shown = []
    for table in re.findall(r"(?:^\|.*\n)+", TEXTS[DOCS / "performance.md"], re.M):
        head, _, *rows = ([c.strip() for c in line.split("|")] for line in table.splitlines())
        if "ratio" in head:
            shown += [(row[1].split()[0], row[head.index("ratio")]) for row in rows]
    assert [case for case, _ in shown] == [case for case, _ in measured]
    for (case, said), (_, ratio) in zip(shown, measured, strict=True):
        assert float(said) == pytest.approx(ratio, abs=0.5 if "." not in said else 0.051), case


def test_readme_and_results_show_the_same_table():
    heading = "GCSR on Cora and Citeseer, tested with GCN"
    measured = table_rows(section(DOCS / "results.md", heading))
    shown = table_rows(section(ROOT / "README.md", "Results"))
    assert {name: row for name, row in shown.items() if name in measured} == measured


def test_readme_and_results_show_the_same_automatic_mode():
    shown = section(ROOT / "README.md", "Results")
    # The first table; the second is of the paper.
    lines = [line for line in shown.split("| cell |")[0].splitlines() if line.startswith("|")]
    table = [[c.strip() for c in CODE_MARK.sub("", line).strip("|").split("|")] for line in lines]
    heading = "The automatic mode"
    measured = table_rows(section(DOCS / "results.md", heading).split("Without any leak")[0])
    by_graph = {name.split(",")[0]: row for name, row in reversed(measured.items())}
    graphs = table[0][1:]
    for place, column in ((2, 1), (3, 2), (4, 3), (5, 5)):
        assert table[place][1:] == [by_graph[graph][column] for graph in graphs]
    # References with pseudo-labels are for graphs with few labels, whose rows are longer.
    longest = max(map(len, by_graph.values()))
    for place, column, otherwise in ((6, 6, None), (7, 7, None), (8, 9, 6)):
        expected = []
        for graph in graphs:
            row = by_graph[graph]
            few = len(row) == longest
            expected.append(row[column] if few else "-" if otherwise is None else row[otherwise])
        assert table[place][1:] == expected


# -- the site itself -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    for needed in ("mkdocs", "material", "mkdocstrings"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed; `make docs` installs it")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_built(site):
    built = {path.stem for path in site.glob("*.html")}
    assert built >= {page.stem for page in PAGES[1:]} | {"changelog"}


def test_reading_it_needs_no_network(site):
    for page in site.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", text):
            assert not re.search(r"(?:src|href)=\"?(?:https?:)?//", tag), f"{page.name}: {tag}"
        assert "fonts.g" not in text


def test_docstrings_are_rendered(site):
    reference = (site / "api.html").read_text(encoding="utf-8")
    assert not re.search(r":(?:class|func|meth|mod|data|math):", reference)
    for said in ("Eq. 8", "leak_every_label", "safetensors file"):
        assert said in reference, said
