"""Flags of a record: a vanished loss, recompilation and graph breaks."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from framebench.records import flags, record_sets
from framebench.tables import frames

from ..made_up_records import record_of
from ..made_up_runs import build, in_markdown
from ..made_up_verifications import CASE
from ..table_rows import row

#: Cross-entropy over 1,000 classes before any training.
FIRST = math.log(1000)


def record_with(first: float | None, *last: float | None, mode: str = "train") -> dict[str, Any]:
    """Return the record of a run; ``last``: the value of each rank's last timed step."""
    case = {**CASE, "mode": mode, "devices_per_node": len(last)}
    record = record_of(random.Random(1), case, 1)
    for rank, value in zip(record["ranks"], last, strict=True):
        rank |= {"first_value": first, "last_value": value}
    return record


@pytest.mark.parametrize(
    ("first", "last", "why"),
    [
        (FIRST, [0.0], "the loss fell from 6.91 to 0"),
        (FIRST, [8e-7], "the loss fell from 6.91 to 8e-07"),  # 2 ** -23 of FIRST is 8.2e-7
        (FIRST, [9e-7], None),
        # the loss vanishes in one of two ranks
        (FIRST, [FIRST, 0.0], "the loss fell from 6.91 to 0"),
        # relative to the first loss: a user's loss may have any unit, and be negative
        (6.91e-9, [6.8e-9], None),
        (0.0, [0.0], "the loss was 0 from the first step"),
        # missing in the record
        (None, [0.0], None),
        (FIRST, [None], None),
    ],
)
def test_a_loss_that_has_vanished_is_flagged(
    first: float | None, last: list[float | None], why: str | None
) -> None:
    actual = flags.flags_of(record_with(first, *last))
    assert actual == (() if why is None else ((flags.VANISHED, why),))


def test_a_flag_is_shown_in_the_cell_and_explained(tmp_path: Path) -> None:
    for repeat in range(1, 8):
        record = {**record_with(FIRST, 0.0 if repeat == 3 else 5.0), "repeat": repeat}
        (tmp_path / f"r{repeat}.json").write_text(json.dumps(record))
    summary = build(record_sets.load(tmp_path).runs)["summary"]
    assert flags.VANISHED in row(summary)["flags"].split()
    assert "vanished: in repeat 3 the loss fell from 6.91 to 0" in row(summary)["remarks"]
    text = in_markdown("summary", summary)
    assert "*vanished*" in text
    assert f"*vanished*: {frames.FLAGS[flags.VANISHED]}" in text


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
        ({"frames": 2, "frames_compiled": 2}, ()),
        (
            {"recompiled_in_window": {"count": 3, "reasons": ["n == 1", "n == 2"]}},
            ((flags.RECOMPILED, "recompiled 3 times while timed: n == 1"),),
        ),
        (
            {"graph_breaks": 2, "breaks": ["a.py:1: print", "a.py:2: item"]},
            ((flags.BROKEN, "2 of them: a.py:1: print; a.py:2: item"),),
        ),
        (
            {"frames": 2, "frames_compiled": 1},
            ((flags.BROKEN, "compiled too often and left to eager mode: 1 of 2 functions"),),
        ),
    ],
)
def test_what_a_compiler_did_is_flagged(
    compiled: dict[str, Any], found: tuple[tuple[str, str], ...]
) -> None:
    record = record_of(random.Random(1), {**CASE, "devices_per_node": 2}, 1)
    record["ranks"][1]["compiled"] = compiled  # one of two ranks compiled otherwise
    assert flags.flags_of(record) == found
