"""Calls of pip and uv with the caller's settings; pip's are translated for uv. Settings of where
packages are and how they are fetched are followed; settings that choose packages or where they go
are not. Standard library only: ``bootstrap`` uses this module before anything is installed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Locations of packages: pip's setting, uv's variable, and separator. Variables instead of
#: arguments: an address may hold a password, and any user of the machine can read a command line.
PLACES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
}
#: Settings of pip that are followed.
_PIP = {
    *(*PLACES, "no-index", "cert", "client-cert", "trusted-host", "proxy", "keyring-provider"),
    *("timeout", "default-timeout", "retries", "cache-dir", "no-cache-dir"),
    *("use-feature", "use-deprecated"),  # sources of certificates
}
#: Variables of uv that are followed.
_UV = re.compile(
    "UV_((DEFAULT_|EXTRA_|NO_)?INDEX(_URL|_STRATEGY|_.*_USERNAME|_.*_PASSWORD)?|FIND_LINKS|OFFLINE"
    "|INSECURE_HOST|NATIVE_TLS|SYSTEM_CERTS|KEYRING_PROVIDER|CREDENTIALS_DIR|HTTP_.*"
    "|REQUEST_TIMEOUT|CONCURRENT_.*|(NO_)?CACHE(_DIR)?|LINK_MODE|CONFIG_FILE|NO_CONFIG"
    "|PYTHON_INSTALL_.*|PYTHON_DOWNLOADS.*)"
)

_PR_SET_PDEATHSIG = 1
#: Seconds in which uv and its children must use LEAST_CPU seconds of CPU time. Files say less:
#: index pages are kept in memory, and ``--quiet`` prints nothing. On a core of a server, a link of
#: 14 kB/s takes 0.12 s in this time, and an index that sends a byte a second 0.03 s.
PATIENCE, LEAST_CPU = 120.0, 0.1


def executable(python: str = sys.executable) -> str:
    """Return the path of uv next to an interpreter."""
    return str(Path(python).parent / "uv")


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    keep: Sequence[int] = (),
    capture: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run uv to its end. If this process is killed, the kernel kills uv, too.

    ``environment``: variables, by default those of :func:`variables`; ``keep``: files to keep open;
    ``capture``: capture the output. Raises TimeoutError if uv makes no progress."""
    prctl = ctypes.CDLL(None).prctl
    with subprocess.Popen(
        [executable(), *arguments],
        env=variables() if environment is None else environment,
        pass_fds=keep,
        stdout=subprocess.PIPE if capture else None,
        stderr=subprocess.PIPE if capture else None,
        encoding="utf-8",
        errors="replace",
        preexec_fn=lambda: prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0),
    ) as process:
        before = 0.0
        try:
            while True:
                try:
                    output = process.communicate(timeout=PATIENCE)
                    return subprocess.CompletedProcess(process.args, process.returncode, *output)
                except subprocess.TimeoutExpired:
                    used = _cpu_seconds(process.pid)
                if used - before < LEAST_CPU:
                    raise TimeoutError(
                        f"uv {arguments[0]}: found no progress in {PATIENCE:g} s; allowed: a "
                        "package index that answers"
                    )
                before = used
        finally:
            process.kill()  # does nothing to a process that has ended


def _cpu_seconds(process: int) -> float:
    """Return the CPU seconds of a process and its descendants, such as compilers."""
    folder, total = Path(f"/proc/{process}"), 0.0
    with contextlib.suppress(OSError):  # it has ended
        fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        total = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        for listed in folder.glob("task/*/children"):
            total += sum(map(_cpu_seconds, map(int, listed.read_text(encoding="utf-8").split())))
    return total


def arguments(settings: Mapping[str, str], any_index: bool = True) -> list[str]:
    """Return arguments of ``uv pip install`` for pip's ``settings``.
    ``any_index``: take a version from any index that has it, as pip does, because a mirror may lack
    versions. Unsafe without hashes, which detect a foreign package of the same name: otherwise uv
    uses only the first index that has the package, unless UV_INDEX_STRATEGY says otherwise."""
    results = ["--index-strategy", "unsafe-best-match"] if any_index else []
    for host in settings.get("trusted-host", "").split():
        results += ["--allow-insecure-host", host]
    is_local = settings.get("no-index", "").lower() in ("1", "true", "yes", "on")
    return [*results, "--no-index"] if is_local else results


def variables(settings: Mapping[str, str] = {}, indexes: Sequence[str] = ()) -> dict[str, str]:
    """Return uv's environment variables: the caller's, without those that change which packages uv
    installs where, and with the indexes and certificates of pip's ``settings``.
    ``indexes``: further package indexes."""
    results = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("UV_") or _UV.fullmatch(name)
    }
    for key, (name, between) in PLACES.items():
        if key in settings:
            results[name] = between.join(settings[key].split())
    if settings.get("cert"):
        results["SSL_CERT_FILE"] = settings["cert"]
    if indexes:
        results["UV_INDEX"] = " ".join((*indexes, *results.get("UV_INDEX", "").split()))
    return results


def pip_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Return pip's environment, in which only ``settings`` affect pip."""
    kept = {f"PIP_{key.upper().replace('-', '_')}": value for key, value in settings.items()}
    others = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    quiet = {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return {**others, **kept, **quiet}


def pip_settings(python: str = sys.executable) -> dict[str, str]:
    """Return pip's merged settings, as far as they are followed, such as ``{"find-links": "/w"}``;
    PIP_* variables win over files."""
    names = {f"PIP_{key.upper().replace('-', '_')}" for key in _PIP} | {"PIP_CONFIG_FILE"}
    listed = subprocess.run(
        [python, "-m", "pip", "config", "list"],
        capture_output=True,
        check=True,
        encoding="utf-8",
        errors="replace",
        env={k: v for k, v in os.environ.items() if not k.startswith("PIP_") or k in names},
    )
    settings: dict[str, str] = {}
    # ``global.index-url='..'`` of files, ``:env:.cert='..'`` of variables
    for line in sorted(listed.stdout.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = value.strip().strip("'\"").replace("\\n", " ")
    return {key: value for key, value in settings.items() if key in _PIP}
