"""What the README claims of its numbers is held by tests, and `docs/measuring.md` names them."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from .frameworks import test_parity

ROOT = Path(__file__).parent.parent
CLAIMS = "Why these numbers can be believed"
TABLE = "What holds each claim"


def section(file: str, title: str) -> str:
    """The text below a heading of the second level, up to the next."""
    text = (ROOT / file).read_text()
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, f"{file} has no section {title!r}"
    return found[1]


def words(text: str) -> list[str]:
    """Its words alone, without the bold titles of list items."""
    return re.findall(r"\w+", re.sub(r"^- \*\*.*?\*\*", "", text, flags=re.MULTILINE))


def rows() -> list[tuple[str, list[str]]]:
    """Each claim of the table with its tests, as ``folder/file.py::test``."""
    lines = [line for line in section("docs/measuring.md", TABLE).splitlines() if "::" in line]
    cells = [line.strip("| ").split(" | ") for line in lines]
    return [(claim, re.findall(r"`([^`]+::[^`]+)`", tests)) for claim, tests in cells]


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_every_claim_of_the_readme_stands_in_the_table() -> None:
    """Word for word and in its order, so that none is added or changed without a look at what
    holds it."""
    items = re.findall(r"^- .*?(?=^- |^$)", section("README.md", CLAIMS), re.DOTALL | re.MULTILINE)
    claimed = [word for item in items for word in words(item)]
    assert [word for claim, _ in rows() for word in words(claim)] == claimed


def test_as_many_mistakes_are_planted_as_is_said() -> None:
    one_each = [name for name in functions("frameworks/test_parity.py") if "test_finds_" in name]
    counted = [
        *test_parity.RESNET_MISTAKES,
        *test_parity.BERT_MISTAKES,
        *test_parity.SIZE_MISTAKES,
    ]
    planted = len(counted) + len(one_each) - 1  # test_finds_a_mistake has those of the lists
    assert re.findall(r"(\d+) mistakes", section("README.md", CLAIMS)) == [str(planted)]


@pytest.mark.parametrize(("claim", "tests"), rows(), ids=lambda value: None)
def test_a_claim_is_held_by_tests_that_there_are(claim: str, tests: list[str]) -> None:
    assert tests, f"no test is named for {claim!r}"
    for test in tests:
        file, _, name = test.partition("::")
        assert name in functions(file), f"tests/{file} has no {name}, which is to hold {claim!r}"
