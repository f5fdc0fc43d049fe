"""Parquet file of the table of runs, with typed columns."""

from __future__ import annotations

import io

from ..format import ExportedFile, Format, Results

_WHOLE = ("nodes", "devices_per_node", "batch_per_device", "repeat")


def write(results: Results) -> ExportedFile:
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
            "Parquet needs fastparquet or pyarrow beside Framebench: pip install fastparquet"
        ) from None
    return ExportedFile(out.getvalue())


FORMATS = [
    Format(
        "parquet",
        ".parquet",
        "Parquet (needs fastparquet or pyarrow)",
        write=write,
        holds="as csv",
        flags="column `flags`",
        lost="as csv",
    )
]
