"""The documentation site is built, all links work, and nothing is loaded from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .framebench.browser import Browser

ROOT = Path(__file__).parents[1]
#: Resources that a browser loads by itself.
_LOADED = re.compile(
    r"<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=\"(https?:)?//", re.IGNORECASE
)
#: Width of a narrow screen in CSS pixels, and script that returns the width of a page's content.
PHONE, WIDTH = 390, "document.documentElement.scrollWidth"
#: Style and script that a page loads from the site.
_OWN = re.compile(r'<(?:script src|link href)="([^":?]+\.(?:css|js))"')


def build(folder: Path, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    arguments = ["build", "--strict", "--config-file", str(config), "--site-dir", str(folder)]
    command = [sys.executable, "-m", "mkdocs", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(folder)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_in_the_site_and_every_link_leads_somewhere(site: Path) -> None:
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / "docs" / page.stem / "index.html").is_file(), page.name
    report = (site / "docs" / "sample" / "report.html").read_text()
    assert "<h1" in report
    assert "ResNet-50" in report or "resnet50" in report
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert not _LOADED.search(text), f"{page} loads something from elsewhere"
        for name in _OWN.findall(text) if page.name == "index.html" else ():
            assert (page.parent / name).is_file(), f"{page} has no {name}: it stands there bare"


def test_no_page_is_wider_than_a_phone(site: Path, tmp_path: Path) -> None:
    browser = Browser(tmp_path)
    try:
        wide = {
            page.parent.name: width
            for page in site.rglob("index.html")
            if (width := browser.open(page, PHONE).evaluate(WIDTH)) > PHONE
        }
    finally:
        browser.driver.quit()
    assert not wide, "these pages scroll sideways"
