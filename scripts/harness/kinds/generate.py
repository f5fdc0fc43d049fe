"""Text generation: the prompt in one pass, then token by token, with a key-value cache.

A request is a batch of prompts as long as the case's sequence length. Each is continued by
``new_tokens``, the likeliest one each time. Requests follow each other without a pause. Every token
is synchronized, as for an interactive reader.
"""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import Any, Dict, List, Mapping, Tuple

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


#: Handles on the tokens of a batch of prompts, and the seconds of each.
Request = Tuple[List[Any], List[float]]
#: Seconds of a request. With several devices the slowest device counts.
_seconds = partial(Metric, "s", "lower", "max")


class Generate(Kind):
    """Text generation: time to the first token, time of each further one, tokens per second."""

    parameters = (
        Parameter("new_tokens", at_least(FEWEST), "tokens", "new tokens of each prompt", 32),
    )
    needs = Generation
    counts_steps = True  # a step is a request

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        count, requests = workload.parameters["new_tokens"], workload.timed_steps
        tokens = workload.case.batch_per_device * count * requests
        # over whole requests: the time includes prompts, the tokens do not
        rate = Metric("tokens/s", "higher", "sum", lambda rank: tokens / rank["window_seconds"])
        return {
            "throughput": rate,
            # median over requests, like the time per later token
            "time_to_first_token": _seconds(_first),
            "time_per_output_token": _seconds(_each),
            **{
                f"inter_token_p{percent}": _seconds(partial(_percentile, percent))
                for percent, needed in ENOUGH.items()
                if requests * (count - 1) >= needed
            },
        }

    def measure(self, context: Context) -> None:
        adapter, workload, fields = context.adapter, context.workload, context.fields
        count = workload.parameters["new_tokens"]
        check_supported(adapter, workload, count)
        model.build(context, model.batch_of_rank(context))
        context.phase("cache", lambda: adapter.make_cache(count))

        def requests(most: int) -> List[Request]:
            return [_request(adapter, count) for _ in range(most)]

        warmed = context.phase("warm-up", lambda: requests(max(1, workload.warmup_steps)), "warmup")
        fields["generated"] = _tokens(adapter, warmed[-1][0])
        fields["compiled"] = compiler_evidence(adapter)
        fields["cores"] = check_cores(context.cores)
        context.report.enter("timed window")
        with all_ready(adapter, context.barrier):
            start = time.perf_counter()
            timed = requests(workload.timed_steps)
            seconds = time.perf_counter() - start
        fields["phases"]["window_seconds"] = seconds
        fields["window_start"], fields["window_seconds"] = start, seconds
        fields["token_seconds"] = [seconds for _, seconds in timed]
        fields["peak_device_memory_bytes"] = adapter.peak_device_memory()
        fields["peak_host_memory_bytes"] = peak_host_memory()
        for number, (handles, _) in enumerate(timed, 1):
            if _tokens(adapter, handles) != fields["generated"]:
                raise Mismatch(f"request {number} generated other tokens for the same prompts")
        context.report.enter("end")


def _request(adapter: Generation, count: int) -> Request:
    """Generate ``count`` tokens for a batch of prompts, and synchronize each."""
    handles: List[Any] = []
    seconds: List[float] = []
    before = time.perf_counter()
    for index in range(count):
        handles.append(adapter.decode() if index else adapter.prefill())
        adapter.synchronize()
        now = time.perf_counter()
        seconds.append(now - before)
        before = now
    return handles, seconds


def _tokens(adapter: Generation, handles: List[Any]) -> List[List[int]]:
    """Return the generated tokens of each sequence."""
    rows = [adapter.to_numpy(handle).tolist() for handle in handles]
    return [list(map(int, sequence)) for sequence in zip(*rows)]


def _first(rank: Mapping[str, Any]) -> float:
    return float(statistics.median(request[0] for request in rank["token_seconds"]))


def _each(rank: Mapping[str, Any]) -> float:
    further = [request[1:] for request in rank["token_seconds"]]
    return float(statistics.median(sum(each) / len(each) for each in further))


def _percentile(percent: int, rank: Mapping[str, Any]) -> float:
    """Return the percentile, by nearest rank, over all tokens after the first of all requests."""
    every = sorted(second for request in rank["token_seconds"] for second in request[1:])
    return float(every[-(-percent * len(every) // 100) - 1])
