"""Programs of the contract of every adapter."""

import os
import resource
import time
import types

import numpy as np
from harness import operations as micro
from harness.adapter import Capability, Case, RankContext, Unsupported, require
from harness.adapter.base import load_adapter
from harness.capabilities import MicroBenchmarks
from harness.kind import Context, Workload
from harness.kinds import peak_flops
from harness.kinds.attention import Attention
from harness.kinds.convolution import Convolution
from harness.kinds.train import time_all_reduce
from harness.kinds.verification import ReferenceVerification
from harness.measuring import window
from harness.measuring.checks import check_value, describe
from harness.measuring.operands import expected_result, rank_inputs

from .prelude import (
    ADDRESSES,
    FRAMEWORK,
    LOCAL_RANK,
    RANK,
    WORLD,
    batch_of,
    built,
    listening,
    load_model_config,
    raised,
    started,
)
from .ranks import answer
from .small import SCRIPTS, small_bert


def capabilities_of(base=Capability):
    """Yield the capabilities that the harness knows."""
    for capability in base.__subclasses__():
        if capability.__module__.startswith("harness."):
            yield capability
            yield from capabilities_of(capability)


def lacking():
    """Report why the adapter lacks capabilities, and which of these it implements nevertheless."""
    case = Case(FRAMEWORK, "", "train", 1, 1, 2, "fp32", "none", None)
    rank_context = RankContext(0, 0, ADDRESSES[:1], "cpu", 1, 7)
    adapter = load_adapter(f"{SCRIPTS}/frameworks/{FRAMEWORK}", case, {}, rank_context)
    lacks = [each for each in capabilities_of() if not isinstance(adapter, each)]
    own = {each: [n for n in each.__abstractmethods__ if n in vars(each)] for each in lacks}
    return {
        "lacking": {each.__name__: each.LACKING for each in lacks if hasattr(each, "LACKING")},
        "undeclared": [
            each.__name__
            for each, names in own.items()
            if names and all(hasattr(adapter, name) for name in names)
        ],
    }


def run_out_of_memory(compiler):
    """Run out of memory: far more than an import maps, far less than the batch requests at once:
    the address space runs out, so that no memory is used and every machine refuses.
    The forward pass first allocates batch x 128 x 1024 floats: 7.8 GiB, but fewer elements than
    2^31 (some frameworks cannot index more). The batch itself takes 0.05 GiB. If a framework
    aborts, its first answer is its last."""
    model_config = small_bert(hidden=1024, layers=1)
    adapter = started(model_config, mode="inference", compiler=compiler, batch=16000, sequence=128)
    batch = batch_of(model_config, 16000, sequence=128)
    answer(status="", reason="it ended without a word")
    resource.setrlimit(resource.RLIMIT_AS, (7 << 30, 7 << 30))
    try:
        adapter.build(batch)
        adapter.read(adapter.step())
        answer(status="ok", reason="")
    except Exception as error:
        answer(**describe(error, adapter))
    os._exit(0)


