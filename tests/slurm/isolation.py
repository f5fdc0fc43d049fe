"""What makes processes a machine of their own: a network, a host name, and no others to be seen.

Namespaces of Linux. They are gone with their last process, and so leave nothing to be cleaned up;
only the bridge that joins them stays in the host's network until it is deleted.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

#: The programs of SLURM are not on the path of everybody.
SEARCHED = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])

UNSHARE = ("unshare", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount", "--mount-proc")

# $1: host name, $2: the cluster's folder. SLURM's configuration is where a cluster has it, because
# not all that runs in a job keeps SLURM_CONF. The network shows in a file system that must be
# mounted anew; what the host has mounted in it is kept.
BECOME = """\
set -e
echo "$1" > /proc/sys/kernel/hostname
mount --bind "$2/hosts" /etc/hosts
mount --bind "$2/etc" /etc/slurm
mount --rbind /sys/fs/cgroup "$2/empty"
mount -t sysfs sysfs /sys
mount --move "$2/empty" /sys/fs/cgroup
ip link set lo up
"""

# Says that the namespaces are there, and waits until the host has plugged in the network.
# $3: own address; then the program. The shell stays, as the process that all others end with and
# that takes in orphans.
RUN = """\
echo ready
read -r plugged_in
ip address add "$3"/24 dev eth0
ip link set eth0 up
shift 3
"$@" < /dev/null > /dev/null &
wait
"""


def ip(*arguments: str) -> None:
    """Raises subprocess.CalledProcessError."""
    program = str(shutil.which("ip", path=SEARCHED))
    subprocess.run([program, *arguments], check=True, capture_output=True, text=True)


def why_not(bridge: str, folder: Path) -> str:
    """Why this process cannot isolate others; empty where it can."""
    if os.geteuid() != 0:
        return "only root can make network namespaces and a bridge"
    try:
        ip("link", "add", bridge, "type", "bridge")
        ip("link", "delete", bridge)
        subprocess.run(
            [*UNSHARE, "sh", "-c", BECOME, "sh", "tried", str(folder)],
            check=True,
            capture_output=True,
            text=True,
            env={"PATH": SEARCHED},
        )
    except subprocess.CalledProcessError as error:
        return f"{error.cmd[0]} failed: {error.stderr.strip()}"
    return ""


def make_bridge(bridge: str, address: str) -> None:
    ip("link", "add", bridge, "type", "bridge")
    ip("address", "add", f"{address}/24", "dev", bridge)
    ip("link", "set", bridge, "up")


def plug_in(bridge: str, link: str, process: int) -> None:
    """Join the namespace of ``process`` to the bridge; it sees the interface eth0."""
    ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(process))
    ip("link", "set", link, "master", bridge, "up")


def links(prefix: str) -> list[str]:
    return [path.name for path in Path("/sys/class/net").glob(f"{prefix}*")]


def delete_links(prefix: str) -> None:
    for link in links(prefix):
        with contextlib.suppress(subprocess.CalledProcessError):  # it goes with its namespace, too
            ip("link", "delete", link)
