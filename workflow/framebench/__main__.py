"""``python workflow/framebench COMMAND``: the steps of the workflow, each also usable by hand."""

import sys
from pathlib import Path

# Run as a folder, Python puts the folder itself on sys.path, where our modules would hide the
# standard library's of the same name (statistics).
sys.path[0] = str(Path(__file__).parent.parent)

from framebench.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
