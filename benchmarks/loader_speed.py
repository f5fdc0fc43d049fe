"""Throughput and memory of each framework's loader in the harness, against a hand-written loop.

    .venv/bin/python benchmarks/loader_speed.py [--images 240] [--rounds 10] [--workers 1]

Each loop runs an epoch in turn in one process. Memory is measured over ten epochs, after ten of
warm-up, in which allocators and graph caches reach their size. Goals: at least 0.95 of the images/s
of the hand-written loop, in the median of the rounds; resident memory that does not grow from epoch
to epoch: the slope's 95 % interval includes zero or less, or the slope is below 0.1 % of the memory
per epoch. Runs in the environments that the workflow built. In the hand-written loops the framework
draws the crops, so they differ from the harness's but are of the same kind.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FRAMEWORKS = (
    "pytorch",
    "tensorflow",
    "tensorflow1",
    "paddle",
    "mxnet",
    "oneflow",
    "jax",
    "mindspore",
)
GOAL, GROWTH = 0.95, 0.001
#: Epochs of warm-up after the rounds, and epochs whose memory is measured.
WARM_UP, EPOCHS = 10, 10
SIZE, BATCH = 224, 8
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


# ---- hand-written loops, in a framework's environment --------------------------------------


def pytorch(root: str, workers: int) -> Callable[[], int]:
    """Return a function that loads one epoch as PyTorch's ImageNet example does, and returns the
    number of images."""
    import torch
    from framework_under_test.models.torchvision.cnn import models

    models()  # imports torchvision, which needs help with a PyTorch for CPUs
    from torchvision import datasets
    from torchvision.transforms import v2

    steps = [
        v2.RandomResizedCrop(SIZE),
        v2.RandomHorizontalFlip(),
        v2.PILToTensor(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, DEVIATION),
    ]
    images = datasets.ImageFolder(f"{root}/train", v2.Compose(steps))

    def epoch() -> int:
        loader = torch.utils.data.DataLoader(images, BATCH, shuffle=True, num_workers=workers)
        return sum(len(labels) for _, labels in loader)

    return epoch


def tensorflow_data(root: str, workers: int) -> Any:
    """Return the dataset of TensorFlow's image loading guide, resized with antialiasing as in the
    harness."""
    import tensorflow as tf

    files = sorted(str(path) for path in Path(root, "train").rglob("*.JPEG"))

    def sample(path: Any) -> Any:
        image = tf.io.decode_jpeg(tf.io.read_file(path), 3, dct_method="INTEGER_ACCURATE")
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.shape(image), tf.zeros((1, 0, 4)), area_range=(0.08, 1.0), max_attempts=10,
            aspect_ratio_range=(3 / 4, 4 / 3), use_image_if_no_bounding_boxes=True,
        )  # fmt: skip
        resize = tf.compat.v2.image.resize  # TensorFlow 1's own resize is not antialiased
        image = resize(tf.slice(image, begin, size), (SIZE, SIZE), antialias=True)
        image = tf.image.random_flip_left_right(image)
        return (image / 255.0 - tf.constant(MEAN)) / tf.constant(DEVIATION)

    data = tf.data.Dataset.from_tensor_slices(files).shuffle(len(files))
    data = data.map(sample, num_parallel_calls=workers or None).batch(BATCH)
    data = data.prefetch(2) if workers else data
    options = tf.data.Options()
    threads = "threading" if hasattr(options, "threading") else "experimental_threading"
    getattr(options, threads).private_threadpool_size = max(1, workers)
    return data.with_options(options)


def tensorflow(root: str, workers: int) -> Callable[[], int]:
    def epoch() -> int:
        return sum(len(images.numpy()) for images in tensorflow_data(root, workers))

    return epoch


def tensorflow1(root: str, workers: int) -> Callable[[], int]:
    """Return a function that loads one epoch, by a graph that is built once as in the harness, and
    returns the number of images."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph, tf.device("/CPU:0"):
        data = tensorflow_data(root, workers)
        iterator = tf.compat.v1.data.make_initializable_iterator(data)
        following = iterator.get_next()
    session = tf.compat.v1.Session(graph=graph)
    batch = session.make_callable(following)

    def epoch() -> int:
        session.run(iterator.initializer)
        count = 0
        while True:
            try:
                count += len(batch())
            except tf.errors.OutOfRangeError:
                return count

    return epoch


