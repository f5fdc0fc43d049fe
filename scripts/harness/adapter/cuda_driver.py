"""Ask NVIDIA's driver why a framework sees no GPU.

Standard library only; Python 3.7 to 3.13.
"""

from __future__ import annotations

import ctypes

LIBRARY = "libcuda.so.1"


def reason() -> str:
    """Return the driver's error, or the CUDA version that it supports where it has none."""
    try:
        driver = ctypes.CDLL(LIBRARY)
    except OSError as error:
        return str(error)
    status = driver.cuInit(0)
    if status:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(status, ctypes.byref(text))
        return f"cuInit: {(text.value or b'').decode('utf-8', 'replace') or status}"
    version = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    return f"the driver supports CUDA {version.value // 1000}.{version.value % 1000 // 10}"
