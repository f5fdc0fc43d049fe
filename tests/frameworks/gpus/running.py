"""Part of a test's script, behind the prelude and a framework's double of a GPU: runs benchmarks as
a rank does, from ``start`` to what it leaves for the record."""

from harness import kinds
from harness.kind import Context, Workload
from harness.messages.report import Report, encodable
from harness.rank import load_framework, start_framework

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
    adapter = load_framework(kind, f"{SCRIPTS}/frameworks/{FRAMEWORK}", workload, CUDA)  # noqa: F821
    context = Context(workload, CUDA, adapter, [], Report(".", RANK, "here"))  # noqa: F821
    start_framework(context)
    kind.measure(context)
    kind.afterwards(context, 1.0)
    for metric in kind.metrics(workload).values():
        metric.of_rank(context.fields)
    adapter.stop()
    return encodable(context.fields)
