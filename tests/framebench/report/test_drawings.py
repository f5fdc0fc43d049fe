"""Charts: filter, pointer, and colours."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from framebench.records.device_peaks import PeakFlopsLookup
from framebench.records.record_sets import RecordSet
from framebench.report import plots, svg
from framebench.report.plots import Look, PlotRow
from framebench.tables.results import group
from framebench.tables.table import Inputs

from ...conftest import ROOT
from ..browser import Browser, choose, render
from ..made_up_peaks import (
    CPU,
    FORWARD_MATMULS,
    ROOFLINE_MODELS,
    matmul_rates,
    memory_bandwidth,
    peak_flops,
)
from ..made_up_runs import run
from ..made_up_trainings import trained

#: Title, shown axes and number of hidden parts of each figure with parts.
SHOWN = """[...document.querySelectorAll("figure")].map((figure) => {
    const svg = [...figure.querySelectorAll("[data-parts]")].find((one) => true);
    if (!svg) return null;
    const axes = JSON.parse(svg.dataset.parts);
    // Headings are of several parts.
    const parts = [...svg.querySelectorAll("[data-part]")].filter((one) =>
        !one.dataset.part.includes(" "));
    const isSeen = (one) => getComputedStyle(one).display !== "none";
    const seen = [...new Set(parts.filter(isSeen).map((one) => one.dataset.part))];
    const of = (axis) => [...new Set(seen.map((part) => axes[axis]?.[part] ?? null))];
    return {title: figure.querySelector("h3, h4").innerText, hidden: figure.hidden,
            frameworks: of("framework"), modes: of("mode"), seen: seen.length,
            gone: new Set(parts.map((one) => one.dataset.part)).size - seen.length};
}).filter(Boolean)"""
#: Pointer text in the middle of each value, in each figure with pointer text.
TOLD = """[...document.querySelectorAll("figure")].flatMap((figure) => {
    if (figure.hidden) return [];
    const spots = [...figure.querySelectorAll(".chart > svg:first-child [pointer-events]")];
    return [{title: figure.querySelector("h3, h4").innerText, said: spots.map((spot) => {
        spot.scrollIntoView({block: "center"});
        const box = spot.getBoundingClientRect();
        const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
        const under = document.elementFromPoint(x, y);
        const where = {bubbles: true, clientX: x, clientY: y};
        under.dispatchEvent(new PointerEvent("pointermove", where));
        const tip = document.getElementById("tip");
        return tip.hidden ? "" : tip.textContent;
    })}];
})"""


def shown(browser: Browser) -> dict[str, dict[str, Any]]:
    return {entry["title"]: entry for entry in browser.evaluate(SHOWN)}


def test_the_filter_hides_what_it_leaves_out_of_every_chart(browser: Browser, page: Path) -> None:
    browser.open(page)
    before = shown(browser)
    assert len(before) > 4, "few charts have parts"
    assert all(entry["gone"] == 0 and not entry["hidden"] for entry in before.values())
    choose(browser, "framework", "tensorflow")
    choose(browser, "mode", "train")
    after = shown(browser)
    assert any(entry["gone"] for entry in after.values()), "nothing was hidden"
    left = [entry for entry in after.values() if not entry["hidden"]]
    assert left, "all was hidden"
    for entry in left:
        assert entry["frameworks"] == ["tensorflow"], entry
        assert entry["modes"] == ["train"], entry
    for entry in after.values():
        assert entry["hidden"] == (entry["seen"] == 0), entry
    browser.evaluate("document.querySelector('#ask [type=reset]').click()")
    assert shown(browser) == before


def test_the_pointer_is_reported_the_values_of_every_chart(browser: Browser, page: Path) -> None:
    browser.open(page)
    figures = browser.evaluate(TOLD)
    assert len(figures) > 6
    for figure in figures:
        assert figure["said"], f"{figure['title']}: nothing has a value"
        for said in figure["said"]:
            assert re.search(r": -?[\d.]+|: [a-z -]+ [\d.]+|: [a-z, ]+$", said), (
                f"{figure['title']}: {said!r}"
            )


def test_a_part_has_its_artists_its_axes_and_its_words() -> None:
    odd = {"framework": "it's <b>\"&", "mode": "train"}
    rows = [
        PlotRow("of both"),
        PlotRow("odd", "jax", [1.0, 3.0], interval=(0.5, 3.5), axes=odd),
        PlotRow("none", "jax", note="out of memory", axes={"framework": "jax"}),
        PlotRow("default", "jax", [2.0]),
    ]
    text = str(plots.strips(rows, Look(["jax"]), "images/s"))
    (parts,) = re.findall(r"data-parts='([^']*)'", text)
    assert json.loads(html.unescape(parts)) == {
        "framework": [odd["framework"], "jax", None],
        "mode": ["train", None, None],
    }
    # Label, bar, dots, median, number, and pointer area; label, note, and pointer area.
    assert text.count('data-part="0"') == 6
    assert text.count('data-part="1"') == 3
    said = [html.unescape(entry) for entry in re.findall(r'data-tip="([^"]*)"', text)]
    assert said == [
        "odd: 2; 95 % interval 0.5 to 3.5; repeats 1, 3",
        "none: out of memory",
        "default: 2",
    ]


# ---- rooflines and curves of learning ------------------------------------------------------------

#: Visibility, visible words, and frameworks in the pointer text of each figure without parts.
OTHERS = """[...document.querySelectorAll("figure")].map((figure) => {
    const svg = figure.querySelector("[data-parts]");
    const isSeen = (one) => !one.closest('[display="none"]');
    const seen = (name) => svg ? [...svg.querySelectorAll(name)].filter(isSeen) : [];
    return {title: figure.querySelector("h3, h4").innerText, hidden: figure.hidden,
            words: seen("text").map((one) => one.textContent),
            told: seen("[data-tip]").map((one) => one.dataset.tip)};
}).filter((one) => /^(Roofline|Accuracy|Loss)/.test(one.title))"""


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page with a roofline, learning curves of two frameworks, and matmul rates."""
    steps = [
        run(10.0, **CPU),
        run(12.0, framework="jax", compiler="xla", **CPU),
        run(30.0, mode="inference", **CPU),
        run(33.0, framework="jax", compiler="xla", batch_per_device=8, mode="inference", **CPU),
    ]
    trainings = [
        trained(0.5, 0.9, 0.97, seed=n, framework=name) for n in (3, 4) for name in ("jax", "mxnet")
    ]
    others = [memory_bandwidth(10.0), *trainings, matmul_rates(*FORWARD_MATMULS)]
    target = tmp_path_factory.mktemp("learned") / "report.html"
    runs = [replace(step, origin=f"run {n}") for n, step in enumerate([*steps, *others])]
    actual = RecordSet(tuple(runs), (), target.parent)
    judged = group(runs, None)
    inputs = Inputs(
        {key: result for key, result in judged.items() if key.case.is_step},
        peaks=PeakFlopsLookup((peak_flops(0.2),)),
        models=ROOFLINE_MODELS,
        others={key: result for key, result in judged.items() if not key.case.is_step},
    )
    render(actual, target, inputs)
    return target


