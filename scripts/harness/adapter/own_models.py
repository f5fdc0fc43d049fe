"""Models of users, and how their file becomes a model."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import os
import sys
import types
from abc import abstractmethod
from typing import Any, ContextManager, Dict, Optional, Sequence, Tuple, TypeVar

from harness.adapter.base import Case, Definition, Mismatch, RankContext
from harness.adapter.computation import Numerics

#: Precision of the run that users' models are compared with; no case has it.
FLOAT64 = "float64"
#: Folders that modules of the environment are imported from.
_PATH = list(sys.path)

OwnModelsAdapter = TypeVar("OwnModelsAdapter", bound="OwnModels")


class OwnModels(Numerics):
    """The framework runs models of users, each compared with its own float64 run.

    The batch in :meth:`build` is ``{"seed": number}``: seed of the rank's batch."""

    LACKING = "runs no models of users"
    _definition: Any

    @abstractmethod
    def in_float64(self) -> ContextManager[OwnModels]:
        """Return a started adapter of the same model and initial weights, for float64 without a
        compiler.

        It is not built, runs alone, and exists as long as the context."""

    @abstractmethod
    def result_dtypes(self) -> Dict[str, int]:
        """Return the number of operations of a forward pass with floating-point results, by
        dtype."""

    @abstractmethod
    def multiply_adds(self) -> Optional[int]:
        """Return the multiply-adds of a forward pass over this rank's batch, counted by the
        framework or from its graph; None where they are not known."""

    def alone_in_float64(self: OwnModelsAdapter) -> OwnModelsAdapter:
        """Return a copy of this adapter with a definition of its own, to run in float64 without a
        compiler and without other ranks."""
        alone = copy.copy(self)
        alone.case = self.case._replace(precision=FLOAT64, compiler="none")
        addresses = self.rank_context.addresses[:1]
        alone.rank_context = dataclasses.replace(self.rank_context, rank=0, addresses=addresses)
        alone._definition = alone.definition()
        return alone

    def batch_arrays(self) -> Sequence[Any]:
        """Return this rank's inputs and targets as numpy arrays."""
        return list(self._definition.arrays())


class OwnDefinition(Definition):
    """Common base of the definitions of users' models. A framework's subclass has the functions
    that a definition of the project's models has.

    ``OPTIMIZERS``: type, or types, of its optimizers; ``LIBRARY``: where they are from."""

    OPTIMIZERS: Any
    LIBRARY: str

    def __init__(self, case: Case, model_config: Dict[str, Any], rank_context: RankContext) -> None:
        super().__init__(case, model_config, rank_context)
        self._own = model_config["own"]
        self._take(self._library_model() if self._own["library"] else own_module(self._own))

    def _take(self, source: Any) -> None:
        """Keep the functions of ``source``: a user's file as a module, or a library's model."""
        self._make, self._make_optimizer = source.make, getattr(source, "optimizer", None)

    def _library_model(self) -> Any:
        """Return a library's model as an object with a function ``make``, like that of a user's
        file."""
        raise NotImplementedError(self._own["library"])

    def _first(self, inputs: Any) -> Any:
        """Return one of the input arrays, to look up its batch axis."""
        raise NotImplementedError

    def _made(self, *arguments: Any) -> Tuple[Any, Any, Any, Any]:
        """Return model, inputs, targets and loss. Raises TypeError where ``make`` returns anything
        else, :class:`Mismatch` where the inputs do not have the batch as their first axis."""
        batch = self.case.batch_per_device
        parts = self._make(batch, *arguments)
        try:
            model, (inputs, targets), loss = parts
        except (TypeError, ValueError):
            raise TypeError("make must return model, (inputs, targets), loss") from None
        if not callable(loss):
            raise TypeError(f"make returned {type(loss).__name__} as the loss, not a function")
        try:
            shape = tuple(self._first(inputs).shape)
        except (AttributeError, IndexError):
            raise TypeError(
                f"make returned {type(inputs).__name__} as the inputs; allowed: an array whose "
                "first axis is the batch, or several"
            ) from None
        if shape[:1] != (batch,):
            raise Mismatch(
                f"make was asked for {batch} samples; its inputs have the shape {shape}; allowed: "
                "the batch as their first axis"
            )
        return model, inputs, targets, loss

    def _own_optimizer(self, *arguments: Any) -> Any:
        """Return the optimizer of the user's file; None where it has none."""
        if self._make_optimizer is None:
            return None
        optimizer = self._make_optimizer(*arguments)
        if not isinstance(optimizer, self.OPTIMIZERS):
            kind = type(optimizer).__name__
            raise TypeError(f"optimizer returned {kind}; allowed: one of {self.LIBRARY}")
        return optimizer


def own_module(declaration: Dict[str, Any]) -> Any:
    """Run the user's file as a module, from the text in the model config. Raises what running it
    raises."""
    new = [root for root in declaration["roots"] if root not in sys.path]
    sys.path[1:1] = new  # before the environment's modules, after the harness's own
    module = types.ModuleType("own_model")
    module.__file__, module.__package__ = declaration["source"], declaration["package"]
    sys.modules[module.__name__] = module  # compilers look there for the functions' globals
    exec(compile(declaration["text"], declaration["source"], "exec"), vars(module))
    return module


def check_own_files(declaration: Dict[str, Any]) -> None:
    """Raise :class:`Mismatch` where a user's model has imported modules that the declaration lacks
    or that have changed, from its folder or from folders that it added to the path."""
    before = {os.path.realpath(entry) for entry in _PATH}
    folders = {*before, *map(os.path.realpath, [*sys.path, *declaration["roots"]])}
    known = {os.path.realpath(path): name for name, path in declaration["modules"].items()}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not os.path.isabs(file) or module.__name__ == "own_model":
            continue  # PyTorch gives some modules a file name that does not exist
        path = os.path.realpath(file)
        within = [folder for folder in folders if path.startswith(os.path.join(folder, ""))]
        if not within or max(within, key=len) in before:
            continue
        with open(path, "rb") as content:
            digest = hashlib.sha256(content.read()).hexdigest()
        if path not in known:
            raise Mismatch(
                f"the model imports {path}, which none of its import statements names: changes to "
                "it would go unnoticed; allowed: import statements that name modules in the "
                "model's folder or in the folder of its outermost package"
            )
        if declaration["files"][known[path]] != digest:
            raise Mismatch(f"{path} has changed since the model was read")
