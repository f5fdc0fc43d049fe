"""What harness and driver share: the axes of a case, and what their values mean.

Standard library alone, Python 3.7 to 3.13. Nothing here imports harness, adapters or driver.
"""

#: Format of the records that the harness writes and the driver reads.
RECORD_FORMAT = "framebench-record-2"
