"""A browser, and pages to look at in it, each made once for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .browser import Browser, make
from .figures import unpacked
from .made_up_records import write_records


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    make(write_records(folder / "runs"), folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the report of real records of the suite quick."""
    folder = unpacked("results", tmp_path_factory.mktemp("quick")) / "quick"
    make(folder / "runs", folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.driver.quit()
