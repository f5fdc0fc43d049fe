"""Configuration files of a test cluster's daemons."""

from __future__ import annotations

import os
import pwd
import secrets
import socket

from .place import NODES, Place

GPUS = 2  # GPUs of each node

SLURM = """\
ClusterName=framebench
SlurmctldHost={host}({address})
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/%n
MailProg=/bin/true
MpiDefault=none
# Options that a job was submitted with, also those that no accounting keeps.
JobSubmitPlugins=logging
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
# Without control groups: not every host gives them away.
ProctrackType=proctrack/linuxproc
# As on nearly every cluster, jobs are confined to their cores.
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU={memory_per_core}
GresTypes=gpu
Licenses=toy-L:8
# A host may have another layout of cores than is said here.
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,bf_interval=2,sched_interval=2
# A node that is dead is noticed within seconds, and comes back by itself; one that was taken out of
# service does not.
ReturnToService=1
SlurmdTimeout=10
SlurmctldTimeout=10
InactiveLimit=30
KillWait=2
MessageTimeout=5
# A job of a dead node ends, unless it was submitted with --requeue.
JobRequeue=0
{nodes}
PartitionName=main Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""

NODE = (
    "NodeName={name} NodeAddr={address} NodeHostname={host} Port={port} State=UNKNOWN "
    "Sockets=1 CoresPerSocket={cores} ThreadsPerCore=1 RealMemory={memory} Gres=gpu:h100:{gpus} "
    "Feature=rack1"
)


def make_folders(place: Place) -> None:
    """Make the folders and files that are needed before nodes are isolated."""
    for name in ("munge", "state", "log", "etc", "empty"):
        (place.folder / name).mkdir()
    for name in NODES:
        (place.folder / "spool" / name).mkdir(parents=True)
        (place.folder / "gpu" / name).mkdir(parents=True)
    (place.folder / "hosts").write_text(hosts(place))


def write(place: Place) -> None:
    folder = place.folder
    (folder / "munge" / "key").write_bytes(secrets.token_bytes(128))
    (folder / "munge" / "key").chmod(0o600)
    gpus = []
    for name in NODES:
        for number in range(GPUS):
            # SLURM accepts only a character device as a GPU.
            (folder / "gpu" / name / f"gpu{number}").symlink_to("/dev/null")
        gpus.append(
            f"NodeName={name} Name=gpu Type=h100 File={folder}/gpu/{name}/gpu[0-{GPUS - 1}]\n"
        )
    (folder / "etc" / "gres.conf").write_text("".join(gpus))
    place.configuration.write_text(slurm_conf(place))


def slurm_conf(place: Place) -> str:
    host = socket.gethostname().split(".")[0]
    cores = os.cpu_count() or 1
    # The host keeps as much memory as a node has.
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20 // (len(NODES) + 1)
    nodes = [
        NODE.format(
            name=name,
            address=place.address(name),
            host=name,
            port=place.port(name),
            cores=cores,
            memory=memory,
            gpus=GPUS,
        )
        for name in NODES
    ]
    return SLURM.format(
        host=host,
        address=place.address(),
        port=place.port(),
        user=pwd.getpwuid(os.geteuid()).pw_name,
        folder=place.folder,
        memory_per_core=memory // cores,
        nodes="\n".join(nodes),
        names=",".join(NODES),
    )


def hosts(place: Place) -> str:
    """Return ``/etc/hosts`` of the nodes: on a cluster, nodes know each other by name."""
    lines = ["127.0.0.1 localhost", f"{place.address()} {socket.gethostname()}"]
    return "".join(f"{line}\n" for line in lines + [f"{place.address(n)} {n}" for n in NODES])
