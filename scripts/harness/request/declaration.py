"""What a framework and a model declare about themselves, and what follows before anything runs."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from harness.adapter import Case
from harness.request.command_line import Request

PRECISIONS = ("amp", "fp32")  # those whose effect the rank can check


class DeclarationError(Exception):
    """A framework folder or a model's facts cannot be read, or the request does not fit them."""


@dataclass(frozen=True)
class Framework:
    """A folder under ``scripts/frameworks``; its name is the framework's name."""

    folder: str
    name: str
    package: str
    compilers: List[str]
    native_compiler: Optional[str]


def _read(path: str) -> Dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError) as error:
        raise DeclarationError(f"cannot read {path}: {error}") from error
    if not isinstance(content, dict):
        raise DeclarationError(f"{path} does not hold a JSON object")
    return content


def read_framework(folder: str) -> Framework:
    """Raises :class:`DeclarationError` where ``framework.json`` is absent or incomplete."""
    declared = _read(os.path.join(folder, "framework.json"))
    try:
        return Framework(
            folder=folder,
            name=os.path.basename(folder),
            package=declared["package"],
            compilers=list(declared["compilers"]),
            native_compiler=declared["native_compiler"],
        )
    except KeyError as error:
        raise DeclarationError(f"{folder}/framework.json lacks the key {error}") from None


def read_model(path: str) -> Dict[str, Any]:
    """The facts of a model. Raises :class:`DeclarationError`."""
    facts = _read(path)
    for key in ("name", "unit", "trainable_parameters", "sequence_lengths", "inputs"):
        if key not in facts:
            raise DeclarationError(f"{path} lacks the key {key!r}")
    return facts


def case_of(request: Request, framework: Framework, facts: Dict[str, Any]) -> Case:
    """The case asked for; ``native`` becomes the framework's own compiler where there is one.
    Raises :class:`DeclarationError` where a sequence length is missing or out of place."""
    if facts["sequence_lengths"] and request.sequence_length is None:
        raise DeclarationError(f"{facts['name']} needs --sequence-length")
    if not facts["sequence_lengths"] and request.sequence_length is not None:
        raise DeclarationError(f"{facts['name']} has no --sequence-length")
    native = framework.native_compiler if request.compiler == "native" else None
    return Case(
        framework=framework.name,
        model=facts["name"],
        mode=request.mode,
        nodes=request.nodes,
        devices_per_node=request.devices_per_node,
        batch_per_device=request.batch_per_device,
        precision=request.precision,
        compiler=native or request.compiler,
        sequence_length=request.sequence_length,
    )


def _has_module(folder: str, model: str) -> bool:
    path = os.path.join(folder, model.replace(".", "_"))
    return os.path.isfile(path + ".py") or os.path.isfile(os.path.join(path, "__init__.py"))


def unsupported(
    case: Case, framework: Framework, facts: Dict[str, Any], cores: int, per_device: Optional[int]
) -> Optional[str]:
    """Why this case cannot run here, from what is declared alone; None where nothing speaks
    against it. ``cores``: logical cores this process may use; ``per_device``: cores of a rank."""
    if not _has_module(framework.folder, case.model):
        return f"{framework.name} has no definition of the model {case.model}"
    if case.compiler == "native":
        return f"{framework.name} has no graph compiler"
    if case.compiler not in framework.compilers:
        known = ", ".join(framework.compilers)
        return f"{framework.name} has no compiler {case.compiler!r} (it has: {known})"
    if case.precision not in PRECISIONS:
        known = ", ".join(PRECISIONS)
        return f"precision {case.precision!r} cannot be measured yet (known: {known})"
    if case.sequence_length is not None:
        shortest, longest = facts["sequence_lengths"]
        if not shortest <= case.sequence_length <= longest:
            return (
                f"{case.model} takes sequences of {shortest} to {longest} tokens, "
                f"not {case.sequence_length}"
            )
    needed = case.devices_per_node * (per_device or 0)
    if needed > cores:
        return (
            f"{case.devices_per_node} device(s) of {per_device} core(s) need {needed} cores; "
            f"this process may use {cores}"
        )
    return None
