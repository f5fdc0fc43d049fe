"""Reserve disk space for the record before measuring, so that a full disk costs a message, not a
run."""

from __future__ import annotations

import contextlib
import errno
import os


class ReservationError(Exception):
    """Raised where the output cannot be written; the message has the reason and what to do."""


_WHAT_TO_DO = {
    errno.ENOSPC: "the disk is full: free some space or choose another --output",
    errno.EDQUOT: "the quota is used up: free some space or choose another --output",
    errno.EFBIG: "files may not grow that large here: raise `ulimit -f`",
    errno.EROFS: "the file system is read-only: choose another --output",
    errno.EACCES: "no permission to write there: choose another --output",
    errno.EPERM: "no permission to write there: choose another --output",
    errno.ENOTDIR: "a part of the path is a file: choose another --output",
    errno.EEXIST: "a part of the path is a file: choose another --output",
}
#: Error numbers of file systems without hard links.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def explain(path: str, error: OSError) -> str:
    """Return the error with ``path`` and what to do about it."""
    advice = _WHAT_TO_DO.get(error.errno or 0, "choose another --output")
    return f"cannot write {path}: {error.strerror or error}; {advice}"


def measured_already(output: str) -> str:
    """Return the message for an existing record, which is never replaced."""
    return f"already measured: {output}, whatever its status is; another --output runs it again"


def partial(output: str, run: str) -> str:
    """Return the temporary file of ``run`` next to its ``output``."""
    folder, name = os.path.split(output)
    # Not ending in .json, so that nobody takes it for a record.
    return os.path.join(folder, f".{name}.{run}.part")


class Reservation:
    """Temporary file of ``size`` bytes next to ``output``, which :meth:`write` turns into the
    output.

    Raises :class:`ReservationError` where there is no space or no permission."""

    def __init__(self, output: str, run: str, size: int) -> None:
        self.output = output
        self.path = partial(output, run)
        try:
            os.makedirs(os.path.dirname(output), exist_ok=True)
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except OSError as error:
            raise ReservationError(explain(output, error)) from error
        try:
            allocate(self._file, size)
        except OSError as error:
            self.discard()
            raise ReservationError(explain(output, error)) from error

    def write(self, content: bytes) -> None:
        """Write ``content`` into the reserved blocks and make it the output, all or nothing.

        :meth:`discard` removes the temporary name. Raises :class:`ReservationError`, also where the
        output has appeared meanwhile."""
        try:
            os.lseek(self._file, 0, os.SEEK_SET)
            _write_all(self._file, content)
            os.ftruncate(self._file, len(content))
            os.fsync(self._file)
            self._publish()
        except OSError as error:
            raise ReservationError(explain(self.output, error)) from error

    def _publish(self) -> None:
        """Give the file its name without replacing another.

        Without hard links, this excludes an output that existed before, not one of the same
        instant."""
        try:
            os.link(self.path, self.output)
        except FileExistsError:
            # Some network file systems report this for a link that they have just made.
            if os.fstat(self._file).st_nlink < 2:
                raise ReservationError(measured_already(self.output)) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if os.path.lexists(self.output):
                raise ReservationError(measured_already(self.output)) from None
            os.replace(self.path, self.output)

    def discard(self) -> None:
        """Close and remove the temporary file, if it still exists. Never raises."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        with contextlib.suppress(OSError):
            os.unlink(self.path)


def _write_all(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def allocate(file: int, size: int) -> None:
    """Allocate ``size`` bytes on disk for the open ``file``. Raises OSError where there is no
    space."""
    try:
        os.posix_fallocate(file, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        _write_all(file, bytes(size))  # the file system cannot reserve, so fill
        os.fsync(file)


def make_log(path: str) -> None:
    """Make an empty log and its folder. Raises :class:`ReservationError`."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb"):
            pass
    except OSError as error:
        raise ReservationError(explain(path, error)) from error
