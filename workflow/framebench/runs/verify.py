"""Verifications that a suite needs, and the command of each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from core import precisions
from core.case import Case
from core.parallelism import DATA, layout_of, smallest

from ..cases.fitting import MEASURE
from ..config import own_model
from ..config.catalog import Catalog, model_facts
from ..files import bounded
from ..files.attempt_names import attempt_name
from ..machine.identities import is_here
from ..plan import estimates
from ..plan.planning import Plan, arm_settings, duration, request, software, variables
from ..plan.side_by_side import lease_name
from ..records import verifications
from ..records.record_files import machine_of, read
from ..records.verifications import FULL, SMALL
from .commands import common, given, model_of, of_kind, words

#: Rough wall time of one of a model as large as its runs have it, and of a small reference.
FULL_SECONDS, REFERENCE_SECONDS = 60.0, 1.0
#: In a model's facts, what makes it fit into memory.
REDUCED = "reduced"


class Verification(NamedTuple):
    """A computation of one framework that is compared with the reference.

    ``devices`` and ``accumulation`` (micro-steps) are 1 or 2; combined parallelisms have 2 devices
    each. ``dropout``: whether the model's dropout is on, to check that it acts. ``software``: name
    of the environment. ``variables``: of the ranks. ``variant``: of an A/B test that changes
    software or variables, else "". ``scale``: as in ``records.verifications.VerificationResult``.
    ``source``: origin of the model's code; None for ours."""

    framework: str
    model: str
    mode: str
    devices: int
    precision: str
    compiler: str
    sequence_length: int | None
    dropout: bool
    software: str
    variables: tuple[tuple[str, str], ...] = ()
    variant: str = ""
    scale: str = FULL
    source: str | None = None
    accumulation: int = 1
    parallelism: str = DATA

    @property
    def reference(self) -> str:
        """Name of the reference: the model, with the sequence length if it has one."""
        length = f"-s{self.sequence_length}" if self.sequence_length else ""
        return self.model + length + (f"-{SMALL}" if self.scale == SMALL else "")

    @property
    def is_behind_runs(self) -> bool:
        """Whether it runs in every call that measures, because it is short."""
        return self.scale in (SMALL, own_model.SCALE)

    def __str__(self) -> str:
        words = [self.framework, self.reference, self.mode, self.precision, self.compiler]
        words += [f"{self.devices} device(s)"]
        words += [self.parallelism] if self.parallelism != DATA else []
        words += [f"accumulation {self.accumulation}"] if self.accumulation > 1 else []
        words += [f"variant {self.variant}"] if self.variant else []
        return " ".join([*words, "dropout"] if self.dropout else words)


def comparisons(plan: Plan, catalog: Catalog) -> list[Verification]:
    """For every case of the plan whose model has a reference: the same on one device, on two where
    it trains on several, in two micro-steps where its steps have several, and with dropout where it
    trains a model that has it. Variants that run in the same software with the same variables have
    theirs in common."""
    found: dict[Verification, Verification] = {}

    def add(one: Verification) -> None:
        found.setdefault(one._replace(variant=""), one)

    for case in plan.computed:
        if not case.is_step or "parity" not in catalog.models[case.model]:
            continue
        one = Verification(
            case.framework,
            case.model,
            case.mode,
            1,
            case.precision,
            case.compiler,
            case.sequence_length,
            False,
            *_of_arm(plan, case),
            scale_of(catalog.models[case.model]),
            _source(plan, case),
        )
        add(one)
        if case.mode == "train":
            if case.nodes * case.devices_per_node > 1:
                add(one._replace(**_several(case.parallelism)))
            if case.accumulation > 1:
                add(one._replace(accumulation=2))
            if catalog.models[case.model]["hyperparameters"].get("dropout"):
                add(one._replace(dropout=True))
    return list(found.values())


def _several(parallelism: str) -> dict[str, Any]:
    """Devices of a comparison that proves this: two, or the fewest of a product."""
    small = smallest(parallelism)
    return {"devices": layout_of(small, 2).devices, "parallelism": small}


