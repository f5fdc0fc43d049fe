"""Flags of figures that are not verified.

A figure is verified if a verification passed with the same code, environment and variables on the
same hardware.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from core import axes, precisions
from core.case import Case
from core.parallelism import DATA, smallest

from ..cases.conditions import OURS
from ..config.kinds import CONVERGE
from ..config.statuses import OK
from ..machine.identities import same
from .fields.flags import OWN
from .run import Flag, Run
from .verifications import (
    DIFFERS,
    NOT_MADE,
    PARTLY,
    PASSED,
    VerificationResult,
    labels_of,
    subject_of,
)

FAILED, UNVERIFIED = "incorrect", "unverified"
#: Flags of figures that take part in no comparison, by the outcome of the verification.
EXCLUDING = {DIFFERS: FAILED, PARTLY: PARTLY}


#: Beginnings of the reasons of a figure that no further verification can help.
NO_REFERENCE, NOT_COMPARABLE = "there is no reference", "it cannot be compared"


class VerificationKind(NamedTuple):
    """Features that a verification covers beyond one device, one micro-step and no dropout.

    ``by``: parallelism of several devices, each group of the smallest size; "" for one device.
    ``axis``: axis with a verification of its own, "" for none. ``baseline``: the baseline of the
    figure's precision, in which the same code is compared; "" for the precision itself.
    """

    by: str = ""
    axis: str = ""
    dropout: bool = False
    baseline: str = ""

    @property
    def words(self) -> str:
        """Covered features as text; "" for none of them."""
        parts = [
            "with dropout" if self.dropout else "",
            "on several devices" if self.by else "",
            f"by {self.by}" if self.by not in ("", DATA) else "",
            f"with {self.axis.replace('_', ' ')}" if self.axis else "",
            self.suffix.strip(),
        ]
        return " ".join(filter(None, parts))

    @property
    def suffix(self) -> str:
        """The baseline as the end of a text, such as " in fp32"; "" for the figure's precision."""
        return f" in {self.baseline}" if self.baseline else ""

    @property
    def prefix(self) -> str:
        """The baseline as the start of a text, such as "in fp32, "."""
        return f"in {self.baseline}, " if self.baseline else ""


ON_ONE = VerificationKind()
HOW = "snakemake --cores all verification"
#: Config of a user's own model, which is compared with its own float64 run, without dropout.
_OWN_MODEL_CONFIG: Mapping[str, Any] = {"verification": {}, "hyperparameters": {}}


