"""Certificates as a table, as an overview of it, and as words for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from ..cases.names import columns
from ..records.parity import Certificate, bound
from .columns import frame

COLUMNS = (
    "framework",
    "model",
    "mode",
    "precision",
    "compiler",
    "devices",
    "quantity",
    "error",
    "bound",
    "passed",
    "where",
    "framework_version",
    "accelerator",
    "sequence_length",
    "arm",
    "variables",
    "status",
    "reason",
)


def table(certificates: Iterable[Certificate]) -> pd.DataFrame:
    """A row for each quantity of each certificate; one without error where nothing was compared."""
    rows = [row for certificate in certificates for row in _rows(certificate)]
    return frame(COLUMNS, rows)


#: What a certificate is of besides the case.
CONDITIONS = ("sequence_length", "arm", "variables")
#: What an overview of a certificate shows of it.
SHOWN = ("outputs", "loss", "gradients", "losses", "dropout", "multiply-adds")


def overview(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each certificate of a table of them: the errors that are SHOWN, the verdict and
    the reason for it. What was compared in several runs (with and without dropout) is one row."""
    subject = ["framework", "framework_version", "model", "mode", "precision", "compiler",
               *CONDITIONS]  # fmt: skip
    rows = []
    for key, part in table.groupby([*subject, "devices"], sort=False, dropna=False):
        errors = dict(zip(part["quantity"], part["error"], strict=True))
        failed = part[(part["passed"] == False).fillna(False)]  # noqa: E712 (three values)
        verdict = "failed" if len(failed) else "passed"
        if part["passed"].isna().all():
            verdict, failed = "unsupported", part
        reason = "; ".join(
            f"{row.quantity} {row.error:.2g}, at most {row.bound:.2g} {row.where}".rstrip()
            if row.quantity
            else str(row.reason)
            for row in _named(failed)
        )
        rows.append([*key, *(errors.get(name) for name in SHOWN), verdict, reason])
    columns = [*subject, "device_count", *SHOWN, "verdict", "reason"]
    types = {**dict.fromkeys(SHOWN, "float64"), "sequence_length": "Int64"}
    return pd.DataFrame(rows, columns=columns, dtype=object).astype(types)


def _named(frame: pd.DataFrame) -> Iterator[Any]:
    return iter(frame.itertuples())


def summary_text(certificates: Sequence[Certificate]) -> str:
    """A line for each certificate, worst quantity first, and how many passed."""
    lines = []
    for certificate in certificates:
        devices = f"{certificate.devices} device(s)"
        if certificate.dropout:
            devices += ", with dropout"
        if certificate.sequence_length:
            devices += f", length {certificate.sequence_length}"
        if conditions := " ".join(filter(None, (certificate.arm, certificate.variables_text))):
            devices += f", {conditions}"
        lines.append(f"{columns(certificate)} {devices}  {_verdict(certificate)}")
    counted = [certificate.passed for certificate in certificates]
    lines.append(
        f"\n{counted.count(True)} of {len(counted)} passed, {counted.count(False)} failed, "
        f"{counted.count(None)} unsupported"
    )
    return "\n".join(lines)


def _verdict(certificate: Certificate) -> str:
    if certificate.status != "ok":
        return f"{certificate.status}: {certificate.reason}"
    failed = [
        f"{name} {error:.2g} > {bound(certificate.precision, name):.2g}"
        + (f" ({where})" if where else "")
        for name, error, where in certificate.errors
        if not error <= bound(certificate.precision, name)
    ]
    return "FAILED: " + "; ".join(failed) if failed else "passed"


def _rows(certificate: Certificate) -> Iterator[list[Any]]:
    subject = [
        certificate.framework,
        certificate.model,
        certificate.mode,
        certificate.precision,
        certificate.compiler,
        certificate.devices,
    ]
    end = [
        certificate.framework_version,
        certificate.accelerator,
        certificate.sequence_length,
        certificate.arm,
        certificate.variables_text,
        certificate.status,
        certificate.reason,
    ]
    if not certificate.errors:
        passed = certificate.passed
        yield [*subject, "", None, None, passed, "", *end]
    for quantity, error, where in certificate.errors:
        limit = bound(certificate.precision, quantity)
        yield [*subject, quantity, error, limit, error <= limit, where, *end]
