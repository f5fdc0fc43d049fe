"""Files that a run leaves: a record that appears complete or not at all, and its log."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil


class OutputError(Exception):
    """Raised where the output cannot be written; the message has the reason and what to do."""


def explain(path: str, error: OSError) -> str:
    """Return an error that names ``path``, the reason and a remedy."""
    reason = error.strerror or error
    return f"cannot write {path}: {reason}; free some space or choose another --output"


def measured_already(output: str) -> str:
    """Return the message for an existing record, which is never replaced."""
    return f"already measured: {output}, whatever its status is; another --output runs it again"


def partial(output: str, run: str) -> str:
    """Return the temporary path of ``run`` next to its ``output``."""
    folder, name = os.path.split(output)
    # The name does not end in .json, so that the file is not taken for a record.
    return os.path.join(folder, f".{name}.{run}.part")


def prepare(output: str, log: str) -> None:
    """Make the folder of the output and an empty log, and remove the files of killed runs next to
    the output. Raises :class:`OutputError` where one of them cannot be written."""
    path = output
    try:
        os.makedirs(os.path.dirname(output), exist_ok=True)
        for left in glob.glob(partial(glob.escape(output), "*")):
            shutil.rmtree(left) if os.path.isdir(left) else os.unlink(left)
        tried = partial(output, "tried")
        with open(tried, "xb"):
            os.unlink(tried)
        path = log
        os.makedirs(os.path.dirname(log), exist_ok=True)
        with open(log, "wb"):
            pass
    except OSError as error:
        raise OutputError(explain(path, error)) from error


def write(output: str, run: str, content: bytes) -> None:
    """Write ``output``, all or nothing. Raises :class:`OutputError`, also where it has appeared
    meanwhile."""
    path = partial(output, run)
    try:
        with open(path, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _publish(path, output)
    except OSError as error:
        raise OutputError(explain(output, error)) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _publish(path: str, output: str) -> None:
    """Give the file its name without replacing another.

    Without hard links, an output that existed before is kept, but not one that appears at the same
    moment."""
    try:
        os.link(path, output)
    except FileExistsError:
        # Some network file systems report this error for a link that they have just made.
        if os.stat(path).st_nlink < 2:
            raise OutputError(measured_already(output)) from None
    except OSError:
        if os.path.lexists(output):
            raise OutputError(measured_already(output)) from None
        os.replace(path, output)
