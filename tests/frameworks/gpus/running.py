"""Part of a test's script, behind the prelude and a framework's double of a GPU: runs benchmarks as
a rank does, from ``start`` to what it leaves for the record."""

import sys
import threading
import time

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


if GPU_LINES:  # noqa: F821
    answer = note_lines(GPU_LINES)  # noqa: F821
CUDA = RankContext(RANK, LOCAL_RANK, ADDRESSES, "cuda", 1, seed=7)  # noqa: F821


def measured(benchmark, facts=None, precision="fp32", compiler="none", steps=1, **given):  # noqa: ANN001, ANN003, ANN201
    """Run a rank of ``benchmark`` on the double of a GPU; return its entry in the record."""
    kind = kinds.load(benchmark)
    declared = {parameter.name: parameter.default for parameter in kind.parameters}
    parameters = {**declared, **given}
    name, sequence = (facts["name"], SEQUENCE) if facts else ("", None)  # noqa: F821
    what = (FRAMEWORK, name, kind.mode(parameters), 1, WORLD, 2, precision, compiler, sequence)  # noqa: F821
    case = Case(*what, accumulation=steps)  # noqa: F821
    workload = Workload(case, facts or {}, parameters, 1, None, 2)
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
