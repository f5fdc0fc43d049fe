"""Verification results: the errors of a framework's computation against the reference, and their
bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from core import axes, precisions
from core.case import Case

from ..files.json_files import Problem
from ..machine.identities import Identity, identity
from .record_files import (
    computation_of,
    environment_digest,
    read,
    read_below,
    variables_of,
)

KIND = "verification"
#: Scale of the compared model: its own size, or the small one of its config. A model that is too
#: large for the reference has its reduction instead of FULL, for example ``layers=2``.
FULL, SMALL = "full", "small"
#: Labels that are classes, or probabilities of all classes (soft).
HARD, SOFT = "hard", "soft"

#: Bounds for every precision. 0: counts must agree; no generated token may be wrong, or computed
#: in float32 if the precision is narrower; no loss may be in half precision, no float32 gradient
#: averaged in it, and no operation of an own model's float64 run computed in it. Initial values of
#: ranks: all start with the same values, whose sums float32 rounds. Dropout: 6 standard errors,
#: which correct code exceeds in less than one of a million verifications. Masks of dropout:
#: gradients spread twice as much if two parts share their masks. ``initial values``, ``dropout of
#: ranks`` and ``multiply-adds`` are in older records only.
EVERYWHERE = {
    "trainable parameters": 0.0,
    "generated tokens": 0.0,
    "generated in float32": 0.0,
    "multiply-adds": 0.0,
    "dropout": 6.0,
    "dropout of ranks": 6.0,
    "masks of dropout": 0.5,
    "initial values": 6.0,
    "initial values of ranks": 1e-6,
    "losses in half precision": 0.0,
    "gradients reduced in half precision": 0.0,
    "float64 run": 0.0,
}


#: Quantities that state the share of work in other dtypes than the precision's.
IN_OTHER_DTYPES = ("matmul_dtypes", "other dtypes")
#: Outcomes of a verification. NOT_MADE: it ended before it could compare, for a reason that is not
#: the framework's; PARTLY: nothing differs, but part of the work ran in another precision.
PASSED, DIFFERS, PARTLY, UNSUPPORTED, NOT_MADE = (
    "passed", "failed", "partly_fp32", "unsupported", "not made"
)  # fmt: skip


class QuantityError(NamedTuple):
    """Error of one quantity against the reference, the largest over all ranks, and its bound.

    ``rounding``: the part of the error that rounding explains; the bound applies to the rest."""

    quantity: str
    error: float
    where: str
    rounding: float
    bound: float

    @property
    def excess(self) -> float:
        """The rest of the error as a multiple of its bound; 0 within the bound."""
        rest = self.error - self.rounding
        return 0.0 if rest <= self.bound else rest / (self.bound or 1e-300)


@dataclass(frozen=True)
class VerificationResult:
    """The result of one verification.

    ``case``: its ``variant`` is "" for the default software; its ``further`` has the values that
    change what is computed. ``dropout``: whether dropout was on in training.
    ``errors``: () unless ok.
    ``environment``, ``variables``, ``computation``, ``machine``: as in a run.
    ``scale``: FULL, SMALL, or the model's reduction. ``labels``: hard or soft."""

    case: Case
    accelerator: str
    dropout: bool
    status: str
    reason: str
    errors: tuple[QuantityError, ...]
    started: str
    environment: str
    variables: tuple[tuple[str, str], ...]
    computation: str
    machine: Identity
    scale: str = FULL
    labels: str = HARD

    @property
    def variables_text(self) -> str:
        """The variables as ``NAME=VALUE`` pairs, separated by blanks."""
        return " ".join(f"{name}={value}" for name, value in self.variables)

    @property
    def outcome(self) -> str:
        """Return PASSED, DIFFERS if an error exceeds its bound, PARTLY, UNSUPPORTED or NOT_MADE."""
        if self.status != "ok" or not self.errors:
            return UNSUPPORTED if self.status == "unsupported" else NOT_MADE
        worst = self._worst
        if worst is None:
            return PASSED
        return PARTLY if worst.quantity in IN_OTHER_DTYPES else DIFFERS

    @property
    def difference(self) -> str:
        """The error that exceeds its bound most, with this bound, as text."""
        if (worst := self._worst) is None:
            return ""
        if worst.quantity in IN_OTHER_DTYPES:
            share = f"{100 * worst.error:.3g} % of the work ran in another precision"
            return f"{share} (allowed {100 * worst.bound:.3g} %)"
        name = worst.quantity.partition(",")[0].partition(" of ")[0].partition(" in ")[0]
        verb = "differ" if name.endswith("s") and not name.endswith("ss") else "differs"
        error = f"{worst.error - worst.rounding:.2g} (allowed {worst.bound:.2g})"
        return f"{worst.quantity} {verb} from the reference by {error}"

    @property
    def _worst(self) -> QuantityError | None:
        """The error that exceeds its bound most; errors of results precede errors of dtypes."""
        return max(
            (error for error in self.errors if error.excess),
            key=lambda error: (error.quantity not in IN_OTHER_DTYPES, error.excess),
            default=None,
        )