def test_rooflines_and_curves_of_learning_follow_the_filter(
    browser: Browser, learned: Path
) -> None:
    browser.open(learned)
    roofline, accuracy, loss = browser.evaluate(OTHERS)
    assert {"pytorch", "jax"} <= {*roofline["words"]}
    assert len(roofline["told"]) == 4
    assert (
        "pytorch, resnet50_v1.5, train, batch 32: 0.06 TFLOP/s, 30.0 % of what the roofs allow"
        in (roofline["told"])
    )
    assert len(accuracy["told"]) == len(loss["told"]) == 12
    assert "mxnet, 1n1g, seed 4, epoch 2: 0.9" in accuracy["told"]
    choose(browser, "framework", "jax")
    roofline, accuracy, loss = browser.evaluate(OTHERS)
    assert not {"pytorch", "1n1g"} & {*roofline["words"]}
    assert all(entry.startswith("jax + xla, ") for entry in roofline["told"])
    assert {entry.partition(",")[0] for entry in accuracy["told"] + loss["told"]} == {"jax"}
    assert not any("mxnet" in word for word in accuracy["words"])
    browser.evaluate("document.querySelector('#ask [type=reset]').click()")
    choose(browser, "framework", "mxnet")
    roofline, accuracy, _ = browser.evaluate(OTHERS)
    assert roofline["hidden"], "no point of it is of this framework"
    assert not accuracy["hidden"]
    browser.evaluate("document.querySelector('#ask [type=reset]').click()")
    choose(browser, "mode", "train")
    roofline, accuracy, _ = browser.evaluate(OTHERS)
    assert len(roofline["told"]) == 2
    assert not accuracy["hidden"], "its table stays, too"


def test_a_framework_has_one_colour_in_every_report() -> None:
    shipped = [path.name for path in (ROOT / "scripts" / "frameworks").iterdir() if path.is_dir()]
    shipped = [name for name in shipped if not name.startswith(("_", "."))]
    numbers = {name: svg.colour_number(name) for name in shipped}
    assert len(set(numbers.values())) == len(shipped), numbers
    assert 0 <= svg.colour_number("caffe") < len(svg.LIGHT) == len(svg.DARK)
