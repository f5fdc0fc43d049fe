"""Storage by a real fio, if there is one, and by programs that answer like a broken one."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from harness.adapter import Mismatch
from harness.kinds import storage

from ...bench import Bench
from ...debian import install_debian_packages
from ...processes import write_program
from ..bare import WITHOUT_FRAMEWORK
from ..validity import assert_valid

SHORT = {"seconds": 0.2, "file_bytes": 1 << 20}


def stored(toy: Bench, folder: Path | str = "", path: str | None = None, **more: Any) -> Any:
    """Return the record of a run; ``path``: PATH of programs."""
    variables = {} if path is None else {"PATH": path}
    parameters = {**SHORT, "folder": folder}
    done = toy.run(
        "", **WITHOUT_FRAMEWORK, kind="storage", parameters=parameters, variables=variables, **more
    )
    return done.record


@pytest.fixture(scope="module")
def fio() -> str:
    program = shutil.which("fio")
    if not program:
        why = install_debian_packages("fio")
        assert not why, why
        program = shutil.which("fio")
    assert program
    return program


def spying(fio: str, folder: Path) -> str:
    """Return a PATH with a ``fio`` that also writes the real one's output to ``answers``."""
    script = f'#!/bin/sh\n{fio} "$@" | tee -a {folder}/answers\n'
    place = write_program(folder / "bin" / "fio", script).parent
    return f"{place}:{os.environ['PATH']}"


def test_the_figures_are_fio_s_own(toy: Bench, tmp_path: Path, fio: str) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    record = stored(toy, folder, spying(fio, tmp_path))
    assert_valid(record)
    if "past the page cache" in record["reason"]:
        pytest.skip(record["reason"])
    assert record["status"] == "ok", record["reason"]
    decoder, text, answers = json.JSONDecoder(), (tmp_path / "answers").read_text(), []
    while text.strip():
        answer, end = decoder.raw_decode(text[text.index("{") :])
        answers.append(answer)
        text = text[text.index("{") + end :]
    assert [answer["jobs"][0]["jobname"] for answer in answers] == [*storage.JOBS]
    metrics = {name: metric["value"] for name, metric in record["metrics"].items()}
    compared = 0
    for answer in answers:
        (job,) = answer["jobs"]
        for name, direction in storage.named(job["jobname"]).items():
            side = job[direction]
            assert metrics[f"{name}_bandwidth"] == pytest.approx(1e-9 * side["bw_bytes"])
            assert metrics[f"{name}_iops"] == pytest.approx(side["iops"])
            latency = side["clat_ns"]["percentile"]
            for percent in ("50", "95", "99", "99.9"):
                microseconds = 1e-3 * latency[f"{float(percent):.6f}"]
                assert metrics[f"{name}_latency_p{percent}"] == pytest.approx(microseconds)
            compared += 6
    assert compared == len(metrics), "a metric is no figure of fio's"
    assert not list(folder.iterdir()), "the file it measured is still there"
    of_job = {answer["jobs"][0]["jobname"]: answer["jobs"][0] for answer in answers}
    options = {name: job["job options"] for name, job in of_job.items()}
    blocks = [options[name]["bs"] for name in ("sequential_read", "random_read")]
    assert blocks == ["131072", "4096"], "requests have another size"
    assert options["random_read"]["runtime"] == "200ms", "it ran for another time than was asked"
    mixed = of_job["random_mixed"]
    reads, writes = (mixed[side]["total_ios"] for side in ("read", "write"))
    assert 0.7 < reads / (reads + writes) < 0.9, "four of five requests read"


@pytest.mark.parametrize(
    ("folder", "reason"),
    [
        ("", "no folder is named: set storage=DIR, or --parameter folder=DIR"),
        ("/dev/null", "folder: /dev/null is not a folder"),
        ("/proc", "folder: no file can be written there"),
    ],
)
def test_what_is_no_folder_to_write_to_is_said(toy: Bench, folder: str, reason: str) -> None:
    record = stored(toy, folder)
    assert record["status"] == ("failed" if folder else "unsupported")
    assert reason in record["reason"]


SIDE = {"bw_bytes": 4, "iops": 2.0, "total_ios": 7, "runtime": 1, "clat_ns": {"percentile": {}}}


def answer(**changes: Any) -> str:
    job = {"error": 0, "read": {**SIDE, **changes}}
    return "fio: a warning\n" + json.dumps({"fio version": "fio-3", "jobs": [job]})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "fio's output is not the result of one job"),
        (answer(total_ios=0), "fio has done no read at all"),
    ],
)
def test_an_empty_result_is_found(text: str, reason: str) -> None:
    with pytest.raises(Mismatch, match=reason):
        storage.figures(text, "read")
