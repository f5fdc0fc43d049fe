"""Rounding of half precision: of operands and results of matmuls, of normalisations and of sums of
residuals, also in gradients. Frameworks that keep some of them in float32 are more exact."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy
from autograd.extend import defvjp, primitive

#: Significant bits of bfloat16; the errors of other formats are in proportion to their units.
BITS = 8
#: Lowest bits of a float64 number, of 53 significant ones, that rounding removes.
_REMOVED = 53 - BITS


class Rounded:
    """Switch by which matmuls and :func:`stored` round to half precision, see :func:`rounded`."""

    is_on: ClassVar[bool] = False


@contextlib.contextmanager
def rounded() -> Iterator[None]:
    """Round the results of layers within the context."""
    Rounded.is_on = True
    try:
        yield
    finally:
        Rounded.is_on = False


def to_half(x: Any) -> Any:
    """Return float64 numbers rounded to BITS significant bits."""
    return _round(numpy.array(x, numpy.float64))


def _round(x: Any) -> Any:
    """Round float64 numbers in place, without another array of their size, and return them."""
    bits = x.view(numpy.int64)  # of sign, exponent and mantissa, to which half a unit may carry
    bits += 1 << (_REMOVED - 1)
    bits &= -1 << _REMOVED
    return x


def _matmul(x: Any, y: Any) -> Any:
    if x.ndim == 2:
        return _round(numpy.matmul(to_half(x), to_half(y)))
    product = numpy.empty((*x.shape[:-1], y.shape[-1]))
    for number, (left, right) in enumerate(zip(x, y, strict=True)):
        product[number] = _matmul(left, right)  # without rounded copies of all matrices
    return product


#: Product of two arrays of as many axes, with operands and result rounded.
rounded_matmul: Callable[[Any, Any], Any] = primitive(_matmul)
_in_half: Callable[[Any], Any] = primitive(to_half)


defvjp(_in_half, lambda _, x: to_half)


def stored(x: Any) -> Any:
    """Return ``x``, rounded within :func:`rounded`, and its gradient, too."""
    return _in_half(x) if Rounded.is_on else x


def _turned(x: Any) -> Any:
    return numpy.swapaxes(x, -1, -2)


defvjp(
    rounded_matmul,
    lambda _, x, y: lambda gradient: rounded_matmul(gradient, _turned(y)),
    lambda _, x, y: lambda gradient: rounded_matmul(_turned(x), gradient),
)
