"""Reports without charts, for tests that look at tables: charts take most of a report's time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from framebench.report import html_report


@contextmanager
def without_charts() -> Iterator[None]:
    with patch.object(html_report, "draw_table", return_value=[]):
        yield
