"""Make the picture of the sample report: docs/quick.png, its first screen.

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

PICTURE = ROOT / "docs" / "quick.png"
WIDTH = 1120
#: Enough colours to keep the frameworks' colours, which cover the smallest areas.
COLOURS = 255
#: Part of the report that ends the first screen.
LAST = ".notes"
NO_SCROLLBARS = """
const style = document.createElement("style");
style.textContent = "::-webkit-scrollbar { display: none }";
document.head.append(style);
"""


def main() -> int:
    """Write the picture and print its size."""
    from tests.framebench.browser import Browser

    with tempfile.TemporaryDirectory() as name:
        page = Path(name, "report.html")
        page.write_bytes(site_pages._sample()["docs/sample/report.html"])
        browser = Browser(Path(name, "profile"))
        try:
            content = small(first_screen(browser.open(page, width=WIDTH, folded=True)))
        finally:
            browser.driver.quit()
    PICTURE.write_bytes(content)
    print(f"{PICTURE.relative_to(ROOT)}: {len(content) / 1000:.0f} kB")
    return 0


def first_screen(browser: Any) -> bytes:
    """Return the top of the report, to the end of LAST, as PNG."""
    browser.driver.execute_script(NO_SCROLLBARS)
    resize(browser, 900)
    bottom = f"document.querySelector('{LAST}').getBoundingClientRect().bottom"
    resize(browser, browser.evaluate(bottom))
    content: bytes = browser.driver.get_screenshot_as_png()
    return content


def resize(browser: Any, height: float) -> None:
    """Make the window as high as ``height`` CSS pixels."""
    size: dict[str, Any] = {"width": WIDTH, "height": int(height), "deviceScaleFactor": 1}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "mobile": False})


def small(shot: bytes) -> bytes:
    """Return the picture with at most COLOURS colours."""
    found = BytesIO()
    image = Image.open(BytesIO(shot)).convert("RGB")
    few = image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(found, "PNG", optimize=True)
    return found.getvalue()


if __name__ == "__main__":
    sys.exit(main())
