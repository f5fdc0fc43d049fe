"""``to_static``: a whole model as one program, run by Paddle's executor; the matmuls and
convolutions of a forward pass, by their dtypes; and optimizers.

``FLAGS_use_onednn``, which Paddle's guide to flags offers for Intel CPUs, stays off: with it 3.3.1
ends in a segmentation fault in these models' programs, and the dynamic graph ignores it."""

from __future__ import annotations

import contextlib
import io
import re
from collections import Counter
from typing import Any, Callable, Dict, Tuple

import paddle
from harness.adapter import Mismatch, Unsupported
from harness.optimizers import update_rules
from paddle import Tensor, nn
from paddle.amp import debugging

#: Flag that runs the operations of a program in order, as ``to_static`` does by default. With
#: ``full_graph`` alone, threads hand operations to each other, which takes cores of a CPU from the
#: operations: a training step of ResNet-50 took 15 % longer on two cores.
_IN_ORDER = "FLAGS_enable_pir_in_executor_trace_run"
#: Number of matmuls of each operator, by Paddle's names in the statistics of the dynamic graph and
#: in programs.
MATMULS = {
    "conv2d": 1,
    "depthwise_conv2d": 1,
    "matmul": 1,
    "matmul_v2": 1,
    "linear_v2": 1,  # in CUDA builds
    "flash_attn": 2,
    "memory_efficient_attention": 2,
    "rnn": 1,  # Paddle counts all matmuls of all recurrent layers as one
}
COLUMNS = ("float16", "bfloat16", "float32", "other")  # columns of a line of the statistics


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
        last = (re.findall(r"^.*Error: .*$", str(error), re.MULTILINE) or [str(error)])[-1].strip()
        raise Unsupported(f"auto_cast in a program: {last}") from error


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


def count_matmuls(model: nn.Layer, forward: Callable[[], Any]) -> Dict[str, int]:
    """Count the matmuls of one ``forward()`` in the dynamic graph, by Paddle's statistics of low
    precision. Running statistics and the random state are left as they were."""
    fixed = [tensor for tensor in model.parameters() if tensor.stop_gradient]
    kept, state = [tensor.clone() for tensor in fixed], paddle.get_rng_state()
    with paddle.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        debugging.enable_operator_stats_collection()  # hide the table that Paddle prints
        forward()
        calls = paddle.base.core.get_low_precision_op_list()
        debugging.disable_operator_stats_collection()
        for tensor, before in zip(fixed, kept):
            tensor.copy_(before, True)
    paddle.set_rng_state(state)
    counts: Dict[str, int] = Counter()
    for name, each in MATMULS.items():
        for dtype, count in zip(COLUMNS, str(calls.get(name, "0,0,0,0")).split(",")):
            counts[dtype] += each * int(count)
    return {dtype: count for dtype, count in counts.items() if count}


def matmuls_of(program: Any) -> Dict[str, int]:
    """Count the matmuls of a program by the dtype of their operands."""
    counts: Dict[str, int] = Counter()
    for operation in program.global_block().ops:
        each = MATMULS.get(operation.name().replace("pd_op.", ""))
        if each:
            dtype = str(operation.operands_source()[0].dtype).rpartition(".")[2].lower()
            counts[dtype] += each
    return dict(counts)


def optimizer_of(
    model: nn.Layer, model_config: Dict[str, Any], names: Dict[str, str]
) -> paddle.optimizer.Optimizer:
    """Return the optimizer that the model's hyper-parameters name. ``names``: Paddle's names of
    trained parameters, by the names that frameworks share. Raises :class:`Unsupported` where LAMB's
    kernel cannot tell parameters with weight decay from those with a trust ratio."""
    hyper = model_config["hyperparameters"]
    rules = {names[name]: rule for name, rule in update_rules(names, hyper).items()}
    common = {"learning_rate": hyper["learning_rate"], "parameters": model.parameters()}
    if hyper["optimizer"] == "sgd":
        for parameter in model.parameters():
            if parameter.name in rules and not rules[parameter.name].weight_decay:
                parameter.regularizer = paddle.regularizer.L2Decay(0.0)
        return paddle.optimizer.Momentum(
            momentum=hyper["momentum"],
            # coupled: added to the gradient of all parameters without their own regularizer
            weight_decay=paddle.regularizer.L2Decay(hyper["weight_decay"]),
            use_multi_tensor=True,  # one update for all parameters, as in Momentum's reference
            **common,
        )
    limit = hyper.get("clip_global_norm")
    common.update(beta1=hyper["beta1"], beta2=hyper["beta2"], epsilon=hyper["epsilon"])
    common.update(grad_clip=None if limit is None else nn.ClipGradByGlobalNorm(limit))
    if hyper["optimizer"] == "lamb":
        all_scaled = all(rule.trust_ratio for rule in rules.values())
        if not all_scaled and any(bool(r.weight_decay) != r.trust_ratio for r in rules.values()):
            raise Unsupported(
                "PaddlePaddle's Lamb applies trust ratios either to parameters with weight decay "
                "or to all"
            )
        return paddle.optimizer.Lamb(
            lamb_weight_decay=hyper["weight_decay"],
            exclude_from_weight_decay_fn=lambda weight: not rules[weight.name].weight_decay,
            always_adapt=all_scaled,
            **common,
        )
    for parameter in model.parameters():  # not AdamW's lr_ratio, which exists on GPUs only
        if parameter.name in rules:
            parameter.optimize_attr["learning_rate"] = rules[parameter.name].rate_factor
    return paddle.optimizer.AdamW(
        weight_decay=hyper["weight_decay"],
        apply_decay_param_fun=lambda name: bool(rules[name].weight_decay),
        **common,
    )
