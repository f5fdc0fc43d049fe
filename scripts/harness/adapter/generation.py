"""Text generation, token by token."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Callable, ClassVar, Sequence

from harness.adapter.base import Unsupported
from harness.adapter.matmuls import MatmulTrace


class Generation(MatmulTrace):
    """Sequences are continued by their likeliest tokens, with a key-value cache."""

    LACKING = "does not generate text"

    #: Compilers that generation supports, or none.
    GENERATES_WITH: ClassVar[Sequence[str]] = ("none",)
    #: Has ``prefill``, ``decode`` and the ``logits`` of its last pass; set by :meth:`make_cache`.
    _generator: Any

    def to_generate_with(self, definition: Any, name: str) -> Any:
        """Return the attribute ``name`` of ``definition``, for models that generate. Raises
        :class:`Unsupported` without it."""
        if not hasattr(definition, name):
            raise Unsupported(f"{self.case.model} {self.LACKING}")
        return getattr(definition, name)

    @abstractmethod
    def make_cache(self, new_tokens: int) -> None:
        """Make a cache for the prompts of the batch and ``new_tokens`` more, after :meth:`build`.

        Raises :class:`Unsupported` for a model that does not generate."""

    def prefill(self, more: Any = None) -> Any:
        """Enqueue a pass over the prompts of the batch, and ``more`` tokens after them (batch, n),
        numpy int64.

        The cache then has exactly their keys and values. Returns the next tokens, a new tensor
        (batch,) for each call."""
        return self._pass(self._generator.prefill, more)

    def decode(self, tokens: Any = None) -> Any:
        """Enqueue a pass over the tokens that :meth:`prefill` or this method returned last, which
        enter the cache; over ``tokens`` (batch,), numpy int64, instead of them if given. Returns
        the next tokens (batch,)."""
        return self._pass(self._generator.decode, tokens)

    def _pass(self, run: Callable[[Any], Any], tokens: Any) -> Any:
        """Run a pass of the generator with ``tokens``, if any; adapters prepare what it needs."""
        return run(tokens)

    def following_logits(self) -> Any:
        """Return the logits of the last pass, a tensor (batch, vocabulary)."""
        return self._generator.logits
