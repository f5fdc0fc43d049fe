"""Output of a call: on a terminal, whose last line is rewritten, and in a log."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from framebench.plan.job import Job
from framebench.terminal import call_text
from framebench.terminal.call_text import end_of_log, outcome_of
from framebench.terminal.view import ProgressView

from .made_up_verifications import CASE, verification_in

NOW = 1_000_000.0


def record_of(folder: Path, repeat: int = 1, **more: Any) -> Path:
    metrics = {"throughput": {"value": 6.8199, "unit": "images/s", "better": "higher"}}
    made = {"status": "ok", "reason": "", "metrics": metrics, "wall_seconds": 8.2, **more}
    path = folder / f"r{repeat}.json"
    path.write_text(json.dumps(made))
    return path


# ---- lines ---------------------------------------------------------------------------------------


def test_a_result_has_its_figure_or_its_reason(tmp_path: Path) -> None:
    def line(**more: Any) -> str:
        outcome = outcome_of(record_of(tmp_path, **more))
        return call_text.result(271.0, "pytorch  fp32", outcome)

    assert line() == "4:31  pytorch  fp32  6.82 images/s"
    bad = {"metrics": {"throughput": {"value": None, "unit": "images/s"}}, "status": "oom"}
    assert line(**bad, reason="no room\nat all\x1b[2J") == (
        "4:31  pytorch  fp32  oom: no room at all\\x1b[2J"
    )
    own = {"bandwidth": {"value": 12.0, "unit": "GB/s"}}
    assert line(metrics=own) == "4:31  pytorch  fp32  bandwidth 12 GB/s"
    assert line(metrics={}, kind="verification") == "4:31  pytorch  fp32  ok"


def value(figure: float) -> dict[str, Any]:
    return {"throughput": {"value": figure, "unit": "images/s", "better": "higher"}}


def test_verifications_are_one_line_with_what_failed(tmp_path: Path) -> None:
    verification_in(tmp_path, CASE)
    verification_in(tmp_path, {**CASE, "mode": "inference"}, error=0.9)
    paths = sorted((tmp_path / "verification").rglob("*.json"))
    line = call_text.verified([*paths, tmp_path / "none.json"])
    assert "1 passed, 1 failed" in line
    assert "PyTorch" in line
    assert "(allowed " in line
    assert call_text.verified([]) == ""


def test_the_log_of_a_failure_ends_with_its_path(tmp_path: Path) -> None:
    log = tmp_path / "r1.log"
    log.write_text("".join(f"line {n}\n\n" for n in range(50)) + "\x1b[31mError: no\n")
    *lines, where = end_of_log(log)
    assert where == f"    log: {log}"
    assert len(lines) == 20
    assert lines[-1] == "    \\x1b[31mError: no"
    assert end_of_log(tmp_path / "none.log") == []


# ---- events --------------------------------------------------------------------------------------


class Call:
    """A made-up call whose events are played to a view; its clock is set by hand."""

    def __init__(self, folder: Path, repeats: int = 3, here: bool = True, **view: Any) -> None:
        self.folder, self.seconds, self.numbers = folder, 0.0, 0
        self.stream = io.StringIO()
        others = [self.environment(name) for name in view.pop("environments", ())]
        jobs = [self.run(repeat) for repeat in range(1, repeats + 1)] + others
        budget = view.pop("budget", None)
        now = lambda: NOW + self.seconds  # noqa: E731
        self.view = ProgressView(jobs, "results", budget, 1, here, now)
        self.view.attach(self.stream, False)

    def run(self, repeat: int) -> Job:
        record = str(self.folder / f"r{repeat}.json")
        return Job(
            "run", f"toy/toy/c/r{repeat}", 10.0, record, record.replace(".json", ".log"),
            repeat=repeat, label="toy  training", software="toy",
        )  # fmt: skip

    @staticmethod
    def wildcards(repeat: int) -> dict[str, str]:
        return {"framework": "toy", "model": "toy", "case": "c", "repeat": str(repeat)}

    def event(self, name: str, **attributes: Any) -> bool:
        made = logging.LogRecord("snakemake", logging.INFO, "", 0, name, (), None)
        vars(made).update(attributes, created=NOW + self.seconds)
        return self.view.takes(name, made)

    def begin(self, wildcards: dict[str, str], rule: str = "benchmark", **more: Any) -> bool:
        self.numbers += 1
        given = {"jobid": self.numbers, "wildcards": wildcards, "rule_name": rule}
        return self.event("job_info", **given, **more)

    def finish(self, seconds: float) -> bool:
        self.seconds += seconds
        return self.event("job_finished", job_id=self.numbers)

    def measure(self, repeat: int, **record: Any) -> None:
        self.begin(self.wildcards(repeat))
        record_of(self.folder, repeat, **record)
        self.finish(10.0)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


@pytest.mark.parametrize("here", [True, False])
def test_jobs_become_results_whatever_else_runs(tmp_path: Path, here: bool) -> None:
    call = Call(tmp_path, here=here)
    call.measure(1)
    call.begin(call.wildcards(2))
    # Snakemake reports more about a cluster's job than its log.
    assert call.event("job_error", jobid=call.numbers) == here
    assert not call.begin({"other": "x"}, "another", output=["elsewhere/x"])
    assert not call.finish(0.0)
    assert not call.event("")
    assert [line for line in call.lines if " \N{MIDDLE DOT} " not in line] == [
        "0:10  toy  training  6.82 images/s",
        "0:10  toy  training  failed: ended without a record",
    ]
    assert "2 of 3 runs" in call.view.status()


def test_each_round_says_what_was_verified_in_it(tmp_path: Path) -> None:
    verification_in(tmp_path, CASE)
    verification_in(tmp_path, {**CASE, "mode": "inference"}, error=0.9)
    records = sorted((tmp_path / "verification").rglob("*.json"))
    call = Call(tmp_path)
    said = []
    for number, record in enumerate(records):
        job = Job("verification", f"toy/toy/{number}", 1.0, output=str(record))
        call.view.begin_round([job], [])
        call.begin({"framework": "toy", "reference": "toy", "verification": str(number)}, "verify")
        call.finish(1.0)
        call.begin({}, "medians", output=["results/tables/summary.csv"])
        said.append([line.partition(": ")[2] for line in call.lines if "Verified" in line])
    assert [len(lines) for lines in said] == [1, 2]
    assert sorted(line.partition(";")[0] for line in said[1]) == ["1 failed", "1 passed"]


def test_within_a_budget_the_status_is_a_clock_and_what_comes_next(tmp_path: Path) -> None:
    call = Call(tmp_path, budget=600.0)
    call.seconds = 250.0
    call.view.begin_round((), ["leads settled: 1 of 3", "next: repeats of A and B (2 of 7)"])
    status = "4:10 of 10:00 \N{MIDDLE DOT} leads settled: 1 of 3 \N{MIDDLE DOT} next: repeats of"
    assert call.view.status().startswith(status)
    assert call.lines[0].startswith(status), "a log has it at each round"


def test_repeats_have_a_clock_their_number_and_the_median(tmp_path: Path) -> None:
    call = Call(tmp_path)
    for repeat, figure in enumerate((20.0, 40.0, 30.0), 1):
        call.measure(repeat, metrics=value(figure))
    assert call.lines == [
        "0:10  toy  training  20 images/s",
        "0:20  toy  training  40 images/s  (2nd; median 30)",
        "0:30  toy  training  30 images/s  (3rd; median 30)",
    ]


def test_what_a_framework_lacks_is_said_once(tmp_path: Path) -> None:
    call = Call(tmp_path)
    for repeat in (1, 2):
        call.measure(repeat, status="unsupported", reason="no such precision", metrics={})
    assert call.lines == ["0:10  toy  training  cannot: no such precision"]
