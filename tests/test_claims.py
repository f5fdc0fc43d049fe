"""Every claim of the documentation has a planted violation, and its tests find it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .claims.claim import Violation
from .claims.register import CLAIMS, PAGE, page
from .claims.violating import missed
from .conftest import ROOT
from .planting import change

PLANTED = [violation for claim in CLAIMS for violation in claim.planted]
#: Violations that are really run; ``benchmarks/planted_violations.py`` runs all.
RUN = (
    "the clock is read before the device is synchronized",
    "collection stays enabled",
    "all rounds have one order",
    "the probability of one side only",
    "bits of float32 are not looked at",
    "the code is not compared",
)


def test_the_page_has_the_table_of_the_register() -> None:
    text = (ROOT / PAGE).read_text()
    assert page(text) == text, "run benchmarks/planted_violations.py --table"


@pytest.mark.parametrize("violation", PLANTED, ids=lambda violation: violation.about)
def test_a_violation_can_be_planted_and_names_tests(violation: Violation, tmp_path: Path) -> None:
    for file in {edit.file for edit in violation.changes}:
        copy = tmp_path / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text((ROOT / file).read_text())
    change(tmp_path, violation.changes)
    assert violation.tests
    for test in violation.tests:
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(), test


def test_every_claim_and_violation_has_its_own_words() -> None:
    assert all(claim.planted for claim in CLAIMS)
    assert len({claim.words for claim in CLAIMS}) == len(CLAIMS)
    assert len({violation.about for violation in PLANTED}) == len(PLANTED)


@pytest.mark.parametrize("about", RUN)
def test_a_planted_violation_is_found(about: str, tmp_path: Path) -> None:
    (violation,) = [one for one in PLANTED if one.about == about]
    assert not missed(violation, tmp_path / "copy")


def test_a_change_that_violates_nothing_is_not_found(tmp_path: Path) -> None:
    harmless = PLANTED[0]._replace(changes=())
    assert missed(harmless, tmp_path / "copy") == list(harmless.tests)
