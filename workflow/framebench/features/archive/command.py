"""``framebench archive``: a result set as one zip file."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stdout

from core import bounded

from ...commands.reporting import FINGERPRINT, make_report
from ...files import temporary
from ...files.whole_files import write_whole
from ...records import record_sets
from ...records.sidecars import calls
from . import contents


def make_archive(source: contents.ArchiveSource, redacts: bool) -> None:
    """Write ``archives/NAME.zip`` below the results folder.
    It has records, suite, environments and metadata, and tables and report made anew from these
    records. Raises ConfigError for a folder without records, or of another suite."""
    from ...tables import origin
    from . import crate

    contents.check(source)
    with temporary.folder() as folder:
        redaction = contents.redaction_of(source) if redacts else None
        suite = redaction.text(source.suite.stem) if redaction else source.suite.stem
        for problem in contents.gather(source, folder, redaction):
            print(f"left out: {problem.origin}: {problem.message}", file=sys.stderr)
        with redirect_stdout(io.StringIO()):
            make_report(folder / "runs", folder)
        runs = record_sets.load(folder / "runs").runs
        called = calls.load(folder)[0]
        text = crate.metadata(
            folder, suite, origin.describe_origin(runs, called), origin.span(runs)
        )
        write_whole(folder / crate.FILE, text)
        stated = bounded.read_text(folder / "tables" / FINGERPRINT)[:12]
        ending = "-redacted" if redacts else ""
        target = source.results / "archives" / f"{suite}-{stated}{ending}.zip"
        contents.pack(folder, target)
    print(f"archive: {target} ({target.stat().st_size / 1e6:.1f} MB, {len(runs)} runs)")
