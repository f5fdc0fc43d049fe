"""Text generation: the prompt in one pass, then token by token, with a key-value cache.

A request is a batch of prompts as long as the case's sequence length. Each is continued by
``new_tokens``, the likeliest one each time. Requests follow each other without a pause. Every token
is synchronized, as for an interactive reader.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Callable, Dict, List, Mapping

from harness.adapter import Generation, Mismatch
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least
from harness.measuring import model
from harness.measuring.checks import check_cores, compiler_evidence
from harness.measuring.steps import peak_host_memory
from harness.measuring.verification.generation import FEWEST, check_supported
from harness.measuring.window import all_ready

#: Tokens that a percentile needs, so that two or more lie above it with 99 % probability; see
#: docs/measuring.md.
ENOUGH = {50: 11, 90: 64, 99: 662}


class Generate(Kind):
    """Text generation: time to the first token, time of each further one, tokens per second."""

    parameters = (
        Parameter("new_tokens", at_least(FEWEST), "tokens", "that continue each prompt", 32),
    )
    needs = Generation
    counts_steps = True  # requests

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        tokens = workload.case.batch_per_device * workload.parameters["new_tokens"]
        behind_first = workload.timed_steps * (workload.parameters["new_tokens"] - 1)
        return {
            # of whole requests: the time includes prompts, the tokens do not
            "throughput": Metric(
                "tokens/s",
                "higher",
                "sum",
                lambda rank: tokens * workload.timed_steps / rank["window_seconds"],
            ),
            # of a median request
            "time_to_first_token": Metric("s", "lower", "max", _first),
            # the tokens after the first, of a median request
            "time_per_output_token": Metric("s", "lower", "max", _each),
            **{
                f"inter_token_p{percent}": Metric("s", "lower", "max", _percentile(percent))
                for percent, needed in ENOUGH.items()
                if behind_first >= needed
            },
        }

    def measure(self, context: Context) -> None:
        adapter, workload, fields = context.adapter, context.workload, context.fields
        count = workload.parameters["new_tokens"]
        check_supported(adapter, workload, count)
        model.build(context, model.batch_of_rank(context))
        context.phase("cache", lambda: adapter.make_cache(count))
        requests = [_Request(adapter, count) for _ in range(workload.timed_steps)]

        def warm_up() -> None:
            for _ in range(max(1, workload.warmup_steps)):
                request = _Request(adapter, count)
                request.run()
                fields["generated"] = request.tokens()

        context.phase("warm-up", warm_up, "warmup")
        fields["compiled"] = compiler_evidence(adapter)
        fields["cores"] = check_cores(context.cores)
        context.report.enter("timed window")
        with all_ready(adapter, context.barrier):
            start = time.perf_counter()
            for request in requests:
                request.run()
            seconds = time.perf_counter() - start
        fields["phases"]["window_seconds"] = seconds
        fields["window_start"], fields["window_seconds"] = start, seconds
        fields["token_seconds"] = [request.seconds for request in requests]
        fields["peak_device_memory_bytes"] = adapter.peak_device_memory()
        fields["peak_host_memory_bytes"] = peak_host_memory()
        for number, request in enumerate(requests, 1):
            if request.tokens() != fields["generated"]:
                raise Mismatch(f"request {number} of the same prompts has other tokens")
        context.report.enter("end")


class _Request:
    """Generation of ``count`` tokens for a batch of prompts."""

    def __init__(self, adapter: Generation, count: int) -> None:
        self._adapter, self._count = adapter, count
        self._handles: List[Any] = [None] * count
        self.seconds = [0.0] * count

    def run(self) -> None:
        """Generate each token of all sequences and synchronize it; ``seconds``: of each token."""
        adapter, handles, clock = self._adapter, self._handles, time.perf_counter
        before = clock()
        for index in range(self._count):
            handles[index] = adapter.decode() if index else adapter.prefill()
            adapter.synchronize()
            now = clock()
            self.seconds[index], before = now - before, now

    def tokens(self) -> List[List[int]]:
        """Return the generated tokens of each sequence."""
        rows = [self._adapter.to_numpy(handle).tolist() for handle in self._handles]
        return [[int(token) for token in sequence] for sequence in zip(*rows)]


def _first(rank: Mapping[str, Any]) -> float:
    return float(statistics.median(request[0] for request in rank["token_seconds"]))


def _each(rank: Mapping[str, Any]) -> float:
    requests = rank["token_seconds"]
    return float(statistics.median(sum(each[1:]) / (len(each) - 1) for each in requests))


def _percentile(percent: int) -> Callable[[Mapping[str, Any]], float]:
    """Return a function for the percentile, by nearest rank, over all tokens after the first of all
    requests."""

    def rank_value(rank: Mapping[str, Any]) -> float:
        every = sorted(second for request in rank["token_seconds"] for second in request[1:])
        return float(every[-(-percent * len(every) // 100) - 1])

    return rank_value
