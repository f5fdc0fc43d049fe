"""Output of a call: on a terminal, whose last line is rewritten, and in a log."""

from __future__ import annotations

import fcntl
import io
import json
import logging
import os
import pty
import select
import struct
import termios
import time
from pathlib import Path
from typing import Any

import pytest
from framebench.plan.jobs import Job, name_of
from framebench.terminal import status_lines
from framebench.terminal.outcome import RunOutcome, end_of_log, outcome_of
from framebench.terminal.screen import Screen
from framebench.terminal.view import ProgressView

from ..terminal_lines import visible_lines

LEFT = 720.0


def record_of(folder: Path, **more: Any) -> Path:
    metrics = {"throughput": {"value": 6.8199, "unit": "images/s", "better": "higher"}}
    made = {"status": "ok", "reason": "", "metrics": metrics, "wall_seconds": 8.2, **more}
    path = folder / "r1.json"
    path.write_text(json.dumps(made))
    return path


# ---- lines ---------------------------------------------------------------------------------------


def test_a_result_has_its_figure_or_its_reason(tmp_path: Path) -> None:
    def line(**more: Any) -> str:
        return status_lines.result(
            "12/84", "pytorch fp32", outcome_of(record_of(tmp_path, **more)), 8.2
        )

    assert line() == "12/84 pytorch fp32 6.82 images/s 8 s"
    bad = {"metrics": {"throughput": {"value": None, "unit": "images/s"}}, "status": "oom"}
    assert line(**bad, reason="no room\nat all\x1b[2J") == (
        "12/84 pytorch fp32 oom: no room at all\\x1b[2J 8 s"
    )
    own = {"bandwidth": {"value": 12.0, "unit": "GB/s"}}
    assert line(metrics=own) == "12/84 pytorch fp32 bandwidth 12 GB/s 8 s"
    assert line(metrics={}, kind="verification") == "12/84 pytorch fp32 ok 8 s"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"metrics": [1], "wall_seconds": "x"}'])
def test_a_broken_record_is_a_failure_and_stops_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "r1.json").write_text(text)
    assert outcome_of(tmp_path / "r1.json").status == "failed"
    assert outcome_of(tmp_path / "none.json").status == "failed"


def test_the_status_says_all_where_there_is_room_and_the_time_left_where_there_is_none() -> None:
    done, total = (
        {"run": 12, "peak_flops": 3},
        {"run": 84, "peak_flops": 21, "verification": 49, "tables": 1},
    )
    running = ["jax bert_base train fp32 1n1g r1", "another"]
    assert status_lines.status(done, total, 2, running, LEFT) == (
        "12/84 runs, 2 failed, 3/21 peak benchmarks, 0/49 verifications; "
        "jax bert_base train fp32 1n1g r1 "
        "and 1 more; about 12 min 00 s left"
    )
    for width in range(30, 200):
        text = status_lines.status(done, total, 2, running, LEFT, width)
        assert len(text) <= width
        if width > 60:
            assert text.startswith("12/84 runs, 2 failed")
            assert text.endswith("about 12 min 00 s left")
    assert status_lines.status(
        {"run": 84, "peak_flops": 21}, {"run": 84, "peak_flops": 21}, 0, [], LEFT
    ) == ("84/84 runs; about 12 min 00 s left")


def test_the_log_of_a_failure_ends_with_its_path(tmp_path: Path) -> None:
    log = tmp_path / "r1.log"
    log.write_text("".join(f"line {n}\n\n" for n in range(50)) + "\x1b[31mError: no\n")
    *lines, where = end_of_log(log)
    assert where == f"    log: {log}"
    assert len(lines) == 20
    assert lines[-1] == "    \\x1b[31mError: no"
    assert end_of_log(tmp_path / "none.log") == []


# ---- where they are written ----------------------------------------------------------------------


def drained(terminal: int) -> str:
    """Return everything written so far, in however many parts."""
    parts = []
    while select.select([terminal], [], [], 0.3)[0]:
        parts.append(os.read(terminal, 4096))
    return b"".join(parts).decode()


