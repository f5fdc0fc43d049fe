"""Pages of made-up or real records, and a real browser to look at them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import selenium_axe_python
from framebench.records import record_sets
from framebench.report import html_report
from framebench.tables import frames
from framebench.tables.results import group
from framebench.tables.table import Inputs
from selenium import webdriver
from selenium.webdriver.common.by import By

from ..debian import install_debian_packages

#: Script of axe, which checks the accessibility of a page.
AXE = Path(selenium_axe_python.__file__).parent / "axe-core" / "axe.min.js"
PACKAGES = ("chromium", "chromium-driver")


def make(source: Path, target: Path) -> str:
    return render(record_sets.load(source), target)


def render(records: record_sets.RecordSet, target: Path, inputs: Inputs | None = None) -> str:
    """Write the page of a record set, by default without further inputs, and return its text."""
    inputs = inputs or Inputs(group(records.runs, None))
    text = html_report.render(records, inputs, frames.build(inputs), target.parent, "A report")
    target.write_text(text, encoding="utf-8")
    return text


class Browser:
    """Headless Chromium on one page, with a given width and colour scheme."""

    def __init__(self, profile: Path) -> None:
        if not (shutil.which("chromium") and shutil.which("chromedriver")):
            problem = install_debian_packages(*PACKAGES)
            if problem:
                pytest.fail(f"the report is tested in a real browser. {problem}")
        os.environ["SE_OFFLINE"] = os.environ["SE_AVOID_STATS"] = "true"
        options = webdriver.ChromeOptions()
        options.binary_location = str(shutil.which("chromium"))
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        for argument in (
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-dev-shm-usage", "--disable-background-networking", "--disable-sync",
            "--disable-component-update", f"--user-data-dir={profile}",
        ):  # fmt: skip
            options.add_argument(argument)
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        self.driver = webdriver.Chrome(options, service)
        # Generous: a loaded machine makes the browser slow, not the report wrong.
        self.driver.set_page_load_timeout(300)
        self.driver.set_script_timeout(300)

    def open(
        self, page: Path, width: int = 1440, scheme: str = "light", query: str = "",
        folded: bool = False,
    ) -> Browser:  # fmt: skip
        """Open a page. ``folded``: leave its parts as they are, instead of unfolding all."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            # Smooth scrolling would move elements that are about to be clicked.
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.get("about:blank")  # without this, a new anchor alone would not reload the page
        self.driver.get(page.as_uri() + query)
        if not folded:
            self.unfold()
        return self

    def unfold(self) -> None:
        """Unfold all parts of the page, and wait until their tables are drawn."""
        self.driver.execute_async_script(
            "for (const part of document.querySelectorAll('details.part')) part.open = true;"
            "setTimeout(arguments[0], 50);"
        )

    def evaluate(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(f"return {script}", *arguments)

    def column(self, table: str, title: str) -> list[str]:
        heads = self.evaluate(
            "[...document.querySelectorAll(arguments[0])].map(head => head.textContent.trim())",
            f"#table-{table} thead th",
        )
        texts: list[str] = self.evaluate(
            "[...document.querySelectorAll(arguments[0])]"
            ".map(row => row.cells[arguments[1]].innerText.replace(/[\\u25b8\\s]+/g, ' ').trim())",
            f"#table-{table} tbody tr[data-row]",
            heads.index(title),
        )
        return texts

    def all_rows(self, table: str) -> None:
        more = f"#table-{table} .further:not([hidden]) button"
        while self.evaluate("document.querySelector(arguments[0]) !== null", more):
            self.evaluate("document.querySelector(arguments[0]).click()", more)

    def head(self, table: str, title: str) -> Any:
        return next(
            head
            for head in self.driver.find_elements(By.CSS_SELECTOR, f"#table-{table} thead th")
            if head.text.strip() == title
        )


def choose(browser: Browser, axis: str, *values: str) -> None:
    """Click the boxes of values of an axis in the filter."""
    for value in values:
        box = f"input[name='{axis}'][value='{value}']"
        browser.evaluate("document.querySelector(arguments[0]).click()", box)
