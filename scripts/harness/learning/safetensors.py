"""Read and write arrays in Hugging Face's safetensors files."""

from __future__ import annotations

import hashlib
import json
import os
from typing import IO, Any, Callable, Dict, Mapping, NamedTuple, Sequence, Tuple

from core import bounded
from tasks import TaskError

#: Suffix of file names.
SUFFIX = ".safetensors"
#: Dtypes by safetensors' names and numpy's; bfloat16 is the upper half of a float32.
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_METADATA, _OWN = "__metadata__", {"format": "framebench"}


class Stored(NamedTuple):
    """Arrays in a file at ``path``.

    ``names``: as the file has them. ``array``: returns an array by name, in float32. ``is_own``:
    written by a training here, with the names and layout that all frameworks share."""

    path: str
    names: Sequence[str]
    array: Callable[[str], Any]
    is_own: bool

    def sha256(self) -> str:
        """Return the SHA-256 (hex) of the file."""
        digest = hashlib.sha256()
        with bounded.open_to_read(self.path) as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
        return digest.hexdigest()


def open_safetensors(path: str) -> Stored:
    """Open a file. Raises :class:`TaskError` where it is not safetensors, and OSError."""
    with bounded.open_to_read(path) as file:
        declared, begin = _header(path, file)
    is_own = declared.pop(_METADATA, None) == _OWN

    def array(name: str) -> Any:
        with bounded.open_to_read(path) as file:
            return _array(path, file, name, declared[name], begin)

    return Stored(path, sorted(declared), array, is_own)


def write(path: str, arrays: Mapping[str, Any]) -> None:
    """Write ``arrays`` as float32, with the names and layout that all frameworks share. The file
    appears when it is complete. Raises OSError."""
    import numpy as np

    header: Dict[str, Any] = {_METADATA: _OWN}
    offset = 0
    for name in sorted(arrays):
        size = 4 * int(np.prod(arrays[name].shape))
        header[name] = {
            "dtype": "F32",
            "shape": [int(extent) for extent in arrays[name].shape],
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # arrays are aligned
    with open(path + ".part", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in sorted(arrays):
            file.write(np.ascontiguousarray(arrays[name], "<f4").tobytes())
    os.replace(path + ".part", path)


def _header(path: str, file: IO[bytes]) -> Tuple[Dict[str, Any], int]:
    """Return the header, and where the arrays begin."""
    size = int.from_bytes(file.read(8), "little")
    content = file.read(min(size, 100_000_000))  # their own limit
    try:
        if len(content) < size:
            raise ValueError(f"{size} bytes of header are announced, {len(content)} are there")
        declared = json.loads(content.decode("utf-8"))
        if not isinstance(declared, dict):
            raise ValueError("its header is no object")
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{path}: is no file of safetensors: {error}") from None
    return declared, 8 + size


def _array(path: str, file: IO[bytes], name: str, entry: Any, begin: int) -> Any:
    """Return an array as float32."""
    import numpy as np

    try:
        dtype, shape = _DTYPES[entry["dtype"]], [int(extent) for extent in entry["shape"]]
        first, behind = entry["data_offsets"]
        file.seek(begin + int(first))
        content = file.read(int(behind) - int(first))
        array = np.frombuffer(content, dtype).reshape(shape)
    except (KeyError, TypeError, ValueError) as error:
        raise TaskError(f"{path}: {name} cannot be read: {error!r}") from None
    if entry["dtype"] == "BF16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)
