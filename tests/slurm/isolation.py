"""Isolation of processes like a separate machine: network, host name, and process list.

Linux namespaces vanish with their last process, so nothing needs to be cleaned up; only the bridge
that joins them stays in the host's network until it is deleted.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

#: Search path including SLURM's programs, which are not on every user's PATH.
SEARCHED = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])

UNSHARE = ("unshare", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount", "--mount-proc")

# Becomes a node and starts its program. $1: host name, $2: the cluster's folder, $3: own address;
# then the program. It reports that the namespaces exist, and waits until the host has connected the
# network. The shell stays as the process with which all others end and which adopts orphans.
# SLURM's configuration is at its usual path, because not everything in a job keeps SLURM_CONF. The
# file system that shows the network must be mounted anew; the host's mounts in it are kept.
RUN = """\
set -e
echo "$1" > /proc/sys/kernel/hostname
mount --bind "$2/hosts" /etc/hosts
mount --bind "$2/etc" /etc/slurm
mkdir -p "$2/locks" "$2/locks-$1"
mount --bind "$2/locks-$1" "$2/locks"
mount --rbind /sys/fs/cgroup "$2/empty"
mount -t sysfs sysfs /sys
mount --move "$2/empty" /sys/fs/cgroup
ip link set lo up
echo ready
read -r plugged_in
ip address add "$3"/24 dev eth0
ip link set eth0 up
shift 3
"$@" < /dev/null > /dev/null &
wait
"""


def ip(*arguments: str) -> None:
    """Run ``ip``. Raises subprocess.CalledProcessError."""
    program = str(shutil.which("ip", path=SEARCHED))
    subprocess.run([program, *arguments], check=True, capture_output=True, text=True)


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
        # the kernel may have removed the link with its namespace
        with contextlib.suppress(subprocess.CalledProcessError):
            ip("link", "delete", link)
