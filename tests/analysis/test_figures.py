from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gcsr
from gcsr import Analysis, InputError, Random
from gcsr.analysis.figures import (
    FIGURES,
    ccns_figure,
    figure_bytes,
    save_figures,
)
from helpers import planted_graph


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    graph = planted_graph()
    small = Random(nodes=9).condense(graph)
    y = small.y.clone()
    y[y == 2] = -1  # an absent class and nodes without a label
    return gcsr.analyze(replace(small, y=y), graph, tsne_nodes=20)


def test_every_figure_is_written_in_both_formats(analysis, tmp_path):
    written = save_figures(analysis, tmp_path)
    assert [path.name for path in written] == [f"{n}.{k}" for n in FIGURES for k in ("png", "svg")]
    assert sorted(written) == sorted(tmp_path.iterdir())
    for path in written:
        content = path.read_bytes()
        start = b"\x89PNG" if path.suffix == ".png" else b"<?xml"
        assert content.startswith(start) and len(content) > 5000, path.name
    # Nothing of the moment is in them.
    again = figure_bytes(FIGURES["gram"](analysis), "svg")
    assert (tmp_path / "gram.svg").read_bytes() == again


def test_no_map_no_figure_of_it(analysis, tmp_path):
    written = save_figures(replace(analysis, map=None), tmp_path, formats=["svg"])
    assert [path.name for path in written] == [f"{n}.svg" for n in FIGURES if n != "tsne"]


def test_figures_show_the_numbers(analysis):
    left, right, _ = ccns_figure(analysis).axes
    np.testing.assert_array_equal(left.images[0].get_array(), analysis.original.ccns)
    shown = np.ma.getmaskarray(right.images[0].get_array())
    assert shown.tolist() == np.isnan(analysis.condensed.ccns).tolist()
    assert left.images[0].get_clim() == right.images[0].get_clim() == (0, 1)
    assert f"{analysis.original.ccns[0, 1]:.2f}" in [text.get_text() for text in left.texts]
    axis = FIGURES["adjacency"](analysis).axes[0]
    np.testing.assert_array_equal(axis.images[0].get_array(), analysis.matrices.adjacency)
    assert [text.get_text() for text in axis.get_xticklabels()] == ["0", "1", "none"]


def test_another_format_is_refused(analysis, tmp_path):
    with pytest.raises(InputError, match="format must be one of"):
        save_figures(analysis, tmp_path, formats=["png", "gif"])
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="format must be one of"):
        figure_bytes(ccns_figure(analysis), "gif")


def test_pyplot_is_never_imported():
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import gcsr
from gcsr.analysis.figures import ccns_figure, figure_bytes
from helpers import planted_graph
assert "matplotlib" not in sys.modules
graph = planted_graph()
found = gcsr.analyze(gcsr.Random(nodes=6).condense(graph), graph, tsne_nodes=0)
assert figure_bytes(ccns_figure(found), "png")
assert "matplotlib.figure" in sys.modules and "matplotlib.pyplot" not in sys.modules
"""
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
