"""Command line of a run. It states everything that the record depends on."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar

from core import axes, inputs, precisions

from harness import kinds
from harness.kind import REQUIRED, TOPOLOGY, Kind, Parameter, above_zero, at_least
from harness.machine import allocator
from harness.measuring.warm_up import FEWEST
from harness.processes.memory import DEFAULT, Limit, parse_limit
from harness.request import own_model
from harness.request.secret import is_secret, kind_of, private_variables
from harness.samples import folder

_Value = TypeVar("_Value")

#: Values of --emulated.
MEASURE, SKIP = "measure", "skip"
#: Options whose value is a path, and those of the files that a run writes.
_PATHS = ("--framework", "--model", "--kinds", "--prefix", "--data")
_LEFT = ("--output", "--log")
#: Option of checks that follow in the same process, and what they have in common with the run.
_THEN = "--then"
_OF_ENVIRONMENT = ("way", "prefix", "pins", "image", "image_digest", "modules")
#: Values of --open-ports.
REFUSE, ALLOW = "refuse", "allow"
PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s=]+)$")


@dataclass(frozen=True)
class Request:
    """A requested run.

    Paths are absolute; ``time_limit`` is in seconds. Fields that the benchmark lacks are None.
    ``axes``: values by name; ``kinds``: folder of the user's benchmarks; ``parameters``: all that
    the benchmark declares; ``arguments``: the command line; ``then``: checks that follow in the
    process of the only rank.
    """

    kind: str
    kinds: Optional[str]
    parameters: Dict[str, Any]
    framework: Optional[str]
    model: Optional[str]
    source: Optional[str]
    axes: Dict[str, Any]
    data: Optional[str]
    bad_images: str
    emulated: str
    accelerator: str
    cores_per_device: Optional[int]
    warmup_steps: int
    warmup_limit: Optional[int]
    timed_steps: int
    timed_seconds: Optional[int]
    time_limit: float
    memory_limit: Limit
    node_memory: Optional[Limit]
    spare_memory: bool
    seed: int
    repeat: int
    node: Optional[str]
    variant: Optional[str]
    variables: Tuple[Tuple[str, str], ...]
    preload: Optional[str]
    huge_pages: bool
    start_nodes: Optional[str]
    lease: Optional[str]
    open_ports: str
    way: str
    prefix: Optional[str]
    pins: Tuple[Tuple[str, str], ...]
    image: Optional[str]
    image_digest: Optional[str]
    modules: Tuple[str, ...]
    output: str
    log: str
    arguments: Tuple[str, ...]
    then: Tuple[Request, ...]


#: Default values of axes.
_USUAL: Dict[str, Any] = {
    "precision": precisions.default(),
    "compiler": "none",
    "nodes": 1,
    "devices_per_node": 1,
}
#: Axes that may be absent even if the benchmark has them.
_OPTIONAL = ("sequence_length",)


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


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
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
        axes.load(folder_of_kinds)
    except ValueError as error:
        parser.error(f"--kinds {folder_of_kinds}: {error}")
    kind = parser.add_argument_group("kind of measurement")
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
            usual = _USUAL.get(axis.name, axis.default)
            default = "" if usual is None else f" (default: {usual})"
            read = _saying_why(axis.type)
            case.add_argument(axis.option, type=read, metavar=metavar, help=axis.help + default)
    case.add_argument(
        "--data",
        metavar="FOLDER",
        type=os.path.abspath,
        help=f"of what --input {' or '.join(inputs.READING)} reads",
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
        default=DEFAULT,
        metavar="LIMIT",
        help="of all ranks on this node together: 16GiB, or a share of the node's memory "
        "(default: %(default)s)",
    )
    measuring.add_argument(
        "--node-memory",
        type=_saying_why(parse_limit),
        metavar="SIZE",
        help="what the scheduler has given of each node's memory (default: all)",
    )
    measuring.add_argument(
        "--spare-memory",
        action="store_true",
        help="less than that, so that what fits now fits in later runs too; looks at it often",
    )
    measuring.add_argument("--seed", type=_whole, default=0)
    measuring.add_argument("--repeat", type=_count, default=1)
    measuring.add_argument("--variant", metavar="NAME", help="name of this side of an A/B test")
    measuring.add_argument(
        "--node",
        metavar="NAME",
        help="the node that is measured: a run that finds itself on another one has failed",
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
        help="such variables, as a JSON object in a file that nobody else can read",
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
        "--start-nodes",
        metavar="COMMAND",
        help="what starts a command once on each of several nodes, with their number in place of "
        "{nodes}, and this Python in place of {python}: "
        "'srun --nodes={nodes} --ntasks={nodes} --ntasks-per-node=1'",
    )
    measuring.add_argument(
        "--lease",
        metavar="FOLDER",
        type=os.path.abspath,
        help="on devices that no other run with this folder of locks has, which must be the "
        "user's alone; waits for them at most --time-limit",
    )
    measuring.add_argument(
        "--open-ports",
        choices=[REFUSE, ALLOW],
        default=REFUSE,
        help="whether ranks may listen where others reach them, of a framework whose ports give "
        "them files or have them run code (default: %(default)s)",
    )
    measuring.add_argument(
        _THEN,
        action="append",
        default=[],
        metavar="'ARGUMENTS'",
        help="the arguments of a check that follows in the process of the only rank, with a record "
        "of its own, which is left out where the check does not end",
    )
    environment = parser.add_argument_group("environment")
    environment.add_argument(
        "--way",
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


def parse(arguments: Sequence[str]) -> Request:
    """Return the request in ``arguments``. Exits with status 2 and a message if they are
    invalid."""
    parser = _parser(arguments)
    _refuse_credentials(parser, arguments)
    parsed = vars(parser.parse_args(list(arguments)))
    try:
        kind = kinds.load(parsed["kind"], parsed["kinds"])
        framework, model = parsed["framework"], parsed["model"]
        parsed.update(axes=_case(kind, parsed), framework=framework, model=model)
        parsed["parameters"] = _parameters(kind, parsed["parameters"])
        if kind.seed_of_each_repeat:
            parsed["seed"] += parsed["repeat"] - 1
    except (kinds.UnknownKind, ValueError) as error:
        parser.error(str(error))
    parsed["pins"] = tuple(parsed["pins"])
    variables_file = parsed.pop("variables_file")
    try:
        from_file = private_variables(variables_file)
    except OSError as error:
        parser.error(f"--variables: {variables_file}: {error.strerror}")
    except ValueError as error:
        parser.error(f"--variables: {error}")
    parsed["variables"] = (*from_file, *parsed["variables"])
    parsed["modules"] = tuple(parsed["modules"])
    for name, value in parsed["variables"]:
        if is_secret(name, value):
            parser.error(
                f"--variable {name}: found what looks like a credential; allowed: what records and "
                "archives may show; a credential that a run needs is exported to it, or read from "
                "a file of yours"
            )
    if parsed["preload"] and parsed["huge_pages"]:
        parser.error("--huge-pages is of glibc's allocator, which --preload replaces")
    limit = parsed["warmup_limit"]
    fewest = max(FEWEST, parsed["warmup_steps"])
    if limit is not None and limit < fewest:
        parser.error(f"--warmup-limit must be {fewest} or more, not {limit}")
    if parsed["accelerator"] == "cpu" and parsed["cores_per_device"] is None:
        parsed["cores_per_device"] = 1
    nodes = parsed["axes"]["nodes"]
    if nodes > 1 and parsed["start_nodes"] is None:
        parser.error(f"--nodes {nodes} needs --start-nodes")
    if nodes > 1 and parsed["node"] is not None:
        parser.error("--node is of runs on one node")
    if nodes > 1 and parsed["lease"] is not None:
        parser.error("--lease is for runs on one node; the devices of several are the scheduler's")
    parsed["output"] = parsed["output"] or _new_output(parsed)
    parsed["log"] = parsed["log"] or os.path.splitext(parsed["output"])[0] + ".log"
    parsed["arguments"] = tuple(arguments)
    checks = [parse(shlex.split(text)) for text in parsed["then"]]
    request = Request(**{**parsed, "then": ()})
    here = {name: getattr(request, name) for name in _OF_ENVIRONMENT}
    request = replace(request, then=tuple(replace(check, **here) for check in checks))
    for check in request.then:
        wrong = _cannot_follow(request, check)
        if wrong:
            parser.error(f"{_THEN}: {wrong}")
    return request


def _cannot_follow(request: Request, check: Request) -> str:
    """Return why a check cannot follow in the process of a run; "" if it can."""
    for one in (request, check):
        if one.axes["nodes"] * one.axes["devices_per_node"] > 1:
            return f"--kind {one.kind} is of several devices; allowed: one"
    for name in ("framework", "accelerator", "cores_per_device", "seed", "variables", "preload"):
        here, there = getattr(request, name), getattr(check, name)
        if here != there:
            return f"--{name.replace('_', '-')}: found {there}; allowed: that of the run, {here}"
    return ""


def _refuse_credentials(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Exit if an argument looks like a credential, without showing it."""
    before = ""
    for word in arguments:
        option, _, value = word.partition("=") if word.startswith("--") else (before, "", word)
        name = value.partition("=")[0] if option == "--variable" else ""
        if kind_of(word):
            parser.error(
                f"{option or 'an argument'} {name}".strip() + f": found {kind_of(word)}; allowed: "
                "what records and archives may show, and every user of this machine may read; a "
                "credential that a run needs is exported to it, or read from a file of yours"
            )
        before = word


