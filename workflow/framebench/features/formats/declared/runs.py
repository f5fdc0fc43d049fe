"""The project's own table of runs, which ``report`` and ``compare`` read, as CSV and Parquet."""

from __future__ import annotations

import io
from collections.abc import Iterator

from ....records import tidy_csv
from ..file_formats import ExportedFile, Format, Results
from ..rows import ImportedFigure
from ..source import ImportedFile

_WHOLE = ("nodes", "devices_per_node", "batch_per_device", "repeat")


def write(results: Results) -> ExportedFile:
    return ExportedFile(tidy_csv.text_of(results.rows()))


def read(source: ImportedFile) -> Iterator[ImportedFigure]:
    runs, problems = tidy_csv.read_csv(source.path)
    if problems:
        source.refuse(problems[0].message)
    yield from map(ImportedFigure, runs)


def write_parquet(results: Results) -> ExportedFile:
    import pandas as pd  # slow to import, and other formats do not need it

    # Fixed types, because the default string type depends on the installed libraries.
    missing = [{name: cell or None for name, cell in row.items()} for row in results.rows()]
    frame = pd.DataFrame(missing, dtype="object").astype("string[python]")
    frame["value"] = pd.to_numeric(frame["value"]).astype("Float64")
    for column in _WHOLE:
        frame[column] = pd.to_numeric(frame[column]).astype("Int64")
    out = io.BytesIO()
    try:
        frame.to_parquet(out, index=False)
    except ImportError:
        raise OSError(
            "Parquet needs fastparquet or pyarrow next to Framebench: pip install fastparquet"
        ) from None
    return ExportedFile(out.getvalue())


FORMATS = [Format("csv", ".csv", write, read), Format("parquet", ".parquet", write_parquet)]
