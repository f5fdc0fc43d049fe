"""Make the pictures of the sample report.

docs/quick.png, shown in README.md, is its first screen. docs/report.png, shown in
docs/reading-a-report.md, is the report shortened to the parts that the list on that page explains,
each with its number in the list.

    .venv/bin/python docs/picture.py
"""

from __future__ import annotations

import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs"), str(ROOT / "workflow")]

import site_pages  # noqa: E402

DOCS = ROOT / "docs"
WIDTH = 1120
#: Enough colours to keep those of frameworks, which cover the smallest areas.
COLOURS = 255
#: Part of the report that ends the first screen.
LAST = "#answers"
NO_SCROLLBARS = """
const style = document.createElement("style");
style.textContent = "::-webkit-scrollbar { display: none }";
document.head.append(style);
"""
#: Numbers of the list, and the selector of the part of the page that each explains.
MARKED = {
    1: "#contests",
    2: ".origin",
    3: "#table-overview table",
    4: "#charts figure",
    5: "#table-summary table",
    6: "#measured .tiles",
}
#: Hide all parts of the page but the numbered ones and their headings.
SHORTEN = """
for (const section of document.querySelectorAll("section")) {
  section.hidden = !arguments[0].some((one) => section.querySelector(one));
}
const gone = "nav, footer, .skip, .left-out, .holds, .brings, .count, .further, .take, .shared, "
  + "figcaption, caption, section > p, .table > p, h3.of, .setups, .machine, #measured h3, "
  + "#measured ul, #measured > p";
for (const one of document.querySelectorAll(gone)) one.style.display = "none";
for (const one of document.querySelectorAll("header, main")) one.style.paddingLeft = "3rem";
document.body.style.display = "block";
const keep = (list, count) => [...list].slice(count).forEach((one) => (one.style.display = "none"));
keep(document.querySelectorAll("#contests .contest"), 3);
keep(document.querySelectorAll("#answers tbody tr"), 3);
keep(document.querySelectorAll("#table-overview tbody tr"), 3);
keep(document.querySelectorAll("#charts figure"), 1);
keep(document.querySelectorAll("#table-summary tbody tr"), 3);
for (const part of document.querySelectorAll("#charts figure .chart")) {
  part.style.maxHeight = "20rem";
}
for (const table of document.querySelectorAll(".table")) {
  if (!table.matches("#table-overview, #table-summary")) table.style.display = "none";
}
for (const section of document.querySelectorAll("section")) section.style.padding = "0.7rem 0";
return Math.ceil(document.documentElement.scrollHeight);
"""
#: Draw each number in a disc at the upper left corner of its part.
MARK = """
for (const [number, selector] of Object.entries(arguments[0])) {
  const box = document.querySelector(selector).getBoundingClientRect();
  const disc = document.createElement("div");
  disc.textContent = number;
  disc.style.cssText = "position: absolute; width: 2rem; height: 2rem; border-radius: 50%;"
    + "z-index: 99; background: #c2321f; color: #fff; font: bold 1.1rem/2rem sans-serif;"
    + `text-align: center; left: 0.5rem; top: ${box.top + scrollY - 2}px`;
  document.body.append(disc);
}
"""


def main() -> int:
    """Write the pictures and print their sizes."""
    from tests.framebench.browser import Browser

    with tempfile.TemporaryDirectory() as name:
        page = Path(name, "report.html")
        page.write_bytes(site_pages._sample()["docs/sample/report.html"])
        browser = Browser(Path(name, "profile"))
        try:
            browser.open(page, width=WIDTH)
            pictures = {"quick.png": first_screen(browser), "report.png": shortened(browser)}
        finally:
            browser.driver.quit()
    for name, shot in pictures.items():
        content = small(shot)
        (DOCS / name).write_bytes(content)
        print(f"docs/{name}: {len(content) / 1000:.0f} kB")
    return 0


def first_screen(browser: Any) -> bytes:
    """Return the top of the report, to the end of LAST, as PNG."""
    browser.driver.execute_script(NO_SCROLLBARS)
    bottom = f"document.querySelector('{LAST}').getBoundingClientRect().bottom"
    resize(browser, browser.evaluate(bottom))
    content: bytes = browser.driver.get_screenshot_as_png()
    return content


def resize(browser: Any, height: float) -> None:
    """Make the window as high as ``height`` CSS pixels."""
    size: dict[str, Any] = {"width": WIDTH, "height": int(height), "deviceScaleFactor": 1}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "mobile": False})


def shortened(browser: Any) -> bytes:
    """Return the report with numbers as PNG, and leave the page changed."""
    # Resize before placing the numbers: the page is laid out again for another height.
    resize(browser, browser.driver.execute_script(SHORTEN, [*MARKED.values()]))
    browser.driver.execute_script(MARK, MARKED)
    content: bytes = browser.driver.get_screenshot_as_png()
    return content


def small(shot: bytes) -> bytes:
    """Return the picture with at most COLOURS colours."""
    found = BytesIO()
    image = Image.open(BytesIO(shot)).convert("RGB")
    few = image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(found, "PNG", optimize=True)
    return found.getvalue()


if __name__ == "__main__":
    sys.exit(main())
