"""Schemas and generated tables have the keys of the core and of all features."""

from __future__ import annotations

import pytest
from framebench.config import documentation

from ..settings import ROOT

WRITE = "in workflow/: ../.venv/bin/python -m framebench.config.documentation"


@pytest.mark.parametrize("name", documentation.SCHEMAS)
def test_the_committed_schema_is_what_models_and_documents_say(name: str) -> None:
    expected = documentation.schema(documentation.SCHEMAS[name])
    assert (ROOT / name).read_text() == expected, f"written anew by: {WRITE}"


@pytest.mark.parametrize("name", [*documentation.PAGES, documentation.BOUNDS])
def test_generated_tables_of_a_page_are_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text() == documentation.page(name), f"written anew by: {WRITE}"
