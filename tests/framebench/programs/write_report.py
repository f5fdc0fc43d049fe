"""Write the report of a folder of records: write_report.py RECORDS REPORT"""

from __future__ import annotations

import sys
from pathlib import Path

from framebench.records.record_sets import load
from framebench.report.html_report import render
from framebench.tables.frames import build
from framebench.tables.grouping import group
from framebench.tables.table import Inputs

found = load(Path(sys.argv[1]))
inputs = Inputs(group(found.runs, None))
report = Path(sys.argv[2])
text = render(found, inputs, build(inputs), report.parent, "A report")
report.write_text(text, encoding="utf-8")
