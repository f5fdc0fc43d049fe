"""What a framework brings that computes with one batch after the other: new data for a step.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Dict, Mapping, Tuple

from harness.adapter import Capability

#: Shape and dtype of each array of a batch, by its name.
Form = Dict[str, Tuple[Tuple[int, ...], str]]


def form_of(batch: Mapping[str, Any]) -> Form:
    """That of a batch of numpy arrays."""
    return {name: (tuple(array.shape), str(array.dtype)) for name, array in batch.items()}


def check_form(batch: Mapping[str, Any], form: Form) -> None:
    """Raises ValueError where ``batch`` has another form, with the first difference."""
    found = form_of(batch)
    if set(found) != set(form):
        raise ValueError(f"a batch of {sorted(found)}; the model was built with {sorted(form)}")
    for name, (shape, dtype) in form.items():
        if found[name] != (shape, dtype):
            raise ValueError(f"{name} is {found[name][1]} {found[name][0]}, not {dtype} {shape}")


class Feeding(Capability):
    """A step computes with the batch that was fed last."""

    LACKING: ClassVar[str] = "takes no other batch than that which its model was built with"
    #: Of the batch of :meth:`build`, which notes it by :meth:`note_form`.
    _form: Form

    def note_form(self, batch: Mapping[str, Any]) -> None:
        """Called by :meth:`build`, with its batch."""
        self._form = form_of(batch)

    def feed(self, batch: Dict[str, Any]) -> None:
        """Copy ``batch`` to the device, in the place of that of :meth:`build` or of the last call:
        the next :meth:`step` computes with it. It is of the same numpy arrays by name, shape and
        dtype, which may be overwritten when this returns. Raises ValueError where it is not."""
        check_form(batch, self._form)
        self.put(batch)

    @abstractmethod
    def put(self, batch: Dict[str, Any]) -> None:
        """As :meth:`feed`, for a batch of the right form."""
