"""Bounded logs, which keep their beginning and their end."""

from __future__ import annotations

import os
import random
import re
import threading
from pathlib import Path

import pytest
from harness.messages import report
from harness.processes.log_files import LogFile, LogKeeper
from harness.record import record

from ...bench import Bench


@pytest.mark.parametrize("seed", range(20))
def test_a_log_keeps_its_beginning_and_its_end(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    head, tail = rng.randrange(1, 200), rng.randrange(1, 200)
    printed = b"".join(b"%d\n" % number for number in range(rng.randrange(1, 3000)))
    path = tmp_path / "x.log"
    log = LogFile(str(path), head, tail)
    offset = 0
    while offset < len(printed):
        size = rng.choice([1, 7, 90, 700, 5000])
        log.write(printed[offset : offset + size])
        offset += size
        assert path.stat().st_size <= head + 2 * tail + 40
    log.close()
    kept = path.read_bytes()
    if len(printed) <= head + 2 * tail:
        assert kept == printed
        return
    actual = re.search(rb"\n\[(\d+) bytes left out\]\n", kept)
    assert actual is not None
    assert kept[: actual.start()] == printed[:head]
    end = kept[actual.end() :]
    assert len(end) >= tail
    assert printed.endswith(end)
    assert int(actual[1]) == len(printed) - head - len(end), "the number left out is wrong"


def test_what_was_printed_is_there_at_once_and_obeyed_by_no_terminal(tmp_path: Path) -> None:
    with LogKeeper() as keeper:
        outputs = [keeper.open(str(tmp_path / f"{number}.log")) for number in range(2)]
        keeper.start()
        for number, output in enumerate(outputs):
            os.write(output, f"rank {number}\x1b[2J\x9b é\r\n".encode())
            keeper.flush()
            printed = (tmp_path / f"{number}.log").read_bytes()
            assert printed == f"rank {number}\\x1b[2J\\x9b é\r\n".encode()
            os.close(output)


def test_a_signal_while_the_thread_starts_closes_nothing_that_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    class StartsLate(threading.Thread):
        def start(self) -> None:
            threads.append(self)
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(threading, "Thread", StartsLate)
        keeper = LogKeeper()
        output = keeper.open(str(tmp_path / "0.log"))
        with pytest.raises(KeyboardInterrupt), keeper:
            keeper.start()
    os.write(output, b"rank 0\n")
    threading.Thread.start(threads[0])
    keeper.flush()  # what ends the thread by now
    threads[0].join()
    assert (tmp_path / "0.log").read_bytes() == b"rank 0\n"


def test_a_run_that_prints_without_end_has_a_log_of_bounded_size(toy: Bench) -> None:
    done = toy.run("print=24")
    assert done.record["status"] == "ok", done.record["reason"]
    assert toy.log.stat().st_size < 13 * 2**20
    text = toy.log.read_bytes()
    assert b"\n000000\\x1b[2Jxxx" in text
    assert b"\n024575\\x1b[2Jxxx" in text, "its end is missing"
    assert re.search(rb"\n\[\d{8} bytes left out\]\n", text)


def test_no_text_of_a_record_is_longer_than_its_bound() -> None:
    long = "a" * 10**7 + "\x1b[2J\u202e" + "z"
    actual = report.encodable({"traceback": long, "list": [long], long: 1})
    texts = [actual["traceback"], actual["list"][0], *actual]
    assert all(len(text) <= report.LONGEST_TEXT for text in texts)
    assert actual["traceback"].startswith("aaa")
    assert actual["traceback"].endswith("a\\x1b[2J\\u202ez")
    assert len(report.error_text(ValueError(long))) <= 500
    assert report.shorten("x\x1b]0;owned\x07") == "x\\x1b]0;owned\\x07"


def test_a_record_that_nobody_could_read_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "LARGEST", 1000)
    created = {"metrics": {}, "status": "ok", "reason": "", "ranks": [{"a": list(range(1000))}]}
    actual = record.checked(created, {"type": "object"})
    assert (actual["status"], actual["ranks"]) == ("failed", [])
    assert "allowed: at most 1000" in actual["reason"]
