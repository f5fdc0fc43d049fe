"""Certificates: what each framework's computation differs from the reference by, and whether it is
within the bounds that make it the same computation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import precisions
from core.parallelism import DATA
from core.precisions import Precision

from ..cases.conditions import MODES
from ..files import json_files
from ..machine.identities import Identity
from .record_files import (
    computation_of,
    environment_digest,
    machine_of,
    read,
    variables_of,
)
from .run import Problem, cause

KIND = "parity"
#: Of the model that is compared: its own size, or made small as its facts say. One that is too
#: large for the reference has what makes it smaller, ``layers=2`` for example, in place of FULL.
FULL, SMALL = "full", "small"

#: Whatever the precision: counts are exact, the outputs are moved by dropout as far as by the
#: reference's, within what the randomness of one mask leaves open, and no operation of a model's
#: own run in float64 is in a half precision.
EVERYWHERE = {
    "trainable parameters": 0.0,
    "multiply-adds": 0.0,
    "dropout": 0.25,
    "float64 run": 0.0,
}


@dataclass(frozen=True)
class VerificationResult:
    """What one comparison found. ``dropout``: whether it was the one with dropout. ``errors``:
    (quantity, error, where), () unless it is ok. ``arm``: of an A/B test, "" where it is of the
    usual software. ``environment``, ``variables``, ``computation`` and ``machine`` are those of
    a run. ``scale``: FULL, SMALL, or what makes the model smaller; ``accumulation``: the
    micro-steps of a step; ``parallelism``: how devices shared it."""

    framework: str
    framework_version: str
    accelerator: str
    model: str
    sequence_length: int | None
    mode: str
    precision: str
    compiler: str
    devices: int
    dropout: bool
    status: str
    reason: str
    errors: tuple[tuple[str, float, str], ...]
    started: str
    arm: str
    environment: str
    variables: tuple[tuple[str, str], ...]
    computation: str
    machine: Identity
    scale: str = FULL
    accumulation: int = 1
    parallelism: str = DATA

    @property
    def subject(self) -> tuple[Any, ...]:
        """What it certifies, without the number of devices."""
        return (
            self.framework,
            self.framework_version,
            self.accelerator,
            self.model,
            self.sequence_length,
            self.mode,
            self.precision,
            self.compiler,
        )

    @property
    def variables_text(self) -> str:
        """``NAME=VALUE`` of each."""
        return " ".join(f"{name}={value}" for name, value in self.variables)

    @property
    def passed(self) -> bool | None:
        """None where there is nothing to compare: the framework cannot do it."""
        if self.status == "unsupported":
            return None
        within = [error <= bound(self.precision, name) for name, error, _ in self.errors]
        return self.status == "ok" and bool(within) and all(within)


def bound(precision: str, quantity: str) -> float:
    """The largest error that counts as the same. Raises KeyError for a quantity that has none."""
    return _bounds(precisions.known()[precision])[quantity]


def _bounds(precision: Precision) -> dict[str, float]:
    """By quantity. Of its products, as many may have another dtype as the harness allows."""
    return {**EVERYWHERE, "products": 1 - precision.share, **precision.bounds}


def beside(source: Path) -> Path:
    """The folder of the certificates that belong to the records at ``source``: its neighbour."""
    return source.parent / KIND


def load(folder: Path) -> tuple[list[VerificationResult], list[Problem]]:
    """The certificates below ``folder``, and files that are none."""
    found = []
    files, problems = json_files.below(folder)
    for path in files:
        try:
            certificate = _certificate(read(path, KIND))
        except (OSError, ValueError) as error:
            problems.append(Problem(json_files.origin_of(path, folder), cause(error)))
            continue
        found.append(certificate)
    return found, [Problem(f"{folder.name}/{one.origin}", one.message) for one in problems]


def latest(certificates: Iterable[VerificationResult]) -> list[VerificationResult]:
    """The last of each comparison, whatever code and environment it was of, sorted."""
    found: dict[tuple[Any, ...], VerificationResult] = {}
    for one in sorted(certificates, key=lambda one: one.started):
        how = (one.devices, one.dropout, one.scale, one.accumulation, one.parallelism)
        found[(*one.subject, one.arm, one.variables, *how)] = one
    # A length of sequences may be None, which has no order.
    return [found[k] for k in sorted(found, key=lambda k: [(one is not None, one) for one in k])]


def _certificate(record: Mapping[str, Any]) -> VerificationResult:
    """Raises ValueError for an ok record from which nothing follows."""
    case = record["case"]
    return VerificationResult(
        framework=case["framework"],
        framework_version=record["framework_version"],
        accelerator=record["settings"]["accelerator"],
        model=case["model"],
        sequence_length=case["sequence_length"],
        mode=_mode(record),
        precision=case["precision"],
        compiler=case["compiler"],
        devices=case["nodes"] * case["devices_per_node"],
        dropout=bool(record["settings"].get("dropout")),
        status=record["status"],
        reason=record["reason"],
        errors=tuple(_errors(record)) if record["status"] == "ok" else (),
        started=record["started"],
        arm=record["settings"].get("variant") or "",
        environment=environment_digest(record["environment"]),
        variables=variables_of(record),
        computation=computation_of(record),
        machine=machine_of(record),
        # before there were others, all were of the model itself
        scale=str(record["parameters"].get("scale", FULL)),
        accumulation=case.get("accumulation") or 1,
        parallelism=case.get("parallelism") or DATA,
    )


def _mode(record: Mapping[str, Any]) -> str:
    mode = record["parameters"].get("mode")
    if mode not in MODES:
        raise ValueError(f"compares mode {mode!r}; allowed: {', '.join(MODES)}")
    return str(mode)


def _errors(record: Mapping[str, Any]) -> Iterator[tuple[str, float, str]]:
    """The worst of all ranks for each quantity. JSON has no NaN: null is one."""
    products = record["ranks"][0].get("products", {}) if record["ranks"] else {}
    total = sum(products.values())
    if not total:
        raise ValueError("is an ok certificate whose first rank counted no products")
    name, known = record["case"]["precision"], precisions.known()
    if name not in known:
        raise ValueError(f"is a certificate of precision {name!r}; allowed: {', '.join(known)}")
    bounds = _bounds(known[name])
    wanted = sum(count for dtype, count in products.items() if dtype in known[name].dtypes)
    counted = ", ".join(f"{number} {name}" for name, number in sorted(products.items()))
    yield "products", 1 - wanted / total, counted
    worst: dict[str, tuple[float, str]] = {}
    for rank in record["ranks"]:
        for found in rank.get("parity", ()):
            if found["quantity"] not in bounds:
                raise ValueError(
                    f"compares {found['quantity']!r}, which has no bound; allowed: "
                    f"{', '.join(bounds)}"
                )
            error = math.inf if found["error"] is None else found["error"]
            if found["quantity"] not in worst or error > worst[found["quantity"]][0]:
                worst[found["quantity"]] = (error, found["where"])
    for quantity, (error, where) in worst.items():
        yield quantity, error, where
