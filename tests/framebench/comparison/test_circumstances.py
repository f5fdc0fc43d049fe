"""Differences between the conditions of two sets."""

from __future__ import annotations

from framebench.comparison import circumstances

CODE = {"code.computation": "a" * 64, "code.commit": "b" * 40, "python.version": "3.11.2"}
CHANGED = {"code.computation": "c" * 64, "code.commit": "d" * 40, "python.version": "3.11.2"}


def test_an_edit_of_an_own_model_comes_first_and_digests_are_short() -> None:
    before, after = {**CODE, "model_version": "1" * 8}, {**CHANGED, "model_version": "2" * 8}
    assert list(circumstances.differences(before, after)) == [
        "model_version 11111111 -> 22222222",
        "code.commit bbbbbbbbbb -> dddddddddd",
    ]


def test_what_computes_is_named_where_the_model_is_the_same() -> None:
    same = {"model_version": "1" * 8}
    actual = list(circumstances.differences({**CODE, **same}, {**CHANGED, **same}))
    assert actual[1] == "code.computation aaaaaaaaaa -> cccccccccc"
