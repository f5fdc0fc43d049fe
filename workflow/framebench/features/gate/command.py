"""``framebench gate``: measures two sides in pairs, decides, and says so in a note, in JUnit's XML,
in a table and by its exit status, which is 1 for a regression and for nothing else."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable

from ...config import catalog
from ...config.validation import ConfigError
from ...config.values import RecordSource
from ...files.whole_files import write_together
from ...records.run import RecordsError
from ...runs import snakemake_calls
from ...runs.snakemake_calls import MeasuringFailed, settings_of
from ...tables import frames
from ...tables.results import CaseResults, grouped
from . import decisions, sides, summary
from .measuring import Measuring
from .sides import MeasuredSide

NOTE, JUNIT = "gate.md", "gate.xml"
#: Configuration keys that the command sets itself, and the options to use instead.
RESERVED = {"results": "--results"}


def gate(options: argparse.Namespace) -> int:
    """Run the gate and return the exit status; any error is "broken", never a regression."""

    def note(message: str) -> None:
        files = {
            options.results / NOTE: summary.note(_sides(options), decisions.FAULTY, [message]),
            options.results / JUNIT: summary.broken_junit(message),
        }
        try:
            write_together(files)
        except OSError as error:
            print(f"framebench: cannot write: {error.filename}: {error.strerror}", file=sys.stderr)

    return status_of(run_gate, options, note)


def status_of(
    act: Callable[[argparse.Namespace], int],
    options: argparse.Namespace,
    note: Callable[[str], None] = lambda message: None,
) -> int:
    """Run a command that measures and return its exit status; for any error FAULTY, after giving
    its message to ``note``."""
    try:
        return act(options)
    except KeyboardInterrupt:
        print(f"framebench: {snakemake_calls.GOES_ON}", file=sys.stderr)
        return snakemake_calls.INTERRUPTED
    except (ConfigError, RecordsError, MeasuringFailed) as error:
        message = str(error)
    except OSError as error:
        message = f"{error.filename or options.results}: {error.strerror or error}"
    except Exception as error:
        traceback.print_exc()
        message = f"{type(error).__name__}: {error} (an error of Framebench's own)"
    print(f"framebench: broken: {message}", file=sys.stderr)
    note(message)
    return decisions.FAULTY


def run_gate(options: argparse.Namespace) -> int:
    """Measure or read both sides, decide about every case and return the exit status."""
    known = catalog.project_catalog()
    settings, suite = settings_of(options.config, known, RESERVED)
    base, candidate = sides.load_sides(options.base, options.candidate, suite.get("variants") or {})
    found: tuple[CaseResults, ...]
    if isinstance(base, MeasuredSide) and isinstance(candidate, MeasuredSide):
        until_decided = {"margin": options.fail_on, "at_most": options.pairs}
        models = [own_model.name for own_model in settings.own_models]
        plan = Measuring(
            suite, until_decided, options.config, options.words, options.results, models
        )
        found, is_measured = plan.measure(base, candidate), True
    else:
        assert isinstance(base, RecordSource), "both are of one kind"
        assert isinstance(candidate, RecordSource), "both are of one kind"
        found, is_measured = (grouped(base), grouped(candidate)), False
    base_cases, candidate_cases = found
    decided = decisions.decide(base_cases, candidate_cases, options.fail_on, at_looks=is_measured)
    status = decisions.status(decided)
    frame = decisions.frame(decided, options.fail_on)
    files = frames.files({decisions.TABLE: frame}, options.results / "tables")
    files[options.results / JUNIT] = summary.junit(decided)
    note = summary.note(_sides(options), status, summary.lines(decided, status))
    files[options.results / NOTE] = note
    write_together(files)
    print(f"\n{note}\nnote:  {options.results / NOTE}\ntable: {options.results}/tables/gate.csv")
    return status


def _sides(options: argparse.Namespace) -> str:
    return f"{options.candidate} against {options.base}, margin {options.fail_on:.1%}"
