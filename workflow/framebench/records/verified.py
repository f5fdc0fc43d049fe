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
from ..config.measurements import CONVERGE
from ..config.statuses import OK
from ..machine.identities import same
from .flags import OWN
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


#: Beginnings of reasons that no further verification can remove.
NO_REFERENCE, NOT_COMPARABLE = "there is no reference", "it cannot be compared"


class VerificationKey(NamedTuple):
    """Key of a verification: equal for a figure and the verifications that count for it.

    ``subject``: as :func:`subject_of`. ``by``: parallelism of several devices, each group of the
    smallest size; "" for one device. ``axes``: axes with verifications of their own.
    """

    subject: tuple[Any, ...]
    precision: str
    by: str = ""
    axes: tuple[str, ...] = ()
    dropout: bool = False

    def coverage_text(self, suffix: str) -> str:
        """Return as text what is verified beyond one device, one micro-step and no dropout; "" for
        nothing more. ``suffix``: end of the text."""
        parts = [
            "with dropout" if self.dropout else "",
            "on several devices" if self.by else "",
            f"by {self.by}" if self.by not in ("", DATA) else "",
            f"with {' and '.join(self.axes).replace('_', ' ')}" if self.axes else "",
            suffix.strip(),
        ]
        return " ".join(filter(None, parts))


def key_of(case: Case, accelerator: str, labels: str, dropout: bool) -> VerificationKey:
    """Return the key of a case, which a verification and the figures that it verifies share."""
    trains = case.mode == axes.TRAIN
    by = smallest(case.parallelism) if trains and case.devices > 1 else ""
    apart = tuple(case.verified_apart()) if trains else ()
    subject = subject_of(case, accelerator, labels)
    return VerificationKey(subject, case.precision, by, apart, dropout)


VERIFY_COMMAND = "snakemake --cores all verification"


class VerificationFlags:
    """Flags of runs that are not verified. ``models``: configs of known models, by name."""

    def __init__(
        self,
        verification_results: Iterable[VerificationResult],
        models: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._models = models
        self._of: dict[VerificationKey, list[VerificationResult]] = defaultdict(list)
        # The newest result counts, but one that could not be made never replaces another.
        for result in sorted(
            verification_results, key=lambda result: (result.outcome != NOT_MADE, result.started)
        ):
            key = key_of(result.case, result.accelerator, result.labels, result.dropout)
            self._of[key].append(result)
        self._known: dict[Any, Flag | None] = {}

    def flag(self, run: Run) -> Flag | None:
        """Return the flag of a run: ``incorrect``, ``partly_fp32``, ``unverified``, or None.

        ``incorrect``: in a verification an error exceeds its bound. ``partly_fp32``: part of the
        work ran in another precision. ``unverified``: a needed verification has not passed, or
        could not be made. Training to a target needs the verification of training, with soft labels
        if it has some. Training is verified with several devices and micro-steps where the run had
        them, and also with dropout where the run had some. Each verification is needed in the
        baseline of its precision, too, unless the model is the user's own. The model may be its
        small version. Imported runs and micro-benchmarks get no flag: a micro-benchmark checks its
        own work."""
        if run.case.source != OURS or run.case.mode not in (*axes.VERIFIED, CONVERGE):
            return None
        needed = tuple(self._needed(run))
        known = (needed, run.environment, run.variables, run.computation, run.machine)
        if known not in self._known:
            self._known[known] = self._judged(run, needed)
        return self._known[known]

    def _needed(self, run: Run) -> Iterator[VerificationKey]:
        """Yield the keys of the verifications that a run needs."""
        mode = axes.TRAIN if run.case.mode == CONVERGE else run.case.mode
        own, trains = _is_own(run), mode == axes.TRAIN
        model = self._models.get(run.case.model, {})
        with_dropout = model.get("hyperparameters", {}).get("dropout")
        baseline = "" if own else precisions.baseline(run.case.precision)
        for precision in filter(None, (run.case.precision, baseline)):
            case = run.case._replace(mode=mode, precision=precision)
            key = key_of(case, run.conditions.accelerator, labels_of(run.case), dropout=False)
            if own:  # on several devices the optimizer step of a user's model is not compared
                yield from dict.fromkeys([key._replace(by="", axes=()), key])
                continue
            yield key
            if trains and with_dropout:
                yield key._replace(dropout=True)

    def _judged(self, run: Run, needed: Sequence[VerificationKey]) -> Flag | None:
        # The newest verification of each scale counts. A pass of the small model does not outweigh
        # a failure of the full one.
        made = {
            key: {each.scale: each for each in self._of.get(key, ()) if not _others(each, run)}
            for key in needed
        }
        for outcome, name in EXCLUDING.items():
            for key, results in made.items():
                for result in results.values():
                    if result.outcome == outcome:
                        prefix = f"in {key.precision}, " if _suffix(key, run) else ""
                        return Flag(name, f"{prefix}{result.difference}")
        # A user's own model is compared with its own float64 run, without dropout.
        if not _is_own(run) and "verification" not in self._models.get(run.case.model, {}):
            return Flag(UNVERIFIED, f"{NO_REFERENCE} of {run.case.model} to compare it with")
        if not run.computation:
            return Flag(UNVERIFIED, "the record does not say which code computed it")
        for key, results in made.items():
            if not results:
                return Flag(UNVERIFIED, self._why_not(run, key))
            if not any(result.outcome == PASSED for result in results.values()):
                first, suffix = next(iter(results.values())), _suffix(key, run)
                why = f"{NOT_COMPARABLE}{suffix}: {first.reason}"
                if first.outcome == NOT_MADE:
                    ended = f"{first.status}: {first.reason}"
                    why = f"the verification{suffix} could not be made: {ended}"
                return Flag(UNVERIFIED, why)
        return None

    def _why_not(self, run: Run, key: VerificationKey) -> str:
        """Explain why the nearest verification does not count; "" if there is none at all."""
        suffix = _suffix(key, run)
        if key not in self._of:
            words = key.coverage_text(suffix)
            return f"it was not compared {words}" if words else ""
        nearest = min((_others(result, run) for result in self._of[key]), key=len)
        return f"the verification{suffix} is of {' and '.join(nearest)}"


def _suffix(key: VerificationKey, run: Run) -> str:
    """Return the precision as the end of a text, such as " in fp32"; "" for the figure's own."""
    return f" in {key.precision}" if key.precision != run.case.precision else ""


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
        return replace(run, metrics=tuple(metric._replace(value=None) for metric in run.metrics))

    return list(map(compared, runs))


def _is_own(run: Run) -> bool:
    return any(flag.name == OWN for flag in run.flags)


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
