"""First screen of the page: bars, points, and what a choice of frameworks changes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from framebench.records import record_sets
from framebench.records.record_sets import RecordSet
from framebench.report import html_report
from framebench.statistics import descriptive, intervals
from framebench.tables import contests, frames
from framebench.tables.grouping import group
from framebench.tables.table import Inputs

from ..browser import Browser
from ..made_up_runs import repeats

SEVEN = (99.0, 99.5, 99.8, 100.0, 100.2, 100.6, 101.0)
#: Texts of each line of bars, number of bars, intervals and points, by setting.
BLOCKS = """[...document.querySelectorAll(".contest")].map((one) => [
    one.querySelector("h3").innerText,
    [...one.querySelectorAll("li")].map((line) => [
        line.innerText.replace(/\\s+/g, " ").trim(),
        ...["bar", "whisker", "point"].map((name) => line.querySelectorAll(`.${name}`).length),
    ]),
])"""
TITLES = {"resnet50_v1.5": "ResNet-50 v1.5", "bert_base": "BERT-base"}
VISIBLE = "[...document.querySelectorAll('.contest')].map((one) => !one.hidden)"
ROWS = """[...document.querySelectorAll(".of-settings tr")].map((row) =>
    [...row.cells].map((cell) => cell.innerText.replace(/\\s+/g, " ").trim()))"""


def test_every_bar_has_its_interval_and_single_repeats_are_points(
    browser: Browser, page: Path, quick: Path
) -> None:
    lines = [line for _, some in browser.open(page).evaluate(BLOCKS) for line in some]
    assert {tuple(counts) for _, *counts in lines} == {(1, 1, 0), (0, 0, 0)}
    assert any("unsupported" in text for text, *_ in lines)
    lines = [line for _, some in browser.open(quick).evaluate(BLOCKS) for line in some]
    assert len(lines) > 20
    assert all(bars == 0 and bool(points) == bool(re.search(r"\d$", text))
               for text, bars, _, points in lines)  # fmt: skip


def test_what_the_script_draws_is_what_the_page_has(browser: Browser, page: Path) -> None:
    html = "document.getElementById('contests').innerHTML.replace(/>\\s+</g, '><').trim()"
    written = browser.open(page).evaluate(html)
    drawn = browser.open(page, query="?mode=train&mode=inference").evaluate(html)
    assert drawn == written


def test_two_frameworks_give_their_ratio_with_its_interval(browser: Browser, page: Path) -> None:
    chosen = ("tensorflow", "jax")
    query = "?" + "&".join(f"framework={text}" for text in chosen)
    rows = {row[0]: row for row in browser.open(page, query=query).evaluate(ROWS)}
    cases = group(record_sets.load(page.parent / "runs").runs, None)
    compared = 0
    for contest in contests.find_contests(Inputs(cases)):
        sides = [entrant for entrant in contest.entrants if entrant.case.framework in chosen]
        case = contest.setting.case
        step = f"{TITLES[case.model]} {'training' if case.mode == 'train' else case.mode}"
        precision = "mixed" if case.precision == "amp" else case.precision
        cores = f"{case.devices} x 1 core" if case.devices > 1 else "1 core"
        name = f"{step}, {precision}, {cores}, batch 4"
        if len(sides) < 2 or case.batch_per_device != 4 or name not in rows:
            continue
        first, second = sides
        ratio = descriptive.median(first.values) / descriptive.median(second.values)
        low, high = intervals.ratio_interval(second.values, first.values) or (0, 0)
        actual = [float(number) for number in re.findall(r"\d+\.\d+", rows[name][3])]
        assert actual == pytest.approx([ratio, low, high], abs=0.0051)
        compared += 1
    assert compared > 3
    said = browser.evaluate("document.getElementById('answer').innerText")
    assert "jax in" in said


def test_a_filter_leaves_its_own_settings_and_one_framework_has_no_ratio(
    browser: Browser, page: Path
) -> None:
    every = browser.open(page).evaluate(ROWS)
    some = browser.open(page, query="?devices=1n1g").evaluate(ROWS)
    assert some == [row for row in every if ", 1 core, " in row[0]] != []
    said = browser.evaluate("document.getElementById('answer').innerText")
    significant = sum(row[4] == "significant" for row in some)
    assert 0 < significant < len(some)
    assert f"leaves {len(some)} of all leads; {significant} are significant" in said
    assert {row[3] for row in browser.open(page, query="?framework=pytorch").evaluate(ROWS)} == {
        "\N{EN DASH}"
    }


@pytest.mark.parametrize("width", [1440, 390])
def test_variants_stand_on_the_first_screen(browser: Browser, tmp_path: Path, width: int) -> None:
    def of(variant: str, *values: float, **changes: Any) -> list[Any]:
        own = {"variables": (("A", "1"),)} if variant != "default" else {}
        return repeats(*values, suite_variant=variant, **own, **changes)

    fast = [1.3 * value for value in SEVEN]
    runs = [
        *of("default", *SEVEN), *of("a", *fast), *of("few", 50.0),
        *of("default", *SEVEN, mode="inference"), *of("a", *fast, mode="inference"),
    ]  # fmt: skip
    inputs = Inputs(group(runs, None))
    target = tmp_path / "report.html"
    actual = RecordSet(root=tmp_path, runs=runs, problems=[], superseded=0)
    text = html_report.render(actual, inputs, frames.build(inputs), target.parent, "A report")
    target.write_text(text, encoding="utf-8")
    browser.open(target, width=width, query="?mode=train")
    shown = [
        lines
        for (_, lines), visible in zip(
            browser.evaluate(BLOCKS),
            browser.evaluate(
                "[...document.querySelectorAll('.contest')].map((one) => !one.hidden)"
            ),
            strict=True,
        )
        if visible
    ]
    assert shown == [
        [["a 1.30\N{MULTIPLICATION SIGN}", 1, 1, 0], ["few 0.50\N{MULTIPLICATION SIGN}", 0, 0, 1]]
    ]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_a_page_of_variants_without_any_ratio_says_why(tmp_path: Path) -> None:
    runs = [*repeats(*SEVEN, suite_variant="default"), *repeats(None, None, suite_variant="a")]
    inputs = Inputs(group(runs, None))
    target = tmp_path / "report.html"
    actual = RecordSet(root=tmp_path, runs=runs, problems=[], superseded=0)
    text = html_report.render(actual, inputs, frames.build(inputs), target.parent, "A report")
    target.write_text(text, encoding="utf-8")
    html = target.read_text()
    first = html[html.index('class="contest"') :]
    assert "failed" in first[: first.index("</section>")]