def scale_of(facts: Mapping[str, Any]) -> str:
    """Of a model where it is compared as large as can be."""
    if "own" in facts:
        return own_model.SCALE
    reduced = facts.get("parity", {}).get(REDUCED, {}).get("hyperparameters", {})
    return " ".join(f"{name}={value}" for name, value in reduced.items()) or FULL


def file_of(results: Path, name: str) -> Path:
    """Return the path of a verification record, which may not exist."""
    return results / "parity" / f"{name}.json"


def missing(results: Path, named: Mapping[str, Verification]) -> dict[str, Verification]:
    """Those that were not made."""
    return {name: one for name, one in named.items() if not file_of(results, name).exists()}


def small(
    plan: Plan, catalog: Catalog, full: Mapping[str, Verification]
) -> dict[str, Verification]:
    """The comparisons of small models that stand for those of ``full`` that were not made, with
    their names as :func:`names` has them: of all models whose facts say how to make them small, but
    those of others' code, which is of one size. Those of a user's own model stand for themselves.
    """
    lacking = missing(plan.settings.results, full)
    made_small = [
        one._replace(scale=SMALL)
        for one in lacking.values()
        if SMALL in catalog.models[one.model]["parity"] and not one.source
    ]
    own = {name: one for name, one in lacking.items() if one.is_behind_runs}
    return {**names(plan, catalog, made_small), **own}


def describe(plan: Plan, comparisons: Mapping[str, Verification]) -> str:
    """How many of them are still to be made, and their time; empty where none is."""
    results = plan.settings.results
    to_make = [*missing(results, comparisons).values()]
    if not to_make:
        return ""
    computed = len(references(results, to_make))
    seconds = sum(seconds_of(plan, one) for one in to_make)
    seconds += reference_seconds(plan) * computed
    small = any(one.scale == SMALL for one in to_make)
    models = "small models" if small else "your own model"
    with_them = f", with {computed} references" if computed else ""
    return (
        f"\nCertificates of {models} to make, roughly {duration(seconds)}: "
        f"{len(to_make)}{with_them}"
    )


def reference_seconds(plan: Plan) -> float:
    """Return the seconds that a reference is expected to take."""
    return REFERENCE_SECONDS * estimates.slowness(plan.place)


def seconds_of(plan: Plan, one: Verification) -> float:
    """Return the seconds that a comparison is expected to take."""
    if not one.is_behind_runs:
        return FULL_SECONDS
    is_small = one.scale == SMALL
    return estimates.start_of(one.framework, one.mode, one.compiler, plan.place, is_small)


def references(results: Path, comparisons: Iterable[Verification]) -> list[str]:
    """The names of those that are still to be computed for them."""
    names = {one.reference for one in comparisons if one.scale != own_model.SCALE}
    folder = results / "reference"
    return sorted(name for name in names if not any(folder.glob(f"{name}-????????")))


def _of_arm(plan: Plan, case: Case) -> tuple[str, tuple[tuple[str, str], ...], str]:
    """The name of its software, its variables, and its variant where these are not the usual."""
    suite = plan.settings.suite
    given = variables(case, suite, plan.place.accelerator)
    name, own = software(case, suite), tuple(sorted(given.items()))
    usual = name == case.framework and not own and not _source(plan, case)
    return name, own, "" if usual else case.variant


def _source(plan: Plan, case: Case) -> str | None:
    source: str | None = arm_settings(case, plan.settings.suite).get("source")
    return source


def reference_digest(catalog: Catalog, model: str, seed: int) -> str:
    """Of all that a reference is computed from: the model's facts, the seed and the code."""
    folders = ("reference", "networks")
    code = [path for name in folders for path in _files(catalog.root / "scripts" / name)]
    code += _shared(catalog.root)
    return _digest([catalog.models[model], seed], _contents(code))


