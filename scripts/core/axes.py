"""Registers of axes, which distinguish cases, and of conditions, which distinguish measurements of
the same case.

A suite sets values of axes. Command line, suite, matrix, folder names, records, columns, labels and
the filters of the page loop over these registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional, Tuple

from core import parallelism

#: Forms of a value.
TEXT, COUNT, NUMBER, YES_NO = "text", "count", "number", "yes_no"
#: Benchmarks that time steps of a model.
TRAIN, INFERENCE = "train", "inference"
MODES = (TRAIN, INFERENCE)
#: Benchmark that generates text, and all benchmarks that are verified against the reference.
GENERATE = "generate"
VERIFIED = (*MODES, GENERATE)
LARGEST_COUNT = 1000000

#: Inputs: a batch made before the model is built, and kept on the device.
SYNTHETIC = "synthetic"
#: Synthetic batch on the host, copied to the device before each step.
SYNTHETIC_HOST = "synthetic_host"
#: New batch before each step, of samples that the framework's loader, or NVIDIA's DALI, reads.
DATA, DALI = "data", "dali"
INPUTS = (SYNTHETIC, SYNTHETIC_HOST, DATA, DALI)
#: Inputs that read files.
READING = (DATA, DALI)
#: Input of an imported figure that states none, and of our runs with a synthetic batch.
NATIVE = "native"

#: Values of parameters of a benchmark, by name.
Parameters = Tuple[Tuple[str, Any], ...]


def count(text: str) -> int:
    """Return a whole number from 1 to LARGEST_COUNT. Raises ValueError for any other text."""
    allowed = f"must be a whole number of at least 1 and at most {LARGEST_COUNT}, not {text!r}"
    try:
        value = int(text)
    except ValueError:
        raise ValueError(allowed) from None
    if not 1 <= value <= LARGEST_COUNT:
        raise ValueError(allowed)
    return value


def choice(*names: str) -> Callable[[str], str]:
    """Return an axis type that accepts only the texts ``names``."""

    def read(text: str) -> str:
        if text not in names:
            raise ValueError(f"must be one of {', '.join(names)}, not {text!r}")
        return text

    return read


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of the matrix.

    Parameters
    ----------
    name : key of suites, cases and records; column; option of the command line
    help : one sentence for columns and ``--help``
    type : parses a text to a JSON value; raises ValueError, which states what is allowed
    form : TEXT, COUNT, NUMBER or YES_NO: the type of its column
    default : meaning of an absent key, left out of labels, folder names and command lines; None for
        an axis without one
    applies_to : modes in which its value may differ from the default
    label : short text for folder names and labels, such as ``a4``
    words : text in lists of cases, such as ``accumulation 4``; by default name and value
    observed : whether it is a condition of the measurement, which no suite sets
    setting : a condition's key in ``settings`` of a record
    in_variants : whether the variants of an A/B test may differ in it
    verified_at : value at which training is verified for all values but the default, one that acts
        in small models; None for an axis without verifications of its own
    in_own_models : whether a case with a user's own model, which makes its batch itself, may have
        another value than the default
    """

    name: str
    help: str
    type: Callable[[str], Any] = str
    form: str = TEXT
    default: Any = None
    applies_to: Tuple[str, ...] = MODES
    unit: str = ""
    title: str = ""
    label: Callable[[Any], str] = str
    words: Optional[Callable[[Any], str]] = None
    allowed: Tuple[str, ...] = ()
    observed: bool = False
    setting: str = ""
    in_variants: bool = False
    verified_at: Any = None
    in_own_models: bool = True

    @property
    def option(self) -> str:
        """Option of the harness's command line."""
        return f"--{self.name.replace('_', '-')}"

    def text(self, value: Any) -> str:
        """Return a value for lists of cases."""
        return self.words(value) if self.words else f"{self.name.replace('_', ' ')} {value}"


#: Axes that are always part of a case's name.
_IDENTITY = (
    Axis("framework", "the framework"),
    Axis("model", "the model"),
    Axis("nodes", "number of nodes", count, COUNT),
    Axis("devices_per_node", "devices on each node", count, COUNT, title="devices"),
    Axis(
        "batch_per_device",
        "samples of a step, or of each micro-step",
        count,
        COUNT,
        unit="samples",
        title="batch per device",
        label="b{}".format,
        words=lambda value: f"batch {value}",
    ),
    Axis("precision", "name of the precision"),
    Axis("compiler", "the framework's graph compiler, or none"),
    Axis(
        "sequence_length",
        "tokens of a sequence, for models with sequences",
        count,
        COUNT,
        unit="tokens",
        label="s{}".format,
        words=lambda value: f"seq {value}",
    ),
)
#: Axes that have a default.
OPTIONAL = (
    Axis(
        "accumulation",
        "micro-steps of a training step, each with its own batch; 1: the step is not divided",
        count,
        COUNT,
        default=1,
        applies_to=(TRAIN,),
        label="a{}".format,
        verified_at=2,
        in_own_models=False,
    ),
    Axis(
        "parallelism",
        "how devices share a training step, such as `data`, `fsdp`, `pipeline` or a product",
        parallelism.checked,
        default=parallelism.DATA,
        applies_to=(TRAIN,),
        words=str,
    ),
    Axis(
        "input",
        "where the samples of a step come from",
        choice(*INPUTS),
        default=SYNTHETIC,
        allowed=INPUTS,
        in_own_models=False,
    ),
)

#: All axes, which a suite may set.
BUILT_IN: Tuple[Axis, ...] = (*_IDENTITY, *OPTIONAL)
BY_NAME = {axis.name: axis for axis in BUILT_IN}


def _condition(name: str, help: str, default: Any = "", **more: Any) -> Axis:
    more = {"words": str, "setting": name, **more}
    return Axis(name, help, default=default, observed=True, **more)


_MACHINE = (
    _condition("accelerator", "`cpu` or `cuda`"),
    _condition(
        "cores_per_device",
        "physical cores per device, on a CPU",
        None,
        form=COUNT,
        words=lambda cores: f"{cores} core{'s' if cores != 1 else ''}",
    ),
    _condition(
        "side_by_side",
        "whether other runs used the rest of the machine at the same time",
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
        "largest number of warm-up steps, if the warm-up lasts until the step time has settled",
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
        "requested seconds of the timed window, which has at least `timed_steps`",
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
        "where the samples come from: `native` (in our own runs a batch on the device, else as in "
        "the source); `synthetic_host`; `data@` or `dali@` and the first digits of the data set's "
        "identity; or another pipeline",
        NATIVE,
        setting="",
    ),
    _condition(
        "source_variant",
        "further settings of an imported set, as the set names them",
        title="variant",
        setting="",
    ),
    _condition(
        "machine",
        "label of the machine, if an imported set has several for one case",
        words=lambda label: f"machine {label}",
        setting="",
    ),
    _condition(
        "environment",
        "label of the packages, if an imported set has several for one case",
        words=lambda label: f"environment {label}",
        setting="",
    ),
)


def _is_condition(axis: Axis) -> bool:
    return axis.name == "sequence_length" or (axis.default is not None and axis.name != "input")


_AXES = tuple(filter(_is_condition, BUILT_IN))
#: All conditions, and the axes that are columns of some tables only.
CONDITIONS: Tuple[Axis, ...] = (*_MACHINE, *_AXES, *_SETTINGS)
#: Fields of :class:`core.case.Case` that hold conditions, by name of the condition.
IN_CASE = {**{axis.name: axis.name for axis in _AXES}, "suite_variant": "variant", "node": "node"}
