"""Part of a test's script, behind the prelude and a framework's double of a GPU: runs benchmarks as
a rank does, from ``start`` to what it leaves for the record."""

import sys
import threading
import time

from core.inputs import SYNTHETIC
from harness import kinds
from harness.kind import Context, Workload
from harness.messages.report import Report, encodable
from harness.rank import independent_context, load_framework, start_framework


def note_lines(folder):  # noqa: ANN001, ANN201
    """Write each line of the adapter that is executed to ``folder``, when the script answers."""
    root, lines, reply = f"{SCRIPTS}/frameworks/", set(), answer  # noqa: F821

    def trace(frame, event, argument):  # noqa: ANN001, ANN202
        name = frame.f_code.co_filename
        if not name.startswith(root):
            return None
        lines.add(f"{name[len(root) :]}:{frame.f_lineno}\n")
        return trace

    def answer_and_write(**values):  # noqa: ANN003, ANN202
        sys.settrace(None)
        with open(f"{folder}/{FRAMEWORK}-{os.getpid()}-{time.time_ns()}", "w") as file:  # noqa: F821
            file.writelines(lines)
        reply(**values)

    threading.settrace(trace)
    sys.settrace(trace)
    return answer_and_write


class Queue:
    """Work that the double of a device has enqueued and not completed. ``done``: when it will have,
    by time.monotonic()."""

    done = 0.0

    def __init__(self):  # noqa: ANN204
        self._ready = {}

    def add(self, seconds, results=()):  # noqa: ANN001, ANN201
        """Enqueue work that takes so long, behind all other, and note its results."""
        self.done = max(self.done, time.monotonic()) + seconds
        for result in results:
            self.note(result)

    def note(self, result):  # noqa: ANN001, ANN201
        """Note that a result is there when all is complete that is enqueued now; return it."""
        self._ready[id(result)] = (self.done, result)  # kept, so that no other has its id
        return result

    def wait(self, results=None):  # noqa: ANN001, ANN201
        """Wait for these results, where they were noted, or for all that is enqueued now."""
        until = self.done
        if results is not None:
            until = max((self._ready.get(id(one), (0.0,))[0] for one in results), default=0.0)
        time.sleep(max(0.0, until - time.monotonic()))


QUEUE = Queue()
outputs = globals().get("outputs", lambda adapter, handle: ())
if GPU_LINES:  # noqa: F821
    answer = note_lines(GPU_LINES)  # noqa: F821
CUDA = RankContext(RANK, LOCAL_RANK, ADDRESSES, "cuda", 1, seed=7)  # noqa: F821


def measured(benchmark, facts=None, precision="fp32", compiler="none", steps=1, **given):  # noqa: ANN001, ANN003, ANN201
    """Run a rank of ``benchmark`` on the double of a GPU; return its entry in the record.
    ``given``: parameters, and ``source``, the input of the case, with ``data``, the folder of its
    images."""
    source, data = given.pop("source", SYNTHETIC), given.pop("data", None)
    kind = kinds.load(benchmark)
    declared = {parameter.name: parameter.default for parameter in kind.parameters}
    parameters = {**declared, **given}
    name, sequence = (facts["name"], None if data else SEQUENCE) if facts else ("", None)  # noqa: F821
    what = (FRAMEWORK, name, kind.mode(parameters), 1, WORLD, 2, precision, compiler, sequence)  # noqa: F821
    case = Case(*what, accumulation=steps, input=source)  # noqa: F821
    workload = Workload(case, facts or {}, parameters, 1, None, 2, data=data)
    rank_context = independent_context(CUDA) if kind.independent_ranks else CUDA
    adapter = load_framework(kind, f"{SCRIPTS}/frameworks/{FRAMEWORK}", workload, rank_context)  # noqa: F821
    context = Context(workload, rank_context, adapter, [], Report(".", RANK, "here"))  # noqa: F821
    start_framework(context)
    kind.measure(context)
    kind.afterwards(context, 1.0)
    for metric in kind.metrics(workload).values():
        metric.of_rank(context.fields)
    adapter.stop()
    return encodable(context.fields)
