"""Which figures are proved: those for which a certificate says that the same code, in the same
environment, with the same variables and on the same kind of machine, computed what the reference
does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from core.parallelism import DATA, smallest

from ..cases.conditions import OURS
from ..machine.identities import same
from .fields.flags import OWN
from .run import Flag, Run
from .verifications import VerificationResult

FAILED, UNVERIFIED = "parity", "unproved"


class VerificationKind(NamedTuple):
    """What a comparison is of besides one device, one micro-step and no dropout. ``by``: how
    several devices share a step, each group of the smallest size; "" of one."""

    by: str = ""
    micro_steps: bool = False
    dropout: bool = False

    @property
    def words(self) -> str:
        """ "" of one device, one micro-step and no dropout."""
        if self.by:
            return "on several devices" + (f" by {self.by}" if self.by != DATA else "")
        return "with micro-steps" if self.micro_steps else "with dropout" if self.dropout else ""


ON_ONE = VerificationKind()
WITH_MICRO_STEPS, WITH_DROPOUT = VerificationKind(micro_steps=True), VerificationKind(dropout=True)
HOW = "snakemake --cores all parity"
#: Of a user's own model: it is compared with its own run in float64, without dropout.
_OWN_FACTS: Mapping[str, Any] = {"parity": {}, "hyperparameters": {}}


class VerificationFlags:
    """Which figures have no proof. ``models``: the facts of those that are known, by name."""

    def __init__(
        self, certificates: Iterable[VerificationResult], models: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._models = models
        self._of: dict[Any, list[VerificationResult]] = defaultdict(list)
        for certificate in sorted(certificates, key=lambda one: one.started):
            self._of[certificate.subject].append(certificate)
        self._known: dict[Any, Flag | None] = {}

    def doubt(self, run: Run) -> Flag | None:
        """``parity`` where a comparison of what ``run`` computed failed, else ``unproved`` unless
        all that it takes has passed, with the model itself or with the model made small: on one
        device; in training also on several, where it had several, with micro-steps, where its
        steps had several, and with dropout, where the model has it. None of runs of others, and of
        other kinds than steps: what ran there is checked by the kind itself."""
        if run.case.source != OURS or not run.case.is_step:
            return None
        needed = self._needed(run)
        key = (_subject(run), run.environment, run.variables, run.computation, run.machine, *needed)
        if key not in self._known:
            self._known[key] = self._judged(run, needed)
        return self._known[key]

    def _needed(self, run: Run) -> list[VerificationKind]:
        """The comparisons that prove it together."""
        if run.case.mode != "train":
            return [ON_ONE]
        with_dropout = self._facts(run).get("hyperparameters", {}).get("dropout")
        return [
            ON_ONE,
            *[VerificationKind(by=smallest(run.conditions.parallelism))] * (run.case.devices > 1),
            *[WITH_MICRO_STEPS] * (run.conditions.accumulation > 1),
            *[WITH_DROPOUT] * bool(with_dropout),
        ]

    def _facts(self, run: Run) -> Mapping[str, Any]:
        if any(doubt.mark == OWN for doubt in run.doubts):
            return _OWN_FACTS
        return self._models.get(run.case.model, {})

    def _judged(self, run: Run, needed: Sequence[VerificationKind]) -> Flag | None:
        found = self._of.get(_subject(run), [])
        # The last of each comparison: it may have been made again. A small model that passes does
        # not make up for the model itself that fails.
        own = {(_kind(one), one.scale): one for one in found if not _others(one, run)}
        unknown = [one for one in found if not (run.computation and one.computation)]
        for one in [*own.values(), *unknown]:
            # One of several devices says nothing of a single one.
            if one.passed is False and (_kind(one) in needed or one.dropout):
                return Flag(FAILED, "")
        if "parity" not in self._facts(run):
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
    by = smallest(one.parallelism) if one.devices > 1 else ""
    return VerificationKind(by, one.accumulation > 1, one.dropout)


def _subject(run: Run) -> tuple[Any, ...]:
    """As that of a certificate."""
    case = run.case
    return (
        case.framework,
        case.framework_version,
        run.conditions.accelerator,
        case.model,
        run.conditions.sequence_length,
        case.mode,
        case.precision,
        case.compiler,
    )


def _others(one: VerificationResult, run: Run) -> list[str]:
    """In what else the two differ. Any machine with the same hardware is as good as another."""
    alike = [machine._replace(memory="", host="") for machine in (one.machine, run.machine)]
    differing = {
        "another environment": one.environment != run.environment,
        "other variables": one.variables != run.variables,
        "other code": one.computation != run.computation,
        "other hardware": not same(*alike),
    }
    return [name for name, differs in differing.items() if differs]


def _why_not(run: Run, found: Iterable[VerificationResult], kind: VerificationKind) -> str:
    """What is wrong with the certificate that comes nearest, or missing; empty without any."""
    like = [one for one in found if _kind(one) == kind]
    if not like:
        return f"it was not compared {kind.words}" if kind.words else ""
    nearest = min(like, key=lambda one: len(_others(one, run)))
    if not nearest.computation:
        return "the certificate does not say of which code it is"
    return f"the certificate is of {' and '.join(_others(nearest, run))}"
