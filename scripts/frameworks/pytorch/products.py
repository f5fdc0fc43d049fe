"""In which dtype the products and convolutions of a forward pass run: watched, not assumed."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict, Tuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

# what F.linear, conv2d and matmul become once autocast has chosen the dtype
ONE_PRODUCT = {
    *("mm", "addmm", "bmm", "baddbmm", "linear", "_addmm_activation"),
    *("convolution", "cudnn_convolution", "mkldnn_convolution", "mkldnn_linear"),
}
# fused attention in all its variants: queries by keys, probabilities by values
TWO_PRODUCTS = "_scaled_dot_product_"


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


def count(model: nn.Module, forward: Callable[[], Any], device: torch.device) -> Dict[str, int]:
    """Products of one ``forward()`` by dtype; buffers of ``model`` (running statistics) and the
    random state are left as they were.

    ``forward`` runs in the mode ``model`` is in: with dropout, attention may take another kernel
    than without. Without gradients, but not in inference mode, whose dispatch shows the composite
    operators and not what they become.
    """
    kept = [buffer.clone() for buffer in model.buffers()]
    with torch.random.fork_rng([device] if device.type == "cuda" else []), torch.no_grad():
        with ProductCounter() as counter:
            forward()
        for buffer, before in zip(model.buffers(), kept, strict=True):
            buffer.copy_(before)
    return dict(counter.dtypes)