def names(plan: Plan, catalog: Catalog, wanted: Iterable[Verification]) -> dict[str, Verification]:
    """The record of each comparison, below ``results/parity``, without ``.json``.

    Its name ends in a digest of all that decides the result (environment, code of the harness and
    of the adapter, reference), so that no record outlives what it verified. Where that name
    is taken by another record, or by one whose status is in ``retry``, the name
    of the next attempt."""
    scripts, seed = catalog.root / "scripts", plan.settings.seed
    harness = _contents([*_files(scripts / "core"), *_files(scripts / "harness")])

    # Each file is read once, however many comparisons depend on it.
    @cache
    def adapter(framework: str) -> bytes:
        return _contents(_files(scripts / "frameworks" / framework))

    @cache
    def reference(model: str) -> str:
        return reference_digest(catalog, model, seed)

    found = {}
    for one in wanted:
        asked = request(one.software, plan.settings, plan.place, plan.software)
        about = [one, asked["accelerator"], asked["cores_per_device"], asked["environment"]]
        kind = f"{one.mode}-{one.precision}-{one.compiler}-{one.devices}d"
        kind += "-dropout" if one.dropout else ""
        kind += f"-a{one.accumulation}" if one.accumulation > 1 else ""
        kind += f"-{one.parallelism}" if one.parallelism != DATA else ""
        kind += f"-{one.variant}" if one.variant else ""
        code = harness + adapter(one.framework)
        digest = _digest([about, reference(one.model)], code)
        name = f"{one.framework}/{one.reference}/{kind}-{digest}"
        found[free_name(plan, "parity", name, verifications.KIND)] = one
    return found


def arguments(plan: Plan, one: Verification, reference: str) -> list[str]:
    """What to compare, as arguments of the harness. ``reference``: the folder, "" of a model of the
    user's own."""
    own = plan.settings.model
    if own and own.name == one.model:
        facts, model = own.facts, model_of(plan, one.model)
    else:
        facts = model_facts(Path(plan.scripts, "models", f"{one.model}.json"))
        model = f"{reference}/{'facts-dropout' if one.dropout else 'facts'}.json"
    named: dict[str, Any] = {
        "kind": verifications.KIND,
        "framework": f"{plan.scripts}/frameworks/{one.framework}",
        "model": model,
        "devices-per-node": one.devices,
        "batch-per-device": facts["parity"]["batch_per_device"],
        "precision": one.precision,
        "compiler": one.compiler,
        "sequence-length": one.sequence_length,
        "accumulation": one.accumulation if one.accumulation > 1 else None,
        "parallelism": one.parallelism if one.parallelism != DATA else None,
        "variant": one.variant or None,
        "source": one.source,
        **common(plan),
        "lease": lease_name(plan.room_of_comparisons),
    }
    parameters = {"mode": one.mode, "scale": one.scale}
    parameters |= {"reference": reference} if reference else {}
    return words(named) + of_kind(parameters) + given(one.variables)


def free_name(plan: Plan, where: str, name: str, kind: str) -> str:
    """``name``, or that of its first attempt in the results' folder ``where`` which is not taken by
    something else than a record of this ``kind``, by one of another machine, or by one whose status
    is to be tried again."""
    folder, attempt = plan.settings.results / where, 0
    while True:
        tried = attempt_name(name, attempt)
        path = folder / f"{tried}.json"
        if not path.exists() or _status(path, kind, plan) not in ("", *plan.settings.retry):
            return tried
        attempt += 1


def _status(path: Path, kind: str, plan: Plan) -> str:
    """Return the status of a record that counts; "" where there is none."""
    try:
        record = read(path, kind)
    except (OSError, ValueError):
        return ""
    is_skipped = record["reason"].startswith(precisions.EMULATED)
    if is_skipped and plan.settings.emulated == MEASURE:
        return ""
    return str(record["status"]) if is_here(machine_of(record), plan.here) else ""


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".json"))


def _shared(root: Path) -> list[Path]:
    """What the reference takes from the harness."""
    harness = root / "scripts" / "harness"
    return [harness / "kinds" / "parity.py", harness / "measuring" / "synthetic.py"]


def _contents(files: Iterable[Path]) -> bytes:
    return b"".join(path.name.encode() + b"\0" + bounded.read_bytes(path) for path in files)


def _digest(values: Any, code: bytes) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode() + code).hexdigest()[:8]
