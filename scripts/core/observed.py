"""Register of conditions, which tell figures of equal cases apart.

Records, columns, labels and comparisons of variants loop over this register.
"""

from __future__ import annotations

from typing import Any, Tuple

from core.axes import BUILT_IN, COUNT, YES_NO, Axis
from core.inputs import NATIVE


def _condition(name: str, help: str, default: Any = "", **more: Any) -> Axis:
    more = {"words": str, "setting": name, **more}
    return Axis(name, help, default=default, observed=True, **more)


_MACHINE = (
    _condition("accelerator", "`cpu` or `cuda`"),
    _condition(
        "cores_per_device",
        "physical cores of a device, on a CPU",
        None,
        form=COUNT,
        words=lambda cores: f"{cores} core{'s' if cores != 1 else ''}",
    ),
    _condition(
        "side_by_side",
        "whether other runs had the rest of the machine meanwhile",
        False,
        form=YES_NO,
        words=lambda _: "side by side",
    ),
)
_SETTINGS = (
    _condition(
        "warmup_steps",
        "steps before the timed window",
        None,
        form=COUNT,
        title="warm-up steps",
        words=lambda steps: f"{steps} warm-up steps",
    ),
    _condition(
        "warmup_limit",
        "most steps of a warm-up that goes on until the step time has settled",
        None,
        form=COUNT,
        title="warm-up limit",
        words=lambda steps: f"warm-up to {steps}",
    ),
    _condition(
        "timed_steps",
        "steps of the timed window",
        None,
        form=COUNT,
        words=lambda steps: f"{steps} steps",
    ),
    _condition(
        "timed_seconds",
        "seconds that the timed window was to fill, with at least `timed_steps`",
        None,
        form=COUNT,
        words=lambda seconds: f"{seconds} s",
    ),
    _condition(
        "suite_variant",
        "variant of the suite, in an A/B test",
        title="variant",
        setting="variant",
        in_variants=True,
    ),
    _condition(
        "model_source",
        "owner of the model's code, where it is not ours",
        title="code by",
        setting="source",
        in_variants=True,
    ),
    _condition(
        "node",
        "requested node, if a suite measures each node",
        words=lambda name: f"node {name}",
    ),
    _condition(
        "input",
        "where the samples come from: `native`, as the source has it, of our own runs a batch on "
        "the device; `synthetic_host`; `data@` or `dali@` and the first digits of the data set's "
        "identity; or another pipeline",
        NATIVE,
        setting="",
    ),
    _condition(
        "source_variant",
        "further settings of an imported set, in its own words",
        title="variant",
        setting="",
    ),
    _condition(
        "machine",
        "label of the machine, where a set has several for one case",
        words=lambda label: f"machine {label}",
        setting="",
    ),
    _condition(
        "environment",
        "label of the packages, where a set has several for one case",
        words=lambda label: f"environment {label}",
        setting="",
    ),
)


def _is_condition(axis: Axis) -> bool:
    return axis.name == "sequence_length" or (axis.default is not None and axis.name != "input")


_AXES = tuple(filter(_is_condition, BUILT_IN))
#: Conditions, with the axes that only some tables have as columns; users' axes follow.
CONDITIONS: Tuple[Axis, ...] = (*_MACHINE, *_AXES, *_SETTINGS)
#: Fields of :class:`core.case.Case` that hold conditions, by name of the condition.
IN_CASE = {**{axis.name: axis.name for axis in _AXES}, "suite_variant": "variant", "node": "node"}
