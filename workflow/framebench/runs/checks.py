"""Checks that a suite needs, verifications and peak-FLOPS benchmarks, and the command of each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from core import axes, bounded, precisions
from core.case import Case
from core.declarations import read_model_config
from core.parallelism import FEWEST_PARTS, layout_of, smallest

from ..config.catalog import SCALE, Catalog
from ..config.measurements import CONVERGE
from ..config.statuses import FAILURES
from ..files.json_files import newest_attempt
from ..machine.identities import identity, is_here
from ..plan.case_settings import request, software, variables
from ..plan.plan import Plan
from ..records import device_peaks, verifications
from ..records.record_files import read
from ..records.verifications import FULL, SMALL
from .commands import harness_options, model_of

#: Statuses of verifications that the next call makes again.
_NOT_MADE = tuple(status for status in FAILURES if status != "unsupported")
#: Folders of the code that decides a reference.
_REFERENCE_CODE = ("core", "harness", "reference", "networks")
#: Key of a model config: hyperparameters with which the model fits into memory.
REDUCED = "reduced"


class Verification(NamedTuple):
    """A computation of one framework that is compared with the reference.

    ``case``: with 1 or 2 devices and micro-steps; combined parallelisms have 2 devices each. Its
    ``variant``, of an A/B test, changes software or variables. ``dropout``: whether the model's
    dropout is on in training, to check that it acts. ``software``: name of the environment.
    ``variables``: variables of the ranks. ``scale``: as in
    ``records.verifications.VerificationResult``. ``soft_labels``: whether labels are smoothed and
    mixed, as in a training to a target that does so."""

    case: Case
    dropout: bool
    software: str
    variables: tuple[tuple[str, str], ...] = ()
    scale: str = FULL
    soft_labels: bool = False

    @property
    def drops_in_micro_steps(self) -> bool:
        """Return whether micro-steps draw masks of dropout."""
        return self.dropout and self.case.accumulation > 1

    @property
    def reference(self) -> str:
        """Name of the reference: the model, with the sequence length if it has one. Generated
        text, means over more than two batches and masks of micro-steps have references of their
        own."""
        length = self.case.labels().get("sequence_length", "")
        mode = axes.GENERATE if self.case.mode == axes.GENERATE else ""
        scale = SMALL if self.scale == SMALL else ""
        parts = f"{self.case.parts}parts" if self.case.parts > FEWEST_PARTS else ""
        labels = "soft" if self.soft_labels else ""
        masks = "masks" if self.drops_in_micro_steps else ""
        return "-".join(filter(None, (self.case.model, length, mode, parts, labels, masks, scale)))

    @property
    def is_short(self) -> bool:
        """Return whether the verification is short enough to run in every measuring call."""
        return self.scale in (SMALL, SCALE)


def full_size(plan: Plan, catalog: Catalog) -> list[Verification]:
    """Return the verifications that cases of the plan with a reference need.

    Training is verified on two devices if it has several, and with two micro-steps if it has
    several; with dropout it is verified both with and without, because only results without dropout
    can be compared one by one. Everything else is verified on one device. Each verification is
    needed in the baseline of the precision, too. Variants with equal software and variables share
    verifications.
    """
    found: dict[Verification, Verification] = {}

    def add(verification: Verification) -> None:
        for each in (verification, *_in_baseline(verification, catalog)):
            found.setdefault(each._replace(case=each.case._replace(variant="")), each)

    for case in plan.computed:
        soft_labels = verifications.labels_of(case) != verifications.HARD
        if case.mode == CONVERGE:
            case = case._replace(mode=axes.TRAIN)
        if case.mode not in axes.VERIFIED or "verification" not in catalog.models[case.model]:
            continue
        model, suite, capacity = catalog.models[case.model], plan.settings.suite, plan.capacity
        set_by_variant = variables(case, suite, capacity.accelerator)
        name, own = software(case, suite), tuple(sorted(set_by_variant.items()))
        is_usual = name == case.framework and not own
        compared = Case(
            case.framework, case.model, case.mode, 1, 1, 0, case.precision, case.compiler,
            case.sequence_length, "" if is_usual else case.variant,
        )  # fmt: skip
        # The largest scale at which the model is compared with its reference.
        reduced = model["verification"].get(REDUCED, {}).get("hyperparameters", {})
        scale = " ".join(f"{key}={value}" for key, value in reduced.items()) or FULL
        scale = SCALE if "own" in model else scale
        verification = Verification(compared, False, name, own, scale, soft_labels)
        if case.mode == "train":
            if scale == SCALE:
                add(verification)  # on several devices the optimizer step is not compared
            if case.devices > 1:  # two devices, or the fewest that a combined parallelism needs
                few = smallest(case.parallelism)
                devices = layout_of(few, 2).devices
                compared = compared._replace(devices_per_node=devices, parallelism=few)
            apart = case.verified_apart()
            verification = verification._replace(case=compared._replace(**apart))
        add(verification)
        if case.mode == "train" and model["hyperparameters"].get("dropout"):
            # Use the small model, if there is one: the statistics need many passes, and masks do
            # not depend on sizes.
            scale = SMALL if SMALL in model["verification"] else verification.scale
            add(verification._replace(dropout=True, scale=scale))
    return list(found.values())


def _in_baseline(verification: Verification, catalog: Catalog) -> Iterator[Verification]:
    """Yield the verification of the same code in the baseline of its precision, whose bounds find
    mistakes that are smaller than rounding in this precision.

    Variables that the baseline refuses are left out. A framework without the baseline has none. A
    user's own model has none, either: it is compared with itself, so a mistake that both runs share
    shows in no precision."""
    case, baseline = verification.case, precisions.baseline(verification.case.precision)
    is_known = case.precision in catalog.frameworks[case.framework]["precisions"]
    if baseline and is_known and verification.scale != SCALE:
        case = case._replace(precision=baseline)
        yield verification._replace(
            case=case, variables=precisions.accepted(baseline, verification.variables)
        )


def small(
    plan: Plan, catalog: Catalog, full: Mapping[str, Verification]
) -> dict[str, Verification]:
    """Return, by name, the short verifications that stand for those of ``full`` without a record:
    of the small version of a model, if its config has one, and those that are short themselves."""
    folder = plan.settings.results / "verification"
    lacking = {name: each for name, each in full.items() if not (folder / f"{name}.json").exists()}
    made_small = [
        each._replace(scale=SMALL)
        for each in lacking.values()
        if SMALL in catalog.models[each.case.model]["verification"]
    ]
    reduced = {name: each for name, each in lacking.items() if each.is_short}
    return {**verification_names(plan, catalog, made_small), **reduced}


def reference_digest(catalog: Catalog, model: str, seed: int) -> str:
    """Return a digest of the inputs of a reference: model config, seed and code."""
    return digest([catalog.models[model], seed, *_codes(catalog, *_REFERENCE_CODE)])


def verification_names(
    plan: Plan, catalog: Catalog, wanted: Iterable[Verification]
) -> dict[str, Verification]:
    """Return verifications by name, which is their record's path in ``results/verification``
    without ``.json``. It ends in a digest of environment, harness, adapter and reference, so that a
    record is never reused after a change of these. The name is the next attempt's if the record is
    of another kind, of another machine, or ended neither ok nor unsupported."""
    results = {}
    for verification in wanted:
        case = verification.case
        asked = request(
            verification.software, case.devices, plan.settings, plan.capacity, plan.software
        )
        keys = ("accelerator", "cores_per_device", "environment", "seed")
        about = [verification, *(asked[key] for key in keys), precisions.known_to_ranks()]
        about += [catalog.models[case.model]]
        about += _codes(catalog, *_REFERENCE_CODE, f"frameworks/{case.framework}")
        parts = [case.mode, case.precision, case.compiler, f"{case.devices}d"]
        parts += ["dropout"] if verification.dropout else []
        parts += [axis.label(getattr(case, axis.name)) for axis in case.differing()]
        kind = "-".join(filter(None, [*parts, case.variant, digest(about)]))
        name = f"{case.framework}/{verification.reference}/{kind}"
        free = _free_name(plan, "verification", name, verifications.KIND, _NOT_MADE)
        results[free] = verification
    return results


def reference_arguments(plan: Plan, verification: Verification) -> list[str]:
    """Return the arguments of ``scripts/reference`` for the reference of a verification."""
    arguments = ["--model", f"{plan.scripts}/models/{verification.case.model}.json"]
    arguments += ["--seed", str(plan.settings.seed)]
    if verification.scale != FULL:
        arguments += ["--reduced", SMALL if verification.scale == SMALL else REDUCED]
    case = verification.case
    arguments += ["--generate"] * (case.mode == axes.GENERATE)
    arguments += ["--soft-labels"] * verification.soft_labels
    arguments += ["--micro-steps"] * verification.drops_in_micro_steps
    arguments += ["--parts", str(case.parts)] if case.parts > FEWEST_PARTS else []
    length = case.sequence_length
    return [*arguments, "--sequence-length", str(length)] if length else arguments


def verification_arguments(plan: Plan, verification: Verification, reference: str) -> list[str]:
    """Return the arguments of the harness for a verification. ``reference``: folder of the
    reference, "" for the user's own model."""
    case = verification.case
    configs = {model.name: model.model_config for model in plan.settings.own_models}
    if case.model in configs:
        model_config, model = configs[case.model], model_of(plan, case.model)
    else:
        model_config = read_model_config(str(Path(plan.scripts, "models", f"{case.model}.json")))
        has_dropout = model_config["hyperparameters"].get("dropout")
        with_dropout = verification.dropout or (has_dropout and case.mode != axes.TRAIN)
        model = f"{reference}/{'model_config-dropout' if with_dropout else 'model_config'}.json"
    own = {
        "kind": verifications.KIND,
        "model": model,
        "batch_per_device": model_config["verification"]["batch_per_device"],
    }
    parameters = {"mode": case.mode, "scale": verification.scale}
    parameters |= {"reference": reference} if reference else {}
    parameters |= {"labels": "soft"} if verification.soft_labels else {}
    return harness_options(plan, case, parameters, own, verification.variables)


