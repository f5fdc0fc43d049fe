"""Dtypes and sizes of the matmuls and convolutions of a forward pass, observed as they run."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

# operators of F.linear, conv2d and matmul after autocast has chosen the dtype
ONE_MATMUL = {
    *("mm", "addmm", "bmm", "baddbmm", "linear", "_addmm_activation"),
    *("convolution", "cudnn_convolution", "mkldnn_convolution", "mkldnn_linear"),
    "_scaled_mm",  # float8
    "_grouped_mm",  # rows times the matrix of their expert
}
# tensors that wrap others: their operations are dispatched again as operations of the wrapped
# tensors
WRAPPERS = {"DTensor", "Float8TrainingTensor"}
# fused attention in all its variants: queries by keys, probabilities by values; recurrent layers:
# inputs by their weights, the previous step's outputs by their weights
TWO_MATMULS = ("_scaled_dot_product_", "mkldnn_rnn_layer", "_cudnn_rnn")


def _attention_flops(query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query.shape, key.shape, value.shape))


def _grouped_flops(x: Tensor, matrices: Tensor, *_: Any, **__: Any) -> int:
    return 2 * x.numel() * matrices.shape[-1]


#: PyTorch's formulas for floating-point operations, two for each multiply-add, and missing ones.
FORMULAS: Dict[Any, Callable[..., int]] = {
    **flop_registry,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention_flops,
    torch.ops.aten._grouped_mm: _grouped_flops,
}


class Watch(TorchDispatchMode):
    """Counts of the operations that reach the kernels below it.

    ``matmuls``: by the dtype of their operands; ``results``: operations that return floating-point
    numbers, by dtype; ``multiply_adds``: None where a matmul has no formula."""

    def __init__(self) -> None:
        super().__init__()
        self.matmuls: Dict[str, int] = Counter()
        self.results: Dict[str, int] = Counter()
        self.multiply_adds: Optional[int] = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: the watched model is not compiled, and PyTorch would import Dynamo only to
        skip it, which takes longer than the forward pass."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Tuple[Any, ...] = (),
        kwargs: Dict[str, Any] | None = None,
    ) -> Any:
        if any(kind.__name__ in WRAPPERS for kind in types):
            return NotImplemented
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.is_floating_point():
                self.results[_name(leaf.dtype)] += 1
        kernel = func.overloadpacket
        name = kernel.__name__
        count = 1 if name in ONE_MATMUL else 2 if name.startswith(TWO_MATMULS) else 0
        if count and not any(map(_has_shape_alone, args)):
            # the first tensor stands for all: these kernels refuse operands of different dtypes
            operand = next(argument for argument in args if isinstance(argument, Tensor))
            self.matmuls[_name(operand.dtype.to_real())] += count
            if kernel not in FORMULAS:
                self.multiply_adds = None
            elif self.multiply_adds is not None:
                flops = FORMULAS[kernel](*args, **(kwargs or {}), out_val=result)
                self.multiply_adds += flops // 2 * (4 if operand.is_complex() else 1)
        return result


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _has_shape_alone(argument: Any) -> bool:
    """Return whether an argument is a meta or fake tensor, which has no data.

    DTensor learns the shape of a result in this way, once."""
    return isinstance(argument, Tensor) and (
        argument.is_meta or type(argument).__name__ == "FakeTensor"
    )


def watch(model: nn.Module, forward: Callable[[], Any], device: torch.device) -> Watch:
    """Watch one ``forward()``, and restore the buffers of ``model`` (running statistics) and the
    random state.

    It runs in the mode ``model`` is in: with dropout, attention may take another kernel than
    without. It runs without gradients, but not in inference mode, where composite operators are
    dispatched instead of their parts."""
    kept = [buffer.clone() for buffer in model.buffers()]
    generators = torch.random.fork_rng([device] if device.type == "cuda" else [])
    with generators, torch.no_grad(), Watch() as watching:
        forward()
    with torch.no_grad():
        for buffer, before in zip(model.buffers(), kept, strict=True):
            buffer.copy_(before)
    return watching
