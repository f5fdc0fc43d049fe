"""Layers of a network, the methods by which a family adds them, the arrays that they hold, and the
rules by which arrays are initialized, from the fan-in and fan-out of their layer."""

from __future__ import annotations

from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

#: Distribution of initial values: ``("normal", standard deviation)`` around zero,
#: ``("uniform", bound)`` between -bound and bound, or ``("constant", value)``.
Initial = Tuple[str, float]
#: Function of fan-in (number of inputs of each output) and fan-out (number of outputs of each
#: input).
Rule = Callable[[int, int], Initial]
ZERO: Initial = ("constant", 0.0)
ONE: Initial = ("constant", 1.0)

#: Input of layers that read the images themselves.
IMAGES = "images"

#: One number for both directions, or one for rows and one for columns.
Extent = Union[int, Sequence[int]]


def normal(deviation: float) -> Rule:
    return lambda fan_in, fan_out: ("normal", deviation)


def constant(value: float) -> Rule:
    return lambda fan_in, fan_out: ("constant", value)


def by_fan_in(fan_in: int, fan_out: int) -> Initial:
    """Return PyTorch's own initial values of weights and biases."""
    return "uniform", fan_in**-0.5


def he_normal_in(fan_in: int, fan_out: int) -> Initial:
    """Return a normal distribution by the fan-in (He et al. 2015, arXiv:1502.01852)."""
    return "normal", (2 / fan_in) ** 0.5


def he_normal_out(fan_in: int, fan_out: int) -> Initial:
    return "normal", (2 / fan_out) ** 0.5


def he_uniform_in(fan_in: int, fan_out: int) -> Initial:
    return "uniform", (6 / fan_in) ** 0.5


def lecun_uniform_out(fan_in: int, fan_out: int) -> Initial:
    return "uniform", (3 / fan_out) ** 0.5


class Initials(NamedTuple):
    """Initial distributions of a network family's convolutions and linear layers, for layers
    without their own."""

    convolution: Rule = by_fan_in
    convolution_bias: Rule = by_fan_in
    linear: Rule = by_fan_in
    linear_bias: Rule = by_fan_in


class SampleShape(NamedTuple):
    """Shape of one sample; after a global pool, a flattening or a linear layer 1 x 1 x channels."""

    height: int
    width: int
    channels: int


class Layer(NamedTuple):
    """One operation. Its arrays are named ``NAME.weight``, ``NAME.bias``, ``NAME.running_mean`` and
    ``NAME.running_var``.

    The values of ``op``, each with its further fields:

    - ``convolution``: ``kernel`` and ``padding`` (rows, columns; the padding on either side),
      ``stride``, ``groups``, ``bias``, ``initial``, ``initial_bias``;
    - ``batch_norm``: ``epsilon``, ``momentum`` (the share of the new statistics);
    - ``relu``, ``relu6``, ``add``, ``concatenate`` (channels), ``flatten`` (rows, columns,
      channels), ``global_average_pool``: none;
    - ``max_pool``: ``kernel``, ``stride``, ``padding``, ``ceil`` (whether a last window may reach
      over the end), ``extra`` (rows and columns that it reaches over, beyond the padding);
    - ``average_pool``: ``kernel``, ``stride``, ``padding``, which counts in the mean;
    - ``adaptive_average_pool``: ``size``; window i of n begins at floor(i * extent / n) and ends
      before ceil((i + 1) * extent / n);
    - ``linear``: ``bias``, ``initial``, ``initial_bias``; ``dropout``: ``rate``;
    - ``channels``: ``begin``, ``end``; ``shuffle``: ``groups``; the first channels of all groups
    come first.
    """

    name: str
    op: str
    inputs: Tuple[str, ...]
    shape: SampleShape
    in_shape: SampleShape
    kernel: Any = None
    stride: int = 1
    padding: Any = 0
    ceil: bool = False
    extra: Tuple[int, int] = (0, 0)
    groups: int = 1
    bias: bool = False
    initial: Initial = ("constant", 0.0)
    initial_bias: Initial = ("constant", 0.0)
    epsilon: float = 0.0
    momentum: float = 0.0
    size: int = 0
    rate: float = 0.0
    begin: int = 0
    end: int = 0

    @property
    def channels(self) -> int:
        """Number of channels of the output, or of features of a linear layer."""
        return self.shape.channels

    @property
    def in_channels(self) -> int:
        """Number of channels of the first input."""
        return self.in_shape.channels

    @property
    def window(self) -> Tuple[Any, int, Any]:
        """Kernel, stride and padding, in the order in which most frameworks take them."""
        return self.kernel, self.stride, self.padding