def peak_benchmarks(plan: Plan) -> dict[str, Case]:
    """Return a peak-FLOPS benchmark for each framework, precision and number of devices of a node:
    large matmuls on all of these devices at once. The name is the path of its record in
    ``results/peak_flops`` without ``.json``; it ends in a digest of accelerator, cores and
    environment, which decide the result. The harness needs a model: any that the framework runs in
    the suite. With a time budget, CPUs have no such benchmarks."""
    if plan.settings.budget and plan.capacity.accelerator == "cpu":
        return {}
    found: dict[tuple[str, str, int], Case] = {}
    for case in filter(lambda case: case.is_step, plan.computed):
        what = (case.framework, case.precision, case.devices_per_node)
        if what not in found:
            found[what] = Case(
                case.framework, case.model, device_peaks.KIND, 1, case.devices_per_node, 0,
                case.precision, "", case.sequence_length,
            )  # fmt: skip
    results = {}
    for case in found.values():
        asked = request(case.framework, case.devices, plan.settings, plan.capacity, plan.software)
        about = [asked["accelerator"], asked["cores_per_device"], asked["environment"]]
        together = f"-{case.devices}d" if case.devices > 1 else ""
        name = f"{case.framework}/{case.precision}{together}-{digest(about)}"
        results[_free_name(plan, "peak_flops", name, device_peaks.KIND)] = case
    return results


