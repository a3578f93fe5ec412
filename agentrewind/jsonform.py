"""The JSON form of values that JSON cannot hold: bytes, lone surrogates, odd numbers, odd keys.

Each such value becomes an object with a single telling key, its tag:

```text
bytes                          {"bytes": "base64:…"}
text with lone surrogates      {"str": "base64:…"}       UTF-8, surrogates encoded as they are
NaN and the infinities         {"float": "nan" | "inf" | "-inf"}
integers beyond 64 bits        {"int": "0x…"}
objects with such a key        {"pairs": [[key, value], …]}
an object that looks like one  {"escaped": {…}}
```
"""

from __future__ import annotations

import binascii
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import TypeAlias

import orjson

from agentrewind.errors import DamagedError, UsageError
from agentrewind.records import Json, JsonObject

MAX_DEPTH = 200
"""How deep lists and objects may nest; JSON parsers give up soon after."""

_BASE64 = "base64:"
_BLOB = "blob:"
_FLOATS = ("nan", "inf", "-inf")
_HEX = re.compile(r"-?0x[0-9a-f]+")
_TAGGED = re.compile(rb'\{"(?:bytes|str|float|int|pairs|escaped)":')
_TOO_DEEP = f"it nests deeper than {MAX_DEPTH} levels; flatten it first"
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1

_Path: TypeAlias = "tuple[_Path, str | int] | None"


Dump: TypeAlias = Callable[[object], object]
"""The data that an object stands for, or the object itself where it is none of those that are known."""


def to_json(value: object, *, where: str = "value", dump: Dump | None = None) -> Json:
    """The value as plain data: tuples become lists, subclasses of the JSON types their base.

    `dump` is asked about objects, wherever in the value they stand.

    Raises UsageError, naming the place, for anything else (sets, objects, keys that are no text) and
    for values nested deeper than `MAX_DEPTH`; nothing is turned into its `repr`.
    """
    return _normalise(value, where, None, 0, dump)


def to_plain(value: object, *, where: str = "value") -> Json:
    """The value in JSON form, free of anything `orjson.dumps` would refuse or change.

    Raises UsageError as `to_json` does.
    """
    return _plain(value, where, None, 0)