def _case(kind: Kind, parsed: Dict[str, Any]) -> Dict[str, Any]:
    """Return the values of all axes, with defaults.

    Raises ValueError for an axis that the benchmark does not have, and for a missing one.
    """
    case, own = {}, (*kind.all_axes, *TOPOLOGY)
    for axis in axes.asked():
        value, usual = parsed.pop(axis.name), _USUAL.get(axis.name, axis.default)
        if axis.name not in own and value is not None:
            raise ValueError(f"--kind {kind.name} has no {axis.option}")
        if axis.name in own and value is None and axis.name not in _OPTIONAL:
            if usual is None:
                raise ValueError(f"--kind {kind.name} needs {axis.option}")
            value = usual
        case[axis.name] = value
    return case


def _parameters(kind: Kind, pairs: Sequence[Tuple[str, str]]) -> Dict[str, Any]:
    """Return the value of each parameter that the benchmark declares.

    Raises ValueError for an unknown, invalid or missing parameter.
    """
    declared = {parameter.name: parameter for parameter in kind.parameters}
    values = {name: parameter.default for name, parameter in declared.items()}
    for name, text in pairs:
        if name not in declared:
            allowed = ", ".join(declared) or "none"
            raise ValueError(f"--kind {kind.name} has no parameter {name!r}; it has: {allowed}")
        values[name] = _value(declared[name], text)
    for name, value in values.items():
        if value is REQUIRED:
            raise ValueError(
                f"--kind {kind.name} needs --parameter {name}=..: {declared[name].help}"
            )
    return values


