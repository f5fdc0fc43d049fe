"""Make the pictures of the sample report. docs/report.png, of docs/reading-a-report.md, is the
report shortened to what the list on that page is about, with the numbers of the list;
docs/quick.png, of README.md, is one of its charts.

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
COLOURS = 255  # of a picture, which has few; its rarest are those of frameworks
#: The chart of README.md, by its heading.
CHART = "resnet50_v1.5, training"
#: What each number of the list stands beside, by a selector of the page.
MARKED = {
    1: "#answers table",
    2: ".origin",
    3: "#table-overview table",
    4: "#charts figure",
    5: "#table-summary table",
    6: "#measured .tiles",
}
#: Keep of the page what is marked, and its headings.
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
#: A number in a disc at the upper left corner of each.
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
    """Write the pictures, and say how large they are."""
    from tests.framebench.browser import Browser

    with tempfile.TemporaryDirectory() as name:
        page = Path(name, "report.html")
        page.write_bytes(site_pages._sample()["docs/sample/report.html"])
        browser = Browser(Path(name, "profile"))
        try:
            browser.open(page, width=WIDTH)
            pictures = {"quick.png": chart(browser), "report.png": shortened(browser)}
        finally:
            browser.driver.quit()
    for name, shot in pictures.items():
        content = small(shot)
        (DOCS / name).write_bytes(content)
        print(f"docs/{name}: {len(content) / 1000:.0f} kB")
    return 0


def chart(browser: Any) -> bytes:
    """That of CHART alone, as PNG."""
    (figure,) = (
        one
        for one in browser.driver.find_elements("css selector", "#charts figure")
        if one.find_element("css selector", "h4").text == CHART
    )
    content: bytes = figure.find_element("css selector", ".chart").screenshot_as_png
    return content


def shortened(browser: Any) -> bytes:
    """The report with numbers, as PNG; the page is spoilt by it."""
    height = browser.driver.execute_script(SHORTEN, [*MARKED.values()])
    size: dict[str, Any] = {"width": WIDTH, "height": height, "deviceScaleFactor": 1}
    # before the marks: a page of another height is laid out anew
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "mobile": False})
    browser.driver.execute_script(MARK, MARKED)
    content: bytes = browser.driver.get_screenshot_as_png()
    return content


def small(shot: bytes) -> bytes:
    """The same picture in few colours."""
    found = BytesIO()
    image = Image.open(BytesIO(shot)).convert("RGB")
    few = image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(found, "PNG", optimize=True)
    return found.getvalue()


if __name__ == "__main__":
    sys.exit(main())
