"""Text, token by token."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Sequence

from harness.adapter.case import Unsupported
from harness.adapter.matmul_dtypes import MatmulTrace


class Generation(MatmulTrace):
    """Sequences are continued by their likeliest tokens, with a cache of keys and values."""

    LACKING = "does not generate text"

    #: The compilers, or none, with which it does.
    GENERATES_WITH: ClassVar[Sequence[str]] = ("none",)

    def to_generate_with(self, definition: Any, name: str) -> Any:
        """What ``definition`` has under ``name`` for models that generate; raises
        :class:`Unsupported` where it has none."""
        if not hasattr(definition, name):
            raise Unsupported(f"{self.case.model} {self.LACKING}")
        return getattr(definition, name)

    @abstractmethod
    def make_cache(self, new_tokens: int) -> None:
        """Room for the prompts of the batch and ``new_tokens`` more; called behind :meth:`build`.
        Raises :class:`Unsupported` for a model that does not generate."""

    @abstractmethod
    def prefill(self, more: Any = None) -> Any:
        """Enqueue a pass over the prompts of the batch, and ``more`` tokens behind them (batch, n),
        int64 of numpy. Their keys and values are all that the cache has then. Returns the tokens
        that follow, a tensor (batch,), one of its own for each call."""

    @abstractmethod
    def decode(self) -> Any:
        """Enqueue a pass over the tokens that :meth:`prefill` or this returned last, which go into
        the cache. Returns those that follow."""

    @abstractmethod
    def following_logits(self) -> Any:
        """What the last pass chose its tokens by, a tensor (batch, vocabulary)."""
