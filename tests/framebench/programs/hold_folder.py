"""Print a temporary folder and end within it: by a signal, an error, or a status of exit."""

from __future__ import annotations

import signal
import sys

from framebench.files import temporary

with temporary.folder() as folder:
    (folder / "x").write_text("content")
    print(folder, flush=True)
    match sys.argv[1]:
        case "pause":
            signal.pause()
        case "loop":
            while True:
                pass
        case "fail":
            raise ZeroDivisionError
        case status:
            sys.exit(int(status))
