"""Write checkpoints of TensorFlow; one is merged of two and has two data files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

arrays, folder = dict(np.load(sys.argv[1])), sys.argv[2]
names = sorted(arrays)


def saved(stem: str, names: Sequence[str], dtype: Any = None) -> str:
    tensors = [tf.constant(arrays[name]) for name in names]
    tensors = [tf.cast(tensor, dtype) for tensor in tensors] if dtype else tensors
    prefix = f"{folder}/{stem}"
    tf.raw_ops.SaveV2(
        prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors
    )
    return prefix


parts = [saved("a", names[::2]), saved("b", names[1::2])]
tf.raw_ops.MergeV2Checkpoints(
    checkpoint_prefixes=parts, destination_prefix=f"{folder}/model.ckpt", delete_old_dirs=False
)
for name, dtype in (("half", tf.float16), ("brain", tf.bfloat16), ("double", tf.float64)):
    saved(f"{name}.ckpt", [name for name in names if not name.startswith("many/")], dtype)
