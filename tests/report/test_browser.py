"""The page in a real browser."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_helpers import EVIL, FAST, data_of, dense_result, evil

from gcsr import CondensedGraph, Graph, report
from gcsr.reporting.reproduced import reproduced_page

Visit = Callable[..., Any]


@pytest.fixture(scope="module")
def page(graph: Graph, small: CondensedGraph) -> str:
    return report(small, graph, runs=2, recipe=FAST, subsets=2, device="cpu")


def complaints(browser: Any) -> list[str]:
    told = [entry["message"] for entry in browser.get_log("browser")]
    # These tests count pixels more often than a browser likes.
    return [message for message in told if "willReadFrequently" not in message]


def requested(browser: Any) -> set[str]:
    """Addresses that the page asked for, as the browser's own network log has them."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    return {url for url in asked if not url.startswith("data:")}


def ready(browser: Any) -> bool:
    return browser.execute_script("return document.documentElement.dataset.ready") == "true"


def drawn(browser: Any) -> int:
    return int(browser.find_element("id", "graph-canvas").get_attribute("data-edges"))


def slide(browser: Any, value: int) -> None:
    browser.execute_script(
        "const s = document.getElementById('threshold'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input', {bubbles: true}));",
        value,
    )


def ink(browser: Any, canvas: str) -> int:
    """How many pixels of a canvas are not empty."""
    return browser.execute_script(
        "const c = document.querySelector(arguments[0]);"
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n;",
        canvas,
    )


def place_on(canvas: Any, places: str, node: int) -> tuple[int, int]:
    """Where a node is drawn, from the middle of the canvas."""
    px, py = np.frombuffer(base64.b64decode(places), "<i2")[2 * node : 2 * node + 2] / 32767
    margin, below = 26, 54  # the buttons' place
    free = [canvas.size["width"] - 2 * margin, canvas.size["height"] - margin - below]
    across, down = (min(1.5, side / min(free)) for side in free)
    half = min(free) / 2
    return round(px * across * half), round((margin - below) / 2 + py * down * half)


def test_loads_from_disk_without_complaint_or_network(visit: Visit, page: str) -> None:
    browser = visit(page)
    assert browser.current_url.startswith("file://") and ready(browser)
    assert complaints(browser) == []
    assert requested(browser) == {browser.current_url}
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    for canvas in ("#graph-canvas", "#map-canvas", "[data-heat=adjacency]", "[data-heat=gram]"):
        assert ink(browser, canvas) > 100, canvas


def test_the_browser_would_complain(visit: Visit, page: str) -> None:
    broken = page.replace("</main>", "<img src='https://example.org/x.png'></main>")
    browser = visit(broken)
    assert any("Content Security Policy" in line for line in complaints(browser))


def test_the_slider_changes_the_drawn_edges(visit: Visit, page: str) -> None:
    browser = visit(page)
    counts, inked = [], []
    for value in (0, 500, 1000):
        slide(browser, value)
        counts.append(drawn(browser))
        inked.append(ink(browser, "#graph-canvas"))
        said = browser.find_element("id", "drawn").text
        assert f"{counts[-1]} of 36 edges" in said
    assert counts[0] == 36 and counts[0] > counts[1] > counts[2] == 1
    assert inked[0] > inked[1] > inked[2]


def test_the_slider_moves_by_keyboard(visit: Visit, page: str) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = visit(page)
    before = drawn(browser)
    browser.find_element("id", "threshold").send_keys(Keys.HOME)
    assert drawn(browser) == 36 > before


def test_everything_is_reached_by_keyboard(visit: Visit, page: str) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = visit(page)
    seen = []
    for _ in range(60):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        one = browser.switch_to.active_element
        seen.append(one.get_attribute("id") or one.text)
    wanted = (
        "theme",
        "threshold",
        "graph-canvas",
        "zoom-in",
        "zoom-reset",
        "show-real",
        "map-canvas",
    )
    for name in (*wanted, "command", "class 0", "Copy"):
        assert name in seen, name


