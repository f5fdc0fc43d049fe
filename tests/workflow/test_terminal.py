"""Output of a whole call: on a terminal, in a log, with failed runs, and without our plugin."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path

from .conftest import CASES, ROOT, SUITE, Project

LINE = re.compile(r"^\d+:\d\d  toy  Toy: .* \w+  fp32  .*$", re.MULTILINE)


def visible_lines(written: str) -> list[str]:
    """Return the lines that a terminal shows, which must not wrap."""
    lines, column = [""], 0
    for part in written.replace("\r\n", "\n").replace("\033[K", "\0"):
        if part == "\n":
            lines.append("")
            column = 0
        elif part == "\r":
            column = 0
        elif part == "\0":
            lines[-1] = lines[-1][:column]
        else:
            lines[-1] = lines[-1][:column] + part + lines[-1][column + 1 :]
            column += 1
    return lines


def test_a_terminal_has_a_line_for_each_result_and_nothing_else_is_left(project: Project) -> None:
    """One line per result and nothing else, at 80 columns."""
    project.write_suite({**SUITE, "repeats": 1})
    above, below = pty.openpty()
    os.set_blocking(above, True)
    call = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "all"],
        cwd=project.folder,
        stdin=below,
        stdout=below,
        stderr=below,
        env={**os.environ, "TERM": "xterm", "FRAMEBENCH_TOY": ""},
    )
    os.close(below)
    parts: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(above, 4096):
                parts.append(part)
        except OSError:  # raised when the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    assert call.wait(timeout=600) == 0
    reader.join()
    os.close(above)
    written = b"".join(parts).decode()
    shown = visible_lines(written)
    assert len(LINE.findall("\n".join(shown))) == CASES, written
    assert not [line for line in shown if " left" in line], "a status line was left behind"
    assert re.search(rf"1 of {CASES} runs[^\r]*now: toy  Toy", written), "no status line"
    assert shown[-2] == "report: results/report.html", "the answers are not the end"
    assert max(len(line) for line in re.findall(r"\033\[K(\d[^\r\n]*)\r", written)) <= 79


def test_failed_runs_say_why_and_where_their_log_is(project: Project) -> None:
    project.write_suite({**SUITE, "repeats": 1})
    ran = project.measure(toy="raise_from_batch=1")
    lines = LINE.findall(ran.stdout)
    assert len(lines) == CASES, ran.stdout
    for record, line in zip(
        sorted(project.parsed(), key=lambda r: r["started"]), lines, strict=True
    ):
        assert line.endswith(f"  failed: {' '.join(record['reason'].split())}")
    logs = re.findall(r"^    log: (results/logs/.*\.log)$", ran.stdout, re.MULTILINE)
    assert len(logs) == CASES
    assert all((project.folder / log).is_file() for log in logs)
    assert "Traceback" in ran.stdout


def test_what_snakemake_refuses_is_said_in_full(project: Project) -> None:
    ran = project.run("--cores", "all", "no/such/file")
    assert ran.returncode == 1
    assert "MissingRuleException" in ran.stdout
    assert "no/such/file" in ran.stdout


def test_the_bootstrap_leads_snakemake_to_the_plugin() -> None:
    """A copy of the plugin instead of a link would break a moved project."""
    (path,) = Path(ROOT / ".venv").glob("lib/python3*/site-packages/framebench_logger.pth")
    assert Path(path.read_text().strip()) == ROOT / "workflow" / "logger"
