"""Dtypes and sizes of the matmuls and convolutions of a forward pass, observed as they run."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

import torch
from harness.adapter import ExecutedMatmul
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

# what F.linear, conv2d and matmul become once autocast has chosen the dtype
ONE_MATMUL = {
    *("mm", "addmm", "bmm", "baddbmm", "linear", "_addmm_activation"),
    *("convolution", "cudnn_convolution", "mkldnn_convolution", "mkldnn_linear"),
    "_scaled_mm",  # of float8
    "_grouped_mm",  # rows by the matrix of their expert
}
# tensors that hold others: what is done with them comes back as what is done with those
WRAPPERS = {"DTensor", "Float8TrainingTensor"}
# fused attention in all its variants: queries by keys, probabilities by values; recurrent layers:
# inputs by their weights, the outputs of the step before by theirs
TWO_MATMULS = ("_scaled_dot_product_", "mkldnn_rnn_layer", "_cudnn_rnn")


def _attention_flops(query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query.shape, key.shape, value.shape))


def _recurrent_flops(x: Tensor, *arguments: Any, **_: Any) -> int:
    """Return the operations of recurrent layers in one kernel: every row of every step times every
    matrix.

    Gates stand side by side in a matrix. Of several layers, all but the first take the output of
    the previous one."""
    several = isinstance(arguments[0], list)
    weights: Sequence[Tensor] = arguments[0] if several else arguments[:2]
    return 2 * (x.numel() // x.shape[-1]) * sum(w.numel() for w in weights if w.dim() == 2)


def _grouped_flops(x: Tensor, matrices: Tensor, *_: Any, **__: Any) -> int:
    return 2 * x.numel() * matrices.shape[-1]


# those that PyTorch's counter has no formula for
FORMULAS = {
    **flop_registry,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention_flops,
    torch.ops.aten.mkldnn_rnn_layer: _recurrent_flops,
    torch.ops.aten._cudnn_rnn: _recurrent_flops,
    torch.ops.aten._grouped_mm: _grouped_flops,
}


class MatmulWatch(TorchDispatchMode):
    """Record of the matmuls that reach the kernels below it, by the dtype of their operands and by
    PyTorch's own formulas for floating-point operations, two for each multiply-add. Matmuls without
    a formula are not counted, which the comparison with the reference shows."""

    def __init__(self) -> None:
        super().__init__()
        self.matmuls: List[ExecutedMatmul] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: the model that is watched is not compiled, and only to skip Dynamo PyTorch
        would import it, which takes longer than the forward pass."""
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
        kernel = func.overloadpacket
        name = kernel.__name__
        count = 1 if name in ONE_MATMUL else 2 if name.startswith(TWO_MATMULS) else 0
        if count and any(_has_shape_alone(argument) for argument in args):
            count = 0
        if count:
            # the first tensor stands for all: these kernels refuse operands of different dtypes
            operand = next(argument for argument in args if isinstance(argument, Tensor))
            dtype = str(operand.dtype.to_real()).removeprefix("torch.")
            formula = FORMULAS.get(kernel)
            operations = formula(*args, **(kwargs or {}), out_val=result) if formula else 0
            operations *= 4 if operand.is_complex() else 1
            self.matmuls += count * [ExecutedMatmul(dtype, operations // 2 // count)]
        return result


def _has_shape_alone(argument: Any) -> bool:
    """Return whether an argument is a meta or fake tensor, of which nothing is computed.

    DTensor learns the shape of a result in this way, once."""
    return isinstance(argument, Tensor) and (
        argument.is_meta or type(argument).__name__ == "FakeTensor"
    )


class ResultWatch(TorchDispatchMode):
    """Counts the operations whose results are floating-point numbers, by their dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: Dict[str, int] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Tuple[Any, ...] = (),
        kwargs: Dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.is_floating_point():
                dtype = str(leaf.dtype).removeprefix("torch.")
                self.dtypes[dtype] = self.dtypes.get(dtype, 0) + 1
        return result


@contextlib.contextmanager
def _unchanged(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Restore the buffers of ``model`` (running statistics) and the random state when the context
    ends."""
    kept = [buffer.clone() for buffer in model.buffers()]
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        yield
    with torch.no_grad():
        for buffer, before in zip(model.buffers(), kept, strict=True):
            buffer.copy_(before)


def watch(
    model: nn.Module, forward: Callable[[], Any], device: torch.device
) -> List[ExecutedMatmul]:
    """Return the matmuls of one ``forward()``.

    ``forward`` runs in the mode ``model`` is in: with dropout, attention may take another kernel
    than without. Without gradients, but not in inference mode, whose dispatch shows the composite
    operators and not what they become.
    """
    with _unchanged(model, device), torch.no_grad(), MatmulWatch() as watching:
        forward()
    return watching.matmuls


def result_dtypes(
    model: nn.Module, forward: Callable[[], Any], device: torch.device
) -> Dict[str, int]:
    """Count the operations of one ``forward()`` that return floating-point numbers, by dtype."""
    with _unchanged(model, device), torch.no_grad(), ResultWatch() as watching:
        forward()
    return watching.dtypes
