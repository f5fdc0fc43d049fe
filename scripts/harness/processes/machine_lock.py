"""Lock of this machine: two runs never share devices, whoever started them.

A run locks the file ``machine`` for itself (:manpage:`flock(2)`). Runs of one GPU each that go side
by side share that lock, and each locks the file of its GPU. Launcher and ranks keep the files
open, so the kernel frees them when the last of these has ended, however the launcher did.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pwd
import stat
import sys
import time
from typing import Iterator, List, Sequence, Tuple

#: Variable that names another folder than the one that all users and calls of a machine share.
FOLDER_VARIABLE = "FRAMEBENCH_LOCKS"
FOLDER = os.environ.get(FOLDER_VARIABLE) or "/tmp/framebench-locks"
_PAUSE_SECONDS = 0.2
_CAUSES = "Runs of one call compete only with --set-threads, --max-threads, or either in a profile"


def owner(output: str) -> str:
    """Return the text that names this process to waiting runs. ``output``: path of its record."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return f"process {os.getpid()} of {user}, which measures {output}"


class MachineLockError(Exception):
    """Raised where no lock can be taken; the message has the reason and a remedy."""


@contextlib.contextmanager
def held(
    owner: str, gpus: Sequence[str] = (), seconds: float = float("inf")
) -> Iterator[Tuple[List[int], int]]:
    """Yield the open files of the lock, and the index of the GPU taken among ``gpus``.

    ``owner``: text for waiting runs. ``gpus``: names of GPUs, of which one is locked; empty to lock
    the whole machine. Waits for at most ``seconds``, and prints once for whom. Raises
    MachineLockError."""
    end, announced = time.monotonic() + seconds, False
    try:
        files, index, holder = _take(gpus, owner)
        while not files:
            if time.monotonic() >= end:
                raise MachineLockError(f"this machine is in use by {holder}")
            if not announced:
                print(f"framebench: waiting for {holder}. {_CAUSES}", file=sys.stderr, flush=True)
            announced = True
            time.sleep(_PAUSE_SECONDS)
            files, index, holder = _take(gpus, owner)
    except OSError as error:
        why = f"{error.filename or FOLDER}: {error.strerror}; allowed: a folder where all users "
        raise MachineLockError(f"{why}may lock files; set {FOLDER_VARIABLE} to its path") from error
    try:
        yield files, index
    finally:
        for file in files:
            os.close(file)


def _take(gpus: Sequence[str], owner: str) -> Tuple[List[int], int, str]:
    """Return the locked files and the index of the GPU, or no files and the holder's name."""
    several = f"runs side by side, the latest of them {owner}"
    how, text = (fcntl.LOCK_SH, several) if gpus else (fcntl.LOCK_EX, owner)
    files, holder = _lock("machine", how, text)
    for index, gpu in enumerate(gpus if files else ()):
        own, holder = _lock(f"gpu-{gpu.replace('/', '-')}", fcntl.LOCK_EX, owner)
        if own:
            return files + own, index, ""
    if gpus and files:
        os.close(files.pop())
    return files, 0, holder


def _lock(name: str, how: int, owner: str) -> Tuple[List[int], str]:
    """Return the locked file, which contains its owner's name, or no file and the holder's name."""
    path = os.path.join(FOLDER, f"{name}.lock")
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    mask = os.umask(0)  # all users may lock the file
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(FOLDER, 0o1777)
        # The second open has no O_CREAT: fs.protected_regular forbids it for files of other users.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666))
        file = os.open(path, flags)
    finally:
        os.umask(mask)
    if not stat.S_ISREG(os.fstat(file).st_mode) or os.fstat(file).st_nlink != 1:
        raise OSError(errno.EINVAL, "is not a regular file of its own", path)
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        note = os.pread(file, 1000, 0).decode("utf-8", "replace")
        os.close(file)
        return [], "".join(filter(str.isprintable, note)) or "another run"
    with contextlib.suppress(OSError):  # the disk may be full
        os.ftruncate(file, 0)
        os.pwrite(file, owner.encode("utf-8", "replace")[:1000], 0)
    return [file], ""
