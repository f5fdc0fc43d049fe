"""Common part of the programs of adapters' tests, which run in the environment of ``FRAMEWORK``."""

import functools
import importlib
import json
import os
import socket
import sys

from harness.adapter import Case, RankContext
from harness.adapter.base import PACKAGE, load_adapter
from harness.measuring.model import make_batch

from .small import SCRIPTS

FRAMEWORK = os.environ["FRAMEWORK"]
RANK, ADDRESSES = int(os.environ["RANK"]), os.environ["FRAMEBENCH_ADDRESSES"].split(",")
LOCAL_RANK = int(os.environ["LOCAL_RANK"])
WORLD = len(ADDRESSES)
SEQUENCE = 16

if FRAMEWORK == "pytorch":  # raises in a process's second adapter
    import torch

    torch.set_num_interop_threads = functools.lru_cache(None)(torch.set_num_interop_threads)


def module_of(name):
    return importlib.import_module(f"{PACKAGE}.{name}")


def library():
    return sys.modules[{"pytorch": "torch", "tensorflow1": "tensorflow"}.get(FRAMEWORK, FRAMEWORK)]


def load_model_config(folder, name="model_config"):
    with open(f"{folder}/{name}.json") as file:
        return json.load(file)


def started(
    model_config,
    mode="train",
    precision="fp32",
    compiler="none",
    batch=2,
    rank_context=None,
    steps=1,
    parallelism="data",
    sequence=SEQUENCE,
):
    devices = len(rank_context.addresses) if rank_context else WORLD
    what = (FRAMEWORK, model_config["name"], mode, 1, devices, batch, precision, compiler, sequence)
    case = Case(*what, accumulation=steps, parallelism=parallelism)
    rank_context = rank_context or RankContext(RANK, LOCAL_RANK, ADDRESSES, "cpu", 1, seed=7)
    adapter = load_adapter(f"{SCRIPTS}/frameworks/{FRAMEWORK}", case, model_config, rank_context)
    adapter.start()
    return adapter


def batch_of(model_config, batch=2, rank=0, sequence=SEQUENCE):
    return make_batch(model_config["inputs"], batch, sequence, seed=3, rank=rank)


def built(model_config, **options):
    adapter = started(model_config, **options)
    adapter.build(batch_of(model_config, options.get("batch", 2) * options.get("steps", 1)))
    return adapter


def raised(kind, action):
    """Return the message of an error; None without one."""
    try:
        action()
    except kind as error:
        return str(error)
    return None


def judged(adapter, action):
    """Return whether the adapter calls the error of an action one of memory."""
    try:
        action()
    except Exception as error:
        return adapter.out_of_memory(error)


def own_processes():
    actual = [os.getpid()]
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        actual += [int(name)] if parent == os.getpid() else []
    return actual


def listening():
    """Return the TCP addresses at which these processes listen.
    IPv6 addresses that stand for IPv4, and the address for all, are in IPv4 notation."""
    inodes = set()
    for process in own_processes():
        folder = f"/proc/{process}/fd/"
        for name in os.listdir(folder):
            try:
                inodes.add(os.readlink(folder + name))
            except OSError:
                continue  # the handle that reads the folder
    actual = set()
    for kind, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        with open("/proc/net/" + kind) as file:
            rows = [line.split() for line in file][1:]
        for row in rows:
            if row[3] != "0A" or "socket:[" + row[9] + "]" not in inodes:
                continue
            raw = bytes.fromhex(row[1].partition(":")[0])
            parts = [raw[i : i + 4][::-1] for i in range(0, len(raw), 4)]
            address = socket.inet_ntop(family, b"".join(parts))
            actual.add("0.0.0.0" if address == "::" else address.replace("::ffff:", ""))
    return sorted(actual)