def from_plain(value: Json) -> Json:
    """The value that `to_plain` was given. Raises DamagedError where a tag holds what none can hold."""
    if isinstance(value, dict):
        if len(value) == 1:
            ((tag, inner),) = value.items()
            if _looks_tagged(tag, inner):
                return _READERS[tag](inner)
        return {key: from_plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    return value


def dump_plain(plain: Json, *, where: str = "value") -> bytes:
    """Compact JSON, for what is in JSON form already. Raises UsageError where tags made it nest too deep."""
    try:
        return orjson.dumps(plain)
    except TypeError as error:
        raise _refuse(where, None, f"{_TOO_DEEP} ({error})") from error


def load_plain(data: bytes, *, where: str) -> Json:
    """Inverts `dump_plain`; raises DamagedError."""
    try:
        found: Json = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise DamagedError(f"{where} holds no JSON: {error}") from error
    return found


def escape_reference(plain: Json) -> Json:
    """Guards a text that begins like a reference to a blob, where such a reference may stand."""
    if isinstance(plain, str) and plain.startswith(_BLOB):
        return {"escaped": plain}
    return plain


def may_be_tagged(data: bytes) -> bool:
    """False when the compact JSON text surely needs no `from_plain`."""
    return _TAGGED.search(data) is not None


def _looks_tagged(tag: str, inner: Json) -> bool:
    match tag:
        case "bytes" | "str":
            return isinstance(inner, str) and inner.startswith(_BASE64)
        case "float":
            return isinstance(inner, str) and inner in _FLOATS
        case "int":
            return isinstance(inner, str) and _HEX.fullmatch(inner) is not None
        case "pairs":
            return isinstance(inner, list)
        case "escaped":
            return isinstance(inner, dict) or (isinstance(inner, str) and inner.startswith(_BLOB))
        case _:
            return False


# --- writing ---


def _refuse(where: str, path: _Path, reason: str) -> UsageError:
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    place = where + "".join(reversed(steps))
    return UsageError(f"{place!r} cannot be recorded: {reason}")


def _key(key: object, where: str, path: _Path) -> str:
    if isinstance(key, str):
        return str(key)
    raise _refuse(where, path, f"the key {key!r} is a {type(key).__name__}; convert keys to text first")


def _unfit(value: object, where: str, path: _Path) -> UsageError:
    name = type(value).__name__
    return _refuse(where, path, f"a {name} is neither JSON nor bytes; convert it to plain data first")


def _deeper(where: str, depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise _refuse(where, None, _TOO_DEEP)
    return depth + 1


def _normalise(value: object, where: str, path: _Path, depth: int, dump: Dump | None) -> Json:
    if dump is not None and type(value) not in _WRITERS:
        value = dump(value)
    if isinstance(value, Mapping):
        depth = _deeper(where, depth)
        return {
            _key(key, where, path): _normalise(item, where, (path, str(key)), depth, dump)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        depth = _deeper(where, depth)
        return [_normalise(item, where, (path, index), depth, dump) for index, item in enumerate(value)]
    return _scalar(value, where, path)


def _scalar(value: object, where: str, path: _Path) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    for kind in (str, int, float):
        if isinstance(value, kind):
            # through the base's own methods: an enum's str() is its name, not its text
            return value if type(value) is kind else kind(_BASES[kind](value))
    raise _unfit(value, where, path)


_BASES: dict[type, Callable[[object], str | int | float]] = {
    str: lambda value: str.__str__(value) if isinstance(value, str) else "",
    int: lambda value: int.__int__(value) if isinstance(value, int) else 0,
    float: lambda value: float.__float__(value) if isinstance(value, float) else 0.0,
}


def _plain(value: object, where: str, path: _Path, depth: int) -> Json:
    writer = _WRITERS.get(type(value))
    if writer is not None:
        return writer(value)
    if isinstance(value, (list, tuple)):
        depth = _deeper(where, depth)
        return [_plain(item, where, (path, index), depth) for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        return _plain_object(value, where, path, _deeper(where, depth))
    return _WRITERS[type(base := _scalar(value, where, path))](base)


def _plain_object(value: Mapping[object, object], where: str, path: _Path, depth: int) -> Json:
    plain: JsonObject = {}
    odd_key = False
    for raw, item in value.items():
        key = raw if type(raw) is str else _key(raw, where, path)
        odd_key = odd_key or not (key.isascii() or _is_unicode(key))
        plain[key] = _plain(item, where, (path, key), depth)
    if odd_key:
        return {"pairs": [[_plain_text(key), item] for key, item in plain.items()]}
    if len(plain) == 1:
        ((tag, inner),) = plain.items()
        if _looks_tagged(tag, inner):
            return {"escaped": plain}
    return plain


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain_text(value: str) -> Json:
    if value.isascii() or _is_unicode(value):
        return value
    return {"str": _BASE64 + b64encode(value.encode("utf-8", "surrogatepass")).decode()}


def _plain_int(value: int) -> Json:
    return value if _SMALLEST <= value <= _LARGEST else {"int": hex(value)}


def _plain_float(value: float) -> Json:
    if math.isfinite(value):
        return value
    return {"float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}


def _plain_bytes(value: bytes) -> Json:
    return {"bytes": _BASE64 + b64encode(value).decode()}


_WRITERS: dict[type, Callable[..., Json]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    int: _plain_int,
    float: _plain_float,
    str: _plain_text,
    bytes: _plain_bytes,
}


# --- reading ---


def _read_base64(inner: Json) -> bytes:
    try:
        return b64decode(str(inner)[len(_BASE64) :], validate=True)
    except (binascii.Error, ValueError) as error:
        raise DamagedError(f"a value marked base64 is none ({error})") from error


def _read_text(inner: Json) -> str:
    try:
        return _read_base64(inner).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise DamagedError(f"a value marked as text is none ({error})") from error


def _read_pairs(inner: Json) -> JsonObject:
    found: JsonObject = {}
    for pair in inner if isinstance(inner, list) else []:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(key := from_plain(pair[0]), str):
            raise DamagedError("a value marked as pairs holds something else")
        found[key] = from_plain(pair[1])
    return found


def _read_escaped(inner: Json) -> Json:
    if isinstance(inner, dict):
        return {key: from_plain(item) for key, item in inner.items()}
    return inner


_READERS: dict[str, Callable[[Json], Json]] = {
    "bytes": _read_base64,
    "str": _read_text,
    "float": lambda inner: float(str(inner)),
    "int": lambda inner: int(str(inner), 16),
    "pairs": _read_pairs,
    "escaped": _read_escaped,
}
