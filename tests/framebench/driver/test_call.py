"""The purpose of a call follows from its command line."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from framebench.driver.call import Invocation


def call(*arguments: str, dry_run: bool = False) -> Invocation:
    snakemake = SimpleNamespace(
        words=set(arguments), is_main_process=True, is_dry_run=dry_run, starts_nothing=False,
        shows_files=False,
    )  # fmt: skip
    return Invocation.from_snakemake(snakemake)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "plans"),
    [
        (["report"], False),
        (["plan", "report"], True),
        (["all"], True),
        ([], True),
    ],
)
def test_records_are_not_read_for_a_plan_that_nothing_asks_for(
    arguments: list[str], plans: bool
) -> None:
    assert call(*arguments).plans == plans


def test_beside_a_report_a_dry_run_may_show_what_there_is_to_measure() -> None:
    assert call("report", "all", dry_run=True).plans
