"""``gpu-check`` with made-up GPUs: its table of paths, and the redacted archive."""

from __future__ import annotations

import random
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from framebench import cli
from framebench.config.settings import load_settings
from framebench.features.archive import gpu_check
from framebench.machine import local
from framebench.plan.planning import make_plan
from framebench.records import sidecars
from framebench.runs import snakemake_calls

from .... import fake_gpus
from ...made_up_records import record_of
from ...saved_records import save
from ...settings import CATALOG, CONFIG

NAMES = ("1b4e28ba", "alice")
#: Double of nvidia-smi for one GPU; it has no answer about the topology.
SMI = """#!/bin/sh
case "$1" in
-L) echo "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1b4e28ba-2fa1-11d2-883f-0016d3cca427)" ;;
--query-gpu=*) echo "NVIDIA H100 80GB HBM3, 81559, 580.95.05, GPU-1b4e, 0:1A:00.0, Disabled, 9.0" ;;
*) echo "topology is not supported"; exit 3 ;;
esac
"""
#: Statuses of some cases, by model, mode and precision; the others leave no record.
ENDED = {
    ("resnet50_v1.5", "train", "amp"): {},
    ("bert_base", "train", "fp32"): {},
    ("bert_base", "train", "amp"): {"status": "failed", "reason": "no kernel in /home/alice/x"},
}


def measure(suite: Path, results: Path, config: Sequence[str], arguments: Sequence[str]) -> None:
    rng = random.Random(1)
    given = {**CONFIG, **dict(word.split("=") for word in config)}
    settings = load_settings({**given, "suite": str(suite), "results": str(results)}, CATALOG)
    for case, folder in make_plan(settings, CATALOG, local.detect(), None).folders.items():
        how = ENDED.get((case.model, case.mode, case.precision))
        if how is None or case.compiler != "none":
            continue
        options = {**case.to_record(["framework", *case._fields[1:9]]), "mode": case.mode}
        save(results, f"runs/{folder}/r1.json", record_of(rng, options, 1, **how))
    sidecars.note_call(results, suite.stem, "snakemake")
    raise snakemake_calls.MeasuringFailed("measuring ended with 1")


@pytest.fixture(autouse=True)
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", fake_gpus.write(tmp_path / "bin", SMI), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(snakemake_calls, "measure", measure)
    monkeypatch.chdir(tmp_path)


def test_every_path_works_fails_or_is_not_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["gpu-check", "--frameworks", "pytorch", "--results", "out"]) == 0
    said = capsys.readouterr().out
    rows = dict(re.findall(r"^  (\S.*?) +(works|fails|not tried)$", said, re.MULTILINE))
    assert rows["resnet50_v1.5 train amp 1n1g"] == "works"
    assert rows["bert_base train fp32 1n1g"] == "works"
    assert rows["bert_base train amp 1n1g"] == "fails"
    assert rows["bert_base train amp 1n1g inductor:reduce-overhead"] == "not tried"
    assert rows["resnet50_v1.5 train amp 1n2g"] == "not tried"
    assert "pytorch fails: failed: no kernel in /home/alice/x (bert_base train amp 1n1g)" in said
    assert "needs 2 devices per node, here is 1 (GPUs)" in said
    of_several = {name for name in rows if name.startswith("gpt2_small train amp 1n2g")}
    assert {name.rpartition(" ")[2] for name in of_several} == {"fsdp", "tensor", "pipeline"}
    (archive,) = (tmp_path / "out" / "archives").glob("gpu_check-*-redacted.zip")
    with zipfile.ZipFile(archive) as file:
        texts = {name: file.read(name).decode() for name in file.namelist()}
    assert "NVIDIA H100 80GB HBM3, 81559, 580.95.05" in texts["nvidia-smi.txt"]
    assert texts["topology.txt"] == "topology is not supported\n"
    assert "failed: no kernel in path-" in texts["gpu_check.txt"]
    assert "report.html" in texts
    for name, text in texts.items():
        assert not [name for name in NAMES if name in text], name


def test_without_records_there_is_a_table_and_no_archive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(snakemake_calls, "measure", lambda *given: None)
    assert cli.main(["gpu-check", "--frameworks", "jax", "--results", "out"]) == 1
    said = capsys.readouterr()
    assert said.out.count("not tried") > 5
    assert "which has no record in runs/" in said.err


def test_a_failed_verification_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failed:
        def __init__(self, *given: object) -> None:
            pass

        def flag(self, run: object) -> object:
            return gpu_check.verified.Flag("incorrect", "gradients differ by 3 %")

    monkeypatch.setattr(gpu_check.verified, "VerificationFlags", Failed)
    config = {**CONFIG, "accelerator": "cuda", "frameworks": "pytorch", "results": "out"}
    settings = load_settings({**config, "suite": str(gpu_check.SUITE)}, CATALOG)
    with pytest.raises(snakemake_calls.MeasuringFailed):
        measure(gpu_check.SUITE, Path("out"), ["accelerator=cuda", "frameworks=pytorch"], [])
    plan = make_plan(settings, CATALOG, local.detect(), None)
    actual = gpu_check.outcomes(plan, Path("out"), CATALOG)
    reasons = {reason for word, reason in actual.values() if word == gpu_check.FAILS}
    assert "verification: gradients differ by 3 %" in reasons


def test_the_short_check_has_a_few_paths_and_an_archive_after_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(suite: Path, *arguments: Any) -> None:
        with pytest.raises(snakemake_calls.MeasuringFailed):
            measure(suite, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(snakemake_calls, "measure", interrupted)
    assert cli.main(["gpu-check", "--short", "--results", "out"]) == 0
    said = capsys.readouterr().out
    rows = re.findall(r"^  (\S.*?) +(works|fails|not tried)$", said, re.MULTILINE)
    assert len(rows) == 5, "on one GPU there is no path for all of them"
    assert [*(tmp_path / "out" / "archives").glob("gpu_check_short-*-redacted.zip")]
