"""Output: never overwritten, never partial, bounded, and refused before measuring if impossible."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from harness import report
from harness.output import OutputError, write

from ...bench import Bench


def test_an_existing_record_is_not_measured_again(toy: Bench) -> None:
    toy.output.parent.mkdir()
    toy.output.write_text("precious")
    done = toy.start("")
    assert done.wait() == 2
    assert f"already measured: {toy.output}" in done.communicate()[1]
    assert toy.output.read_text() == "precious", "an existing record was overwritten"
    assert not toy.log.exists(), "something was measured all the same"


def test_an_output_that_appears_meanwhile_is_kept(toy: Bench) -> None:
    toy.hold.touch()
    launcher = toy.start("hold=4")
    toy.wait_for_phase("timed window", 1)
    toy.output.write_text("{}")
    toy.hold.unlink()
    done = toy.finish(launcher)
    assert done.status == 3
    assert "already measured" in done.stderr
    assert toy.output.read_text() == "{}", "a record of someone else was overwritten"


def test_a_read_only_folder_is_reported_before_measuring(toy: Bench) -> None:
    toy.output.parent.mkdir()
    toy.output.parent.chmod(0o500)
    # Root may write anywhere, except without its capabilities.
    prefix = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
    done = toy.finish(toy.start("", prefix=prefix))
    assert done.status == 3
    assert "Permission denied; " in done.stderr


def test_a_log_that_cannot_be_is_reported_before_measuring(toy: Bench) -> None:
    toy.log.parent.write_text("")
    done = toy.run("")
    assert done.status == 3
    assert str(toy.log) in done.stderr
    assert done.record is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "play"}, "no kind 'play'; there are: attention, collective, converge"),
        ({"kinds": "/nowhere"}, "cannot look for kinds in /nowhere: No such file"),
        ({"kind": "peak_flops"}, "--kind peak_flops has no --batch-per-device"),
        ({"batch_per_device": None}, "--kind train needs --batch-per-device"),
        ({"parameters": {"split": 3}}, "--parameter split: found an unknown key; allowed: none"),
        (
            {"kind": "verification"},
            "--parameter mode: found nothing; allowed: which computation",
        ),
        ({"time_limit": "nan"}, "must be a number above 0"),
        ({"model": "nowhere.json"}, "nowhere.json"),
        ({"sequence_length": 128}, "toy has no --sequence-length"),
    ],
)
def test_a_wrong_command_line_is_explained(
    toy: Bench, options: dict[str, object], message: str
) -> None:
    done = toy.run("", **options)
    assert done.status == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not toy.output.parent.exists(), "a wrong command line leaves nothing"


@pytest.mark.parametrize("hard_links", [True, False])
def test_of_two_that_write_at_the_same_instant_the_first_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hard_links: bool
) -> None:
    if not hard_links:
        refusal = PermissionError(errno.EPERM, "Operation not permitted")
        monkeypatch.setattr(os, "link", Mock(side_effect=refusal))
    output = tmp_path / "r1.json"
    write(str(output), "a", b"first")
    with pytest.raises(OutputError, match="already measured"):
        write(str(output), "b", b"second")
    assert output.read_bytes() == b"first"
    assert os.listdir(tmp_path) == [output.name]


def test_what_a_killed_run_has_left_is_removed_by_the_next(toy: Bench) -> None:
    toy.output.parent.mkdir()
    toy.output.with_name(f".{toy.output.name}.of-nodes.part").mkdir()
    toy.output.with_name(f".{toy.output.name}.of-it.part").touch()
    other = toy.output.with_name(".other.json.of-it.part")
    other.touch()
    assert toy.run("").record["status"] == "ok"
    assert {path.name for path in toy.output.parent.iterdir()} == {toy.output.name, other.name}
    other.unlink()


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
