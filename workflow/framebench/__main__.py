"""``python workflow/framebench COMMAND``: the steps of the workflow, each also usable by hand."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

# A site's PYTHONPATH may belong to another Python or hide our packages; other PYTHON variables
# change how Python runs.
_STEERED = any(name.startswith("PYTHON") for name in os.environ)
if _STEERED and not sys.flags.isolated and __name__ == "__main__":
    os.execv(sys.executable, [sys.executable, "-I", *sys.argv])

# Run as a folder, Python puts the folder itself on sys.path, where our packages would hide the
# standard library's modules of the same name (statistics).
_WORKFLOW = Path(__file__).absolute().parents[1]
sys.path[:1] = [str(_WORKFLOW), str(_WORKFLOW.parent / "scripts")]


def main(arguments: list[str]) -> int:
    """Run a command and return its exit status."""
    from core.text import accept_any_text

    accept_any_text()
    # This command runs during benchmarks, so it does not import other commands' libraries.
    if arguments[:1] == ["environment"]:
        from framebench.environments import building

        return building.main(arguments[1:])
    from core import programs

    programs.protect()
    from framebench import cli

    # Nearly all objects live to the end; garbage collection takes a tenth of a report's time.
    gc.set_threshold(50_000, 50, 50)
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
