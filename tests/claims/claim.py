"""Claims, and the violations that their tests must find."""

from __future__ import annotations

from typing import NamedTuple

from ..planting import Change


class Violation(NamedTuple):
    """Violation of a claim, as a programmer's mistake could make it.

    ``about``: what is wrong; ``changes``: of files of the project; ``tests``: node ids of the tests
    that must all fail. An id without parameters fails with any of them."""

    about: str
    changes: tuple[Change, ...]
    tests: tuple[str, ...]


class Claim(NamedTuple):
    """Claim of the documentation. ``words``: its row in the table of claims."""

    words: str
    planted: tuple[Violation, ...]


def claim(words: str, *planted: Violation) -> Claim:
    """Return a claim with at least one violation."""
    assert planted, f"no violation of {words!r} is planted"
    return Claim(words, planted)


def violation(about: str, file: str, right: str, wrong: str, *tests: str) -> Violation:
    """Return a violation that changes one text."""
    return Violation(about, (Change(file, right, wrong),), tests)
