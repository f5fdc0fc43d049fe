"""Register of axes, which distinguish cases.

A suite sets values of axes. Command line, suite, matrix, folder names, records, columns, labels and
the filters of the page loop over this register.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional, Tuple

from core import inputs, parallelism

#: Forms of a value.
TEXT, COUNT, YES_NO = "text", "count", "yes_no"
#: Benchmarks that time steps of a model.
TRAIN, INFERENCE = "train", "inference"
MODES = (TRAIN, INFERENCE)
#: Benchmark that generates text, and all benchmarks whose figures are compared with the reference.
GENERATE = "generate"
VERIFIED = (*MODES, GENERATE)
LARGEST_COUNT = 1000000
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
    type : makes a value, which JSON can hold, from a text; raises ValueError that states what is
        allowed
    form : TEXT, COUNT or YES_NO: the type of its column
    default : meaning of an absent key, left out of labels, folder names and command lines; None for
        an axis without one
    applies_to : modes in which its value may differ from the default
    label : short text for folder names and labels, such as ``a4``
    words : text in lists of cases, such as ``accumulation 4``; by default name and value
    observed : a condition of the measurement, which no suite sets as an axis
    setting : of a condition, its key in ``settings`` of a record
    in_variants : whether the variants of an A/B test may differ in it
    verified_at : value at which verifications of training cover every value but the default; None
        for an axis without verifications of its own
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


def _with(letter: str) -> Callable[[Any], str]:
    return lambda value: f"{letter}{value}"


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
        label=_with("b"),
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
        label=_with("s"),
        words=lambda value: f"seq {value}",
    ),
)
#: Axes with a default.
_OPTIONAL = (
    Axis(
        "accumulation",
        "micro-steps of a training step, each with its own batch; 1: the step is not divided",
        count,
        COUNT,
        default=1,
        applies_to=(TRAIN,),
        label=_with("a"),
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
        choice(*inputs.NAMES),
        default=inputs.SYNTHETIC,
        allowed=inputs.NAMES,
        in_own_models=False,
    ),
)

BUILT_IN: Tuple[Axis, ...] = (*_IDENTITY, *_OPTIONAL)
_BY_NAME = {axis.name: axis for axis in BUILT_IN}


def asked() -> Tuple[Axis, ...]:
    """Return all axes that a suite may set."""
    return BUILT_IN


def optional() -> Tuple[Axis, ...]:
    """Return the axes that have a default."""
    return _OPTIONAL


def named(name: str) -> Axis:
    """Return an axis. Raises KeyError for an unknown one."""
    return _BY_NAME[name]
