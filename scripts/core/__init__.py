"""Code that harness and driver share: the axes of a case and the meaning of their values.

Standard library only, Python 3.7 to 3.13. Nothing here imports harness, adapters or driver.
"""

#: Format of the records that the harness writes and the driver reads.
RECORD_FORMAT = "framebench-record-2"
