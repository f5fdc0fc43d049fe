"""Harness whose attempts end as ``attempts.json`` of the working folder says."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

arguments = sys.argv[1:]
output, log = (Path(arguments[arguments.index(name) + 1]) for name in ("--output", "--log"))
attempts = json.loads(Path("attempts.json").read_text())
status, steal = attempts.pop(0)
Path("attempts.json").write_text(json.dumps(attempts))
log.write_text("started")
if status == "hang":
    time.sleep(600)
if status == "dies":
    sys.exit(3)
record = json.loads(Path("record.json").read_text())
record["status"] = status
record["watch"]["steal"] = steal
output.write_text(json.dumps(record))
