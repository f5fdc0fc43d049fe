"""Features of MegEngine that the adapter needs."""

import resource
import time

import megengine
import numpy as np
from harness.measuring.checks import describe

from .prelude import started
from .small import small_bert


def check_the_result_of_an_operation_without_memory_is_out_of_memory():
    adapter = started(small_bert(), mode="inference", batch=2, sequence=8)
    row = megengine.tensor(np.ones((1, 1 << 20), "f4"))
    resource.setrlimit(resource.RLIMIT_AS, (7 << 30, 7 << 30))
    large = megengine.functional.broadcast_to(row, (1900, 1 << 20)) + 1  # 7.4 GiB
    time.sleep(1)  # by then the operation has failed behind Python
    try:
        large + 1
        raise AssertionError("MegEngine reported no error")
    except RuntimeError as error:
        described = describe(error, adapter)
    assert described["status"] == "oom", described