def test_nodes_are_chosen_by_keyboard(visit: Visit, page: str) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = visit(page)
    canvas, node = (browser.find_element("id", name) for name in ("graph-canvas", "node"))
    assert node.get_attribute("aria-live") == "polite"
    assert "Strongest edges" in node.text
    canvas.send_keys(Keys.ARROW_RIGHT)
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert "Node 1, class 0" in node.text
    assert "Strongest neighbors" in node.text and "Nearest real training nodes" in node.text
    strongest = re.search(r"node (\d+), class", node.text)
    assert strongest is not None
    canvas.send_keys(Keys.ENTER)
    assert f"Node {strongest[1]}, " in node.text
    canvas.send_keys(Keys.ESCAPE)
    assert "Strongest edges" in node.text


def test_pointing_at_a_node_tells_its_weights_and_nearest_real_nodes(
    visit: Visit, page: str, graph: Graph, small: CondensedGraph
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    browser = visit(page)
    canvas = browser.find_element("id", "graph-canvas")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    title = browser.find_element("id", "node-title")
    number = 4
    x, y = place_on(canvas, data_of(page)["graph"]["places"], number)
    ActionChains(browser, duration=0).move_to_element_with_offset(canvas, x, y).perform()
    assert title.text == f"Node {number}, class {int(small.y[number])}"
    tip = browser.find_element("css selector", ".stage .tip").text
    assert f"node {number}" in tip and "nearest real node" in tip
    weights = small.adjacency[number].clone()
    weights[number] = 0
    facts = browser.find_element("id", "node-facts").text
    assert f"node {int(weights.argmax())}, class" in facts
    assert f"{float(weights.max()):.3g}" in facts


def test_light_and_dark(visit: Visit, page: str) -> None:
    def background(browser: Any) -> list[int]:
        color = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        return [int(n) for n in re.findall(r"\d+", color)[:3]]

    dark = visit(page, scheme="dark")
    assert max(background(dark)) < 60
    light = visit(page, scheme="light")
    assert min(background(light)) > 200
    toggle = light.find_element("id", "theme")
    before = ink(light, "#graph-canvas")
    toggle.click()
    assert max(background(light)) < 60 and toggle.get_attribute("aria-pressed") == "true"
    assert ink(light, "#graph-canvas") == pytest.approx(before, rel=0.05)
    toggle.click()
    assert min(background(light)) > 200
    assert complaints(light) == []


@pytest.mark.parametrize("width", [320, 375])
def test_a_phone_needs_no_sideways_scrolling(visit: Visit, page: str, width: int) -> None:
    browser = visit(page, width=width)
    assert browser.execute_script("return document.documentElement.scrollWidth") == width
    # Nothing but what scrolls inside itself is wider than the screen.
    wide = browser.execute_script(
        "return [...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll')"
        " && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"
    )
    assert wide == []


def test_markup_in_names_is_text(visit: Visit, small: CondensedGraph) -> None:
    from selenium.common.exceptions import NoAlertPresentException

    browser = visit(report(evil(small), names=[f"{EVIL}.safetensors"]))
    with pytest.raises(NoAlertPresentException):
        _ = browser.switch_to.alert.text
    assert ready(browser) and complaints(browser) == []
    assert browser.find_element("tag name", "h1").text == f"{EVIL} in 9 nodes"
    assert browser.find_elements("css selector", "main script, img") == []
    assert EVIL in browser.find_element("id", "settings").text


def test_a_class_is_highlighted(visit: Visit, page: str) -> None:
    browser = visit(page)
    button = browser.find_element("css selector", "#legend button")
    assert button.text == "class 0"
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert complaints(browser) == []


def test_compared_and_reproduced_pages(
    visit: Visit, graph: Graph, small: CondensedGraph, reproduced: Path
) -> None:
    compared = report([small, small], graph, names=["a", "b"], evaluate=False)
    for page in (compared, reproduced_page(reproduced).render()):
        for width in (1280, 375):
            browser = visit(page, width=width)
            assert ready(browser) and complaints(browser) == []
            assert requested(browser) == {browser.current_url}
            assert browser.execute_script("return document.documentElement.scrollWidth") == width


def test_a_thousand_nodes_are_drawn(visit: Visit) -> None:
    browser = visit(report(dense_result(1000), names=["many"]))
    assert ready(browser) and complaints(browser) == []
    slide(browser, 0)
    assert drawn(browser) >= 20_000
    assert "edges are not in this page" in browser.find_element("id", "graph").text
    assert ink(browser, "#graph-canvas") > 10_000
    assert len(browser.find_elements("css selector", "#legend button")) == 40
