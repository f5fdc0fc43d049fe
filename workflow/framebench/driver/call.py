"""Purpose of a Snakemake call: whether it may start jobs, and whether these may measure."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, ParamSpec

from core.text import printable

from ..config.validation import ConfigError
from ..config.yaml_files import configuration_file, read_mapping
from .internals import KNOWN_BELOW, KNOWN_FROM, VERSION, Snakemake, await_log

_Given = ParamSpec("_Given")

#: Targets that measure nothing.
MEASURE_NOTHING = frozenset({"plan", "report"})


@dataclass(frozen=True)
class Invocation:
    """Purpose of a call.

    ``starts``: jobs may start; ``measures``: jobs may measure; ``looks``: interpreters of runs are
    checked; ``plans``: existing records are read; ``proves``: verification is a target; ``shows``:
    files and their rules are shown, including those of existing records; ``named``: targets that
    measure nothing.
    """

    starts: bool
    measures: bool
    looks: bool
    plans: bool
    proves: bool
    shows: bool
    named: Sequence[str]

    @staticmethod
    def from_snakemake(snakemake: Snakemake) -> Invocation:
        """Return the purpose of this call. Ends the call for unsupported options."""
        words = snakemake.words
        if "--containerize" in words:
            refuse(
                "--containerize: found; allowed: an image of your own for each framework "
                "(--sdm apptainer, images in config/README.md), or --sdm conda: which environment "
                "a run needs is decided run by run, and no single image has them all"
            )
        if "--conda-cleanup-envs" in words:
            refuse(
                "--conda-cleanup-envs: found; allowed: removing .snakemake/conda by hand while "
                "nothing runs: environments are chosen run by run, and Snakemake would take those "
                "in use for left over"
            )
        named = words & MEASURE_NOTHING
        visible = snakemake.is_main_process and not snakemake.starts_nothing
        starts = visible and not snakemake.is_dry_run
        return Invocation(
            starts=starts,
            measures=starts and not named,
            looks=visible and not named - {"plan"},
            # Other targets next to one that measures nothing are refused (check_measurement).
            plans=not (starts and named == {"report"}),
            proves="verification" in words,
            shows=snakemake.shows_files,
            named=sorted(named),
        )

    def end_unread(self) -> None:
        """End a call that measures nothing by SIGPIPE when its output is closed (``plan | head``).

        Otherwise Snakemake's printing thread would end alone, and Snakemake would wait for it.
        """
        if not self.measures and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)

    def check_measurement(self) -> None:
        """End the call if it names a target that measures nothing next to targets that measure.

        A call with such a target does not lock the results."""
        if self.starts and not self.measures:
            refuse(
                f"found among the targets: {', '.join(self.named)}; allowed in a call that "
                "measures: other targets"
            )


def refuse(error: object) -> NoReturn:
    """End the call with one message; an exception would get ten lines from Snakemake."""
    warn(f"framebench: {error}")
    raise SystemExit(1)


def warn(text: str) -> None:
    """Print a line to stderr, after Snakemake's earlier output."""
    await_log()
    print(printable(text), file=sys.stderr, flush=True)


def checked(check: Callable[_Given, object], *given: _Given.args, **named: _Given.kwargs) -> None:
    """Run a check of the configuration; end the call with its ConfigError."""
    try:
        check(*given, **named)
    except ConfigError as error:
        refuse(error)


def config_file(snakemake: Snakemake) -> str:
    """Return the configuration file of the working directory, or the project's.

    Ends the call for an unsupported Snakemake, and for a configuration file that cannot be read.
    Snakemake's own message names neither file nor line.
    """
    if unknown := snakemake.why_unknown():
        refuse(
            f"Snakemake: found version {VERSION}: {unknown}; allowed: {KNOWN_FROM} or "
            f"newer, below {KNOWN_BELOW}, such as the one that ./bootstrap installs"
        )
    file = configuration_file()
    for path in (file, *snakemake.config_files):
        if path.suffix in (".yaml", ".yml"):
            checked(read_mapping, path)
    return str(file)
