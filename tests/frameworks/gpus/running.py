"""Runs benchmarks on a double of a GPU as a rank does, up to the entry in the record."""

import time

from core.axes import SYNTHETIC
from harness import kinds
from harness.adapter import Case, RankContext
from harness.kind import Context, Workload
from harness.rank import independent_context, load_framework, start_framework
from harness.report import Report, encodable

from ..programs.prelude import ADDRESSES, FRAMEWORK, LOCAL_RANK, RANK, SEQUENCE, WORLD
from ..programs.small import SCRIPTS


class Queue:
    """Work that the double of a device has not completed; ``done``: time.monotonic() of it."""

    done = 0.0

    def __init__(self):
        self._ready = {}

    def add(self, seconds, results=()):
        """Enqueue work of this duration after all other work, and note its results."""
        self.done = max(self.done, time.monotonic()) + seconds
        for result in results:
            self.note(result)

    def note(self, result):
        """Note that a result is complete once all work enqueued so far is; return the result."""
        # keep the result, so that no other object gets its id
        self._ready[id(result)] = (self.done, result)
        return result

    def wait(self, results=None):
        """Wait for these results, where they were noted, or for all enqueued work."""
        until = self.done
        if results is not None:
            until = max((self._ready.get(id(result), (0.0,))[0] for result in results), default=0.0)
        time.sleep(max(0.0, until - time.monotonic()))


QUEUE = Queue()
CUDA = RankContext(RANK, LOCAL_RANK, ADDRESSES, "cuda", 1, seed=7)


def measured(benchmark, model_config=None, precision="fp32", compiler="none", steps=1, **given):
    """Run a rank of ``benchmark`` on the double of a GPU; return its entry in the record.
    ``given``: parameters, and ``source``, the input of the case, with ``data``, the folder of its
    images."""
    source, data = given.pop("source", SYNTHETIC), given.pop("data", None)
    kind = kinds.load(benchmark)
    declared = {parameter.name: parameter.default for parameter in kind.parameters}
    parameters = {**declared, **given}
    name, sequence = (
        (model_config["name"], None if data else SEQUENCE) if model_config else ("", None)
    )
    what = (FRAMEWORK, name, kind.mode(parameters), 1, WORLD, 2, precision, compiler, sequence)
    case = Case(*what, accumulation=steps, input=source)
    workload = Workload(case, model_config or {}, parameters, 1, None, 2, data=data)
    rank_context = independent_context(CUDA) if kind.independent_ranks else CUDA
    context = Context(workload, rank_context, None, [], Report(".", RANK, "here"))
    context = load_framework(kind, f"{SCRIPTS}/frameworks/{FRAMEWORK}", context, rank_context)
    start_framework(context)
    kind.measure(context)
    kind.afterwards(context, 1.0)
    for metric in kind.metrics(workload).values():
        metric.rank_value(context.fields)
    context.adapter.stop()
    return encodable(context.fields)
