"""MindSpore's own: which code oneDNN runs for its convolutions, what graphs are, and how ranks
leave."""

from __future__ import annotations

import pytest

from .fork_server import ForkServer, served

run = served("mindspore")

KERNELS = """
import ctypes
os.environ["ONEDNN_VERBOSE"] = "1"
adapter = built(small_images(), mode="inference")
output = os.dup(1)
with open("kernels", "w") as file:
    os.dup2(file.fileno(), 1)
    adapter.step()
    ctypes.CDLL(None).fflush(None)
    os.dup2(output, 1)
with open("kernels") as file:
    lines = [line.split(",") for line in file if ",exec,cpu,convolution," in line]
answer(kernels=[line[line.index("convolution") + 1] for line in lines])
"""


def test_no_convolution_runs_in_the_reference_code_of_onednn(run: ForkServer) -> None:
    (found,) = run(KERNELS)
    assert found["kernels"]
    assert not [kernel for kernel in found["kernels"] if "ref:any" in kernel]


DISPATCHED = """
class Calls(adapter._matmuls.Watch):
    def __ms_dispatch__(self, func, args, kwargs=None):
        names.append(func.name)
        return func(*args, **(kwargs or {}))

def evaluate():
    adapter.raw_gradients()
    adapter.logits()
    adapter.synchronize()

names = []
evaluate()  # which compiles
with Calls():
    evaluate()
answer(names=names)
"""


def test_nothing_of_a_graph_is_left_to_python(run: ForkServer) -> None:
    for compiler in ("jit", "none"):
        (found,) = run(f"adapter = built(small_bert(), compiler={compiler!r})\n{DISPATCHED}")
        assert bool(found["names"]) == (compiler == "none")


LEAVING = """
import time
adapter = started(small_bert(layers=0))
adapter.all_reduce(1.0)
time.sleep(RANK)
begun = time.monotonic()
adapter.stop()
answer(begun=begun, left=time.monotonic())
"""


def test_no_rank_leaves_before_all_others_do(run: ForkServer) -> None:
    """Fail if the rank with the scheduler leaves ranks behind, which end without it."""
    first, last = run(LEAVING, ranks=2)
    assert first["begun"] < last["begun"] <= first["left"]


FED = """
facts = facts_of("digits_resnet")
values, graphs = {}, []
for compiler in ("none", "jit"):
    adapter = built(facts, compiler=compiler)
    values[compiler] = []
    for seed in range(3):
        adapter.put(make_batch(facts["inputs"], 2, None, seed=seed, rank=0))
        values[compiler].append(adapter.read(adapter.step()))
        graphs.append(adapter.compiled().get("graphs"))
answer(values=values, graphs=graphs)
"""


def test_a_graph_learns_of_each_batch_as_operations_do(run: ForkServer) -> None:
    (found,) = run(FED)
    assert len(set(found["values"]["none"])) == 3
    assert found["values"]["jit"] == pytest.approx(found["values"]["none"], rel=1e-4)
    assert found["graphs"] == [None] * 3 + [1] * 3