def single_operations(adapter):
    """Report whether operations and collectives of tiny arrays, run twice, are those of numpy.
    Those that the framework does not have get its reason."""
    random, operations = np.random.RandomState(5), {}
    first, second = (random.standard_normal((2, 8, 8)).astype(np.float32) for _ in range(2))

    def note(name, work, *arguments):
        try:
            made, expected, grown = work(*arguments)
            made.run()
            got = np.array(made.result())
            made.run()
            again = np.array(made.result())
            good = got.shape == expected.shape and np.allclose(got, expected, atol=1e-5)
            operations[name] = bool(good and np.allclose(again, expected * grown, atol=1e-5))
        except (Unsupported, NotImplementedError) as error:
            operations[name] = f"unsupported: {error}"

    def elementwise(kind, operands, expected):
        return adapter.primitives().operation(kind, operands), expected, 1

    note("batched", elementwise, micro.MATMUL, [first, second], first @ second)
    note("matmul", elementwise, micro.MATMUL, [first[0], second[0]], first[0] @ second[0])
    note("add", elementwise, micro.ADD, [first, second], first + second)
    note("multiply", elementwise, micro.MULTIPLY, [first, second], first * second)
    note("exp", elementwise, micro.EXP, [first], np.exp(first))
    note("scale", elementwise, micro.SCALE, [first], 3 * first)
    note("triad", elementwise, micro.TRIAD, [first, second], first + 3 * second)

    def exchanged(operation):
        arrays = rank_inputs(4, "float32", WORLD, 0)
        made = adapter.primitives_with(operation).collective(operation, arrays[RANK], "float32")
        made.run()
        made.reset()
        wanted = expected_result(operation, arrays, RANK)
        return made, wanted, WORLD if operation == micro.ALL_REDUCE else 1

    def layered(kind, shape):
        require(adapter, MicroBenchmarks)
        arrays = kind.operands(shape, random)
        made = adapter.primitives().forward_backward(shape, arrays)
        made.forward.run()
        made.backward.run()
        adapter.synchronize()
        actual = [made.forward.result(), *made.backward.result()]
        kind.check_results(shape, arrays, actual, "float32", random)
        return made.forward, actual[0], 1

    strided = micro.ConvolutionShape(2, 6, 5, 4, 8, (3, 3), 2, (1, 1), 1)
    shared = micro.AttentionShape(2, 4, 2, 6, 8, True)
    note("convolution", layered, Convolution(), strided)
    note("grouped convolution", layered, Convolution(), strided._replace(groups=2))
    note("attention", layered, Attention(), shared)
    note("encoder attention", layered, Attention(), shared._replace(causal=False))

    def beside(name, operands):
        arrays = rank_inputs(4, "float32", WORLD, 0)
        made = adapter.primitives().overlapped(name, operands, 3, arrays[RANK])

        def run():
            made.reset()
            made.both()
            adapter.synchronize()

        def result():
            return np.concatenate([made.reduced(), made.computed().reshape(-1)])

        total = expected_result(micro.ALL_REDUCE, arrays, RANK)
        function = np.matmul if name == micro.MATMUL else np.multiply
        wanted = np.concatenate([total, function(*operands).reshape(-1)])
        return micro.Operation(run, result, made.dtype), wanted, 1

    note("overlapped", beside, micro.MATMUL, [first[0], second[0]])
    note("overlapped multiply", beside, micro.MULTIPLY, [first[0], first[1]])

    def shared_by_ranks(operation):
        # a matmul and its collective separately, then as one operation
        a, b = first[0], second[0]
        own = slice(8 // WORLD * RANK, 8 // WORLD * (RANK + 1))
        given = (a[:, own], b[own]) if operation == micro.ALL_REDUCE else (a, b[:, own])
        made = adapter.primitives_with(operation).sharded_matmul(
            *map(np.ascontiguousarray, given), operation
        )

        def apart():
            made.matmul()
            made.collective()

        ways = iter((apart, made.both))

        def run():
            next(ways)()
            adapter.synchronize()

        return micro.Operation(run, made.result, made.dtype), a @ b, 1

    note("shared sums", shared_by_ranks, micro.ALL_REDUCE)
    note("shared columns", shared_by_ranks, micro.ALL_GATHER)

    def each_of(count, name, extent):
        # CPU seconds of several operations over those of one: a graph may compute equal operations
        # only once
        seconds, several = {}, count
        side = random.standard_normal((extent, extent)).astype(np.float32)
        for count in (1, several):
            made = adapter.primitives().overlapped(
                name, [side, side], count, np.zeros(4, np.float32)
            )
            taken = []
            for _ in range(7):
                adapter.synchronize()
                start = time.process_time()
                made.compute()
                adapter.synchronize()
                taken.append(time.process_time() - start)
            seconds[count] = min(taken[1:])
        return seconds[several] / seconds[1]

    operations["each matmul"] = each_of(8, micro.MATMUL, 512) > 3
    operations["each multiply"] = each_of(20, micro.MULTIPLY, 2048) > 3
    for operation in micro.ALL_COLLECTIVES:
        if operation != micro.REDUCE:
            note(operation, exchanged, operation)
    return operations


def train_together(compiler, steps):
    """Train, twice in each rank on its own batch.
    Without encoder layers, which would take most of the compile time."""
    model_config = small_bert(layers=0, dropout=0.1, learning_rate=0.01)
    adapter = started(model_config, compiler=compiler)
    adapter.build(batch_of(model_config, rank=RANK))
    values = [adapter.read(adapter.step()) for _ in range(steps)]
    checksum = adapter.weights_checksum()
    messages = time_all_reduce(adapter, 1e9)
    operations = single_operations(adapter)
    answers = {
        "values": values,
        "checksum": checksum,
        "messages": messages,
        "trained": adapter.trainable_parameters(),
        "listening": listening(),
        "operations": operations,
    }
    adapter.stop()
    return answers


def listen():
    """Report where a rank listens that has communicated, as one of several nodes."""
    adapter = started(small_bert(layers=0))
    # OneFlow sometimes fails where two of its nodes are the same machine
    answer(listening=listening())
    adapter.prepare_all_reduce(np.ones(4, np.float32)).run()
    adapter.synchronize()
    answer(listening=listening())
    os._exit(0)  # exit at once, because OneFlow's ranks raise an error after another rank has left


def train_alone(compiler):
    """Report the calls of a rank in the timed regions of throughput and of synchronous steps."""
    model_config = small_bert(layers=0, dropout=0.1)
    adapter = built(model_config, compiler=compiler)
    first = adapter.read(adapter.step())
    calls = []

    def counted(name):
        method = getattr(adapter, name)

        def call(*arguments):
            calls.append(name)
            return method(*arguments)

        return call

    for name in ("step", "wait", "synchronize"):
        setattr(adapter, name, counted(name))
    ahead = window.run_ahead(adapter)
    window.measure(adapter, 4, ahead)
    throughput, calls[:] = list(calls), []
    window.measure(adapter, 4, 0)
    waited = list(calls)
    answers = {
        "first": first,
        "ahead": ahead,
        "throughput": throughput,
        "waited": waited,
    }
    adapter.stop()
    return answers


def diverge(compiler):
    """Train the model of train_alone with another seed.
    The largest step that float32 holds makes all weights non-finite."""
    context = RankContext(RANK, LOCAL_RANK, ADDRESSES, "cpu", 1, seed=8)
    model_config = small_bert(layers=0, dropout=0.1, learning_rate=3e38)
    adapter = built(model_config, compiler=compiler, rank_context=context)
    first, *_, last = (adapter.read(adapter.step()) for _ in range(4))
    answers = {
        "first": first,
        "failure": raised(ArithmeticError, lambda: check_value(last, "train", 3)),
    }
    adapter.stop()
    return answers


def train(model_config, precision, compiler, steps):
    """Report of a training in the notation of a record."""
    try:
        adapter = built(model_config, precision=precision, compiler=compiler)
        products = adapter.matmul_dtypes()
        first, *_, last = (adapter.read(adapter.step()) for _ in range(steps))
    except Unsupported as error:
        return {"unsupported": str(error)}
    trained = adapter.trainable_parameters()
    adapter.stop()
    return {
        **{"first_value": first, "last_value": last},
        **{"matmul_dtypes": products, "trainable_parameters": trained},
    }


def find_peak(precision):
    # by sizes, not by a time that a busy machine has used up before the second
    peak_flops.SECONDS, peak_flops.BLOCK_SECONDS, peak_flops.SIZES = 600, 0.02, peak_flops.SIZES[:2]
    products = set()
    try:
        adapter = started(small_bert(), mode="inference", precision=precision)
        matmuls = peak_flops.measure(adapter, products.add)
    except Unsupported as error:
        return {"unsupported": str(error)}
    fastest = max(matmuls, key=peak_flops.tflops_of)
    sustained = peak_flops.sustain(adapter, fastest, 0.2, products.add)
    adapter.stop()
    return {"matmul_dtypes": sorted(products), "matmuls": matmuls, "sustained": sustained}


def verify(folder, mode, compiler):
    """Verify each rank against the reference in ``folder``, as by the command line."""
    model_config = load_model_config(folder)
    kind, report = ReferenceVerification(), types.SimpleNamespace(fields={}, enter=print)
    try:
        adapter = started(model_config, mode=kind.mode({"mode": mode}), compiler=compiler)
        workload = Workload(
            adapter.case, model_config, {"mode": mode, "reference": folder}, 0, None, 0
        )
        kind.measure(Context(workload, adapter.rank_context, adapter, [], report))
    except Unsupported as error:
        return {"unsupported": str(error)}
    answers = {
        "errors": {model_config["name"]: [adapter.case.precision, report.fields["verification"]]},
        "checksum": report.fields["weights_checksum"],
        "compiled": report.fields["compiled"],
    }
    adapter.stop()
    return answers
