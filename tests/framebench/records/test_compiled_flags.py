"""A compiler that compiled within the timed region, or left out parts of a model, is flagged."""

from __future__ import annotations

import random
from typing import Any

import pytest
from framebench.records.fields import flags

from ..made_up_records import record_of
from ..made_up_verifications import CASE

COUNTS = {"frames": 2, "frames_compiled": 2, "graph_breaks": 0}


def test_a_model_that_compiles_itself_is_flagged() -> None:
    record = record_of(random.Random(1), CASE, 1)
    record["ranks"][0]["compiled"] = {"unique_graphs": 2}
    assert flags.flags_of(record) == (
        (flags.SELF_COMPILED, "the model compiles itself: 2 graph(s)"),
    )
    record["case"]["compiler"] = "inductor"
    assert flags.flags_of(record) == ()


@pytest.mark.parametrize(
    ("compiled", "found"),
    [
        (COUNTS, ()),
        (
            {**COUNTS, "recompiled_in_window": {"count": 3, "reasons": ["n == 1", "n == 2"]}},
            ((flags.RECOMPILED, "recompiled 3 times while timed: n == 1"),),
        ),
        (
            {**COUNTS, "graph_breaks": 2, "breaks": ["a.py:1: print", "a.py:2: item"]},
            ((flags.BROKEN, "2 of them: a.py:1: print; a.py:2: item"),),
        ),
        (
            {**COUNTS, "frames_compiled": 1},
            ((flags.BROKEN, "compiled too often and left to eager mode: 1 of 2 functions"),),
        ),
    ],
)
def test_what_a_compiler_did_is_flagged(
    compiled: dict[str, Any], found: tuple[tuple[str, str], ...]
) -> None:
    record = record_of(random.Random(1), {**CASE, "devices_per_node": 2}, 1)
    record["ranks"][1]["compiled"] = compiled  # in one rank of two
    assert flags.flags_of(record) == found
