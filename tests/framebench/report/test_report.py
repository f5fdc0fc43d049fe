"""The report in a real browser: readable, sortable, self-contained, honest about gaps."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

import pytest
from framebench.report import line_panels, panels
from framebench.report.page_data import RowLinks
from framebench.report.plots import Look
from framebench.tables import frames
from framebench.tables.formatting import DASH
from framebench.tables.results import group
from framebench.tables.table import frame_rows
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from ..browser import Browser, make
from ..made_up_records import EVIL, write_records
from ..made_up_runs import build, run
from ..saved_records import save

ROOT = Path(__file__).parents[3]


def test_the_same_case_in_another_unit_is_another_case() -> None:
    runs = [run(100.0), run(9000.0, unit="tokens/s"), run(110.0, repeat=2)]
    cases = group(runs, None)
    assert [[one.unit for one in case.runs] for case in cases.values()] == [
        ["images/s", "images/s"],
        ["tokens/s"],
    ]
    links = RowLinks(cases)
    for row in frame_rows(build(runs)["summary"]):
        ((_, actual),) = links.runs(frames.known_tables()["summary"], row)
        assert {one.unit for one in actual} == {row["unit"]}
    (plot,) = panels.throughput(cases, Look(["pytorch"]))
    assert "Throughput of 2 cases" in plot.description


def test_opens_without_console_message_and_without_any_request(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    assert browser.driver.title == "A report"
    assert browser.driver.get_log("browser") == []
    events = [
        json.loads(entry["message"])["message"] for entry in browser.driver.get_log("performance")
    ]
    asked = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
        and event["params"]["documentURL"] == page.as_uri()
    }
    assert asked == {page.as_uri()}


def medians(browser: Browser) -> tuple[list[float], list[str]]:
    """Return the medians shown in the table Summary, and the texts of rows without one."""
    texts = browser.column("summary", "median")
    there = [text for text in texts if not text.startswith(DASH)]
    assert texts[: len(there)] == there, "what has no number does not come last"
    return [float(text.split()[0]) for text in there], texts[len(there) :]


def test_sorts_by_click_and_by_key_with_missing_numbers_last(browser: Browser, page: Path) -> None:
    browser.open(page).all_rows("summary")
    assert browser.head("summary", "median").get_attribute("aria-sort") == "descending"
    falling, missing = medians(browser)
    assert falling == sorted(falling, reverse=True)
    assert missing
    browser.head("summary", "median").find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    assert browser.head("summary", "median").get_attribute("aria-sort") == "ascending"
    assert medians(browser) == (sorted(falling), missing)
    browser.head("summary", "framework").find_element(By.TAG_NAME, "button").click()
    assert browser.head("summary", "median").get_attribute("aria-sort") == "none"
    names = browser.column("summary", "framework")
    assert names == sorted(names)


def test_dark_changes_the_page_and_the_plots(browser: Browser, page: Path) -> None:
    script = (
        "[document.body, document.querySelector('figure svg text'),"
        " document.querySelector('figure svg use')].map(element => {"
        " const style = getComputedStyle(element); return [style.backgroundColor, style.fill]; })"
    )
    light = browser.open(page).evaluate(script)
    dark = browser.open(page, scheme="dark").evaluate(script)
    assert light[0][0] != dark[0][0]
    assert light[1][1] != dark[1][1]
    assert light[2][1] != dark[2][1]


OPEN_ALL = """[...document.querySelectorAll(`#table-${arguments[0]} .unfold[aria-expanded=false]`)]
    .forEach((button) => button.click())"""


def test_missing_numbers_are_dashes_with_their_reason_in_words(
    browser: Browser, page: Path
) -> None:
    browser.open(page).all_rows("summary")
    medians = browser.column("summary", "median")
    ended = [text for text in medians if text.startswith(DASH)]
    assert {text.removeprefix(DASH).strip() for text in ended} >= {"oom", "unsupported"}
    assert all(float(text.split()[0]) > 0 for text in medians if text not in ended)
    for table in ("weak_scaling", "precision_speedup", "compiler_speedup"):
        browser.all_rows(table)
        ratios = browser.column(table, "speed-up")
        assert all(float(ratio.split()[0]) > 0 for ratio in ratios), "a row without a ratio"
        said = browser.driver.find_element(By.ID, f"table-{table}").text
        assert re.search(rf"\d+ more rows have no ratio; tables/{table}.csv says why", said)


def test_an_interval_of_too_few_repeats_says_what_it_needs(tmp_path: Path) -> None:
    source = write_records(tmp_path / "runs", repeats=2, frameworks=("pytorch",))
    assert rf"{DASH}\tneeds 6 repeats" in make(source, tmp_path / "r.html")


def test_every_link_to_a_record_leads_to_it(browser: Browser, page: Path) -> None:
    there = set((page.parent / "runs").rglob("*.json"))
    summary = {page.parent / "tables" / "summary.csv"}

    def targets(links: Iterable[str]) -> set[Path]:
        return {(page.parent / unquote(link)).resolve() for link in links}

    static = re.sub(r"<script.*?</script>", "", page.read_text(), flags=re.DOTALL)
    assert targets(re.findall(r'href="([^"#][^"]*)"', static)) <= there | summary
    browser.open(page).all_rows("summary")
    browser.evaluate(OPEN_ALL, "summary")
    links = browser.evaluate(
        "[...document.querySelectorAll('#table-summary .more a')].map(a => a.getAttribute('href'))"
    )
    # Every valid record is linked: all but the truncated and the foreign file.
    assert targets(links) == set((page.parent / "runs").glob("*/*/*.json"))


def test_lists_every_machine_and_says_which_label_is_which(tmp_path: Path) -> None:
    source = write_records(tmp_path / "runs", repeats=1, frameworks=("pytorch",))
    label = re.compile(r"<code>(\w{6})</code> (.*?) <span")
    assert not label.search(make(source, tmp_path / "r.html")), "one machine needs no label"
    moved = source / "elsewhere"
    for path in sorted(source.glob("pytorch/*/r1.json")):
        record = json.loads(path.read_text())
        record["environment"]["system"]["host"] = "second"
        record["started"] = "2031-01-01T00:00:00.000Z"
        save(moved, f"{path.parent.name}/{path.name}", record)
        record["environment"]["system"]["host"] = "first"
        path.write_text(json.dumps(record))
    text = make(source, tmp_path / "r.html")
    (machines,) = re.findall(r'<ul class="plain">.*?</ul>', text, re.DOTALL)
    labels = dict(label.findall(machines))
    assert len(labels) == 2, machines
    for host in ("first", "second"):
        assert f"Example CPU, 16 GiB, host {host}" in labels.values()
    assert all(text.count(label) > 1 for label in labels), "no row has this label"


def test_whatever_a_record_says_stays_text(browser: Browser, page: Path) -> None:
    text = page.read_text()
    assert "<script>document.title" not in text
    assert browser.open(page).driver.title == "A report"
    assert EVIL in browser.driver.find_element(By.ID, "failures").text


def test_says_what_was_ignored_and_why(page: Path) -> None:
    ignored = page.read_text().split('id="ignored">')[1].split("</details>")[0]
    assert "truncated.json" in ignored
    assert "foreign.json" in ignored


def test_every_plot_says_what_it_leaves_out(page: Path) -> None:
    static = page.read_text().split("<script")[0]
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", static, re.DOTALL)
    assert len(captions) > 8
    assert all(re.search(r"Nothing is left out|Left out: \d+ of \d+", c) for c in captions)


def test_a_large_set_stays_bounded_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_records(tmp_path / "runs", repeats=1)
    monkeypatch.setattr(panels, "MAX_ROWS", 6)
    monkeypatch.setattr(panels, "MAX_PANELS", 1)
    monkeypatch.setattr(line_panels, "MAX_SCALING_LINES", 2)
    text = make(source, tmp_path / "report.html")
    assert "Left out: 18 of 24 cases." in text
    assert "3 of 4 panels are not drawn" in text
    assert re.search(r"Left out: \d+ of \d+ settings", text)


def test_depends_on_the_records_alone(tmp_path: Path) -> None:
    source = write_records(tmp_path / "runs", repeats=2)
    first = make(source, tmp_path / "first.html")
    program = "import sys; from pathlib import Path; from tests.framebench.browser import make; "
    program += "make(*map(Path, sys.argv[1:]))"
    subprocess.run(
        [sys.executable, "-c", program, str(source), str(tmp_path / "second.html")],
        check=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'workflow'}:{ROOT}", "PYTHONHASHSEED": "5"},
    )
    assert (tmp_path / "second.html").read_text() == first
