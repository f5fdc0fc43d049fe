"""Interaction with the page: filter, unfolded rows, commands, figures."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from framebench.report.page_tables import MOST
from framebench.tables import frames
from framebench.tables.formatting import DASH
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from ..browser import AXE, Browser, choose, make
from ..made_up_records import write_records

WIDTHS = (1440, 390)
#: Number of columns of each table, and its overhang beyond the window.
TABLES = """[...document.querySelectorAll("main table")].map((table) => ({
    name: table.closest("[id]").id,
    columns: table.tHead.rows[0].cells.length,
    theirs: Boolean(table.closest(".layout")),
    beyond: Math.max(0, table.getBoundingClientRect().right - window.innerWidth),
    inside: Math.max(...[...table.querySelectorAll("td")].map((cell) =>
        cell.scrollWidth - cell.clientWidth)),
}))"""


def press(browser: Browser, *keys: str) -> None:
    for key in keys:
        browser.driver.switch_to.active_element.send_keys(key)


def unfolded(browser: Browser, table: str) -> str:
    browser.evaluate("document.querySelector(arguments[0]).click()", f"#table-{table} .unfold")
    return str(browser.driver.find_element(By.CSS_SELECTOR, f"#table-{table} tr.more").text)


# ---- tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
def test_no_table_is_wider_than_the_window(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width=width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    actual = browser.evaluate(TABLES)
    assert len(actual) > 8
    for table in actual:
        # Tables in another publisher's layout have its number of columns.
        assert table["theirs"] or table["columns"] <= MOST, table
        assert table["beyond"] <= 0, table
        assert table["inside"] <= 1, table


def test_a_missing_figure_says_where_its_reason_stands(browser: Browser, quick: Path) -> None:
    browser.open(quick)
    texts = browser.column("inference_step_time", "p99 ms")
    assert texts
    assert {*texts} == {f"{DASH} see note"}


def test_the_answer_comes_first_and_decides_the_order(browser: Browser, page: Path) -> None:
    browser.open(page)
    for name in ("fastest", "weak_scaling", "precision_speedup", "compiler_speedup"):
        heads = browser.evaluate(
            "[...document.querySelectorAll(`#table-${arguments[0]} th`)].map(th => th.innerText)",
            name,
        )
        assert heads[0].startswith("verdict"), name
        table = frames.known_tables()[name]
        title = next(column.header for column in table.columns if column.name == table.order)
        texts = browser.column(name, title)
        values = [float(text.split()[0]) for text in texts if text[0] != DASH]
        assert values == sorted(values, reverse=True), name
        assert len(values) > 2, name


# ---- filter -------------------------------------------------------------------------------------


def test_one_filter_holds_for_all_exactly_and_stands_in_the_address(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    choose(browser, "framework", "tensorflow")
    choose(browser, "mode", "train")
    for table in ("summary", "weak_scaling", "efficiency"):
        browser.all_rows(table)
        assert set(browser.column(table, "framework")) == {"tensorflow"}, table
        texts = browser.driver.find_element(By.ID, f"table-{table}").text
        count = len(browser.column(table, "framework"))
        assert re.search(rf"\b{count} of \d+ rows", texts), table
    heads = browser.evaluate(
        "[...document.querySelectorAll('#table-overview th')].map(th => th.innerText.trim())"
    )
    assert heads == ["measured", "setting", "tensorflow"]
    address = browser.driver.current_url
    assert address.endswith("?framework=tensorflow&mode=train")
    browser.driver.get("about:blank")
    browser.driver.get(address)
    browser.unfold()
    assert set(browser.column("summary", "framework")) == {"tensorflow"}
    assert browser.evaluate("document.querySelectorAll('#ask input:checked').length") == 2
    browser.driver.find_element(By.CSS_SELECTOR, "#ask [type=reset]").click()
    assert browser.driver.current_url == page.as_uri()
    browser.all_rows("efficiency")
    assert len(set(browser.column("efficiency", "framework"))) == 3


def test_a_filter_that_leaves_nothing_says_so(browser: Browser, page: Path) -> None:
    browser.open(page, query="?framework=jax&compiler=xla")
    assert "0 of 72 rows" in browser.driver.find_element(By.ID, "table-summary").text
    assert not browser.evaluate(
        "[...document.querySelectorAll('.setting')].filter((one) => !one.hidden).length"
    )


# ---- rows ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("called")
    write_records(folder / "runs", 1, frameworks=("pytorch", "jax"))
    make(folder / "runs", folder / "report.html")
    return folder / "report.html"


def test_a_row_unfolds_to_all_else_and_has_an_address(browser: Browser, called: Path) -> None:
    browser.open(called)
    assert not browser.driver.find_elements(By.CSS_SELECTOR, "tr.more")
    details = unfolded(browser, "summary")
    assert "host GiB" in details
    assert "records" in details
    row = browser.driver.find_element(By.CSS_SELECTOR, "#table-summary tbody tr[data-row]")
    name = row.get_attribute("id")
    browser.open(called, query=f"?framework=jax&framework=pytorch#{name}")
    row = browser.driver.find_element(By.ID, name)
    assert row.find_element(By.CSS_SELECTOR, ".unfold").get_attribute("aria-expanded") == "true"
    assert browser.evaluate(
        "(box => box.top >= 0 && box.bottom <= innerHeight)"
        "(document.getElementById(arguments[0]).getBoundingClientRect())",
        name,
    )


def test_the_command_of_a_row_is_that_of_its_record(browser: Browser, called: Path) -> None:
    browser.open(called, query="?framework=pytorch&precision=fp32&compiler=none&devices=1n1g"
                 "&model=resnet50_v1.5&mode=train")  # fmt: skip
    browser.driver.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    unfolded(browser, "summary")
    (record,) = browser.evaluate(
        "[...document.querySelectorAll('#table-summary .more dl a')].map((one) => one.href)"
    )
    command = json.loads(Path(unquote(record.removeprefix("file://"))).read_text())["command"]
    browser.driver.find_element(By.CSS_SELECTOR, "[data-copy]").click()
    copied = browser.driver.execute_async_script(
        "navigator.clipboard.readText().then(arguments[0], error => arguments[0](String(error)))"
    )
    assert shlex.split(copied) == command
    assert "copied" in browser.driver.find_element(By.CSS_SELECTOR, "#table-summary .take").text


# ---- figures ------------------------------------------------------------------------------------


@pytest.fixture
def downloads(browser: Browser, tmp_path: Path) -> Iterator[Path]:
    browser.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    yield tmp_path
    browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "default"})


def test_every_figure_can_be_saved(browser: Browser, quick: Path, downloads: Path) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.open(quick)
    figures = browser.driver.find_elements(By.CSS_SELECTOR, "figure")
    assert len(figures) > 4
    assert all(figure.find_elements(By.CSS_SELECTOR, ".save") for figure in figures)
    for web_element in (figures[0], figures[-1]):
        button = web_element.find_element(By.CSS_SELECTOR, ".save")
        browser.evaluate("arguments[0].click()", button)
    WebDriverWait(browser.driver, 60).until(lambda _: len([*downloads.glob("*.svg")]) == 2)
    for path in downloads.glob("*.svg"):
        text = path.read_text()
        assert "var(" not in text, f"{path.name} needs the colours of a page"
        assert text.startswith("<svg")


# ---- accessibility ------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_axe_finds_nothing(browser: Browser, called: Path, width: int, scheme: str) -> None:
    browser.open(called, width=width, scheme=scheme, query="?model=bert_base&mode=train")
    unfolded(browser, "summary")
    browser.evaluate("document.querySelector('.pick').open = true")
    browser.driver.execute_script(AXE.read_text(encoding="utf-8"))
    actual = browser.driver.execute_async_script(
        # The inside of drawings is hidden from screen readers.
        "axe.run({exclude: ['svg']}, {resultTypes: ['violations']}).then(arguments[0])"
    )
    said = [
        (
            violation["id"],
            violation["help"],
            [node["html"][:200] for node in violation["nodes"][:3]],
        )
        for violation in actual["violations"]
    ]
    assert not said, json.dumps(said, indent=1)
    assert len(actual["passes"]) > 20, "axe has looked at nothing"


def test_the_keyboard_alone_suffices(browser: Browser, called: Path) -> None:
    browser.open(called)
    browser.evaluate("document.querySelector('#filter').focus()")
    press(browser, Keys.ENTER)
    browser.evaluate("document.querySelector('#ask summary').focus()")
    press(browser, Keys.ENTER, Keys.TAB, Keys.SPACE, Keys.ESCAPE)
    assert browser.driver.current_url.endswith("?framework=jax")
    assert browser.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert not browser.evaluate("document.querySelector('.pick').open")
    browser.evaluate("document.querySelector('#table-summary th button').focus()")
    press(browser, Keys.ENTER)
    assert browser.head("summary", "median").get_attribute("aria-sort") == "ascending"
    assert browser.evaluate("document.activeElement.closest('th')?.innerText").startswith("median")
    browser.evaluate("document.querySelector('#table-summary .unfold').focus()")
    press(browser, Keys.ENTER)
    assert browser.driver.find_elements(By.CSS_SELECTOR, "#table-summary tr.more")
    press(browser, Keys.TAB)
    assert browser.evaluate("document.activeElement.matches('#table-summary .more a')")


def test_paper_has_bars_and_tables_uncut_and_nothing_to_press(
    browser: Browser, quick: Path
) -> None:
    browser.open(quick, width=718)  # A4 between its margins
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert browser.evaluate("document.documentElement.scrollWidth") <= 718
        assert all(table["beyond"] <= 0 for table in browser.evaluate(TABLES))
        visible = "[...document.querySelectorAll(arguments[0])].some(one => one.offsetWidth)"
        for gone in ("#ask", "nav", ".take", ".unfold", ".further", ".save"):
            assert not browser.evaluate(visible, gone), gone
        assert browser.evaluate(visible, "#table-summary td")
        exact = "getComputedStyle(document.querySelector('.bar')).printColorAdjust"
        assert browser.evaluate(exact) == "exact"
        assert browser.evaluate("document.querySelector('.bar').offsetWidth") > 40
        sizes = browser.evaluate(
            "['.what', 'main li', 'main p', '.about-table'].map((one) => parseFloat("
            "getComputedStyle(document.querySelector(one)).fontSize) * 72 / 96)"
        )
        assert max(sizes) <= 9.6, f"points of running text: {sizes}"
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
