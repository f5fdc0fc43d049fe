"""Loading of a set of records as judged cases."""

from __future__ import annotations

import sys

from .. import PROJECT
from ..config import catalog
from ..config.values import RecordSource
from ..records import record_sets, verifications, verified
from . import grouping
from .results import CaseResults


def grouped(source: RecordSource) -> CaseResults:
    """Return the judged cases of a set of records.

    Prints what is ignored to stderr. Raises RecordsError for a set without runs."""
    record_set = record_sets.load(source.path)
    verification_results, problems = verifications.load(verifications.folder_for(source.path))
    for problem in (*record_set.problems, *problems):
        print(f"ignored: {source}: {problem.origin}: {problem.message}", file=sys.stderr)
    if not record_set.runs:
        raise record_sets.RecordsError(f"{source}: holds no record of a run")
    runs = record_sets.of_variant(record_set, source.variant) if source.variant else record_set.runs
    return grouping.group(
        runs, verified.VerificationFlags(verification_results, catalog.load_catalog(PROJECT).models)
    )
