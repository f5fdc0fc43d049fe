"""A rank's report on disk, saved at every phase, so that the launcher knows where a silent rank
was."""

from __future__ import annotations

import json
import math
import os
import re
import traceback
from typing import Any, Dict, Optional, Tuple

from core import bounded
from core.text import printable, shorten

#: Most characters of a text in a record; longer texts keep their beginning and end.
LONGEST_TEXT = 32768
# Python represents undecodable bytes as lone surrogates.
_UNDECODED = re.compile("[\udc80-\udcff]")


def path_of(folder: str, rank: int) -> str:
    """Return the report's path of ``rank`` in the run's temporary folder."""
    return os.path.join(folder, f"rank{rank}.json")


def encodable(value: Any) -> Any:
    """Return ``value`` in a form that JSON allows, at any depth.

    NaN and infinity become None. Bytes that are not UTF-8, such as Latin-1 in a variable, and
    control characters become escapes. Texts have at most LONGEST_TEXT characters."""
    if isinstance(value, str):
        return _valid(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_valid(str(key)): encodable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encodable(item) for item in value]
    return value


def _valid(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        half = LONGEST_TEXT // 2 - 50
        between = len(text) - 2 * half
        text = f"{text[:half]}\n[{between} characters left out]\n{text[-half:]}"
    text = printable(_UNDECODED.sub(lambda match: f"\\x{ord(match.group()) - 0xDC00:02x}", text))
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def error_text(error: BaseException) -> str:
    """Format an error as ``ExceptionType: message`` on one line. Long messages keep beginning and
    end, either of which may name the cause."""
    # Without this cut, PyTorch's advice for developers would replace the end of a long message.
    message = " ".join(str(error).partition("Set TORCHDYNAMO_VERBOSE")[0].split())
    return shorten(": ".join(filter(None, (type(error).__name__, message))), 500)


class Report:
    """Report of one rank; ``fields`` is its entry in the record's ``ranks``."""

    def __init__(self, folder: str, rank: int, host: str) -> None:
        self._path = path_of(folder, rank)
        self._phase = "start"
        self.fields: Dict[str, Any] = {"rank": rank, "host": host, "status": "failed", "reason": ""}

    def enter(self, phase: str) -> None:
        """Note the phase that begins."""
        self._phase = phase
        self._save(final=False)

    def succeed(self) -> None:
        """Save the final report: everything measured is in ``fields``."""
        self.fields["status"] = "ok"
        self._save(final=True)

    def fail(self, status: str, reason: str, error: BaseException) -> None:
        """Save the final report with an error."""
        trace = traceback.format_exception(type(error), error, error.__traceback__)
        self.fields.update(status=status, reason=reason, traceback="".join(trace))
        self._save(final=True)

    def _save(self, final: bool) -> None:
        content = {"phase": self._phase, "final": final, "fields": encodable(self.fields)}
        partial = self._path + ".part"
        with open(partial, "w", encoding="utf-8") as file:
            # A setting that is not a JSON value is replaced by its text, so that the run is not
            # lost.
            json.dump(content, file, allow_nan=False, default=str)
        os.replace(partial, self._path)


def read(folder: str, rank: int) -> Tuple[Optional[str], bool, Dict[str, Any]]:
    """Return the content of a rank's latest report: the phase, None without a report; whether it is
    final; its fields."""
    try:
        content = bounded.read_json(path_of(folder, rank))
    except (OSError, ValueError):
        return None, False, {}
    return content["phase"], content["final"], content["fields"]
