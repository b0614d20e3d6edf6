"""
JSON item by item: the entries of the arrays in a document, without ever holding the parsed whole.

The text itself stands in memory, one parsed entry at a time beside it; a document that is damaged or cut is refused
by code and line.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from elsewhere.errors import InvalidTraces
from elsewhere.traces.sources import Source, as_utf8
from elsewhere.traces.tables import Reading
from elsewhere.traces.texts import NUMBER, without_last_line

BLANK = re.compile(r"[ \t\r\n]*")
# half a string, number or word at the end of a text
HALF = re.compile(r'"(?:[^"\\]|\\.)*\\?|,|\\u?[0-9A-Fa-f]{0,4}|[\w+.-]{0,30}', re.DOTALL | re.ASCII)
# a value of its own in the first line, and another in the second
LINES = re.compile(rb"\s*\{[^\n]*\}[ \t\r]*\n\s*\{")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def items(source: Source, reading: Reading, names: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """
    (Name of the array, entry) of a JSON document, in order.

    An array at the top has the name "". Of an object at the top, the entries of the arrays called `names` come one by
    one and every other value as a whole. Several values one after the other (one per line) are entries of "". Of a
    document that is cut off, `reading` may allow the entries before the cut.
    """
    content = as_utf8(source.content, source.name, reading.encoding)
    if reading.cut and LINES.match(content):
        content, reading = without_last_line(content), replace(reading, cut=False)
    text = content.decode()
    at = _skip(text, 0)
    try:
        if text[at : at + 1] == "[":
            yield from (("", item) for item in _entries(text, at)[0])
            return
        if text[at : at + 1] == "{" and names and not _is_lines(text, at):
            yield from _members(text, at, names)
            return
        while at < len(text):
            item, at = _DECODER.raw_decode(text, at)
            yield "", item
            at = _skip(text, at)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidTraces):
            raise
        if reading.cut and _stops(text, error):
            return
        raise _damaged(source.name, text, error) from None


def _skip(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    return found.end() if found else at


def _is_lines(text: str, at: int) -> bool:
    """Whether the first line is an object of its own, and another one follows."""
    end = text.find("\n", at)
    if end < 0:
        return False
    try:
        _, stop = _DECODER.raw_decode(text[at:end].rstrip())
    except (ValueError, RecursionError):
        return False
    return stop > 0 and text[_skip(text, end) :][:1] == "{"


def _members(text: str, at: int, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        key = STRING.match(text, at)
        if key is None:
            raise json.JSONDecodeError("", text, at)
        name = json.loads(key[0])
        at = _skip(text, key.end())
        if text[at : at + 1] != ":":
            raise json.JSONDecodeError("", text, at)
        at = _skip(text, at + 1)
        if name in names and text[at : at + 1] == "[":
            stop = _Stop()
            yield from ((name, item) for item in _walk(text, at, stop))
            at = stop.at
        else:
            value, at = _DECODER.raw_decode(text, at)
            yield name, value
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "}":
            raise json.JSONDecodeError("", text, at)


class _Stop:
    """Where a walk over an array ended."""

    at = 0


def _entries(text: str, at: int) -> tuple[Iterator[Any], _Stop]:
    stop = _Stop()
    return _walk(text, at, stop), stop


def _walk(text: str, at: int, stop: _Stop) -> Iterator[Any]:
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        item, at = _DECODER.raw_decode(text, at)
        yield item
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "]":
            raise json.JSONDecodeError("", text, at)
    stop.at = at + 1


def _number(text: str) -> int | str:
    # a number of a million digits is no coordinate and no time, and takes for ever to read; it may be an id
    return int(text) if len(text) <= 25 else text


_DECODER = json.JSONDecoder(parse_int=_number)


def _damaged(name: str, text: str, error: Exception) -> InvalidTraces:
    # a document that stops too early is found out at its end
    whole = text.rstrip()
    if getattr(error, "pos", 0) >= len(whole) or not whole.endswith(("}", "]")):
        return InvalidTraces(f"{name} is cut off: its last bracket is missing.", code="E_TRUNCATED")
    line = getattr(error, "lineno", None)
    where = name if line is None else f"{name}, line {line}"
    return InvalidTraces(f"{where}: damaged JSON.", code="E_JSON")


def _stops(text: str, error: Exception) -> bool:
    """Whether nothing but half a value follows: damage in the middle of a document is no cut."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return HALF.fullmatch(text[error.pos :].rstrip()) is not None


def number_of(value: Any) -> float:
    """A JSON number, or text that is one, as float; NaN for anything else."""
    if isinstance(value, str) and not NUMBER.fullmatch(value):
        return math.nan  # float() would take "1_000" and the digits of any script (B22)
    try:
        return float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def part_of(value: Any, *keys: str) -> Any:
    """The value under a path of keys, None where there is none."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