def paddle(root: str, workers: int) -> Callable[[], int]:
    """Return a function that loads one epoch as Paddle's image classification example does, and
    returns the number of images."""
    import numpy as np
    import paddle as framework
    from paddle.vision import datasets, transforms

    def levels(image: Any) -> Any:
        return np.asarray(image, np.float32) / np.float32(255)

    steps = [
        transforms.RandomResizedCrop(SIZE),
        transforms.RandomHorizontalFlip(),
        levels,
        transforms.Normalize(MEAN, DEVIATION, data_format="HWC"),
    ]
    images = datasets.DatasetFolder(f"{root}/train", transform=transforms.Compose(steps))

    def epoch() -> int:
        loader = framework.io.DataLoader(
            images, batch_size=BATCH, shuffle=True, num_workers=workers, return_list=True,
            places=framework.CPUPlace(),
        )  # fmt: skip
        return sum(len(labels) for _, labels in loader)

    return epoch


def mxnet(root: str, workers: int) -> Callable[[], int]:
    """Return the loop of Gluon's image classification example, with area resizing as in the
    harness."""
    from mxnet.gluon.data import DataLoader, vision

    steps = [
        vision.transforms.RandomResizedCrop(SIZE, interpolation=3),
        vision.transforms.RandomFlipLeftRight(),
        vision.transforms.ToTensor(),
        vision.transforms.Normalize(MEAN, DEVIATION),
    ]
    images = vision.ImageFolderDataset(f"{root}/train")
    images = images.transform_first(vision.transforms.Compose(steps))

    def epoch() -> int:
        loader = DataLoader(
            images, BATCH, shuffle=True, num_workers=workers, last_batch="keep", timeout=120
        )
        return sum(len(labels.asnumpy()) for _, labels in loader)

    return epoch


class ByHand:
    """Samples decoded and augmented by Pillow, for frameworks without image operations."""

    def __init__(self, root: str) -> None:
        files = sorted(Path(root, "train").rglob("*.JPEG"))
        classes = sorted({path.parent.name for path in files})
        self._samples = [(str(path), classes.index(path.parent.name)) for path in files]

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        import numpy as np
        from PIL import Image

        path, label = self._samples[number]
        with Image.open(path) as file:
            image = file.convert("RGB")
        left, top, wide, tall = self._box(*image.size)
        image = image.crop((left, top, left + wide, top + tall))
        image = image.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        levels = np.asarray(image, np.float32) / np.float32(255)
        return (levels - np.float32(MEAN)) / np.float32(DEVIATION), label

    @staticmethod
    def _box(width: int, height: int) -> tuple[int, int, int, int]:
        for _ in range(10):
            area = width * height * random.uniform(0.08, 1.0)
            ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
            wide, tall = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < wide <= width and 0 < tall <= height:
                return random.randint(0, width - wide), random.randint(0, height - tall), wide, tall
        side = min(width, height)
        return (width - side) // 2, (height - side) // 2, side, side


def stacked(samples: list[Any]) -> list[Any]:
    import numpy as np

    return [np.stack(values) for values in zip(*samples, strict=True)]


def oneflow(root: str, workers: int) -> Callable[[], int]:
    """Return the loop of OneFlow's examples, with numpy arrays from its workers."""
    from oneflow.utils.data import DataLoader

    images = ByHand(root)

    def epoch() -> int:
        loader = DataLoader(
            images, batch_size=BATCH, shuffle=True, num_workers=workers, collate_fn=stacked
        )
        return sum(len(labels) for _, labels in loader)

    return epoch


def jax(root: str, workers: int) -> Callable[[], int]:
    """Return the loop of Grain's tutorial; a worker reads by itself, as in the harness."""
    import grain
    from absl import flags

    if not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()  # required by Grain
    images = ByHand(root)

    def epoch() -> int:
        data = grain.MapDataset.source(images).shuffle(seed=0).batch(BATCH)
        read = data.to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0))
        if workers:
            read = read.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers))
        return sum(len(labels) for _, labels in read)

    return epoch


def mindspore(root: str, workers: int) -> Callable[[], int]:
    """Return a loop of MindSpore's DataLoader with its transforms for images of Pillow."""
    import numpy as np
    from mindspore.dataset import vision
    from mindspore.dataset.dataloader import DataLoader

    decode, crop = vision.Decode(to_pil=True), vision.RandomResizedCrop(SIZE)
    flip = vision.RandomHorizontalFlip()
    normalize = vision.Normalize([255 * m for m in MEAN], [255 * d for d in DEVIATION])
    files = sorted(Path(root, "train").rglob("*.JPEG"))
    classes = sorted({path.parent.name for path in files})

    class DecodedImages:
        def __len__(self) -> int:
            return len(files)

        def __getitem__(self, number: int) -> tuple[Any, int]:
            image = flip(crop(decode(np.fromfile(files[number], np.uint8))))
            return normalize(np.asarray(image)), classes.index(files[number].parent.name)

    def epoch() -> int:
        loader = DataLoader(DecodedImages(), batch_size=BATCH, shuffle=True, num_workers=workers)
        return sum(len(labels) for _, labels in loader)

    return epoch


