"""Texts of the keys of suites, for schemas and documentation.

Cells are Markdown. Their links are relative to the page in ``documentation.PAGES``.
"""

from __future__ import annotations

from collections.abc import Mapping

from core import axes

from .key_table import KeyTable

TABLES: Mapping[str, KeyTable] = {
    "AxesKeys": KeyTable(
        ("axis", "default", "values"),
        (
            (
                "framework",
                "`all`",
                "folders in `scripts/frameworks/`",
            ),
            (
                "model",
                "`all`",
                "files in `scripts/models/`",
            ),
            (
                "mode",
                "`[train]`",
                "`train`, `inference`",
            ),
            (
                "nodes",
                "`[1]`",
                "numbers",
            ),
            (
                "devices_per_node",
                "`[1]`",
                "numbers, or `all`: all GPUs of a node; on a CPU one device",
            ),
            (
                "batch_per_device",
                "required",
                "samples per device and micro-step: numbers, [`max`](#largest-batch), or a "
                "mapping from model to these",
            ),
            (
                "batch_total",
                "instead of it",
                "samples of all devices: numbers, or a mapping from model to these ([strong "
                "scaling](#weak-and-strong-scaling))",
            ),
            (
                "precision",
                "`[fp32]`",
                "`usual` (`amp` on GPUs and processors with AMX, else `fp32`), "
                "`fp32` (TF32 off), `tf32` (PyTorch, JAX, TensorFlow 2, PaddlePaddle), `amp` (the"
                " framework's own mixed precision, in its default dtype, which the cell says), "
                "`amp_bf16`, `amp_fp16` (the same in this dtype), `bf16`, `fp16` (the model itself "
                "in half precision: PyTorch, JAX), `fp8`, `fp8_e4m3` (linear layers in float8, the "
                "rest `amp`: PyTorch's transformers)",
            ),
            (
                "compiler",
                "`[usual]`",
                "`none` ([what that means](../docs/frameworks.md)), `native` (the framework's own"
                " graph compiler), `usual` (`none`, but JAX's `jit`), or a compiler by name",
            ),
            (
                "sequence_length",
                "`[128]`",
                "tokens, for models with sequences",
            ),
            *((axis.name, f"`[{axis.default}]`", axis.values) for axis in axes.optional()),
        ),
    ),
    "SuiteFile": KeyTable(
        ("key", "default", "meaning"),
        (
            (
                "description",
                "none",
                "Purpose of the suite.",
            ),
            (
                "steps",
                "`{warmup: 20, timed: 100}`",
                "Warm-up steps, which are not measured, and timed steps. `warmup: {at_least: 10, "
                "at_most: 200}` continues until step times have settled. `timed: {at_least: 3, "
                "seconds: 5}` times as many steps as take about so long. `breakdown: false` skips"
                " the step breakdown, for which some frameworks compile again.",
            ),
            (
                "repeats",
                "7",
                "Processes per case; repeats of different cases are interleaved ([on a "
                "cluster](../docs/cluster.md#order-of-runs) as far as the queue allows). `auto` "
                "is `{at_least: 7, at_most: 30, width: 1%}`: add repeats until the interval is at"
                " most `width` of the median. `{margin: 5%, at_most: 40}` measures two variants "
                "until each case is decided, as a [performance gate](../docs/ci.md) does; "
                "`two_sided: true` in both directions.",
            ),
            (
                "variants",
                "none",
                "Sides of an [A/B test](#ab-tests), by name.",
            ),
            (
                "largest_batch",
                "`{multiple_of: 8, at_most: 4096}`",
                "Bounds of the search for the [largest batch](#largest-batch).",
            ),
            (
                "time_budget",
                "none",
                "Seconds that a call may measure for. They decide the repeats of each case, up to "
                "`repeats` (30 by default): see [time budget](#time-budget).",
            ),
            (
                "on_gpus",
                "none",
                "Suite that replaces this one on GPUs, whose batches and steps differ: a name in "
                "`config/suites/`, or a path.",
            ),
            (
                "axes",
                "none",
                "Values of each axis. Optional if there are `measurements`.",
            ),
            (
                "include",
                "none",
                "List of blocks. Each adds the axes again with the named axes replaced.",
            ),
            (
                "then",
                "none",
                "List of blocks like those of `include`. With a time budget: each is measured once "
                "the blocks before are settled.",
            ),
            (
                "exclude",
                "none",
                "List of patterns. Removes cases that have one of the listed values on every axis"
                " of a pattern. A pattern that removes nothing is an error.",
            ),
            (
                "measurements",
                "none",
                "[Other benchmarks](#other-benchmarks), by name.",
            ),
            (
                "nodes_named",
                "none",
                "Measure [each node](../docs/node-health.md) by its name: `all`, or a list. The "
                "configuration may name others.",
            ),
        ),
    ),
}