def peak_arguments(plan: Plan, case: Case) -> list[str]:
    """Return the arguments of the harness for a peak-FLOPS benchmark."""
    return harness_options(plan, case, {}, {"kinds": None, "nodes": None}, ())


def _free_name(plan: Plan, where: str, name: str, kind: str, repeated: Collection[str] = ()) -> str:
    """Return the name of the newest attempt with a valid record, or the first free one. A valid
    record in the folder ``where`` of the results has this ``kind``, this machine, and a status that
    is neither in ``retry`` nor ``repeated``."""
    retried = (*plan.settings.retry, *repeated)

    def read_status(path: Path) -> str | None:
        try:
            record = read(path, kind)
        except (OSError, ValueError):
            return None
        if not is_here(identity(record["environment"]), plan.here):
            return None
        return None if record["status"] in retried else str(record["status"])

    return newest_attempt(plan.settings.results / where, name, read_status)[0]


def _codes(catalog: Catalog, *folders: str) -> list[str]:
    """Return a digest of the code in each of these ``folders`` of ``scripts``."""
    return [_code(catalog.root / "scripts" / folder) for folder in folders]


@cache
def _code(folder: Path) -> str:
    """Return a digest of a folder's code and declarations. A call reads them once."""
    content = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".json"):
            content.update(path.name.encode() + b"\0" + bounded.read_bytes(path))
    return content.hexdigest()


def digest(values: Any) -> str:
    """Return eight characters that differ between values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]
