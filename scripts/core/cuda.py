"""Start of CUDA by NVIDIA's driver. As a program, print the error: a driver that is broken may hang
or crash the process that starts it."""

from __future__ import annotations

import ctypes
from typing import Tuple

LIBRARY = "libcuda.so.1"


def start() -> Tuple[int, str]:
    """Return CUDA's number of the error and its words; 0 and the CUDA version that the driver
    supports where it starts. Raises OSError without the driver's library."""
    driver = ctypes.CDLL(LIBRARY)
    number = int(driver.cuInit(0))
    if number:
        words = ctypes.c_char_p()
        driver.cuGetErrorString(number, ctypes.byref(words))
        return number, (words.value or b"").decode("utf-8", "replace")
    version = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    return 0, f"{version.value // 1000}.{version.value % 1000 // 10}"


def main() -> None:
    try:
        number, words = start()
    except OSError:
        return  # frameworks may find the library elsewhere
    if number:
        print(number, words)


if __name__ == "__main__":
    main()
