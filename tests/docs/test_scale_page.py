"""The page on scale holds what its rows say, and the calculation follows from them."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from pages import ROOT

NAMES = ("generate", "propagate", "starts", "bilevel", "compare", "evaluate", "total")


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "scale_page.py"))


@pytest.fixture(scope="module")
def papers() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "papers100m.py"))


def rows(seconds: float = 10.0) -> list[dict[str, Any]]:
    return [
        {
            "what": name,
            "sizes": [10**6, 10**7],
            "edges": [10**7, 10**8],
            "seconds": [seconds, 10 * seconds],
            "cpu_seconds": [seconds, 10 * seconds],
            "peak_bytes": [2**30, 2**32],
            "exponent": 1.0,
            "fixed": "planted",
            "accuracies": [90.0, 91.0],
        }
        for name in NAMES
    ]


def test_the_page_holds_the_rows(program: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    found = program["measured"]()
    assert program["filled"](page, found) == page, "run: python benchmarks/scale_page.py"


def test_a_table_from_rows(program: dict[str, Any]) -> None:
    lines = program["table"](rows())
    assert lines[0] == "| stage | 1,000,000 nodes | 10,000,000 nodes | exponent |"
    assert "| starts | 10.0 s (10.0), 1.00 GiB | 100.0 s (100.0), 4.00 GiB | 1.00 |" in lines


def test_places_beside_each_other(program: dict[str, Any]) -> None:
    lines = program["beside"](rows(), None, rows(1.0))
    assert "| disk | 10,000,000 | 400.0 s | 100.0 s | 91.0 % |" in lines
    assert "| GPU | 1,000,000 | 4.0 s | 1.0 s | 90.0 % |" in lines


def test_the_calculation_scales_with_the_work(papers: dict[str, Any]) -> None:
    shape = papers["measured_shape"](rows())
    same = papers["seconds"](rows(), shape)
    assert all(value == pytest.approx(100.0) for value in same.values())
    double = type(shape)(**{**vars(shape), "edges": 2 * shape.edges + shape.nodes})
    assert papers["seconds"](rows(), double)["propagate"] == pytest.approx(200.0)
    assert papers["sweeps"](shape, 10**12) == 1
    assert papers["sweeps"](shape, 10**9) > papers["sweeps"](shape, 2 * 10**9) > 1
    few = type(shape)(**{**vars(shape), "train": shape.nodes // 100})
    assert papers["seconds"](rows(), few)["pseudo-labels"] > 0
    told = "\n".join(papers["calculation"](rows()))
    assert "111,059,956 nodes" in told and "244,160,499 nodes" in told
    assert "one machine of 64 GB" in told
    slower = "\n".join(papers["calculation"](rows(30.0)))
    assert told != slower
