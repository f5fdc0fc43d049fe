"""Line and column of values in a JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from framebench.features.formats import source
from framebench.features.formats.json_places import Keys, place_of, place_of_refused
from framebench.files import json_files

from . import samples

#: Formats with files that are one JSON text.
WHOLE = [name for name, sample in samples.ALL.items() if sample().startswith("{\n")]


def places(value: Any, within: Keys = ()) -> Iterator[Keys]:
    """Yield the places of a value and of all values in it."""
    yield within
    parts = value.items() if isinstance(value, dict) else ()
    parts = enumerate(value) if isinstance(value, list) else parts
    for key, part in parts:
        yield from places(part, (*within, key))


def with_another(value: Any, keys: Keys, other: Any) -> Any:
    """Return the value with another one at these keys."""
    if not keys:
        return other
    copy = value.copy()
    copy[keys[0]] = with_another(copy[keys[0]], keys[1:], other)
    return copy


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("indent", [None, 1])
def test_every_value_is_found_where_it_stands(name: str, indent: int | None) -> None:
    document = json.loads(samples.ALL[name]())
    text = json.dumps(document, indent=indent)
    for keys in places(document):
        marked = json.dumps(with_another(document, keys, "here, and nowhere else"), indent=indent)
        assert place_of(text, keys) == marked.index('"here, and'), keys


@pytest.mark.parametrize(
    ("text", "keys", "rest"),
    [
        ('{"a": {"b": 1}}', ("a", "c"), '{"b": 1}}'),
        ('{"a": [1, 2]}', ("a", 2, "x"), "[1, 2]}"),
        ('{"a": 1}', ("a", "b"), "1}"),
        ('{"a": 1, "a": 2}', ("a",), "2}"),
        ('{"a": NaN, "b": []}', ("b", 0), "[]}"),
        (' \n{"}": {}, "a\\"b": 3}', ('a"b',), "3}"),
    ],
)
def test_of_what_is_missing_the_innermost_on_the_way_is_named(
    text: str, keys: Keys, rest: str
) -> None:
    assert text[place_of(text, keys) :] == rest


@pytest.mark.parametrize(
    ("wrong", "further"),
    [*((text, 0) for text in ("NaN", "-Infinity", "1e999", "9" * 30, "9" * 5000)),
     ("[" * 201 + "]" * 201, 199)],
)  # fmt: skip
def test_what_nothing_could_hold_is_refused_where_it_stands(
    wrong: str, further: int, tmp_path: Path
) -> None:
    text = '{"a": ["NaN", 1e3, "[", "\\"1e999", 12],\n "b": {"c": ' + wrong + ', "d": 1e999}}'
    assert place_of_refused(text) == text.index(wrong, 40) + further
    with pytest.raises(ValueError, match=r"holds|nested"):
        json_files.decode(text.encode())
    file = tmp_path / "given.json"
    file.write_text(text)
    with pytest.raises(
        source.FormatError, match=r"given.json, line 2, column \d+: (holds|is nested)"
    ):
        source.ImportedFile(file).json()
    assert place_of_refused(text.replace(wrong, "1").replace("1e999", "1")) is None


def test_bytes_that_are_no_text_are_refused_where_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "given.json"
    file.write_bytes(b'{"a": 1,\n "b": "\xff"}')
    for constants in (False, True):
        with pytest.raises(source.FormatError, match="line 2: is no UTF-8 text"):
            source.ImportedFile(file).json(constants)