def _value(parameter: Parameter, text: str) -> Any:
    try:
        return parameter.type(text)
    except ValueError as error:
        raise ValueError(f"--parameter {parameter.name}={text}: {error}") from None


def _new_output(parsed: Dict[str, Any]) -> str:
    """Return an unused path in the working directory, named after the run."""
    paths = (parsed["framework"] or "", os.path.splitext(parsed["model"] or "")[0])
    names = [os.path.basename(path) for path in paths if path]
    parts = [*names, parsed["kind"], f"r{parsed['repeat']}"]
    stem = os.path.abspath("-".join(parts))
    number, path = 1, f"{stem}.json"
    while os.path.lexists(path):
        number += 1
        path = f"{stem}-{number}.json"
    return path


def as_typed(
    executable: str,
    folder: str,
    arguments: Sequence[str],
    parameters: Mapping[str, Any],
    variables: Sequence[Tuple[str, str]],
) -> List[str]:
    """Return the command line that repeats this run from any folder.

    Paths are absolute, also those among the ``parameters``. Output options and checks that follow
    are left out, so that this run's files are not overwritten. Each of ``variables`` is listed,
    because their file is temporary.
    """
    typed = [executable, folder]
    remaining = iter(arguments)
    for word in remaining:
        name, separator, value = word.partition("=")
        if name in ("--variable", "--variables", _THEN):
            value = value if separator else next(remaining)
        elif name in (*_PATHS, *_LEFT):
            value = value if separator else next(remaining)
            typed += [name, own_model.absolute(value)] if name in _PATHS else []
        elif name == "--parameter":
            parameter = (value if separator else next(remaining)).partition("=")[0]
            typed += [name, f"{parameter}={parameters[parameter]}"]
        else:
            typed.append(word)
    return typed + [word for pair in variables for word in ("--variable", "=".join(pair))]
