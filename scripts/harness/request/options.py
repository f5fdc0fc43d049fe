"""Options of the command line of a run."""

from __future__ import annotations

import argparse
import os
import re
from typing import Any, Callable, Dict, Sequence, Tuple, TypeVar

from core import axes, inputs, own_axes, precisions

from harness import kinds
from harness.kind import above_zero, at_least
from harness.machine import allocator
from harness.processes.memory import parse_limit
from harness.request import own_model
from harness.samples import folder

_Value = TypeVar("_Value")

#: Values of --emulated.
MEASURE, SKIP = "measure", "skip"
PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s=]+)$")
#: Option of one of several checks.
CHECK = "--check"
#: Default values of axes.
DEFAULTS: Dict[str, Any] = {
    "precision": precisions.default(),
    "compiler": "none",
    "nodes": 1,
    "devices_per_node": 1,
}


def _saying_why(read: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """Return ``read`` as an argparse type whose error shows the reason.

    Argparse hides the message of a ValueError.
    """

    def typed(text: str) -> _Value:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return typed


_count, _whole, _seconds = map(_saying_why, (axes.count, at_least(0), above_zero))


def _pin(text: str) -> Tuple[str, str]:
    match = PIN.match(text)
    if not match:
        raise argparse.ArgumentTypeError(f"must read NAME==VERSION, not {text!r}")
    return match.group("name"), match.group("version")


def _allocator(text: str) -> str:
    if text in allocator.names() or os.path.isabs(text):
        return text
    raise argparse.ArgumentTypeError(
        f"must be {', '.join(allocator.names())} or an absolute path, not {text!r}"
    )


def _source(text: str) -> str:
    if text.isidentifier():
        return text
    raise argparse.ArgumentTypeError(f"must be the name of a package, not {text!r}")


def _variable(text: str) -> Tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (separator and name.isidentifier()):
        raise argparse.ArgumentTypeError(f"must read NAME=VALUE, not {text!r}")
    return name, value


def make_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser for ``arguments``, which name the folder of a user's axes."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--kinds", type=os.path.abspath)
    folder_of_kinds = early.parse_known_args(list(arguments))[0].kinds
    parser = argparse.ArgumentParser(
        prog="scripts/harness",
        description="Measure one run of one case in a process group of its own; leave one record.",
        allow_abbrev=False,
    )
    try:
        own_axes.load(folder_of_kinds)
    except ValueError as error:
        parser.error(f"--kinds {folder_of_kinds}: {error}")
    kind = parser.add_argument_group("benchmark")
    kind.add_argument("--kind", required=True, metavar="NAME", help=", ".join(kinds.names()))
    kind.add_argument(
        "--kinds", metavar="FOLDER", type=os.path.abspath, help="where there are more of them"
    )
    kind.add_argument(
        "--parameter",
        dest="parameters",
        action="append",
        default=[],
        type=_variable,
        metavar="NAME=VALUE",
        help="of the kind",
    )
    case = parser.add_argument_group("case")
    case.add_argument("--framework", metavar="FOLDER", type=os.path.abspath)
    case.add_argument(
        "--model",
        metavar="CONFIG.json",
        type=own_model.absolute,
        help=f"or of your own: {own_model.ALLOWED}",
    )
    case.add_argument(
        "--source", metavar="NAME", type=_source, help="whose code the model is (default: ours)"
    )
    for axis in axes.asked():
        if axis.name not in ("framework", "model"):
            metavar = "N" if axis.form == axes.COUNT else "NAME"
            usual = DEFAULTS.get(axis.name, axis.default)
            default = "" if usual is None else f" (default: {usual})"
            read = _saying_why(axis.type)
            case.add_argument(axis.option, type=read, metavar=metavar, help=axis.help + default)
    case.add_argument(
        "--data",
        metavar="FOLDER",
        type=os.path.abspath,
        help=f"for --input {', '.join(inputs.READING)}",
    )
    measuring = parser.add_argument_group("measuring")
    measuring.add_argument(
        "--bad-images",
        choices=[folder.REFUSE, folder.SKIP],
        default=folder.REFUSE,
        help="whether an image of --data that cannot be read ends the run, or is left out and "
        "counted (default: %(default)s)",
    )
    measuring.add_argument(
        "--emulated",
        choices=[MEASURE, SKIP],
        default=MEASURE,
        help="whether a precision that this CPU emulates is measured, or ends the run as "
        "unsupported before it starts (default: %(default)s)",
    )
    measuring.add_argument("--accelerator", required=True, choices=["cpu", "cuda"])
    measuring.add_argument(
        "--cores-per-device",
        type=_count,
        help="logical cores and threads of a rank (cpu: 1 if not said; cuda: not pinned)",
    )
    measuring.add_argument("--warmup-steps", type=_count, default=20)
    measuring.add_argument(
        "--warmup-limit",
        type=_count,
        help="warm up until the step time has settled, with at most so many steps",
    )
    measuring.add_argument("--timed-steps", type=_count, default=100)
    measuring.add_argument(
        "--timed-seconds",
        type=_count,
        help="time at least --timed-steps, and as many steps as take about so long",
    )
    measuring.add_argument("--time-limit", type=_seconds, default=3600.0, help="s, whole run")
    measuring.add_argument(
        "--memory-limit",
        type=_saying_why(parse_limit),
        metavar="LIMIT",
        help="limit for all ranks on this node together: 16GiB, or a share of the node's memory "
        "(default: none)",
    )
    measuring.add_argument(
        "--spare-memory",
        action="store_true",
        help="3%% less than that, so that what fits now fits in later runs too",
    )
    measuring.add_argument("--seed", type=_whole, default=0)
    measuring.add_argument("--repeat", type=_count, default=1)
    measuring.add_argument("--variant", metavar="NAME", help="name of this side of an A/B test")
    measuring.add_argument(
        "--node",
        metavar="NAME",
        help="the node to measure; a run on another node fails",
    )
    measuring.add_argument(
        "--variable",
        dest="variables",
        action="append",
        default=[],
        type=_variable,
        metavar="NAME=VALUE",
        help="environment variable of the ranks, which every user of the machine may read",
    )
    measuring.add_argument(
        "--variables",
        dest="variables_file",
        metavar="FILE",
        type=os.path.abspath,
        help="environment variables, as a JSON object in a file that only you can read",
    )
    measuring.add_argument(
        "--preload",
        metavar="NAME",
        type=_allocator,
        help="allocator that the ranks load before all else: "
        f"{', '.join(allocator.names())}, or the path of a library",
    )
    measuring.add_argument(
        "--huge-pages",
        action="store_true",
        help="the ranks' own allocator, glibc's, asks for transparent huge pages",
    )
    measuring.add_argument(
        "--cores",
        type=_count,
        help="most logical cores for the run (default: those of this process, within the CPU quota "
        "of its control groups)",
    )
    measuring.add_argument(
        "--side-by-side",
        action="store_true",
        help="on one of several GPUs while other such runs use the rest; without it a run waits "
        "until it has the machine for itself",
    )
    measuring.add_argument(
        CHECK,
        metavar="'ARGUMENTS'",
        help="further arguments of a verification or peak-FLOPS benchmark, with a record of its "
        "own; several follow each other, on a CPU in forks of a process that has imported the "
        "framework once",
    )
    environment = parser.add_argument_group("environment")
    environment.add_argument(
        "--install-method",
        choices=["venv", "conda", "interpreter", "modules", "container", "hand"],
        default="hand",
    )
    environment.add_argument("--prefix", metavar="DIR", help="sys.prefix there must be")
    environment.add_argument(
        "--pin", dest="pins", action="append", default=[], type=_pin, metavar="NAME==VERSION"
    )
    environment.add_argument("--image", metavar="NAME", help="path or URI of the container's")
    environment.add_argument("--image-digest", metavar="HEX", help="which build of it that is")
    environment.add_argument(
        "--module",
        dest="modules",
        action="append",
        default=[],
        metavar="NAME",
        help="environment module that must be loaded",
    )
    left = parser.add_argument_group("what it leaves")
    left.add_argument(
        "--output",
        metavar="PATH.json",
        type=os.path.abspath,
        help="default: a new file in the working directory",
    )
    left.add_argument(
        "--log", metavar="PATH.log", type=os.path.abspath, help="default: beside the output"
    )
    return parser
