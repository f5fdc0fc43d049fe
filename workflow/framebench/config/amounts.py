"""Shares and sizes as people write them."""

from __future__ import annotations

from .validation import ConfigError, show

#: Of ``memory_limit``, in bytes.
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_MOST = 1024 * 2**40


def share(place: str, value: float | str) -> float:
    """``5%`` and ``0.05`` are the same. Raises :class:`ConfigError` at ``place`` for what is not
    above 0 and below 1."""
    found = float(value[:-1]) / 100 if isinstance(value, str) else value
    if not 0 < found < 1:
        raise ConfigError(
            f"{place}: found {show(value)}; allowed: a percentage like 5%, or a number like 0.05, "
            "above 0 and below 100 %"
        )
    return found


def memory_limit(place: str, value: str) -> str | None:
    """A size or a share as the harness takes it; None for ``auto``. Raises :class:`ConfigError` at
    ``place`` for none at all, and for more than there can be."""
    if value == "auto":
        return None
    if value.endswith("%"):
        fits = 0 < float(value[:-1]) <= 100
    else:
        fits = 1 <= float(value[:-3]) * _UNITS[value[-3:]] <= _MOST
    if not fits:
        raise ConfigError(
            f"{place}: found {show(value)}; allowed: auto, a size above 0 like 16GiB (up to "
            "1024TiB), or a share of the machine's memory like 80%, up to 100%"
        )
    return value