def labels_of(case: Case) -> str:
    """Return SOFT if a training to a target smooths or mixes its labels, HARD otherwise."""
    chosen = dict(case.parameters)
    return SOFT if chosen.get("label_smoothing") or chosen.get("mixup") else HARD


def subject_of(case: Case, accelerator: str, labels: str) -> tuple[Any, ...]:
    """Return the work of a case on one device in one micro-step, in a form that runs and
    verifications share."""
    return (
        labels,
        case.framework,
        case.framework_version,
        accelerator,
        case.model,
        case.sequence_length,
        case.mode,
        case.precision,
        case.compiler,
    )


def bounds_in(precision: str) -> dict[str, float]:
    """Return the largest allowed error of each quantity. Raises ValueError for a precision that is
    not known, such as "default" of earlier versions. Some matmuls may have another dtype."""
    known = precisions.known()
    if precision not in known:
        allowed = ", ".join(known)
        raise ValueError(f"is a verification of precision {precision!r}; allowed: {allowed}")
    found = known[precision]
    return {**EVERYWHERE, "matmul_dtypes": 1 - found.share, **found.bounds}


def folder_for(source: Path) -> Path:
    """Return the folder of verification records that belongs to the records at ``source``."""
    return source.parent / KIND


def load(folder: Path) -> tuple[list[VerificationResult], list[Problem]]:
    """Return the verification results below ``folder``, and the files that cannot be read."""
    return read_below(folder, KIND, _result_of)


def read_result(path: Path) -> VerificationResult:
    """Return the result in a record. Raises OSError or ValueError if it cannot be read."""
    return _result_of(read(path, KIND))


def latest(verification_results: Iterable[VerificationResult]) -> list[VerificationResult]:
    """Return the newest result of each verification, for any code and environment, sorted."""
    found: dict[tuple[Any, ...], VerificationResult] = {}
    for result in sorted(verification_results, key=lambda result: result.started):
        case = result.case
        built_in = [getattr(case, axis.name) for axis in axes.BUILT_IN if axis.default is not None]
        how = (case.devices, result.dropout, result.scale, *built_in)
        subject = subject_of(case, result.accelerator, result.labels)
        found[(*subject, case.variant, result.variables, *how)] = result
    # A length of sequences may be None, which has no order.
    return [
        found[k] for k in sorted(found, key=lambda k: [(entry is not None, entry) for entry in k])
    ]


def _result_of(record: Mapping[str, Any]) -> VerificationResult:
    """Read a result from a record. Raises ValueError for an ok record without usable errors."""
    variant = record["settings"].get("variant") or ""
    version = record["framework_version"]
    case = Case.from_record(
        record["case"], record["parameters"]["mode"], variant=variant, framework_version=version
    )
    return VerificationResult(
        case=case,
        accelerator=record["settings"]["accelerator"],
        dropout=case.mode == "train" and bool(record["settings"].get("dropout")),
        status=record["status"],
        reason=record["reason"],
        errors=tuple(_errors(record)) if record["status"] == "ok" else (),
        started=record["started"],
        environment=environment_digest(record["environment"]),
        variables=variables_of(record),
        computation=computation_of(record),
        machine=identity(record["environment"]),
        # all older records verify the model itself
        scale=str(record["parameters"].get("scale", FULL)),
        labels=str(record["parameters"].get("labels", HARD)),
    )


def _errors(record: Mapping[str, Any]) -> Iterator[QuantityError]:
    """Yield the largest error over all ranks for each quantity. JSON null stands for NaN."""
    matmuls = record["ranks"][0].get("matmul_dtypes", {}) if record["ranks"] else {}
    total = sum(matmuls.values())
    if not total:
        raise ValueError("is an ok verification whose first rank counted no matmuls")
    precision = record["case"]["precision"]
    bounds = bounds_in(precision)
    dtypes = precisions.known()[precision].dtypes
    wanted = sum(count for dtype, count in matmuls.items() if dtype in dtypes)
    counted = ", ".join(f"{number} {name}" for name, number in sorted(matmuls.items()))
    share = 1 - wanted / total
    yield QuantityError("matmul_dtypes", share, counted, 0.0, bounds["matmul_dtypes"])
    worst: dict[str, QuantityError] = {}
    for entry in (entry for rank in record["ranks"] for entry in rank.get("verification", ())):
        name = entry["quantity"]
        if name not in bounds:
            allowed = ", ".join(bounds)
            raise ValueError(f"compares {name!r}, which has no bound; allowed: {allowed}")
        error = math.inf if entry["error"] is None else entry["error"]
        made = QuantityError(name, error, entry["where"], entry.get("rounding", 0.0), bounds[name])
        before = worst.setdefault(name, made)
        if not error - made.rounding <= before.error - before.rounding:
            worst[name] = made
    yield from worst.values()
