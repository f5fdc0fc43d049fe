"""Writers of verification records, and the flag that a run gets from them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from core import precisions
from framebench.config import catalog
from framebench.records import record_sets, verifications, verified
from framebench.records.run import Run

from ..conftest import ROOT
from .made_up_records import CASE as TRAINED
from .made_up_records import record_of
from .saved_records import save

MODELS = catalog.load_catalog(ROOT).models
CODE, PACKAGES = {"version": "1", "computation": "c" * 64}, {"numpy": "2.3.4", "pytorch": "1"}
CASE = {**TRAINED, "model": "bert_base", "mode": "inference", "sequence_length": 128}


def changed(record: dict[str, Any], **other: Any) -> dict[str, Any]:
    """Return a record with changed fields.
    ``other``: ``code``, ``packages``, ``variables``, ``hardware``, ``system`` (of its environment),
    ``given`` (by a variant), ``dropout``, ``own_model``."""
    where = {**record["environment"], "code": CODE}
    where |= {key: other[key] for key in ("code", "packages", "variables") if key in other}
    where["hardware"] = {**where["hardware"], **other.get("hardware", {})}
    where["system"] = {**where["system"], **other.get("system", {})}
    settings = {**record["settings"], "variables": other.get("given", {})}
    settings |= {"dropout": 0.1} if other.get("dropout") else {}
    own = {key: other[key] for key in ("own_model",) if key in other}
    return {**record, "environment": where, "settings": settings, **own}


def compared(case: dict[str, Any], scale: str = verifications.FULL) -> dict[str, Any]:
    """Return the fields that turn the record of a run into one of a verification."""
    parameters = {"mode": case["mode"], "reference": "/reference", "scale": scale}
    nothing = {"metrics": {}, "samples": None, "window_seconds": None}
    return {"kind": verifications.KIND, "parameters": parameters, **nothing}


def run_in(folder: Path, case: dict[str, Any], **other: Any) -> Run:
    record = changed(record_of(random.Random(1), case, 1), **other)
    path = save(folder, f"runs/{len(list(folder.rglob('*.json')))}/r1.json", record)
    (run,) = record_sets.load(path.parent).runs
    return run


def verification_in(folder: Path, case: dict[str, Any], error: float = 1e-6, **other: Any) -> None:
    """Write a verification record with this error of the outputs.
    ``dropout``: verify dropout; ``refused``: reason for having nothing to compare; ``ended``:
    status and reason; ``scale``: scale of the model; ``labels``: hard or soft; ``quantity``: by
    default the outputs."""
    record = changed(record_of(random.Random(1), case, 1), **other)
    quantity = "dropout" if other.get("dropout") else other.get("quantity", "outputs")
    ranks = [
        {
            **{key: rank[key] for key in ("rank", "host", "status", "reason")},
            "matmul_dtypes": {precisions.known()[case["precision"]].dtypes[0]: 9},
            "verification": [{"quantity": quantity, "error": error, "where": ""}],
        }
        for rank in record["ranks"]
    ]
    record |= {**compared(case, other.get("scale", verifications.FULL)), "ranks": ranks}
    record["parameters"]["labels"] = other.get("labels", verifications.HARD)
    record |= {"started": other.get("started", "2030-01-01T00:00:00.000Z")}
    if "refused" in other:
        other["ended"] = ("unsupported", other["refused"])
    if "ended" in other:
        record |= {"status": other["ended"][0], "reason": other["ended"][1], "ranks": []}
    save(folder, f"verification/{len(list(folder.rglob('*.json')))}.json", record)


def flag_of(folder: Path, run: Run) -> tuple[str, str] | None:
    verification_results, problems = verifications.load(folder / "verification")
    assert not problems
    return verified.VerificationFlags(verification_results, MODELS).flag(run)