# ---- in a framework's environment -----------------------------------------------------------


def resident() -> int:
    """Return the bytes of resident memory, after glibc has released unused memory of threads.
    That memory grows for dozens of epochs if threads free what others allocated."""
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(framework: str, root: str, rounds: int, workers: int) -> None:
    """Print seconds of each epoch by loop, and resident bytes after each harness epoch, as JSON."""
    sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "benchmarks")]
    import in_turn
    from harness.adapter import Case, RankContext
    from harness.measuring.loading import load_adapter
    from harness.request.declaration import read_model
    from harness.samples import folder, order, supply

    model_config = read_model(str(ROOT / "scripts/models/resnet50_v1.5.json"))
    case = Case(framework, "resnet50_v1.5", "train", 1, 1, BATCH, "fp32", "none", None)
    rank_context = RankContext(0, 0, ["127.0.0.1:0"], "cpu", 1, 0)
    adapter: Any = load_adapter(str(ROOT / "scripts/frameworks" / framework))(
        case, model_config, rank_context
    )
    adapter.start()
    images = folder.scan(root, folder.TRAIN, folder.REFUSE)
    places = order.epoch(images, folder.TRAIN, 0, 0, 0, 1)
    loads = order.loads(images, places, folder.TRAIN, 0, 0, BATCH, SIZE, workers)

    def ours() -> None:
        count = sum(len(batch.numbers) for batch in supply.batches(adapter, loads, root))
        assert count == len(images.paths), "an epoch"

    by_hand = globals()[framework](root, workers)

    def theirs() -> None:
        assert by_hand() == len(images.paths), "an epoch"

    seconds = in_turn.measure({"ours": ours, "by hand": theirs}, rounds, 1)
    memory = []
    for number in range(WARM_UP + EPOCHS):
        ours()
        if number >= WARM_UP:
            memory.append(resident())
    print(json.dumps({"seconds": seconds, "memory": memory}))


# ---- in the driver's environment ------------------------------------------------------------


def slope(values: list[int]) -> tuple[float, float, float]:
    """Return the least-squares slope of ``values``, with its 95 % interval.
    Residuals are assumed to be independent and normal."""
    from scipy import stats

    found = stats.linregress(range(len(values)), values)
    half = stats.t.ppf(0.975, len(values) - 2) * found.stderr
    return found.slope, found.slope - half, found.slope + half


def compared(framework: str, root: str, rounds: int, workers: int) -> bool:
    """Print a framework's figures, and return whether it reaches both goals."""
    import in_turn
    from framebench.environments.venvs import read_environment_file

    environment = read_environment_file(ROOT / "envs" / f"{framework}.yaml")
    python = ROOT / ".venvs" / environment.name / "bin" / "python"
    if not python.exists():
        print(f"{framework}: no environment in .venvs: run the workflow first")
        return False
    ran = subprocess.run(
        [str(python), __file__, "--inside", framework, "--data", root,
         f"--rounds={rounds}", f"--workers={workers}"],
        stdout=subprocess.PIPE, text=True, check=True, cwd=tempfile.gettempdir(),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    content = json.loads(ran.stdout.splitlines()[-1])
    rate, low, high = in_turn.ratio(content["seconds"]["ours"], content["seconds"]["by hand"])
    growth, least, most = (bytes_ / 1e6 for bytes_ in slope(content["memory"]))
    held = content["memory"][0] / 1e6
    steady = least <= 0 or growth < GROWTH * held
    print(
        f"{framework:11}{in_turn.milliseconds(content['seconds']['ours'])} an epoch, by hand"
        f"{in_turn.milliseconds(content['seconds']['by hand'])}: {rate:.3f} of its rate "
        f"({low:.3f} to {high:.3f}; goal: at least {GOAL}); memory {held:.0f} MB, "
        f"{growth:+.2f} MB an epoch ({least:+.2f} to {most:+.2f})"
    )
    return rate >= GOAL and steady


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=240)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--frameworks", nargs="+", choices=FRAMEWORKS, default=FRAMEWORKS)
    parser.add_argument(
        "--data", help="a folder of images that make-data made, instead of a new one"
    )
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        measure(options.inside, options.data, options.rounds, options.workers)
        return 0
    sys.path[:0] = [str(ROOT / "workflow"), str(ROOT / "benchmarks")]
    from framebench.features.datasets import image_folder

    with tempfile.TemporaryDirectory() as name:
        if options.data is None:
            image_folder.make(Path(name), options.images, seed=0)
        root = options.data or name
        good = [
            compared(framework, root, options.rounds, options.workers)
            for framework in options.frameworks
        ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
