"""Figures that Megatron-LM prints, by hand-computed numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from framebench.records import record_files
from framebench.tables import frames
from framebench.tables.declared import megatron
from framebench.tables.grouping import group
from framebench.tables.table import Inputs

from ...conftest import ROOT
from ..made_up_runs import run
from ..settings import CATALOG

MODELS = CATALOG.models
GPT2, LLAMA = MODELS["gpt2_small"], MODELS["llama_8b"]


def table(*runs: Any) -> pd.DataFrame:
    inputs = Inputs(group(runs, None), models=MODELS)
    return frames.frame(megatron.MEGATRON, megatron.MEGATRON.rows(inputs))


def test_operations_of_a_sequence_by_three_tools() -> None:
    """Fail if three tools' operation counts of GPT-2 small are off.
    12 layers of 768; 50,257 tokens, padded to 50,304."""
    layers, head, square = 12 * 12 * 768**2, 768 * 50_304, 1024**2
    assert megatron.megatron(GPT2, 1024) == 6 * (1024 * (layers + head) + 12 * 768 * square)
    assert megatron.megatron(GPT2, 1024) == 817_184_636_928
    assert megatron.deepspeed(GPT2, 1024) == pytest.approx(815_825_682_432, rel=1e-15)
    assert megatron.torchtitan(GPT2, 1024) == 6 * 1024 * 85_056_000 + 12 * 12 * 768 * square
    # two devices of a tensor group have 25,216 tokens each
    more = 6 * 1024 * 768 * (50_432 - 50_304)
    assert megatron.megatron(GPT2, 1024, tensor=2) - megatron.megatron(GPT2, 1024) == more


def test_gates_and_grouped_keys_are_counted() -> None:
    """Fail if gates or grouped keys are not counted.
    The vocabulary is a multiple of 128, so Megatron's count differs only by half of the square."""
    ours = LLAMA["forward_multiply_adds"]
    counted = 6 * (2048 * ours["per_token"] + ours["per_token_pair"] // 2 * 2048**2)
    assert megatron.megatron(LLAMA, 2048) == counted
    assert megatron.deepspeed(LLAMA, 2048) is None
    # the head has its own matrix; normalisation weights are parameters, too
    whole = 6 * (2048 * ours["per_token"] + ours["per_token_pair"] * 2048**2)
    norms = 6 * 2048 * (2 * 32 + 1) * 4096
    assert megatron.torchtitan(LLAMA, 2048) == whole + norms


def test_a_case_in_megatrons_figures() -> None:
    shared = {"devices_per_node": 4, "parallelism": "data2xtensor2", "accumulation": 3}
    memory = {"allocated_memory": 3, "peak_device_memory": 5, "peak_reserved_memory": 7}
    memory["peak_host_memory"] = 9
    one = run(0.5, model="gpt2_small", batch_per_device=2, sequence_length=1024, **shared, **memory)
    actual = table(one).iloc[0]
    assert actual["global_batch"] == 2 * 3 * 2, "micro-batch x micro-steps x replicas"
    assert actual["batch_per_device"] == 2
    assert actual["step_seconds"] == 12 / 0.5
    assert actual["tokens_per_second"] == 512
    for name, operations in {
        "megatron_tflops_per_device": megatron.megatron(GPT2, 1024, tensor=2),
        "deepspeed_tflops_per_device": megatron.deepspeed(GPT2, 1024, tensor=2),
        "torchtitan_tflops_per_device": megatron.torchtitan(GPT2, 1024),
        "tflops_per_device": 6 * (123_532_032 * 1024 + 18_432 * 1024**2),
    }.items():
        assert operations is not None
        assert actual[name] == pytest.approx(0.5 * operations / 4 / 1e12, rel=1e-12), name
    assert actual["allocated_memory_bytes"] == 3
    assert actual["peak_device_memory_bytes"] == 5
    assert actual["peak_reserved_memory_bytes"] == 7
    assert actual["peak_host_memory_bytes"] == 9


def test_other_cases_have_no_such_figures() -> None:
    """Fail if cases without training, or of other models than causal language models, have
    figures."""
    length = {"sequence_length": 128}
    others = [
        run(1.0, model="gpt2_small", mode="inference", **length),
        *(run(1.0, model=name, **length) for name in ("bert_base", "superbench_gpt2_small")),
        run(1.0),
        run(1.0, model="another", **length),
    ]
    assert table(*others).empty
    failed = table(run(None, model="gpt2_small", **length)).iloc[0]
    assert failed["reason"] == "failed: broke"
    assert pd.isna(failed["step_seconds"])
    assert pd.isna(failed["megatron_tflops_per_device"])


def test_what_the_allocator_took_is_read_from_records(tmp_path: Path) -> None:
    record = json.loads((ROOT / "tests/data/records/train.json").read_text())
    for rank, size in zip(record["ranks"], (30, 20), strict=False):
        rank["peak_reserved_memory_bytes"] = size
        rank["allocated_memory_bytes"] = size - 5
    (tmp_path / "r1.json").write_text(json.dumps(record))
    (read,), problems, _ = record_files.read_folder(tmp_path)
    assert not problems
    assert read.peak_reserved_memory == 30
    assert read.allocated_memory == 25
