"""``framebench environment --file F --marker M [-- COMMAND ..]``: a venv, built where it is
missing; then the command in the place of this process.

So a run brings its environment to the node that it is on: whichever run is the first there builds
it, the others find it.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shlex
import subprocess
import sys
from pathlib import Path

from .attempts import end_with_parent, run


def main(arguments: list[str]) -> int:
    """The exit status: 1 with one clear message on stderr where there is no environment."""
    parser = argparse.ArgumentParser(prog="framebench environment", description=__doc__)
    parser.add_argument("--file", type=Path, required=True, help="envs/NAME.yaml")
    parser.add_argument("--marker", type=Path, required=True, help="file that says it is built")
    parser.add_argument(
        "--start-nodes",
        metavar="COMMAND",
        help="what starts a command once on each node of a run that has several: all build it",
    )
    split = arguments.index("--") if "--" in arguments else len(arguments)
    given = parser.parse_args(arguments[:split])
    command = arguments[split + 1 :]
    end_with_parent()
    status = 0
    if given.start_nodes:
        status = _build_on_nodes(given.start_nodes, given.file, given.marker)
    elif not given.marker.exists():
        status = _build(given.file, given.marker)
    if status:
        return status
    if command:
        os.execvp(command[0], command)
    return 0


def _build_on_nodes(start: str, file: Path, marker: Path) -> int:
    own = [sys.executable, str(Path(__file__).parent), "environment"]
    caught: list[int] = []
    places = ["--file", str(file), "--marker", str(marker)]
    status = run([*shlex.split(start), *own, *places], caught)
    return 128 + caught[0] if caught else status


def _build(file: Path, marker: Path) -> int:
    # Not needed, and not loaded, where there is nothing to build.
    from .validation import ConfigError

    try:
        ensure(file, marker)
    except ConfigError as error:
        print(f"framebench: {error}", file=sys.stderr)
    except subprocess.CalledProcessError as error:
        print(f"framebench: {error.cmd[0]!s} ended with {error.returncode}", file=sys.stderr)
    except OSError as error:
        print(f"framebench: {marker.parent}: cannot be built: {error}", file=sys.stderr)
    else:
        return 0
    return 1


def ensure(file: Path, marker: Path) -> None:
    """Build the environment of ``file`` around ``marker``, unless another process does so first.
    Raises as :func:`environments.build` does, and OSError."""
    from . import environments

    marker.parent.parent.mkdir(parents=True, exist_ok=True)
    with marker.parent.with_name(f"{marker.parent.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not marker.exists():
            environments.build(file, marker)
