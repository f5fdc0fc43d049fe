"""``framebench gpu-check``: tries each way to use the GPUs once, and archives the results."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from core import programs
from core.case import Case

from ... import PROJECT
from ...config import catalog
from ...config.statuses import OK
from ...files.whole_files import write_whole
from ...machine import local
from ...plan import plan_text
from ...plan.plan import Plan
from ...plan.planning import make_plan
from ...records import record_sets, verifications, verified
from ...runs import snakemake_calls
from . import contents

SUITE = PROJECT / "config" / "suites" / "gpu_check.yaml"
SHORT = SUITE.with_stem("gpu_check_short")
TEMPLATE = ".github/ISSUE_TEMPLATE/gpu_check.md"
WORKS, FAILS, NOT_TRIED = "works", "fails", "not tried"
#: Characters of a reason that are shown; the report has all.
_LONGEST = 200
#: WORKS, FAILS or NOT_TRIED, and the reason unless the case works.
Outcome = tuple[str, str]


def check(suite: Path, frameworks: str, results: Path, config: Sequence[str]) -> None:
    """Measure a suite, print what works, and write the redacted archive, also after Ctrl-C.

    ``frameworks``: as in the configuration; ``config``: further arguments of ``--config``. Raises
    ConfigError if the GPUs cannot be used, and after the table if nothing was measured."""
    known = catalog.project_catalog()
    asked = ["accelerator=cuda", *config, f"frameworks={frameworks}"]
    own = [f"suite={suite}", f"results={results}"]
    settings, _ = snakemake_calls.settings_of([*asked, *own], known, {})
    plan = make_plan(settings, known, local.detect(), None)
    try:
        snakemake_calls.measure(suite, results, asked, [])
    except (snakemake_calls.MeasuringFailed, KeyboardInterrupt) as error:
        print(f"framebench: {error or 'interrupted'}", file=sys.stderr)
    for name, command_line in contents.GPU_REPORTS.items():
        try:
            ended = programs.run(command_line, timeout=local.SMI_SECONDS)
            text = ended.stdout + ended.stderr
        except (OSError, subprocess.TimeoutExpired) as error:
            text = f"{' '.join(command_line)}: {error}\n"
        write_whole(results / name, text)
    text = "\n".join(lines(outcomes(plan, results, known), known))
    write_whole(results / contents.GPU_PATHS, f"{text}\n")
    print(f"\n{text}\n")
    contents.make_archive(results, redacts=True)
    print(f"Look at it, then send it with the form in {TEMPLATE}")


def outcomes(plan: Plan, results: Path, known: catalog.Catalog) -> dict[Case, Outcome]:
    """Return the outcome of each case of a plan. A case whose verification failed counts as
    failed."""
    record_set = record_sets.load_results(results)
    runs = {str(Path(run.origin).parent): run for run in (record_set.runs if record_set else ())}
    verification_results, _ = verifications.load(verifications.folder_for(results / "runs"))
    flags = verified.VerificationFlags(verification_results, known.models)
    made: dict[Case, Outcome] = {}
    for case, folder in plan.folders.items():
        run = runs.get(folder)
        if run is None:
            made[case] = (NOT_TRIED, "no record was written: see above and the logs")
        elif run.status != OK:
            made[case] = (FAILS, f"{run.status}: {run.reason}")
        elif (flag := flags.flag(run)) and (why := verified.why_excluded([flag])):
            made[case] = (FAILS, f"verification: {why}")
        else:
            made[case] = (WORKS, "")
    return made | {left_out.case: (NOT_TRIED, left_out.reason) for left_out in plan.left_out}


def lines(outcomes: Mapping[Case, Outcome], known: catalog.Catalog) -> list[str]:
    """Return a table with a row for each path and a column for each framework, then the reasons."""
    cells: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    reasons: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for case, (word, reason) in outcomes.items():
        path = _path(case, known)
        cells[path][case.framework].append(word)
        if reason:
            reasons[word, case.framework, reason].append(path)
    frameworks = sorted({case.framework for case in outcomes})
    rows = [["path", *frameworks]]
    words = (FAILS, NOT_TRIED, WORKS, "")  # worst first: a cell shows the worst outcome
    rows += [
        [path, *(min(row[name] or [""], key=words.index) for name in frameworks)]
        for path, row in cells.items()
    ]
    explained = [""] if reasons else []
    for (word, framework, reason), paths in sorted(reasons.items()):
        short = textwrap.shorten(reason, _LONGEST, placeholder=" ..")
        more = f", {len(paths) - 1} more" if len(paths) > 1 else ""
        explained.append(f"{framework} {word}: {short} ({paths[0]}{more})")
    return [*plan_text.table(rows), *explained]


def _path(case: Case, known: catalog.Catalog) -> str:
    """Return the path that a case tries, in words that are the same for all frameworks."""
    usual, native = (known.compiler(case.framework, word) for word in ("default", "native"))
    parts = [case.model, case.mode, case.precision, case.topology]
    if case.compiler != usual:
        parts.append("compiled" if case.compiler == native else case.compiler)
    parts += [axis.text(getattr(case, axis.name)) for axis in case.differing()]
    return " ".join(filter(None, parts))
