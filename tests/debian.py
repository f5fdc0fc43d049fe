"""Installation of Debian packages that only tests need."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess


def install_debian_packages(*names: str) -> str:
    """Install Debian packages if possible; else return a message that says how."""
    how = f"apt-get install {' '.join(names)}"
    if shutil.which("apt-get") is None:
        return f"this is no Debian: install what its packages {' '.join(names)} hold"
    if os.geteuid() != 0:
        return f"Debian packages are missing: run (as root) {how}"
    folder = os.open("/var/lib/dpkg", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # tests run in several processes, and apt does not wait
        return _install(names, how)
    finally:
        os.close(folder)


def _install(names: tuple[str, ...], how: str) -> str:
    subprocess.run(["apt-get", "update", "-q"], check=False, capture_output=True)
    ran = subprocess.run(
        ["apt-get", "install", "-q", "-y", "--no-install-recommends", *names],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    )
    return "" if ran.returncode == 0 else f"{how} failed: {ran.stderr[-500:]}"
