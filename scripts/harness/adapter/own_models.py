"""Models that users bring, and how their file becomes one."""

from __future__ import annotations

import sys
import types
from abc import abstractmethod
from typing import Any, Callable, ContextManager, Dict, Sequence, Tuple

from harness.adapter.case import Mismatch
from harness.adapter.numerics import Numerics

#: The precision of a run that one in another is compared with; no case has it.
FLOAT64 = "float64"


class OwnModels(Numerics):
    """It runs models that users bring, each compared with its own run in float64. Their batch in
    :meth:`build` is ``{"seed": number}``: what the rank's own is drawn by."""

    LACKING = "runs no models of one's own"

    @abstractmethod
    def in_float64(self) -> ContextManager[OwnModels]:
        """An adapter, started and not built, of the same model with the initial weights of this
        one: alone, without a compiler, and in float64, for as long as the context lasts."""

    @abstractmethod
    def result_dtypes(self) -> Dict[str, int]:
        """How many operations of a forward pass give floating-point numbers of which dtype."""

    @abstractmethod
    def batch_arrays(self) -> Sequence[Any]:
        """This rank's inputs and targets, as numpy arrays."""


def own_module(model_config: Dict[str, Any]) -> Any:
    """The user's file, run as a module: the content that the model config was made of. Raises what
    running it raises."""
    own = model_config["own"]
    module = types.ModuleType("own_model")
    module.__file__ = own["source"]
    sys.modules[module.__name__] = module  # compilers look there for the functions' globals
    exec(compile(own["text"], own["source"], "exec"), vars(module))
    return module


def own_model_parts(
    made: Any, batch: int, first: Callable[[Any], Any]
) -> Tuple[Any, Any, Any, Any]:
    """Model, inputs, targets and loss from what ``make`` has returned. ``first``: an array among
    the inputs. Raises TypeError where it is something else, :class:`Mismatch` where the inputs are
    not ``batch`` samples."""
    try:
        model, (inputs, targets), loss = made
    except (TypeError, ValueError):
        raise TypeError("make must return model, (inputs, targets), loss") from None
    if not callable(loss):
        raise TypeError(f"make returned {type(loss).__name__} as the loss, not a function")
    try:
        shape = tuple(first(inputs).shape)
    except (AttributeError, IndexError):
        raise TypeError(
            f"make returned {type(inputs).__name__} as the inputs; allowed: an array whose first "
            "axis is the batch, or several"
        ) from None
    if shape[:1] != (batch,):
        raise Mismatch(f"make was asked for {batch} samples; its inputs have the shape {shape}")
    return model, inputs, targets, loss


def own_model_optimizer(found: Any, kind: Any, library: str) -> Any:
    """``found``, which the file's ``optimizer`` has returned. Raises TypeError unless it is of the
    ``kind`` that the ``library`` has."""
    if not isinstance(found, kind):
        raise TypeError(f"optimizer returned {type(found).__name__}; allowed: one of {library}")
    return found
