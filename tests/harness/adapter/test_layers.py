"""Convolutions and attention of models: shapes, counts, and detection of mistakes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness.declaration import read_model
from harness.kinds import attention, convolution
from harness.kinds.attention import Attention
from harness.kinds.convolution import Convolution
from harness.operations import AttentionShape

from ...bench import ROOT, Bench, Finished
from ..bare import QUICK, TICKS
from ..validity import assert_outcome

MODELS = ROOT / "scripts/models"


def model_config_of(name: str) -> dict[str, Any]:
    return read_model(str(MODELS / f"{name}.json"))


def convolved(toy: Bench, behaviour: str = "", **options: Any) -> Finished:
    arguments = {"kind": "convolution", "model": ROOT / "tests/models/toy_layers.json",
             "compiler": None, "parameters": QUICK, **options}  # fmt: skip
    return toy.run(behaviour, **arguments)


def attended(toy: Bench, behaviour: str = "") -> Finished:
    model = ROOT / "tests/models/toy_decoder.json"
    return convolved(toy, behaviour, kind="attention", model=model, sequence_length=16)


def test_each_distinct_convolution_of_a_model_is_timed_once(toy: Bench) -> None:
    """The device takes a hundredth of a second per forward pass, three times that backward."""
    record = convolved(
        toy, "exact,operation=0.01", parameters={**QUICK, "block_seconds": 0.05}
    ).record
    assert_outcome(record, "ok")
    metrics = record["metrics"]
    points = [
        metric["at"] for metric in metrics.values() if metric.get("quantity") == "forward_rate"
    ]
    assert [
        (point["images"], point["kernel"], point["stride"], point["padding"]) for point in points
    ] == [
        ("4x8x6x4", "3x3x8", 2, "1x1"),
        ("4x4x3x8", "1x3x8", 1, "0x1"),
    ]
    assert [(point["groups"], point["times"]) for point in points] == [(1, 1), (4, 2)]
    once_and_twice = pytest.approx(30, rel=TICKS)
    assert metrics["model_forward_time"]["value"] == once_and_twice
    assert metrics["model_backward_time"]["value"] == pytest.approx(90, rel=TICKS)
    work = 2 * 4 * 4 * 3 * 8 * (3 * 3 * 4 + 2 * 1 * 3 * 2)
    assert metrics["model_rate"]["value"] == pytest.approx(3 * work / 0.12 * 1e-12, rel=TICKS)
    named = {name: metric for name, metric in metrics.items() if name.startswith("backward_rate")}
    first = next(iter(named.values()))["value"]
    assert first == pytest.approx(2 * 2 * 4 * 4 * 3 * 8 * 36 / 0.03 * 1e-12, rel=TICKS)


def test_attention_of_a_model_is_timed(toy: Bench) -> None:
    record = attended(toy).record
    assert_outcome(record, "ok")
    (at,) = [
        metric["at"]
        for metric in record["metrics"].values()
        if metric.get("quantity") == "forward_time"
    ]
    assert at == {"batch": 4, "heads": 6, "key_value_heads": 2, "sequence": 16, "size": 4,
                  "causal": "yes", "times": 3}  # fmt: skip


def test_a_wrong_result_or_gradient_is_found(toy: Bench) -> None:
    record = attended(toy, "empty,spoil_result=3").record
    assert_outcome(record, "failed", "the value's")
    assert "against float64" in record["reason"]
    toy.output.unlink()
    record = convolved(toy, "empty,spoil_result=1").record
    assert_outcome(record, "failed", "the images' gradient of convolution at images 4x8x6x4")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("convolution", "no convolutions of toy are described"),
        ("attention", "toy has no attention"),
    ],
)
def test_a_model_without_either_is_unsupported(toy: Bench, kind: str, reason: str) -> None:
    record = convolved(toy, kind=kind, model=ROOT / "tests/models/toy.json").record
    assert (record["status"], record["reason"]) == ("unsupported", reason)


def test_convolutions_of_every_network_are_counted_as_in_its_config() -> None:
    for path in sorted(MODELS.glob("*.json")):
        if path.stem == "superbench_lstm":
            continue
        model_config = model_config_of(path.stem)
        actual = convolution.layer_counts(model_config, 1)
        is_network = "images" in json.dumps(model_config["inputs"])
        assert bool(actual) == is_network, path.stem
        if is_network:
            counted = sum(
                times * Convolution().operations(entry) for entry, times in actual.items()
            )
            whole = 2 * model_config["forward_multiply_adds"]["per_sample"]
            assert 0.5 * whole < counted < 1.4 * whole, path.stem


def test_attention_has_the_shapes_of_the_models() -> None:
    assert attention.layer_counts(model_config_of("bert_base"), 8, 128) == {
        AttentionShape(8, 12, 12, 128, 64, causal=False): 12
    }
    assert attention.layer_counts(model_config_of("llama_1b"), 1, 512) == {
        AttentionShape(1, 32, 8, 512, 64, causal=True): 16
    }
    pairs = model_config_of("gpt2_small")["forward_multiply_adds"]["per_token_pair"]
    (shape,) = attention.layer_counts(model_config_of("gpt2_small"), 1, 64)
    whole = shape._replace(causal=False)
    assert 12 * Attention().operations(whole) == 2 * pairs * 64 * 64, "two for a multiply-add"
    assert Attention().operations(shape) / Attention().operations(whole) == 65 / 128
