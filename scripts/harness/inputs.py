"""Where the samples of a step come from; ``input`` of a case.

The driver has the same names in ``workflow/framebench/config/inputs.py``.
"""

from __future__ import annotations

#: A batch that is made before the model is built, and lies on the device.
SYNTHETIC = "synthetic"
#: The same batch lies on the host, and is copied to the device before each step.
SYNTHETIC_HOST = "synthetic_host"
#: Another batch before each step, of images that the framework's loader reads from files.
DATA = "data"
#: The same, read by NVIDIA's DALI in the place of the framework's loader.
DALI = "dali"
NAMES = (SYNTHETIC, SYNTHETIC_HOST, DATA, DALI)
#: Those that read files.
READING = (DATA, DALI)
