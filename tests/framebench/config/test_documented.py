"""Tables in the documentation agree with the code that they describe."""

from __future__ import annotations

import csv

import pytest
from core import precisions
from core.gpus import Gpu
from framebench.config.catalog import PTX_DRIVERS
from framebench.config.cluster import Cluster
from framebench.config.keys import Keys
from framebench.config.measurements import MatrixKeys
from framebench.config.settings import Configuration
from framebench.config.suite import SuiteFile, TunedFile, TunedSetting
from framebench.tables import frames

from ..settings import CATALOG, CONFIG, ROOT

#: Page with the table of a model's keys, between comments with its name.
PAGES: dict[type[Keys], str] = {
    Configuration: "config/README.md",
    MatrixKeys: "config/README.md",
    SuiteFile: "config/README.md",
    Cluster: "docs/cluster.md",
    TunedFile: "docs/frameworks.md",
    TunedSetting: "docs/frameworks.md",
}


def table(page: str, name: str) -> list[list[str]]:
    """Return the cells of a page's table between its comments, head first."""
    _, _, text = (ROOT / page).read_text().partition(f"<!-- {name} -->\n")
    head, _, *rows = text.partition(f"<!-- /{name} -->")[0].strip().splitlines()
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in (head, *rows)]


@pytest.mark.parametrize("model", PAGES)
def test_every_key_has_a_row_on_its_page(model: type[Keys]) -> None:
    _, *rows = table(PAGES[model], model.__name__)
    keys = [key.strip("`") for row in rows for key in row[0].split(", ")]
    assert sorted(keys) == sorted(model.model_fields)


def test_the_configuration_that_ships_is_the_defaults() -> None:
    defaults = {name: field.default for name, field in Configuration.model_fields.items()}
    assert {name: value for name, value in defaults.items() if value is not None} == CONFIG


def test_the_page_on_gpus_has_each_environment_as_it_is() -> None:
    _, *rows = table("docs/gpus.md", "gpu_environments")
    with (ROOT / "envs" / "capabilities.csv").open() as file:
        known = list(csv.DictReader(file))
    for own, row in zip(known, rows, strict=True):
        *facts, code, ptx = row
        assert facts == [
            f"`{own['environment']}`", own["version"], own["cuda"], own["minimum_driver"]
        ]  # fmt: skip
        driver = f" (driver {PTX_DRIVERS[own['cuda']]})" if own["cuda"] in PTX_DRIVERS else ""
        assert ptx == (own["ptx"] and own["ptx"] + driver)
        assert code == (own["machine_code"] or "unknown")


def test_the_page_on_gpus_has_the_frameworks_with_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [*(("x86_64", of) for of in ("7.0", "7.5", "8.0", "9.0", "10.0")), ("aarch64", "9.0")]
    _, *rows = table("docs/gpus.md", "gpu_builds")
    written: dict[str, list[str]] = {}
    found: dict[str, list[str]] = {}
    for named, *cells in rows:
        for title in named.partition(":")[0].split(", "):
            written[title] = cells
    for name, framework in CATALOG.frameworks.items():
        cells = found[framework["title"]] = []
        for machine, capability in columns:
            monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
            gpu = Gpu("GPU", None, "580.95.05", "", "", capability)
            cells.append("yes" if CATALOG.environment_file(name, "cuda", [gpu])[0] else "")
    assert found == written


def test_the_page_on_verification_has_the_bounds() -> None:
    (_, *names), *rows = table("docs/measuring.md", "bounds")
    known = precisions.known()
    assert names == [*known]
    written = {
        quantity: {name: float(cell or 0) for name, cell in zip(names, cells, strict=True)}
        for quantity, *cells in rows
    }
    bounds = {name: precision.bounds for name, precision in known.items()}
    for quantity, own in written.items():
        assert own == {name: bounds[name].get(quantity, 0) for name in names}, quantity
    assert {*written} == {quantity for own in bounds.values() for quantity in own}


def test_every_suite_has_a_machine_that_it_is_for() -> None:
    page = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("suites", "reproduce"))
    suites = [path.stem for path in (ROOT / "config" / "suites").glob("*.yaml")]
    assert [name for name in suites if f"`{name}`" not in page] == []


def test_every_mark_has_something_to_do_about_it() -> None:
    page = (ROOT / "docs" / "reading.md").read_text()
    assert [flag for flag in frames.FLAGS if f"| `{flag}` |" not in page] == []
