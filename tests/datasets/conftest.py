from __future__ import annotations

import pytest

from gcsr.datasets import download


@pytest.fixture(autouse=True)
def closed_network(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No test reaches the network; the addresses that were asked for are kept."""
    asked: list[str] = []

    def refuse(url: str, timeout: float) -> None:
        asked.append(url)
        raise OSError("the network is closed")

    monkeypatch.setattr(download.urllib.request, "urlopen", refuse)
    monkeypatch.delenv("GCSR_DATA", raising=False)
    return asked