class VerificationFlags:
    """Flags of runs that are not verified. ``models``: configs of known models, by name."""

    def __init__(
        self,
        verification_results: Iterable[VerificationResult],
        models: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._models = models
        self._of: dict[Any, list[VerificationResult]] = defaultdict(list)
        # The newest counts, but what could not be made does not replace what was.
        for verification in sorted(
            verification_results, key=lambda result: (result.outcome != NOT_MADE, result.started)
        ):
            self._of[verification.subject].append(verification)
        self._known: dict[Any, Flag | None] = {}

    def flag(self, run: Run) -> Flag | None:
        """Return the flag of a run: ``incorrect``, ``partly_fp32``, ``unverified``, or None.

        ``incorrect``: in a verification an error exceeds its bound. ``partly_fp32``: part of the
        work ran in another precision. ``unverified``: a needed verification has not passed, or
        could not be made. Training to a target needs that of training, with soft labels if it has
        some. That of training has several devices and micro-steps where the run had
        them, and is needed with dropout, too, where the run had some. Each is needed in the
        baseline of its precision, too, unless the model is the user's own. The model may be its
        small version.
        Imported runs and micro-benchmarks get no flag: a micro-benchmark checks its own work."""
        if run.case.source != OURS or run.case.mode not in (*axes.VERIFIED, CONVERGE):
            return None
        needed = self._needed(run)
        key = (
            _subject(run, run.case.precision),
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
        found = self._needed_in_precision(run)
        baseline = "" if _is_own(run) else precisions.baseline(run.case.precision)
        return [*found, *(kind._replace(baseline=baseline) for kind in found if baseline)]

    def _needed_in_precision(self, run: Run) -> list[VerificationKind]:
        if run.case.mode not in (axes.TRAIN, CONVERGE):
            return [ON_ONE]
        by = smallest(run.case.parallelism) if run.case.devices > 1 else ""
        kind = VerificationKind(by, next(_verified_apart(run.case), ""))
        if _is_own(run):  # on several devices its optimizer step is not compared
            return list(dict.fromkeys([ON_ONE, kind]))
        with_dropout = bool(self._model_config(run).get("hyperparameters", {}).get("dropout"))
        return [kind, *[kind._replace(dropout=True)] * with_dropout]

    def _model_config(self, run: Run) -> Mapping[str, Any]:
        if _is_own(run):
            return _OWN_MODEL_CONFIG
        return self._models.get(run.case.model, {})

    def _judged(self, run: Run, needed: Sequence[VerificationKind]) -> Flag | None:
        subjects = {_subject(run, kind.baseline or run.case.precision): None for kind in needed}
        found = [result for subject in subjects for result in self._of.get(subject, ())]
        # The newest of each verification counts. A failure of the full model is not outweighed by a
        # pass of the small one.
        own = {
            (_kind(result, run), result.scale): result
            for result in found
            if not _others(result, run)
        }
        unknown = [result for result in found if not (run.computation and result.computation)]
        failed = {
            result.outcome: Flag(EXCLUDING[result.outcome], f"{kind.prefix}{result.difference}")
            for result in [*unknown, *own.values()]
            # A failure on several devices says nothing of one device.
            if (kind := _kind(result, run)) in needed
            if result.outcome in EXCLUDING
        }
        for outcome in EXCLUDING:
            if outcome in failed:
                return failed[outcome]
        if "verification" not in self._model_config(run):
            return Flag(UNVERIFIED, f"{NO_REFERENCE} of {run.case.model} to compare it with")
        if not run.computation:
            return Flag(UNVERIFIED, "the record does not say which code computed it")
        for kind in needed:
            made = [result for (of, _), result in own.items() if of == kind]
            if not made:
                return Flag(UNVERIFIED, _why_not(run, found, kind))
            if not any(result.outcome == PASSED for result in made):
                why = f"{NOT_COMPARABLE}{kind.suffix}: {made[0].reason}"
                if made[0].outcome == NOT_MADE:
                    ended = f"{made[0].status}: {made[0].reason}"
                    why = f"the verification{kind.suffix} could not be made: {ended}"
                return Flag(UNVERIFIED, why)
        return None


def can_be_verified(flag: Flag) -> bool:
    """Return whether a flag says that a figure is unverified, and another verification can help."""
    return flag.name == UNVERIFIED and not flag.why.startswith((NO_REFERENCE, NOT_COMPARABLE))


def why_excluded(flags: Iterable[Flag]) -> str:
    """Return why a figure with these flags takes part in no comparison; "" if it does.

    Everything that compares figures asks this function."""
    names = EXCLUDING.values()
    return next((flag.why or "verification failed" for flag in flags if flag.name in names), "")


def without_excluded(runs: Iterable[Run], flags: VerificationFlags) -> list[Run]:
    """Return the runs, without the figures that take part in no comparison."""

    def compared(run: Run) -> Run:
        flag = flags.flag(run)
        if run.status != OK or not (flag and why_excluded([flag])):
            return run
        return replace(run, metrics=tuple(one._replace(value=None) for one in run.metrics))

    return list(map(compared, runs))


def _is_own(run: Run) -> bool:
    return any(flag.name == OWN for flag in run.flags)


def _subject(run: Run, precision: str) -> tuple[Any, ...]:
    mode = axes.TRAIN if run.case.mode == CONVERGE else run.case.mode
    case = run.case._replace(precision=precision, mode=mode)
    return subject_of(case, run.conditions.accelerator, labels_of(run.case))


def _kind(result: VerificationResult, run: Run) -> VerificationKind:
    case = result.case
    by = smallest(case.parallelism) if case.devices > 1 else ""
    baseline = case.precision if case.precision != run.case.precision else ""
    return VerificationKind(by, next(_verified_apart(case), ""), result.dropout, baseline)


def _verified_apart(case: Case) -> Iterator[str]:
    """Yield the axes whose value needs a verification of its own."""
    return (axis.name for axis in case.differing() if axis.verified_at)


def _others(result: VerificationResult, run: Run) -> list[str]:
    """Name the differences between a verification and a run. Machines of equal hardware match."""
    alike = [machine._replace(memory="", host="") for machine in (result.machine, run.machine)]
    variables = run.variables
    if result.case.precision != run.case.precision:
        variables = precisions.accepted(result.case.precision, variables)
    differing = {
        "another environment": result.environment != run.environment,
        "other variables": result.variables != variables,
        "other code": result.computation != run.computation,
        "other hardware": not same(*alike),
    }
    return [name for name, differs in differing.items() if differs]


def _why_not(run: Run, results: Iterable[VerificationResult], kind: VerificationKind) -> str:
    """Explain why the nearest verification does not count; "" if there is none at all."""
    like = [result for result in results if _kind(result, run) == kind]
    if not like:
        return f"it was not compared {kind.words}" if kind.words else ""
    verification = f"the verification{kind.suffix}"
    nearest = min(like, key=lambda result: len(_others(result, run)))
    if not nearest.computation:
        return f"{verification} does not record its code"
    return f"{verification} is of {' and '.join(_others(nearest, run))}"
