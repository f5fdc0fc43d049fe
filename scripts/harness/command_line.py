"""Command line of a run. It states everything that the record depends on."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from typing import Callable, List, Sequence, Tuple, TypeVar

from core import axes
from core.limits import parse_limit

from harness import declaration, kinds, own_model, variables
from harness.kind import REQUIRED, Kind, Workload, above_zero, at_least
from harness.measuring.steps import FEWEST

_Value = TypeVar("_Value")

#: Command that starts the harness.
START = (sys.executable, os.path.dirname(os.path.realpath(__file__)))
#: Values of --emulated.
MEASURE, SKIP = "measure", "skip"
#: Option with the arguments of a check, which may be repeated.
CHECK = "--check"
PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s=]+)$")
#: Options whose value is a path, and options for the files that a run writes.
_PATHS = ("--framework", "--model", "--kinds", "--prefix", "--data")
_LEFT = ("--output", "--log")


def parse(arguments: Sequence[str]) -> Workload:
    """Return the run that ``arguments`` ask for. Exits with status 2 and a message if they are
    invalid."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--kind", default="")
    early.add_argument("--kinds", type=os.path.abspath)
    asked = early.parse_known_args(list(arguments))[0]
    parser = argparse.ArgumentParser(
        prog="scripts/harness",
        usage="%(prog)s --kind NAME --accelerator {cpu,cuda} [option ..]",
        description="Measure one run of one case in processes of its own; leave one record.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    try:
        _add_options(parser)
        kind = kinds.load(asked.kind, asked.kinds) if asked.kind else None
        parser.epilog = _describe_parameters(kind) if kind else None
        options = parser.parse_args(list(arguments))
        assert kind is not None, "the parser requires one"
        return _workload(kind, options, arguments)
    except (kinds.UnknownKind, ValueError) as error:
        parser.error(str(error))


def each_check(arguments: Sequence[str]) -> List[List[str]]:
    """Return the arguments of each check in ``arguments``, or ``arguments`` without one."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(CHECK, action="append", default=[])
    checks, shared = parser.parse_known_args(list(arguments))
    return [[*shared, *shlex.split(text)] for text in checks.check] or [shared]


def repeating(workload: Workload) -> List[str]:
    """Return the command line that repeats a run from any folder.

    Paths are absolute, also those among the parameters. Output options are left out, so that this
    run's files are not overwritten. Variables are as records show them."""
    words = [*START]
    remaining = iter(workload.options.arguments)
    for word in remaining:
        name, separator, value = word.partition("=")
        if name not in (*_PATHS, *_LEFT, "--variable", "--parameter"):
            words.append(word)
            continue
        value = value if separator else next(remaining)
        if name in _PATHS:
            words += [name, declaration.model_path(value)]
        elif name == "--parameter":
            parameter = value.partition("=")[0]
            words += [name, f"{parameter}={workload.parameters[parameter]}"]
    pairs = variables.recorded(workload.options.variables).items()
    return words + [word for pair in pairs for word in ("--variable", "=".join(pair))]


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


def _pair(text: str) -> Tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (separator and name.isidentifier()):
        raise argparse.ArgumentTypeError(f"must read NAME=VALUE, not {text!r}")
    return name, value


def _add_options(parser: argparse.ArgumentParser) -> None:
    path = os.path.abspath
    add = parser.add_argument_group("benchmark").add_argument
    add("--kind", required=True, metavar="NAME", help=", ".join(kinds.names()))
    add("--kinds", metavar="FOLDER", type=path, help="folder of further kinds")
    add(
        "--parameter",
        dest="parameters",
        action="append",
        default=[],
        type=_pair,
        metavar="NAME=VALUE",
        help="parameter of the kind; --kind NAME --help lists all",
    )
    add = parser.add_argument_group("case").add_argument
    add(
        "--framework",
        metavar="FOLDER",
        type=path,
        help="path of a folder such as scripts/frameworks/pytorch",
    )
    add(
        "--model",
        metavar="NAME",
        type=declaration.model_path,
        help="name of a file in scripts/models; or the path of another such file; or your own "
        f"model: {own_model.ALLOWED}",
    )
    for axis in axes.BUILT_IN:
        if axis.name not in ("framework", "model"):
            usual = declaration.DEFAULTS.get(axis.name, axis.default)
            default = "" if usual is None else f" (default: {usual})"
            metavar = "N" if axis.form in (axes.COUNT, axes.NUMBER) else "NAME"
            read = _saying_why(axis.type)
            add(axis.option, type=read, metavar=metavar, help=axis.help + default)
    add("--data", metavar="FOLDER", type=path, help=f"for --input {', '.join(axes.READING)}")
    add = parser.add_argument_group("measuring").add_argument
    add("--accelerator", required=True, choices=["cpu", "cuda"])
    add(
        "--emulated",
        choices=[MEASURE, SKIP],
        default=MEASURE,
        help="whether a precision that this CPU emulates is measured, or ends the run as "
        "unsupported before it starts (default: %(default)s)",
    )
    add(
        "--cores-per-device",
        type=_count,
        metavar="N",
        help="logical cores and threads of a rank (cpu: 1 by default; cuda: not pinned)",
    )
    add(
        "--cores",
        type=_count,
        metavar="N",
        help="maximum number of logical cores for the run (default: cores of this process, within "
        "the CPU quota of its control groups)",
    )
    add("--warmup-steps", type=_count, metavar="N", default=20, help="(default: %(default)s)")
    add(
        "--warmup-limit",
        type=_count,
        metavar="N",
        help="warm up until the step time has settled, for at most this many steps",
    )
    add("--timed-steps", type=_count, metavar="N", default=100, help="(default: %(default)s)")
    add(
        "--timed-seconds",
        type=_count,
        metavar="N",
        help="time at least --timed-steps, and enough steps to take about this many seconds",
    )
    add("--time-limit", type=_seconds, metavar="SECONDS", default=3600.0, help="for the whole run")
    add(
        "--memory-limit",
        type=_saying_why(parse_limit),
        metavar="LIMIT",
        help="limit for all ranks on this node together: 16GiB, or a share of the node's memory "
        "(default: none)",
    )
    add("--seed", type=_whole, metavar="N", default=0, help="(default: %(default)s)")
    add("--repeat", type=_count, metavar="N", default=1, help="(default: %(default)s)")
    add("--variant", metavar="NAME", help="name of this side of an A/B test")
    add("--node", metavar="NAME", help="the node to measure; a run on another node fails")
    add(
        "--variable",
        dest="variables",
        action="append",
        default=[],
        type=_pair,
        metavar="NAME=VALUE",
        help="environment variable of the ranks, which every user of the machine may read",
    )
    add(
        "--side-by-side",
        action="store_true",
        help="run on one GPU while other such runs use the other GPUs; without it a run waits "
        "until it has the machine to itself",
    )
    add(
        CHECK,
        metavar="'ARGUMENTS'",
        help="further arguments of a verification or peak-FLOPS benchmark, with a record of its "
        "own; several follow each other, on a CPU in forks of a process that has imported the "
        "framework once",
    )
    add = parser.add_argument_group("environment").add_argument
    add(
        "--install-method",
        default="hand",
        choices=["venv", "conda", "interpreter", "container", "hand"],
    )
    add("--prefix", metavar="DIR", help="required sys.prefix")
    add(
        "--pin",
        dest="pins",
        action="append",
        default=[],
        type=_pin,
        metavar="NAME==VERSION",
        help="required package",
    )
    add("--image", metavar="NAME", help="path or URI of the container's image")
    add("--image-digest", metavar="HEX", help="digest of that image")
    add = parser.add_argument_group("output").add_argument
    add("--output", metavar="PATH.json", type=path, help="default: a new file in this folder")
    add("--log", metavar="PATH.log", type=path, help="default: next to the output")


def _describe_parameters(kind: Kind) -> str:
    """Return the end of the help: the parameters that a kind declares."""
    lines = [f"parameters of {kind.name}:"] if kind.parameters else []
    for parameter in kind.parameters:
        unit = f"{parameter.unit} " if parameter.unit else ""
        usual = "" if parameter.default is REQUIRED else f" (default: {parameter.default})"
        lines.append(f"  {parameter.name:<20}  {unit}{parameter.help}{usual}")
    return "\n".join(lines)


def _workload(kind: Kind, options: argparse.Namespace, arguments: Sequence[str]) -> Workload:
    """Return the run, with defaults. Raises ValueError where options do not fit each other, the
    kind, the framework or the model."""
    options.arguments = list(arguments)
    texts = {name: [text] for name, text in options.parameters}
    parameters = {name: values[0] for name, values in kind.read_parameters(texts).items()}
    options.variables = dict(options.variables)
    limit, fewest = options.warmup_limit, max(FEWEST, options.warmup_steps)
    if limit is not None and limit < fewest:
        raise ValueError(f"--warmup-limit must be {fewest} or more, not {limit}")
    if options.accelerator == "cpu" and options.cores_per_device is None:
        options.cores_per_device = 1
    if kind.seed_of_each_repeat:
        options.seed += options.repeat - 1
    framework = declaration.read_framework(options.framework) if options.framework else None
    model_config = declaration.read_model(options.model) if options.model else {}
    model_config = declaration.at_sequence_length(model_config, options.sequence_length)
    case = declaration.case_of(kind, parameters, options, framework, model_config)
    if case.nodes > 1 and options.node is not None:
        raise ValueError("--node is for runs on one node")
    if options.side_by_side and (options.accelerator != "cuda" or case.devices > 1):
        raise ValueError("--side-by-side is for runs of one GPU")
    options.output = options.output or _new_output(options)
    options.log = options.log or os.path.splitext(options.output)[0] + ".log"
    unsupported = declaration.unsupported(framework, case, model_config) if framework else None
    return Workload(
        case=case,
        model_config=model_config,
        parameters=parameters,
        warmup_steps=options.warmup_steps,
        warmup_limit=options.warmup_limit,
        timed_steps=options.timed_steps,
        timed_seconds=options.timed_seconds,
        data=options.data,
        package=framework["package"] if framework else "",
        unsupported=unsupported,
        options=options,
    )


def _new_output(options: argparse.Namespace) -> str:
    """Return an unused path in the working directory, named after the run."""
    paths = (options.framework or "", os.path.splitext(options.model or "")[0])
    names = [os.path.basename(path) for path in paths if path]
    stem = os.path.abspath("-".join([*names, options.kind, f"r{options.repeat}"]))
    number, path = 1, f"{stem}.json"
    while os.path.lexists(path):
        number += 1
        path = f"{stem}-{number}.json"
    return path
