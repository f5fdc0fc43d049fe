"""Table of language-model training in Megatron-LM's figures, with FLOPs counted in three ways.

Figures of another tool are comparable only with the count that it uses. Symbols: L layers of width
h; q, k and v widths of queries, keys and values; f inner width of the feed-forward part; V tokens;
sequence of s tokens.

- Megatron-LM (commit d98e8a64, ``megatron/training/training.py``): 6 s (L (h (q + k + v) + q h + 2
   h f) + h V') + 6 L q s², where a gate makes the 2 a 3; V' is V rounded up to a multiple of 128
   times the tensor group. Causal attention is half of the square.
- Megatron-DeepSpeed, as older Megatron-LM (Narayanan et al. 2021, arXiv:2104.04473, appendix,
   without recomputation): 72 s L h² (1 + s / 6h + V' / 16 L h). It assumes f = 4 h without a gate,
   and keys and values as wide as queries.
- torchtitan (commit b5bcd76, ``torchtitan/models/utils.py``): 6 s times the parameters without
   embeddings, and 12 L q s², the full square. A tied head is an embedding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from ..columns import COUNT, GIBIBYTES, NUMBER, RESULT_COLUMNS, THREE_DIGITS, Column, Row, shared
from ..results import CaseResult, highest
from ..table import Table
from .efficiency import ACHIEVED, per_device, tflops, tflops_per_device
from .summary import TOKENS

#: Megatron's default: each rank's vocabulary is padded to a multiple of this.
MULTIPLE = 128
_NEEDED = ("hidden", "layers", "heads", "key_value_heads", "intermediate", "vocabulary", "tied")

ModelConfig = Mapping[str, Any]


def is_language_model(model_config: ModelConfig) -> bool:
    """Return whether a model gives next-token logits at every position."""
    hyper = model_config.get("hyperparameters", {})
    return all(name in hyper for name in _NEEDED) and "classes" not in hyper


def megatron(model_config: ModelConfig, length: int, tensor: int = 1) -> float:
    """Return the FLOPs of a training step per sequence, as Megatron-LM counts.

    ``tensor``: devices of a tensor-parallel group."""
    hyper = model_config["hyperparameters"]
    hidden, layers, inner = hyper["hidden"], hyper["layers"], hyper["intermediate"]
    keys = hidden // hyper["heads"] * hyper["key_value_heads"]
    matrices = 3 if _is_gated(hyper) else 2
    layer = hidden * (hidden + 2 * keys) + hidden * hidden + matrices * hidden * inner
    products = length * (layers * layer + hidden * _padded(hyper, tensor))
    return float(6 * (products + layers * hidden * length**2))


def deepspeed(model_config: ModelConfig, length: int, tensor: int = 1) -> float | None:
    """Return the FLOPs of a training step per sequence, as Megatron-DeepSpeed counts.

    None if its formula does not fit the model."""
    hyper = model_config["hyperparameters"]
    hidden, layers = hyper["hidden"], hyper["layers"]
    usual = hyper["intermediate"] == 4 * hidden and hyper["key_value_heads"] == hyper["heads"]
    if _is_gated(hyper) or not usual:
        return None
    head = _padded(hyper, tensor) / (16 * layers * hidden)
    return float(72 * length * layers * hidden**2 * (1 + length / (6 * hidden) + head))


def torchtitan(model_config: ModelConfig, length: int) -> float:
    """Return the FLOPs of a training step per sequence, as torchtitan counts."""
    hyper = model_config["hyperparameters"]
    hidden = hyper["hidden"]
    positions = hyper["positions"] if hyper["position"] == "learned" else 0
    others = model_config["trainable_parameters"] - hidden * (hyper["vocabulary"] + positions)
    return float(6 * length * others + 12 * hyper["layers"] * hidden * length**2)


def _is_gated(hyper: ModelConfig) -> bool:
    return bool(hyper["activation"] == "swiglu")


def _padded(hyper: ModelConfig, tensor: int) -> int:
    multiple = MULTIPLE * tensor
    return int(math.ceil(hyper["vocabulary"] / multiple) * multiple)


def _cells(result: CaseResult, models: Mapping[str, ModelConfig]) -> Row | None:
    """Return the figures of a case that trains a causal language model; None for others.

    1. global_batch: samples of a step on all devices; Megatron's micro-batch is the batch per
       device.
    2. step_seconds: global_batch / median throughput.
    3. TFLOP/s, counted in three ways: median throughput x FLOPs of a sequence / devices."""
    case, length = result.case, result.case.sequence_length
    model_config = models.get(case.model, {})
    if case.mode != "train" or not is_language_model(model_config):
        return None
    tensor = case.layout.tensor
    counted: dict[str, float | None] = dict.fromkeys(("megatron", "deepspeed", "torchtitan"))
    if length is not None:
        counted = {
            "megatron": megatron(model_config, length, tensor),
            "deepspeed": deepspeed(model_config, length, tensor),
            "torchtitan": torchtitan(model_config, length),
        }
    by_tool = {_column_of(tool): per_device(result, counted[tool]) for tool in counted}
    return {
        **by_tool,
        ACHIEVED.name: tflops_per_device(result, models),
        "reason": f"{result.status}: {result.reason}" if result.throughput is None else "",
    }


def _step_seconds(case: CaseResult) -> float | None:
    return case.case.samples_per_step / case.throughput if case.throughput else None


def _column_of(tool: str) -> str:
    return f"{tool}_tflops_per_device"


def _by(tool: str, title: str, **shown: Any) -> Column:
    return tflops(
        _column_of(tool), f"the same, operations counted as {title} does", f"by {title}", **shown
    )


MEGATRON = Table(
    name="megatron",
    title="Megatron's figures",
    explanation="Training of language models as Megatron-LM reports it. The micro-batch is the "
    "batch per device, the global batch are the samples of an update on all devices. TFLOP/s are "
    "of one device, by four ways to count the operations of a sequence: Megatron-LM's, which has "
    "half of the square of causal attention, Megatron-DeepSpeed's, torchtitan's, and ours, which "
    "count all matmuls and the full square. Their ratio is the same in all rows of a model and a "
    "length. Reserved is what the allocator has taken of a device, used or not.",
    columns=(
        *RESULT_COLUMNS,
        Column("global_batch", COUNT, "samples of an update on all devices", "samples",
               attrgetter("case.samples_per_step"), title="global batch"),
        Column("step_seconds", NUMBER, "global batch over the median throughput", "s",
               _step_seconds, title="s per update", form=THREE_DIGITS),
        *shared("throughput_median", "unit"),
        TOKENS,
        _by("megatron", "Megatron-LM"),
        _by("deepspeed", "Megatron-DeepSpeed", optional=True),
        _by("torchtitan", "torchtitan"),
        ACHIEVED,
        Column("allocated_memory_bytes", COUNT,
               "most that tensors of any rank held on its device after the timed steps", "bytes",
               highest("allocated_memory"), "allocated GiB", GIBIBYTES, optional=True),
        *shared("peak_device_memory_bytes"),
        Column("peak_reserved_memory_bytes", COUNT,
               "most that any rank's allocator had taken of its device, used or not", "bytes",
               highest("peak_reserved_memory"), "reserved GiB", GIBIBYTES, optional=True),
        *shared("peak_host_memory_bytes", "flags", "reason"),
    ),
    rows=lambda inputs: inputs.cases_with(lambda result: _cells(result, inputs.models)),
    group="Where the time goes",
    sectioned=True,
    answers=("megatron_tflops_per_device", "throughput_median", "step_seconds"),
    order="megatron_tflops_per_device",
)  # fmt: skip
TABLES = (MEGATRON,)
