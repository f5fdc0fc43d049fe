"""``to_static``: a whole model as one program, run by Paddle's executor.

``FLAGS_use_onednn``, which Paddle's guide to flags offers for Intel CPUs, stays off: with it 3.3.1
ends in a segmentation fault in these models' programs, and the dynamic graph ignores it.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Tuple

import paddle
from harness.adapter import Mismatch, Unsupported
from paddle import Tensor, nn

#: Flag that runs the operations of a program in order, as ``to_static`` does by default. With
#: ``full_graph`` alone, threads hand operations to each other, which takes cores of a CPU from the
#: operations: a training step of ResNet-50 took 15 % longer on two cores.
_IN_ORDER = "FLAGS_enable_pir_in_executor_trace_run"


def compile_model(model: nn.Layer, inputs: Tuple[Tensor, ...], amp: bool) -> None:
    """Turn ``model.forward`` into a program, in place and now. Raises :class:`Unsupported` where an
    operator refuses the dtypes that auto_cast passes to it."""
    paddle.set_flags({_IN_ORDER: True})
    # full_graph, because a graph break would run a part of the model in the dynamic graph
    paddle.jit.to_static(model, full_graph=True, backend=None)
    try:
        trace(model, inputs)
    except TypeError as error:
        if not amp:
            raise
        # the last line that names an error, without the traceback
        said = (re.findall(r"^.*Error: .*$", str(error), re.MULTILINE) or [str(error)])[-1].strip()
        raise Unsupported(f"auto_cast in a program: {said}") from error


def trace(model: nn.Layer, inputs: Tuple[Tensor, ...]) -> Any:
    """Return the program of one forward pass of ``model``; for a compiled model, the program that
    runs."""
    function = model.forward
    if not hasattr(function, "get_concrete_program"):
        function = paddle.jit.to_static(function, full_graph=True, backend=None)
    concrete, _ = function.get_concrete_program(inputs, is_train=model.training)
    return concrete.main_program


def proof(model: nn.Layer) -> Dict[str, Any]:
    """Return counts of compiled and executed programs. Raises :class:`Mismatch` where no program
    ran, e.g. after ``paddle.jit.enable_to_static(False)``."""
    function = model.forward
    _, (_, layer) = function.program_cache.last()
    if not layer._scope_cache:  # each executed program has a scope with its variables
        raise Mismatch("to_static made a program, but the model ran without it")
    programs = {"forward": layer.program.forward_program}
    if model.training:
        programs["backward"] = layer.program.backward_program
    counts = {
        f"{part}_operations": len(program.global_block().ops) for part, program in programs.items()
    }
    return {**counts, "programs": function.get_traced_count()}
