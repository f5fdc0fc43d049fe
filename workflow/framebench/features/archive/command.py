"""``framebench archive``: a result set as one zip file."""

from __future__ import annotations

import hashlib
import io
import sys
from contextlib import redirect_stdout

from core import bounded

from ...commands.reporting import make_report
from ...files import temporary
from ...records import read_files, record_sets
from . import contents


def make_archive(
    source: contents.ArchiveSource, redacts: bool = False, figures_only: bool = False
) -> None:
    """Write ``archives/NAME.zip`` below the results folder.

    It has records, suite and environments, and tables and report made anew from these records; with
    ``redacts`` only what may go, with ``figures_only`` without texts of frameworks. Raises
    ConfigError for a folder without records, or of another suite."""
    contents.check(source)
    with temporary.folder() as folder:
        handed_on = None
        if redacts or figures_only:
            handed_on = contents.handed_on(source, texts=not figures_only)
        for problem in contents.gather(source, folder, handed_on):
            print(f"left out: {problem.origin}: {problem.message}", file=sys.stderr)
        with redirect_stdout(io.StringIO()):
            make_report(folder / "runs", folder)
        runs = record_sets.load(folder / "runs").runs
        digest = hashlib.sha256(bounded.read_bytes(folder / read_files.RUNS)).hexdigest()[:12]
        suite = handed_on.text(source.suite.stem) if handed_on else source.suite.stem
        ending = "-figures" if figures_only else "-redacted" if redacts else ""
        target = source.results / "archives" / f"{suite}-{digest}{ending}.zip"
        contents.pack(folder, target)
    print(f"archive: {target} ({target.stat().st_size / 1e6:.1f} MB, {len(runs)} runs)")
