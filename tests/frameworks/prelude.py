"""Start of every script of an adapter's test, run in the environment of ``FRAMEWORK``.
``small_bert`` has few parameters and no dropout, so that a step is quick and its gradients can be
compared."""

import contextlib
import inspect
import json  # noqa: F401  # scripts use it
import os
import socket

SCRIPTS = os.environ["SCRIPTS"]
from harness.adapter import Case, Mismatch, RankContext, Unsupported  # noqa: E402, F401
from harness.measuring.loading import load_adapter  # noqa: E402
from harness.measuring.synthetic import make_batch  # noqa: E402
from harness.request.declaration import read_model  # noqa: E402

FRAMEWORK = os.environ["FRAMEWORK"]
RANK, ADDRESSES = int(os.environ["RANK"]), os.environ["FRAMEBENCH_ADDRESSES"].split(",")
LOCAL_RANK = int(os.environ["LOCAL_RANK"])
WORLD = len(ADDRESSES)
SEQUENCE = 16


def facts_of(model):  # noqa: ANN001, ANN201
    return read_model(f"{SCRIPTS}/models/{model}.json")


def small_bert(**changes):  # noqa: ANN003, ANN201
    facts = facts_of("bert_base")
    facts["hyperparameters"].update(
        vocabulary=50, hidden=32, layers=2, heads=4, intermediate=64, dropout=0.0
    )
    facts["hyperparameters"].update(changes)
    for item in facts["inputs"]:
        if item.get("below") == 30522:
            item["below"] = 50
    return facts


def small_images():  # noqa: ANN201
    facts = facts_of("resnet50_v1.5")
    facts["hyperparameters"]["blocks"] = [1, 1, 1, 1]
    facts["inputs"][0]["shape"] = ["batch", 32, 32, 3]
    return facts


def started(  # noqa: ANN201
    facts,  # noqa: ANN001
    mode="train",  # noqa: ANN001
    precision="fp32",  # noqa: ANN001
    compiler="none",  # noqa: ANN001
    batch=2,  # noqa: ANN001
    rank_context=None,  # noqa: ANN001
    steps=1,  # noqa: ANN001
    parallelism="data",  # noqa: ANN001
):
    devices = len(rank_context.addresses) if rank_context else WORLD
    what = (FRAMEWORK, facts["name"], mode, 1, devices, batch, precision, compiler, SEQUENCE)
    case = Case(*what, accumulation=steps, parallelism=parallelism)
    rank_context = rank_context or RankContext(RANK, LOCAL_RANK, ADDRESSES, "cpu", 1, seed=7)
    adapter = load_adapter(f"{SCRIPTS}/frameworks/{FRAMEWORK}")(case, facts, rank_context)
    adapter.start()
    return adapter


def batch_of(facts, batch=2, rank=0):  # noqa: ANN001, ANN201
    return make_batch(facts["inputs"], batch, SEQUENCE, seed=3, rank=rank)


def built(facts, **options):  # noqa: ANN001, ANN003, ANN201
    adapter = started(facts, **options)
    adapter.build(batch_of(facts, options.get("batch", 2) * options.get("steps", 1)))
    return adapter


def raised(kind, action):  # noqa: ANN001, ANN201
    try:
        action()
    except kind as error:
        return str(error)
    return None


@contextlib.contextmanager
def planted(module, *mistakes):  # noqa: ANN001, ANN002, ANN201
    """Plant mistakes (text, replacement) in ``module`` within the context."""
    source = wrong = inspect.getsource(module)
    for right, other in mistakes:
        assert wrong.count(right) == 1, right
        wrong = wrong.replace(right, other)

    def run(text):  # noqa: ANN001, ANN202
        exec(compile(text, module.__file__, "exec"), module.__dict__)

    if mistakes:
        run(wrong)
    try:
        yield
    finally:
        if mistakes:
            run(source)


def own_processes():  # noqa: ANN201
    """Return the ids of this process and its descendants."""
    found = [os.getpid()]
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        found += [int(name)] if parent == os.getpid() else []
    return found


def listening():  # noqa: ANN201
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
    found = set()
    for kind, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        with open("/proc/net/" + kind) as file:
            rows = [line.split() for line in file][1:]
        for row in rows:
            if row[3] != "0A" or "socket:[" + row[9] + "]" not in inodes:
                continue
            raw = bytes.fromhex(row[1].partition(":")[0])
            words = [raw[i : i + 4][::-1] for i in range(0, len(raw), 4)]
            address = socket.inet_ntop(family, b"".join(words))
            found.add("0.0.0.0" if address == "::" else address.replace("::ffff:", ""))
    return sorted(found)
