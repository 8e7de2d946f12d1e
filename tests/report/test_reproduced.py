"""Pages of reproduced folders."""

from __future__ import annotations

import json
from pathlib import Path

from gcsr.benchmarking.cells import Protocol
from gcsr.paper.experiments import EXPERIMENTS
from gcsr.reporting.reproduced import reproduced_page


def rows(folder: Path, protocol: Protocol, dataset: str = "cora") -> list[dict]:
    """Rows of every cell of the ablation on one dataset, without measuring anything."""
    cells = [cell for cell in EXPERIMENTS["table5"].cells if cell.dataset == dataset]
    told = [
        {
            "key": cell.key(protocol, "data"),
            "cell": cell.settings_key(protocol),
            **cell.identity(protocol),
            "mean": 70.0 + place,
            "std": 0.5,
            "leaks_test_labels": place == 3,
        }
        for place, cell in enumerate(cells)
    ]
    name = "rows-quick.jsonl" if protocol.quick else "rows.jsonl"
    with (folder / name).open("a", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in told)
    return told


def test_tables_of_every_protocol_and_what_belongs_to_none(tmp_path: Path) -> None:
    rows(tmp_path, Protocol(5, 10))
    rows(tmp_path, Protocol(2, 3))
    rows(tmp_path, Protocol(1, 1, quick=True))
    with (tmp_path / "rows.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"key": "of another version", "method": "gcsr", "dataset": "cora"}\n')
    page = reproduced_page(tmp_path).render()
    for words in ("table5 5x10", "table5 2x3", "table5 (quick) 1x1"):
        assert words in page, words
    assert "1 row of other settings or versions" in page
    assert "Quick smoke runs." in page
    assert page == reproduced_page(tmp_path).render()


def test_differences_and_progress_are_told(tmp_path: Path) -> None:
    told = rows(tmp_path, Protocol(5, 10))
    page = reproduced_page(tmp_path).render()
    lines = [line for line in EXPERIMENTS["table5"].lines if line.dataset == "cora"]
    mean = {row["key"]: row["mean"] for row in told}
    for line in lines:
        assert line.published is not None
        ours = mean[line.cells[0].key(Protocol(5, 10), "data")]
        assert f"{ours - line.published:+.1f}</td>" in page, line.label
    done = EXPERIMENTS["table5"].lines
    assert f"{len(lines)} of {len(done)} lines done; 5 graphs x 10 runs per cell." in page
    assert "reddit: 3 lines not run" in page
