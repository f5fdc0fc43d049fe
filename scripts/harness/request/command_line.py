"""Command line of a run. It states everything that the record depends on."""

from __future__ import annotations

import argparse
import os
import shlex
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from core import axes

from harness import kinds
from harness.kind import REQUIRED, TOPOLOGY, Kind, Parameter
from harness.measuring.warm_up import FEWEST
from harness.processes.memory import Limit
from harness.request import own_model
from harness.request.options import CHECK, DEFAULTS, make_parser
from harness.request.secret import is_secret, kind_of, private_variables

#: Options whose value is a path, and those of the files that a run writes.
_PATHS = ("--framework", "--model", "--kinds", "--prefix", "--data")
_LEFT = ("--output", "--log")


@dataclass(frozen=True)
class Request:
    """A requested run.

    Paths are absolute; ``time_limit`` is in seconds. Fields that the benchmark lacks are None.
    ``axes``: values by name; ``kinds``: folder of the user's benchmarks; ``parameters``: all that
    the benchmark declares; ``arguments``: the command line.
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
    memory_limit: Optional[Limit]
    spare_memory: bool
    seed: int
    repeat: int
    node: Optional[str]
    variant: Optional[str]
    variables: Tuple[Tuple[str, str], ...]
    preload: Optional[str]
    huge_pages: bool
    cores: Optional[int]
    side_by_side: bool
    install_method: str
    prefix: Optional[str]
    pins: Tuple[Tuple[str, str], ...]
    image: Optional[str]
    image_digest: Optional[str]
    modules: Tuple[str, ...]
    output: str
    log: str
    arguments: Tuple[str, ...]


#: Axes that may be absent even if the benchmark has them.
_OPTIONAL = ("sequence_length",)


def parse(arguments: Sequence[str]) -> Request:
    """Return the request in ``arguments``. Exits with status 2 and a message if they are
    invalid."""
    parser = make_parser(arguments)
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
    if nodes > 1 and parsed["node"] is not None:
        parser.error("--node is of runs on one node")
    one_gpu = parsed["accelerator"] == "cuda" and nodes * parsed["axes"]["devices_per_node"] == 1
    if parsed["side_by_side"] and not one_gpu:
        parser.error("--side-by-side is for runs of one GPU")
    parsed["output"] = parsed["output"] or _new_output(parsed)
    parsed["log"] = parsed["log"] or os.path.splitext(parsed["output"])[0] + ".log"
    parsed["arguments"] = tuple(arguments)
    del parsed["check"]
    return Request(**parsed)


def each_check(arguments: Sequence[str]) -> List[List[str]]:
    """Return the arguments of each check in ``arguments``, or ``arguments`` without one."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(CHECK, action="append", default=[])
    checks, shared = parser.parse_known_args(list(arguments))
    return [[*shared, *shlex.split(text)] for text in checks.check] or [shared]


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
        value, usual = parsed.pop(axis.name), DEFAULTS.get(axis.name, axis.default)
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

    Paths are absolute, also those among the ``parameters``. Output options are left out, so
    that this run's files are not overwritten. Each of ``variables`` is listed, because their file
    is temporary.
    """
    typed = [executable, folder]
    remaining = iter(arguments)
    for word in remaining:
        name, separator, value = word.partition("=")
        if name in ("--variable", "--variables"):
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