class LayerGraph(NamedTuple):
    """Layers of a network, in an order in which each follows its inputs.

    ``outputs``: the layer with the logits, then those of auxiliary heads, which exist only in
    training. ``auxiliary``: the layers that only training computes; their weights exist in
    inference too."""

    layers: Tuple[Layer, ...]
    outputs: Tuple[str, ...]
    auxiliary: FrozenSet[str]


class Layers:
    """The layers of a network as a family adds them. Every method that adds a layer returns its
    name, which a later layer takes as its input."""

    def __init__(self, hyper: Mapping[str, Any], images: SampleShape) -> None:
        self.hyper = hyper
        self.initials = Initials()
        self._layers: List[Layer] = []
        self._shapes: Dict[str, SampleShape] = {IMAGES: images}
        self._heads: List[str] = []
        self._auxiliary: List[str] = []

    def network(self, logits: str) -> LayerGraph:
        """Return the network of all layers; ``logits``: name of the layer that returns them."""
        return LayerGraph(tuple(self._layers), (logits, *self._heads), frozenset(self._auxiliary))

    def head(self, logits: str, first: int) -> None:
        """Mark the layers from index ``first`` on as an auxiliary head with the output ``logits``,
        whose weight in the loss is the hyper-parameter ``auxiliary_weight``."""
        self._heads.append(logits)
        self._auxiliary += [layer.name for layer in self._layers[first:]]

    def __len__(self) -> int:
        return len(self._layers)

    def shape(self, name: str) -> SampleShape:
        return self._shapes[name]

    def convolution(
        self,
        x: str,
        name: str,
        channels: int,
        kernel: Extent,
        stride: int = 1,
        padding: Optional[Extent] = None,
        groups: int = 1,
        bias: bool = False,
        initial: Optional[Rule] = None,
    ) -> str:
        """Add a convolution, padded by half of the kernel by default."""
        rows, columns = kernel = _pair(kernel)
        padding = (rows // 2, columns // 2) if padding is None else _pair(padding)
        before = self.shape(x)
        height = _places(before.height, rows, stride, padding[0])
        width = _places(before.width, columns, stride, padding[1])
        if before.channels % groups or channels % groups:
            raise ValueError(
                f"{name}: {before.channels} or {channels} channels cannot be divided into "
                f"{groups} groups"
            )
        rule = initial or self.initials.convolution
        fans = rows * columns * before.channels // groups, rows * columns * channels
        return self._add(
            name, "convolution", [x], SampleShape(height, width, channels), kernel=kernel,
            stride=stride, padding=padding, groups=groups, bias=bias, initial=rule(*fans),
            initial_bias=self.initials.convolution_bias(*fans),
        )  # fmt: skip

    def batch_norm(self, x: str, name: str) -> str:
        epsilon, momentum = self.hyper["batch_norm_epsilon"], self.hyper["batch_norm_momentum"]
        return self._same(x, name, "batch_norm", epsilon=epsilon, momentum=momentum)

    def relu(self, x: str, name: str) -> str:
        return self._same(x, name, "relu")

    def relu6(self, x: str, name: str) -> str:
        return self._same(x, name, "relu6")

    def dropout(self, x: str, name: str, key: str = "dropout") -> str:
        """Add dropout. ``key``: hyper-parameter with its rate."""
        return self._same(x, name, "dropout", rate=self.hyper[key])

    def max_pool(
        self, x: str, name: str, kernel: int, stride: int, padding: int = 0, ceil: bool = False
    ) -> str:
        before = self.shape(x)
        sizes, extra = [], []
        for extent in before[:2]:
            places = _places(extent, kernel, stride, padding)
            if ceil:
                places = -((extent + 2 * padding - kernel) // -stride) + 1
                # the window would begin after the input
                if (places - 1) * stride >= extent + padding:
                    places -= 1
            sizes.append(places)
            extra.append(max(0, (places - 1) * stride + kernel - extent - 2 * padding))
        return self._add(
            name, "max_pool", [x], SampleShape(sizes[0], sizes[1], before.channels), kernel=kernel,
            stride=stride, padding=padding, ceil=ceil, extra=(extra[0], extra[1]),
        )  # fmt: skip

    def average_pool(self, x: str, name: str, kernel: int, stride: int, padding: int = 0) -> str:
        height, width, channels = self.shape(x)
        window = {"kernel": kernel, "stride": stride, "padding": padding}
        rows, columns = (_places(extent, **window) for extent in (height, width))
        return self._add(name, "average_pool", [x], SampleShape(rows, columns, channels), **window)

    def adaptive_average_pool(self, x: str, name: str, size: int) -> str:
        """Pool to size x size by averages; add nothing where the input has this size."""
        before = self.shape(x)
        if before[:2] == (size, size):
            return x
        shape = SampleShape(size, size, before.channels)
        return self._add(name, "adaptive_average_pool", [x], shape, size=size)

    def global_average_pool(self, x: str, name: str) -> str:
        shape = SampleShape(1, 1, self.shape(x).channels)
        return self._add(name, "global_average_pool", [x], shape)

    def flatten(self, x: str, name: str) -> str:
        height, width, channels = self.shape(x)
        return self._add(name, "flatten", [x], SampleShape(1, 1, height * width * channels))

    def linear(self, x: str, name: str, features: int, initial: Optional[Rule] = None) -> str:
        fans = self.shape(x).channels, features
        return self._add(
            name, "linear", [x], SampleShape(1, 1, features), bias=True,
            initial=(initial or self.initials.linear)(*fans),
            initial_bias=self.initials.linear_bias(*fans),
        )  # fmt: skip

    def add(self, inputs: Sequence[str], name: str) -> str:
        return self._add(name, "add", inputs, self.shape(inputs[0]))

    def concatenate(self, inputs: Sequence[str], name: str) -> str:
        if len(inputs) == 1:
            return inputs[0]
        channels = sum(self.shape(x).channels for x in inputs)
        shape = self.shape(inputs[0])._replace(channels=channels)
        return self._add(name, "concatenate", inputs, shape)

    def channels(self, x: str, name: str, begin: int, end: int) -> str:
        shape = self.shape(x)._replace(channels=end - begin)
        return self._add(name, "channels", [x], shape, begin=begin, end=end)

    def shuffle(self, x: str, name: str, groups: int) -> str:
        return self._same(x, name, "shuffle", groups=groups)

    def _same(self, x: str, name: str, op: str, **attributes: Any) -> str:
        return self._add(name, op, [x], self.shape(x), **attributes)

    def _add(
        self, name: str, op: str, inputs: Sequence[str], shape: SampleShape, **attributes: Any
    ) -> str:
        if name in self._shapes:
            raise ValueError(f"two layers are named {name}")
        if min(shape) < 1:
            raise ValueError(
                f"{name}: the images are too small: the output would have the shape {tuple(shape)}"
            )
        before = self.shape(inputs[0])
        self._shapes[name] = shape
        self._layers.append(Layer(name, op, tuple(inputs), shape, before, **attributes))
        return name


def _pair(extent: Extent) -> Tuple[int, int]:
    if isinstance(extent, int):
        return extent, extent
    rows, columns = extent
    return rows, columns


def _places(extent: int, kernel: int, stride: int, padding: int) -> int:
    """Return the number of positions of a window that stays within the padded input."""
    return (extent + 2 * padding - kernel) // stride + 1


class Weight(NamedTuple):
    """Convolutions are (rows, columns, in / groups, out), linear layers (in, out). ``trained``: a
    parameter, not a running statistic."""

    shape: Tuple[int, ...]
    initial: Initial
    trained: bool = True


def weights(network: LayerGraph) -> Dict[str, Weight]:
    """Return every parameter and running statistic by name, in the order of the layers."""
    return {
        f"{layer.name}.{ending}": weight
        for layer in network.layers
        for ending, weight in _held(layer).items()
    }


def _held(layer: Layer) -> Dict[str, Weight]:
    """Return the arrays of a layer, by the endings of their names."""
    channels = (layer.channels,)
    if layer.op == "batch_norm":
        return {
            "weight": Weight(channels, ONE),
            "bias": Weight(channels, ZERO),
            "running_mean": Weight(channels, ZERO, trained=False),
            "running_var": Weight(channels, ONE, trained=False),
        }
    if layer.op not in ("convolution", "linear"):
        return {}
    window = layer.kernel if layer.op == "convolution" else ()
    shape = (*window, layer.in_channels // layer.groups, layer.channels)
    held = {"weight": Weight(shape, layer.initial)}
    return {**held, "bias": Weight(channels, layer.initial_bias)} if layer.bias else held


def initialize(
    parameters: Iterable[Tuple[str, Any]],
    weights: Mapping[str, Weight],
    initializers: Mapping[str, Callable[[Any, float], Any]],
) -> None:
    """Draw the named parameters of a model anew. ``initializers``: by distribution, functions that
    fill a tensor of the framework; they take the deviation, bound or value."""
    for name, parameter in parameters:
        if name in weights:
            distribution, value = weights[name].initial
            initializers[distribution](parameter, value)
