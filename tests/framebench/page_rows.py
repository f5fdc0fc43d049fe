"""Rows of the tables in a page's data, as its script reads them."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple


class PageRow(NamedTuple):
    """A row. ``cells``: texts by heading; ``records``: addresses of records behind it."""

    cells: dict[str, str]
    records: list[str]


def page_rows(html: str) -> dict[str, list[PageRow]]:
    """Return the rows of each table in a page, by the name of the table."""
    (text,) = re.findall(r'<script type="application/json" id="rows">(.*?)</script>', html, re.S)
    return rows_of(json.loads(text))


def rows_of(data: Any) -> dict[str, list[PageRow]]:
    def values(at: int, count: int) -> list[Any]:
        some = data["lists"][at]
        if isinstance(some, list):
            return some
        if "same" in some:
            return [some["same"]] * count
        return [some["of"][index] for index in some["at"]]

    cases = data["cases"]
    links = values(cases["records"], cases["count"])
    records = [text.split("\t")[1::2] for text in links]
    tables = {}
    for table in data["tables"]:
        count = table["rows"]
        columns = {
            part["title"]: values(part["cells"], count)
            for part in (*table["shown"], *table["unfolded"])
        }
        behind = [values(part["cases"], count) for part in table.get("behind", ())]
        tables[table["name"]] = [
            PageRow(
                {title: texts[at].partition("\t")[0] for title, texts in columns.items()},
                [name for part in behind if part[at] >= 0 for name in records[part[at]]],
            )
            for at in range(count)
        ]
    return tables
