"""First screen of the page: sentence, verdicts, bars, filter, phones, paper."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from framebench.records import record_sets
from framebench.records.record_sets import RecordSet
from framebench.statistics import descriptive
from framebench.tables import contests
from framebench.tables.contests import titled
from framebench.tables.results import group
from framebench.tables.table import Inputs

from ..browser import Browser, render
from ..made_up_runs import SEVEN, repeats

#: What each visible setting shows: name, verdict, and its bars.
SETTINGS = """[...document.querySelectorAll(".setting:not([hidden])")].map((one) => ({
    name: [one.querySelector("h2"), one.querySelector("header p")].map((part) =>
        part.textContent.trim()).join(", "),
    verdict: one.querySelector(".verdict b").textContent,
    state: one.querySelector(".verdict em")?.textContent.trim() ?? "",
    bars: [...one.querySelectorAll("li")].filter((bar) => !bar.hidden).map((bar) => ({
        who: bar.querySelector(".who").textContent,
        figure: Number(bar.querySelector(".figure").textContent),
        percent: parseInt(bar.querySelector(".percent").textContent),
        width: parseFloat(bar.querySelector(".bar").style.width),
        few: bar.querySelector(".bar").matches(".few"),
        whisker: Boolean(bar.querySelector(".whisker")),
        about: bar.querySelector(".about").textContent,
    })),
}))"""


def settings(browser: Browser) -> dict[str, dict[str, Any]]:
    return {setting["name"]: setting for setting in browser.evaluate(SETTINGS)}


def made(tmp_path: Path, *runs: Any) -> Path:
    target = tmp_path / "report.html"
    render(RecordSet(root=tmp_path, runs=runs, problems=()), target)
    return target


# ---- room ----------------------------------------------------------------------------------------


def test_the_page_opens_on_few_screens_and_with_few_words(browser: Browser, quick: Path) -> None:
    browser.open(quick, folded=True)
    assert browser.evaluate("document.documentElement.scrollHeight") <= 6 * 900
    words = browser.evaluate("document.body.innerText.split(/\\s+/).length")
    assert 100 < words <= 2500
    bottom = "document.querySelector(arguments[0]).getBoundingClientRect().bottom"
    assert browser.evaluate(bottom, "#settings") <= 900, "the answer needs more than one screen"


@pytest.mark.parametrize("name", ["page", "quick"])
def test_a_phone_has_the_answer_within_two_screens(
    browser: Browser, name: str, request: pytest.FixtureRequest
) -> None:
    browser.open(request.getfixturevalue(name), width=390, folded=True)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    bottom = "document.querySelector('.notes').getBoundingClientRect().bottom"
    if name == "quick":
        assert browser.evaluate(bottom) <= 2 * 844
    cut = """[...document.querySelectorAll(".setting *")].filter((one) =>
        one.getBoundingClientRect().right > innerWidth).length"""
    assert browser.evaluate(cut) == 0


# ---- content of the first screen -----------------------------------------------------------------


def test_verdicts_and_bars_are_those_of_the_records(browser: Browser, page: Path) -> None:
    shown = settings(browser.open(page))
    cases = group(record_sets.load(page.parent / "runs").runs, None)
    compared = 0
    for contest in contests.find_contests(Inputs(cases)):
        case = contest.setting.case
        title = {"resnet50_v1.5": "ResNet-50 v1.5", "bert_base": "BERT-base"}[case.model]
        mode = "training" if case.mode == "train" else case.mode
        cores = f"{case.devices} x 1 core" if case.devices > 1 else "1 core"
        batch = f"batch {case.batch_per_device}" + " per device" * (case.devices > 1)
        setting = shown.get(f"{title} {mode}, {case.precision}, {cores}, {batch}")
        # mixed precision is shown in the row of each framework's fastest precision
        if setting is None:
            continue
        values = [descriptive.median(entrant.values) for entrant in contest.entrants]
        figures = [bar["figure"] for bar in setting["bars"]]
        assert figures == pytest.approx(values, rel=0.006)
        for bar, value, entrant in zip(setting["bars"], values, contest.entrants, strict=True):
            assert bar["percent"] == round(100 * value / values[0])
            scale = bar["width"] / setting["bars"][0]["width"]
            assert scale == pytest.approx(value / values[0], abs=0.003)
            assert bar["whisker"] == (entrant.interval is not None) != bar["few"]
        first, second = (titled(entrant.case.framework) for entrant in contest.entrants[:2])
        ahead = f"{100 * (values[0] / values[1] - 1):.0f} %"
        assert setting["verdict"] in (
            f"{first}, {ahead} ahead of {second}",
            f"{first}, {values[0] / values[1]:.2g} times as fast as {second}",
            f"No difference between {first} and {second}",
        )
        compared += 1
    assert compared > 3


def test_a_single_repeat_has_a_hatched_bar(browser: Browser, quick: Path) -> None:
    bars = [bar for one in settings(browser.open(quick)).values() for bar in one["bars"]]
    assert len(bars) > 15
    assert all(bar["few"] and re.search(r"\d+ repeats?", bar["about"]) for bar in bars)


def test_each_in_its_fastest_precision_comes_from_both(browser: Browser, tmp_path: Path) -> None:
    half = {"precision": "amp"}
    slow, fast = [0.5 * value for value in SEVEN], [2 * value for value in SEVEN]
    page = made(
        tmp_path, *repeats(*SEVEN), *repeats(*fast, **half),
        *repeats(*[1.5 * value for value in SEVEN], framework="jax"),
        *repeats(*slow, framework="mxnet"),
    )  # fmt: skip
    shown = settings(browser.open(page))
    first, each = shown.values()
    assert [bar["who"] for bar in first["bars"]] == ["JAX", "PyTorch", "MXNet"]
    assert "each in its fastest precision" in each["name"]
    assert each["verdict"] == "PyTorch, 33 % ahead of JAX"
    assert [(bar["who"], bar["about"]) for bar in each["bars"]] == [
        ("PyTorch", "mixed"), ("JAX", "fp32"),
    ]  # fmt: skip
    assert "MXNet" in browser.evaluate("document.querySelectorAll('.setting')[1].innerText")
    sentence = browser.evaluate("document.querySelector('h1').innerText")
    assert "JAX is fastest in fp32" in sentence
    assert "PyTorch is fastest in mixed precision" in sentence


# ---- filter --------------------------------------------------------------------------------------


def test_a_filter_leaves_its_settings_and_its_frameworks(browser: Browser, page: Path) -> None:
    every = settings(browser.open(page))
    some = settings(browser.open(page, query="?mode=train"))
    assert some == {name: one for name, one in every.items() if "training" in name} != {}
    for one in settings(browser.open(page, query="?framework=jax")).values():
        assert {bar["who"] for bar in one["bars"]} == {"JAX"}
    note = browser.evaluate("document.getElementById('filtered').innerText")
    assert re.search(rf"leaves \d+ of {len(every)} settings", note)
