"""``gcsr report``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import gcsr
from gcsr.cli import options
from gcsr.cli.data import SUFFIX, as_recorded, load_graph, require_page, write_page
from gcsr.cli.output import print_json, print_leak, progress_bars
from gcsr.utils.errors import InputError, require
from gcsr.utils.formatting import byte_count, printable


def report(
    results: Annotated[list[Path], typer.Argument(metavar="RESULT_OR_DIR...")],
    out: Path,
    compare: bool = False,
    data: options.MadeFrom = None,
    evaluate: bool = True,
    tsne_nodes: Annotated[int, typer.Option(min=0, max=20_000)] = 1000,
    privacy: bool = False,
    networks: options.NetworkOptions = options.FIVE_RUNS,
    loading: options.Loading = options.LOADING,
    any_graph: options.AnyGraph = False,
    as_json: options.Json = False,
) -> None:
    """Write one self-contained HTML page about a result, several of them, or a reproduced folder.

    The page opens from disk, loads nothing and sends nothing.

    Args:
        results: A condensed graph, a folder of them, or a folder made by `gcsr reproduce`.
        out: The page to write (.html); an earlier page is replaced, any other file is refused.
        compare: Several results of one dataset side by side.
        data: A dataset's name or a graph file; by default what RESULT was made from, if it is a known
            dataset that is here.
    """
    require_page(out)
    for path in results:
        require(path.exists(), f"{path}: no such file or folder.")

    from gcsr.evaluation.origin import require_origin
    from gcsr.reporting.pages import require_one_dataset
    from gcsr.reporting.report import NO_DATA, condensed_files, known_dataset

    if len(results) == 1 and any(results[0].glob("rows*.jsonl")):
        from gcsr.reporting.reproduced import reproduced_page

        require(not compare, f"--compare needs several results, got the folder {results[0]}.")
        _write(out, reproduced_page(results[0]).render(), results, as_json, leaks=False)
        return
    files = condensed_files(results, SUFFIX)
    require(len(files) > 1 or not compare, "--compare needs at least two results, got one.")
    require(len(files) == 1 or not privacy, "--privacy is for a single result, got several.")
    trained = networks.arguments()
    small = [gcsr.CondensedGraph.load(path) for path in files]
    names = [path.name for path in files]
    if len(set(names)) < len(names):
        names = [str(path) for path in files]
    require_one_dataset(list(zip(names, small, strict=True)))
    loading = as_recorded(loading, small)
    graph: gcsr.Graph | None = None
    absent = ""
    with progress_bars() as progress:
        if data is not None:
            graph = load_graph(data, loading, progress)
            require(
                bool(graph.test.numel()) or not evaluate,
                f"--data: {graph.name} has no test nodes (array test of a file), which accuracies"
                " need; leave out --data for a page without accuracy.",
            )
        else:
            name, absent = known_dataset(small[0], loading.root)
            if name is not None:
                try:
                    graph = load_graph(name, loading, progress)
                    require_origin(small, graph, not any_graph)
                except InputError as error:
                    graph, absent = None, f"{name} could not be used: {error}"
        require(not privacy or graph is not None, f"--privacy needs the real graph: {absent}")
        page = gcsr.report(
            small if len(files) > 1 else small[0],
            graph,
            names=names,
            evaluate=evaluate,
            tsne_nodes=tsne_nodes,
            privacy=privacy,
            check_origin=not any_graph,
            absent=absent or NO_DATA,
            progress=progress,
            **trained,
        )
    _write(out, page, files, as_json, leaks=any(one.leaks_test_labels for one in small))
    if absent and not as_json:
        print(printable(f"note: without the real graph: {absent}"))


def _write(out: Path, page: str, sources: Sequence[Path], as_json: bool, *, leaks: bool) -> None:
    size = write_page(out, page)
    if as_json:
        results = [str(path) for path in sources]
        described = {"out": str(out), "bytes": size, "results": results}
        scores = [one.to_dict() for one in getattr(page, "scores", ())]
        print_json(described | {"leaks_test_labels": leaks, "scores": scores})
        return
    if leaks:
        print_leak()
    print(f"wrote {out} ({byte_count(size)}); open it in a browser")
