"""Images and tokens read by frameworks' own loaders: completely, as Pillow decodes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from framebench.records import record_files

from ..bench import Bench
from ..conftest import ROOT, build_environment
from ..harness.loader import images as made
from ..harness.loader import token_folder
from .models import model_config_of, trained_parameters

SMALL = ROOT / "scripts/models/shufflenet_v2_x0_5.json"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return data with a grey image, one of CMYK and one of a single pixel."""
    root = made.folder(tmp_path_factory.mktemp("data"), train=9, val=6)
    for name, content in (
        ("a.JPEG", made.jpeg(7, 90, 70)),
        ("b.JPEG", made.jpeg(8, 64, 48, "L")),
        ("c.JPEG", made.jpeg(9, 64, 48, "CMYK")),
        ("d.JPEG", made.jpeg(10, 1, 1)),
    ):
        (root / "train/c0" / name).write_bytes(content)
    return root


def measured(bench: Bench, root: Path, **more: Any) -> Any:
    """Return the record of a run of PyTorch that reads data."""
    bench.output.unlink(missing_ok=True)
    bench.log.unlink(missing_ok=True)
    options = {"model": SMALL, "input": "data", "data": root, **more}
    done = bench.run(framework=ROOT / "scripts/frameworks/pytorch", **options)
    assert done.record is not None, done.stderr
    return done.record


def test_steps_are_fed_from_files_and_a_bad_one_is_named(data: Path, tmp_path: Path) -> None:
    bench = Bench(tmp_path, build_environment("pytorch"))
    steps = {"warmup_steps": 1, "timed_steps": 3, "batch_per_device": 4}
    content, bad = made.jpeg(5, 200, 150), data / "train/c1/z.JPEG"
    bad.write_bytes(content[: len(content) // 2])
    refused = measured(bench, data, **steps)
    bad.unlink()
    record = measured(bench, data, **steps)
    assert refused["status"] == "failed"
    assert "BadData: train/c1/z.JPEG: ValueError: the JPEG file is truncated" in refused["reason"]
    assert record["status"] == "ok", record["reason"]
    assert record["case"]["input"] == "data"
    (rank,) = record["ranks"]
    assert rank["data_set"]["images"] == 13
    assert len(rank["input_pipeline"]["wait_seconds"]) == 3
    assert rank["input_pipeline"]["loader_samples"] == 4 * len(
        rank["input_pipeline"]["compute_step_seconds"]
    )
    (run,) = record_files.read_folder(bench.output.parent)[0]
    assert run.input_pipeline is not None
    assert run.conditions.input == f"data@{record['settings']['data']['identity'][:8]}"


def test_without_dali_a_run_that_asks_for_it_is_unsupported(data: Path, tmp_path: Path) -> None:
    record = measured(Bench(tmp_path, build_environment("pytorch")), data, input="dali")
    assert record["status"] == "unsupported"
    assert record["reason"].startswith("its environment has no DALI: nvidia")


def test_steps_are_fed_from_tokens(tmp_path: Path) -> None:
    model_config = model_config_of("gpt2_small")
    small = {"vocabulary": 300, "hidden": 32, "layers": 1, "heads": 4, "intermediate": 64}
    model_config["hyperparameters"].update({**small, "key_value_heads": 4, "positions": 32})
    model_config["trainable_parameters"] = trained_parameters(model_config)
    model = tmp_path / "gpt2_small.json"
    model.write_text(json.dumps(model_config))
    data = token_folder.tokens(tmp_path / "data")
    bench = Bench(tmp_path, build_environment("pytorch"))
    steps = {"warmup_steps": 1, "timed_steps": 3, "batch_per_device": 4, "sequence_length": 16}
    record = measured(bench, data, **steps, model=model)
    assert record["status"] == "ok", record["reason"]
    (rank,) = record["ranks"]
    assert (rank["data_set"]["tokens"], rank["data_set"]["vocabulary"]) == (1000, 257)
    assert rank["loader_output"]["sequences"] == 4
    assert rank["input_pipeline"]["loader_samples"] == 4 * len(
        rank["input_pipeline"]["compute_step_seconds"]
    )
    (run,) = record_files.read_folder(bench.output.parent)[0]
    assert run.input_pipeline is not None
    assert run.input_pipeline.skipped == 0


def test_validation_images_are_fed_into_inference(data: Path, tmp_path: Path) -> None:
    steps = {"warmup_steps": 1, "timed_steps": 2, "batch_per_device": 2}
    bench = Bench(tmp_path, build_environment("pytorch"))
    record = measured(bench, data, kind="inference", **steps)
    assert record["status"] == "ok", record["reason"]
    (rank,) = record["ranks"]
    assert rank["data_set"]["images"] == 6
    assert len(rank["input_pipeline"]["wait_seconds"]) == 2