def test_the_status_line_is_rewritten_in_place_and_leaves_nothing_behind() -> None:
    above, below = pty.openpty()
    fcntl.ioctl(below, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    asked: list[int] = []

    def status(width: int) -> str:
        asked.append(width)
        return "x" * (width - len(asked))

    with os.fdopen(below, "w") as stream:
        screen = Screen(stream, True, False, status)
        screen.show_status(0.0)
        screen.say("one")
        screen.show_status(0.0)
        screen.say("two\nthree")
        middle = drained(above)
        assert visible_lines(middle)[:-1] == ["one", "two", "three"]
        assert visible_lines(middle)[-1] == "x" * (79 - len(asked)), (
            "something of a longer one was left"
        )
        assert set(asked) == {79}, "a line of the terminal's full width makes some wrap it"
        screen.close()
        screen.say("behind")
        screen.show_status(0.0)
        end = middle + drained(above)
    assert visible_lines(end) == ["one", "two", "three", "behind", ""]
    os.close(above)


def test_a_log_has_a_status_line_a_minute_at_most() -> None:
    stream = io.StringIO()
    screen = Screen(stream, False, False, lambda width: f"status of {width}")
    now = time.time()
    for second in range(0, 150, 10):
        screen.say(f"{second}", "red")
        screen.show_status(now + second)
    screen.close()
    said = stream.getvalue().splitlines()
    assert said.count("status of 0") == 2
    assert "\033" not in stream.getvalue()
    assert said.index("status of 0") == 7, "before a minute was over"


# ---- events --------------------------------------------------------------------------------------


def event(name: str, created: float, **attributes: Any) -> tuple[str, logging.LogRecord]:
    made = logging.LogRecord("snakemake", logging.INFO, "", 0, name, (), None)
    vars(made).update(attributes, created=created)
    return name, made


def run_of(number: int, record: Path, **more: Any) -> tuple[dict[str, str], Job]:
    wildcards = {"framework": "toy", "model": "toy", "case": "c", "repeat": str(number)}
    name = name_of(wildcards)
    return wildcards, Job(
        name, "run", "c", 10.0, label=f"toy r{number}", record=str(record), **more
    )


def played(record: Path, here: bool) -> str:
    """Return the output of a call of three runs: one with a record, one without, one not begun.
    It also has a job that is not ours."""
    runs = [run_of(number, record) for number in (1, 2, 3)]
    view = ProgressView([job for _, job in runs], 1.0, False, here)
    stream = io.StringIO()
    view.attach(stream, False, False)
    now = time.time()
    info = {"rule_name": "benchmark"}
    assert view.takes(*event("job_info", now, jobid=1, wildcards=runs[0][0], **info))
    assert view.takes(*event("job_finished", now + 12, job_id=1))
    assert view.takes(*event("job_info", now + 12, jobid=2, wildcards=runs[1][0], **info))
    # Of a cluster's job, Snakemake knows more than its log.
    assert view.takes(*event("job_error", now + 20, jobid=2)) == here
    assert not view.takes(*event("job_info", now, jobid=9, wildcards={"run": "x"}, **info))
    assert not view.takes(*event("job_finished", now, job_id=9))
    assert not view.takes(*event("", now))
    assert view.status().startswith("2/3 runs, 1 failed; about ")
    view.end(lambda attributes: view.takes(*event("", now, **attributes)) and None)
    return stream.getvalue()


def test_jobs_become_results_whatever_else_runs(tmp_path: Path) -> None:
    said = played(record_of(tmp_path), True)
    assert said.splitlines() == [
        "1/3 toy r1 6.82 images/s 12 s",
        "2/3 toy r2 failed: ended without a record 8 s",
    ]


def test_on_a_cluster_a_run_took_what_its_record_says(tmp_path: Path) -> None:
    said = played(record_of(tmp_path), False)
    assert "1/3 toy r1 6.82 images/s 8 s" in said


def test_a_failed_run_shows_its_log(tmp_path: Path) -> None:
    log = tmp_path / "r1.log"
    log.write_text("Traceback\nError: no\n")
    _, run = run_of(1, record_of(tmp_path, status="failed", reason="no", metrics={}), log=str(log))
    view = ProgressView([run], 1.0, True, True)
    stream = io.StringIO()
    view.attach(stream, False, False)
    wildcards = {"framework": "toy", "model": "toy", "case": "c", "repeat": "1"}
    view.takes(*event("job_info", 0.0, jobid=1, wildcards=wildcards, rule_name="benchmark"))
    view.takes(*event("job_finished", 3.0, job_id=1))
    assert stream.getvalue().splitlines()[:4] == [
        "1/1+ toy r1 failed: no 3 s",
        "    Traceback",
        "    Error: no",
        f"    log: {log}",
    ]


def test_an_outcome_says_no_more_than_its_record(tmp_path: Path) -> None:
    path = tmp_path / "r1.json"
    path.write_text('{"status": "ok"}')
    assert outcome_of(path) == RunOutcome("ok")
