"""In which dtype the products and convolutions of a forward pass run: watched, not assumed."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any, Callable, Dict, Iterator, Tuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

# what F.linear, conv2d and matmul become once autocast has chosen the dtype
ONE_PRODUCT = {
    *("mm", "addmm", "bmm", "baddbmm", "linear", "_addmm_activation"),
    *("convolution", "cudnn_convolution", "mkldnn_convolution", "mkldnn_linear"),
}
# fused attention in all its variants: queries by keys, probabilities by values
TWO_PRODUCTS = "_scaled_dot_product_"


# the only fused attention that PyTorch's counter has no formula for
CPU_ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


def _attention_flops(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    """Of the shapes (batch, heads, sequence, size)."""
    return int(sdpa_flop_count(query, key, value))


class ProductCounter(TorchDispatchMode):
    """Counts the products that reach the kernels below it, by the dtype of their operands."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: Counter[str] = Counter()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Tuple[Any, ...] = (),
        kwargs: Dict[str, Any] | None = None,
    ) -> Any:
        name = func.overloadpacket.__name__
        products = 1 if name in ONE_PRODUCT else 2 if name.startswith(TWO_PRODUCTS) else 0
        if products:
            # the first tensor stands for all: these kernels refuse operands of different dtypes
            operand = next(argument for argument in args if isinstance(argument, Tensor))
            self.dtypes[str(operand.dtype).removeprefix("torch.")] += products
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def _unchanged(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Buffers of ``model`` (running statistics) and the random state are left as they were."""
    kept = [buffer.clone() for buffer in model.buffers()]
    with torch.random.fork_rng([device] if device.type == "cuda" else []), torch.no_grad():
        yield
        for buffer, before in zip(model.buffers(), kept, strict=True):
            buffer.copy_(before)


def count(model: nn.Module, forward: Callable[[], Any], device: torch.device) -> Dict[str, int]:
    """Products of one ``forward()`` by dtype.

    ``forward`` runs in the mode ``model`` is in: with dropout, attention may take another kernel
    than without. Without gradients, but not in inference mode, whose dispatch shows the composite
    operators and not what they become.
    """
    with _unchanged(model, device), ProductCounter() as counter:
        forward()
    return dict(counter.dtypes)


def multiply_adds(model: nn.Module, forward: Callable[[], Any], device: torch.device) -> int:
    """Multiply-adds of one ``forward()`` by PyTorch's own counter of floating-point operations,
    which counts products and convolutions alone, two for each."""
    counter = FlopCounterMode(display=False, custom_mapping={CPU_ATTENTION: _attention_flops})
    with _unchanged(model, device), counter:
        forward()
    return int(counter.get_total_flops()) // 2
