"""One graph, its results and one browser for all tests of the page."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from report_helpers import planted, result

from gcsr import CondensedGraph, Graph
from gcsr.benchmarking import measurement as paper_data
from gcsr.cli.app import main

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--hide-scrollbars",
)


@pytest.fixture(scope="session")
def graph() -> Graph:
    return planted()


@pytest.fixture(scope="session")
def small(graph: Graph) -> CondensedGraph:
    return result(graph)


@pytest.fixture(scope="session")
def other(graph: Graph) -> CondensedGraph:
    return result(graph, alpha=0.5)


@pytest.fixture(scope="session")
def reproduced(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as ``gcsr reproduce table5 --quick --dataset cora`` leaves it, of a small graph."""
    folder = tmp_path_factory.mktemp("reproduced")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(paper_data, "load", lambda name, root=None: graph.renamed(name))
        words = ["reproduce", "table5", "--quick", "--download", "--dataset", "cora"]
        words += ["--out", str(folder)]
        assert main(words) == 0
    return folder


@pytest.fixture
def gcsr(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*argv: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(word) for word in argv])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    program, driver = next(filter(None, found), None), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no browser: chromium and chromedriver (the distribution's) are needed")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    started.set_page_load_timeout(60)
    yield started
    started.quit()


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Callable[..., Any]:
    """Open a page from disk, at some width and in light or dark."""

    def opened(page: str, *, width: int = 1280, scheme: str = "light") -> Any:
        path = tmp_path / "page.html"
        path.write_text(page, encoding="utf-8")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in wishes.items()]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        for kind in ("browser", "performance"):
            browser.get_log(kind)  # what earlier pages left
        browser.get(path.as_uri())
        return browser

    return opened
