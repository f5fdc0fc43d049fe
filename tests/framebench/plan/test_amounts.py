"""Suites of other benchmarks, and trainings: their samples, files and time."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from framebench.config.catalog import forward_multiply_adds
from framebench.config.settings import load_settings
from framebench.config.validation import ConfigError
from framebench.machine import local
from framebench.machine.local import Machine
from framebench.plan import estimates, targets
from framebench.plan.plan import Plan
from framebench.plan.planning import make_plan
from framebench.tables import frames
from harness.learning.amounts import Amounts

from ... import fake_gpus
from ...harness.loader import images, token_folder
from ..settings import CATALOG, CONFIG, ROOT, settings

HERE = Machine(2, 0)
#: Questions for training, and for validation.
TRAIN, HELD_OUT = 300, 20
SUITE: dict[str, Any] = {"repeats": 1}
TRAINED: dict[str, Any] = {
    "framework": ["pytorch"],
    "batch_per_device": [32],
    "precision": ["fp32"],
    "compiler": ["none"],
}


def plan_of(tmp_path: Path, given: Any = None, **converge: Any) -> Plan:
    tmp_path.mkdir(exist_ok=True)
    suite = {**SUITE, "measurements": {"converge": {**TRAINED, **converge}}}
    return make_plan(settings(tmp_path, suite, **(given or {})), CATALOG, HERE, None)


def squad(folder: Path) -> Path:
    """Write files of questions, which need no sensible answers to be counted."""
    folder.mkdir()
    for split, count in (("train", TRAIN), ("dev", HELD_OUT)):
        asked = [{"id": str(n), "question": "Who?", "answers": []} for n in range(count)]
        title = {"title": "", "paragraphs": [{"context": "She.", "qas": asked}]}
        (folder / f"{split}-v1.1.json").write_text(json.dumps({"data": [title]}))
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwho\nshe\n")
    return folder


def test_a_training_takes_what_its_samples_take(tmp_path: Path) -> None:
    """Two epochs of 300 questions, with 20 scored before and after each."""
    options = {"model": ["bert_base_squad"], "sequence_length": [384], "epochs": 2}
    plan = plan_of(tmp_path, {"data": str(squad(tmp_path / "squad"))}, **options)
    (case,) = plan.folders
    assert estimates.count_samples([case], plan.settings, CATALOG) == {
        case: Amounts(TRAIN, HELD_OUT)
    }
    operations = 2 * forward_multiply_adds(CATALOG.models["bert_base_squad"], 384)
    work = (2 * 3 * TRAIN + 3 * HELD_OUT) * operations / (2 * estimates.CORE_RATE)
    start = estimates.start_seconds("pytorch", "converge", "none", plan.capacity)
    start += estimates.MEASURING_SECONDS
    assert plan.pending[0].seconds == pytest.approx(start + work)
    steps = plan_of(
        tmp_path / "steps", {"data": str(tmp_path / "squad")}, **options, epoch_steps=100
    )
    trained = (2 * 3 * 100 * 32 + 3 * HELD_OUT) * operations / (2 * estimates.CORE_RATE)
    assert steps.pending[0].seconds == pytest.approx(start + trained)


def test_a_training_without_its_files_is_refused_before_anything_starts(tmp_path: Path) -> None:
    options = {"model": ["electra_base_squad"], "sequence_length": [384]}
    without = plan_of(tmp_path, **options)
    with pytest.raises(ConfigError, match="electra_base_squad, which learns from files, but no"):
        targets.check_data(without, CATALOG)
    folder = squad(tmp_path / "squad")
    config = {"data": str(folder)}
    targets.check_data(plan_of(tmp_path / "good", config, **options), CATALOG)
    bad = tmp_path / "without_dev"
    shutil.copytree(folder, bad)
    (bad / "dev-v1.1.json").unlink()
    with pytest.raises(ConfigError, match=r"dev-v1\.1\.json: No such file"):
        targets.check_data(plan_of(tmp_path / "bad", {"data": str(bad)}, **options), CATALOG)


# ---- the page that leads from rows of other benchmarks to suites and tables ----------------------

A100 = ("NVIDIA A100-SXM4-80GB", 81920, "580.95.05", "8.0")
HOUR = 3600


def rows() -> Iterator[tuple[list[str], list[str]]]:
    """Yield suites and tables of each row of the page's first table."""
    table = (ROOT / "docs" / "reproduce.md").read_text().split("| --- |")[0].split("\n## ")[0]
    for line in table.splitlines():
        if line.startswith("| ") and not line.startswith("| row"):
            _, _, suites, _, tables, _ = line.split("|")
            yield re.findall("`(.+?)`", suites), re.findall("`([a-z_]+)`", tables)


SUITES = sorted({name for suites, _ in rows() for name in suites})


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_ends_within_its_limits(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fail if a suite does not plan on eight A100, or sixteen for a DGX-2, or a run of it is
    expected to be killed, or a short form to take longer than an hour."""
    gpus = fake_gpus.gpus(16 if name.endswith("dgx2") else 8, *A100)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", fake_gpus.install(tmp_path / "bin", gpus), prepend=":")
    if "phase" in name:
        data = token_folder.tokens(tmp_path / "data")
    else:
        make = squad if name.endswith("squad") else images.folder
        data = make(tmp_path / "data")
    folders = {"data": str(data), "environments": str(tmp_path / "venvs")}
    settings = load_settings({**CONFIG, "suite": name, **folders}, CATALOG)
    plan = make_plan(settings, CATALOG, local.detect(), None)
    targets.check_runs(plan)
    limit = settings.run_limit
    assert {run.case: run.seconds for run in plan.runs if run.seconds > limit} == {}
    if name.endswith("_short"):
        assert sum(run.seconds for run in plan.runs) < HOUR


def test_a_row_names_tables_that_are_made() -> None:
    found = [*rows()]
    assert len(found) > 10
    assert {table for _, tables in found for table in tables} <= {*frames.known_tables()}
