"""kill -9 at random moments: the same command continues, with the bytes of a run that nobody ended."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from killing import Tally, begun, content, finished, moments

from helpers import planted_graph

# A state is written whenever one is good, so that kills land between, in and after writings.
OFTEN = ("--checkpoint-every", 0)
QUICK = (
    "--set=experts=2",
    "--set=expert-epochs=20",
    "--set=max-start=10",
    "--set=hidden_channels=16",
)
AUTO = ("--set=iterations=60", "--set=pseudo_labels=none", "--set=hidden_channels=16")
RUNS = {
    "gcsr": ("--method=gcsr", "--set=iterations=600", "--set=iterate=last", *QUICK),
    "sfgc": ("--method=sfgc", "--set=iterations=150", "--set=embedding-epochs=20", *QUICK),
    "mtt": ("--method=mtt", "--set=iterations=300", "--set=iterate=last", "--graphs=3", *QUICK),
    "auto": AUTO,
    "auto on disk": (*AUTO, "--memory=20kB"),
}


def outputs(argv: tuple[object, ...], folder: Path) -> list[Path]:
    folder.mkdir()
    finished(argv, folder)
    return sorted(folder.iterdir())


@pytest.mark.parametrize("name", RUNS)
def test_killed_anywhere(name: str, tmp_path: Path) -> None:
    graph = planted_graph(classes=4, per_class=60, features=40)
    on_disk = name.endswith("disk")
    data = graph.to_folder(tmp_path / "data") if on_disk else graph.to_npz(tmp_path / "data.npz")
    size = ("--nodes=16", "--out=small.safetensors")
    argv = ("condense", data, *size, *RUNS[name], *OFTEN)
    whole = outputs(argv, tmp_path / "whole")
    again = tmp_path / "again"
    again.mkdir()
    tally = Tally()
    # Once for certain in the middle: as soon as a state is there.
    process = begun(argv, again)
    while not any(again.glob(".small.safetensors.checkpoint/*.part")) and process.is_alive():
        time.sleep(0.002)
    process.kill()
    process.join()
    assert process.exitcode == -9
    for moment in (0.0, *moments(1, 1.0)):
        tally.add(argv, again, whole, moment)
    assert tally.same == 2 and tally.resumed >= 1, tally


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_fifty(shared_data: Path, tmp_path: Path) -> None:
    """Real Cora, 50 random moments; ``-s`` shows how many processes were alive when killed."""
    argv = (
        *("condense", "cora", "--root", shared_data, "--method=gcsr", "--nodes=70"),
        *(
            "--set=iterations=600",
            "--set=experts=2",
            "--set=expert-epochs=40",
            "--set=max-start=30",
        ),
        *("--set=hidden_channels=64", "--set=iterate=last", "--out=cora-70.safetensors", *OFTEN),
    )
    whole = outputs(argv, tmp_path / "whole")
    again = tmp_path / "again"
    again.mkdir()
    seconds = finished(argv, again)
    assert content(again / "cora-70.safetensors") == content(whole[0])
    tally = Tally()
    for moment in moments(50, seconds):
        (again / "cora-70.safetensors").unlink()
        tally.add(argv, again, whole, moment)
    print(
        f"\nof 50 runs of {seconds:.1f} s {tally.killed} were killed alive, {tally.resumed} went on"
        f" from a checkpoint, {tally.same} gave the same bytes"
    )
    assert tally.same == 50
    assert tally.killed >= 40 and tally.resumed >= 10
