"""Flags of figures that are not verified.

A figure is verified if a verification passed with the same code, environment and variables on the
same hardware.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from core import axes
from core.case import Case
from core.parallelism import DATA, smallest

from ..cases.conditions import OURS
from ..machine.identities import same
from .fields.flags import OWN
from .run import Flag, Run
from .verifications import VerificationResult, subject_of

FAILED, UNVERIFIED = "parity", "unverified"


class VerificationKind(NamedTuple):
    """Features that a verification covers beyond one device, one micro-step and no dropout.

    ``by``: parallelism of several devices, each group of the smallest size; "" for one device.
    ``axis``: axis with a verification of its own, "" for none.
    """

    by: str = ""
    axis: str = ""
    dropout: bool = False

    @property
    def words(self) -> str:
        """Covered features as text; "" for one device, one micro-step and no dropout."""
        if self.by:
            devices = "on several devices" + (f" by {self.by}" if self.by != DATA else "")
            return f"with dropout {devices}" if self.dropout else devices
        if self.axis:
            return f"with {self.axis.replace('_', ' ')}"
        return "with dropout" if self.dropout else ""


ON_ONE = VerificationKind()
WITH_DROPOUT = VerificationKind(dropout=True)
HOW = "snakemake --cores all verification"
#: Config of a user's own model, which is compared with its own float64 run, without dropout.
_OWN_FACTS: Mapping[str, Any] = {"parity": {}, "hyperparameters": {}}


class VerificationFlags:
    """Flags of runs that are not verified. ``models``: configs of known models, by name."""

    def __init__(
        self,
        verification_results: Iterable[VerificationResult],
        models: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._models = models
        self._of: dict[Any, list[VerificationResult]] = defaultdict(list)
        for verification in sorted(verification_results, key=lambda one: one.started):
            self._of[verification.subject].append(verification)
        self._known: dict[Any, Flag | None] = {}

    def flag(self, run: Run) -> Flag | None:
        """Return the flag of a run: ``parity``, ``unverified``, or None.

        ``parity``: a verification of its computation failed. ``unverified``: a needed verification
        has not passed. Needed are one device, and in training also several devices, micro-steps and
        dropout where the run had them. The model may be its small version. Imported runs and
        micro-benchmarks get no flag: a micro-benchmark checks its own work."""
        if run.case.source != OURS or run.case.mode not in axes.VERIFIED:
            return None
        needed = self._needed(run)
        key = (
            subject_of(run.case, run.conditions.accelerator),
            run.environment,
            run.variables,
            run.computation,
            run.machine,
            *needed,
        )
        if key not in self._known:
            self._known[key] = self._judged(run, needed)
        return self._known[key]

    def _needed(self, run: Run) -> list[VerificationKind]:
        """Return the verifications that a run needs."""
        if run.case.mode != "train":
            return [ON_ONE]
        with_dropout = bool(self._model_config(run).get("hyperparameters", {}).get("dropout"))
        several = [VerificationKind(by=smallest(run.case.parallelism))] * (run.case.devices > 1)
        return [
            ON_ONE,
            *several,
            *(VerificationKind(axis=name) for name in _verified_apart(run.case)),
            *[WITH_DROPOUT] * with_dropout,
            *(one._replace(dropout=True) for one in several if with_dropout),
        ]

    def _model_config(self, run: Run) -> Mapping[str, Any]:
        if any(flag.name == OWN for flag in run.flags):
            return _OWN_FACTS
        return self._models.get(run.case.model, {})

    def _judged(self, run: Run, needed: Sequence[VerificationKind]) -> Flag | None:
        found = self._of.get(subject_of(run.case, run.conditions.accelerator), [])
        # The newest of each verification counts. A failure of the full model is not outweighed by a
        # pass of the small one.
        own = {(_kind(one), one.scale): one for one in found if not _others(one, run)}
        unknown = [one for one in found if not (run.computation and one.computation)]
        for one in [*own.values(), *unknown]:
            # A failure on several devices says nothing of one device.
            if one.passed is False and _kind(one) in (*needed, WITH_DROPOUT):
                return Flag(FAILED, "")
        if "parity" not in self._model_config(run):
            return Flag(UNVERIFIED, f"there is no reference of {run.case.model} to compare it with")
        if not run.computation:
            return Flag(UNVERIFIED, "the record does not say which code computed it")
        for kind in needed:
            made = [one for (of, _), one in own.items() if of == kind]
            if not made:
                return Flag(UNVERIFIED, _why_not(run, found, kind))
            if not any(one.passed for one in made):
                return Flag(UNVERIFIED, f"it cannot be compared: {made[0].reason}")
        return None


def _kind(one: VerificationResult) -> VerificationKind:
    case = one.case
    by = smallest(case.parallelism) if case.devices > 1 else ""
    return VerificationKind(by, next(_verified_apart(case), ""), one.dropout)


def _verified_apart(case: Case) -> Iterator[str]:
    """Yield the axes whose value needs a verification of its own."""
    return (axis.name for axis in case.differing() if axis.verified_at)


def _others(one: VerificationResult, run: Run) -> list[str]:
    """Name the differences between a verification and a run. Machines of equal hardware match."""
    alike = [machine._replace(memory="", host="") for machine in (one.machine, run.machine)]
    differing = {
        "another environment": one.environment != run.environment,
        "other variables": one.variables != run.variables,
        "other code": one.computation != run.computation,
        "other hardware": not same(*alike),
    }
    return [name for name, differs in differing.items() if differs]


def _why_not(run: Run, found: Iterable[VerificationResult], kind: VerificationKind) -> str:
    """Explain why the nearest verification does not count; "" if there is none at all."""
    like = [one for one in found if _kind(one) == kind]
    if not like:
        return f"it was not compared {kind.words}" if kind.words else ""
    nearest = min(like, key=lambda one: len(_others(one, run)))
    if not nearest.computation:
        return "the verification does not record its code"
    return f"the verification is of {' and '.join(_others(nearest, run))}"
