"""Steps with a batch from the host before each: timing, and refusals."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import pytest
from harness.measuring.input_pipeline import PipelineSteps

from ...bench import Bench
from ..validity import assert_outcome


class Slow:
    """Adapter with slow copies."""

    def __init__(self) -> None:
        self.fed: list[Any] = []

    def feed(self, batch: dict[str, Any]) -> None:
        time.sleep(0.02)
        self.fed.append(batch["labels"])

    def step(self) -> int:
        return len(self.fed)

    def synchronize(self) -> None:
        """Do nothing: nothing is in flight."""


def test_each_step_has_the_next_batch_and_says_how_long_that_took() -> None:
    ended = []

    def batches() -> Generator[dict[str, Any], None, None]:
        try:
            for number in range(9):
                time.sleep(0.05 if number == 1 else 0.0)
                yield {"labels": number}
        finally:
            ended.append(number)

    adapter = Slow()
    feed = PipelineSteps(adapter, {}, batches)  # type: ignore[arg-type]
    assert [feed.step() for _ in range(3)] == [1, 2, 3]
    assert adapter.fed == [0, 1, 2]
    assert min(feed.copy_seconds) >= 0.02
    assert feed.wait_seconds[1] >= 0.05
    assert not ended
    feed.stop()
    assert ended == [2], "a loader that works ahead is ended"
    feed.begin()
    assert (feed.step(), adapter.fed[3:]) == (5, [0, 1])


def test_a_batch_of_the_host_is_copied_before_each_step(toy: Bench) -> None:
    done = toy.run("sleep=0.01", input="synthetic_host")
    record = done.record
    assert_outcome(record, "ok")
    assert record["case"]["input"] == "synthetic_host"
    (rank,) = record["ranks"]
    timed = rank["input_pipeline"]
    assert len(timed["wait_seconds"]) == len(timed["copy_seconds"]) == 5
    assert timed["compute_step_seconds"]
    assert "loader_seconds" not in timed
    assert rank["phases"]["window_without_input_seconds"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input": "data"}, "--input data needs --data FOLDER"),
        (
            {"data": "/tmp"},
            "--data is for --input data, dali, and for kinds that read images",
        ),
        ({"kind": "independent", "input": "data"}, "--kind independent has no --input"),
    ],
)
def test_images_are_named_where_they_are_read_and_nowhere_else(
    toy: Bench, options: dict[str, Any], message: str
) -> None:
    done = toy.run("", **options)
    assert (done.status, done.record) == (2, None)
    assert message in done.stderr


def test_a_model_without_images_reads_none(toy: Bench) -> None:
    record = toy.run("", input="data", data=toy.folder).record
    assert record["status"] == "unsupported"
    assert record["reason"] == (
        "toy reads no files: it has neither images, nor running text, nor sequences with masked "
        "words"
    )
    assert record["settings"]["data"]["folder"] == str(toy.folder)
