"""Bounds on what a run prints and leaves."""

from __future__ import annotations

from harness.messages import report

from ...bench import Bench


def test_a_run_that_prints_without_end_has_failed_and_says_why(toy: Bench) -> None:
    record = toy.run("print=96,hang").record
    assert record["status"] == "failed"
    assert "rank 0 printed more than 64 MiB: " in record["reason"]
    assert record["reason"].partition(", during: ")[0].endswith(toy.log.name)
    toy.assert_nothing_left()


def test_no_text_of_a_record_is_longer_than_its_bound() -> None:
    long = "a" * 10**7 + "\x1b[2J\u202e" + "z"
    actual = report.encodable({"traceback": long, "list": [long], long: 1})
    texts = [actual["traceback"], actual["list"][0], *actual]
    assert all(len(text) <= report.LONGEST_TEXT for text in texts)
    assert actual["traceback"].startswith("aaa")
    assert actual["traceback"].endswith("a\\x1b[2J\\u202ez")
    assert len(report.error_text(ValueError(long))) <= 500
    assert report.shorten("x\x1b]0;owned\x07") == "x\\x1b]0;owned\\x07"
